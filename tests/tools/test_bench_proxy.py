"""The benchmark of RocketMQ's proxies: its bars, its targets, and what it says it cannot do."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from logstore.tools.bench.figures import Bar
from logstore.tools.bench.frames import BenchError
from logstore.tools.bench.proxy_cells import CELLS, SCENARIOS
from logstore.tools.bench.proxy_targets import OursWithProxy, ProxyTarget, RealWithProxy
from logstore.tools.commands.bench import bench


def test_every_rate_is_held_against_the_real_one() -> None:
    """It is to be as fast at least."""
    bars = {(cell.scenario, cell.name): cell.metrics[0].bar for cell in CELLS}
    assert list(bars.values()) == [Bar("ratio", ">=", 1)] * 4
    assert ("send", "128 B, 64 threads") in bars
    assert ("consume", "128 B, push consumer") in bars


def test_a_target_makes_instances_of_its_kind(tmp_path: Path) -> None:
    """Each has ports of its own, and what it was given to write in goes away with it."""
    for name, kind in {"ours": OursWithProxy, "5.5.0": RealWithProxy}.items():
        target = ProxyTarget(name, str(tmp_path))
        assert type(target.fresh_instance()) is kind
        target.close()
    assert list(tmp_path.iterdir()) == []


def test_ours_is_told_which_port_clients_come_to(tmp_path: Path) -> None:
    """It is the last that `serve` is told."""
    instance = OursWithProxy(tmp_path)
    assert instance.options()[-2:] == ["--proxy-port", instance.endpoints.rpartition(":")[2]]


def test_an_address_is_refused(tmp_path: Path) -> None:
    """Of a proxy that runs somewhere nobody knows the broker."""
    target = ProxyTarget("127.0.0.1:8081", str(tmp_path))
    with pytest.raises(BenchError, match=r"127\.0\.0\.1:8081: say ours or 5\.5\.0"):
        _ = target.instance
    target.close()


def test_the_command_lists_every_scenario_without_starting_anything() -> None:
    """`--list` shows what would be measured, with the bars."""
    done = CliRunner().invoke(bench, ["proxy", "--list"])
    assert done.exit_code == 0
    for scenario in SCENARIOS:
        assert scenario in done.output
