"""The benchmark of either protocol on either layout: its bars, and who is held against whom."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from logstore.tools.bench.bridge_cells import CELLS
from logstore.tools.bench.bridge_targets import FOREIGN, OWN, SHARED, BridgeTarget, options_of
from logstore.tools.bench.figures import Bar
from logstore.tools.bench.frames import BenchError
from logstore.tools.bench.runner import contestants
from logstore.tools.commands.bench import bench


def test_every_rate_must_be_a_third_of_that_on_the_own_layout() -> None:
    """Produce and fetch, send and pull: each has a cell, and the bar is the same for all."""
    bars = {cell.scenario: metric.bar for cell in CELLS for metric in cell.metrics if metric.bar}
    assert set(bars) >= {"kafka-produce", "kafka-fetch", "rocketmq-send", "rocketmq-pull"}
    assert set(bars.values()) == {Bar("ratio", ">=", 1 / 3)}
    assert all(any(metric.bar for metric in cell.metrics) for cell in CELLS)


def test_the_own_layout_is_the_baseline() -> None:
    """Who is named last stands for the ratios: alone on its own layout."""
    assert contestants([FOREIGN, OWN]) == (FOREIGN, OWN)
    assert contestants([SHARED, OWN]) == (SHARED, OWN)


@pytest.mark.parametrize("protocol", ["kafka", "rocketmq"])
def test_each_kind_serves_what_it_says(protocol: str) -> None:
    """Foreign means the other's layout, shared its own with both protocols, own just itself."""
    other = "rocketmq" if protocol == "kafka" else "kafka"
    assert options_of(FOREIGN, protocol) == ["--layout", other, "--protocol", protocol]
    assert options_of(SHARED, protocol) == ["--layout", protocol, "--protocol", "kafka,rocketmq"]
    assert options_of(OWN, protocol) == []


def test_nothing_runs_before_it_is_asked_for(tmp_path: Path) -> None:
    """A target costs nothing until a cell asks for a protocol, and leaves nothing behind."""
    target = BridgeTarget(FOREIGN, str(tmp_path))
    assert not target.is_running
    assert target.cpu_seconds() == 0
    target.close()
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_none_is_refused(tmp_path: Path) -> None:
    """There are three, and the error names them."""
    with pytest.raises(BenchError, match="foreign, shared, own"):
        BridgeTarget("elsewhere", str(tmp_path))


def test_the_bars_are_listed() -> None:
    """`--list` shows what would be measured without starting anything."""
    done = CliRunner().invoke(bench, ["bridge", "--list", "-s", "rocketmq-pull"])
    assert done.exit_code == 0, done.output
    assert "0.3333x" in done.output
