"""The benchmark of RocketMQ brokers: its bars, its targets, and how it says what it cannot do."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from logstore.tools.bench.cells import pick
from logstore.tools.bench.figures import Bar
from logstore.tools.bench.frames import BenchError
from logstore.tools.bench.rocketmq_cells import CELLS, SCENARIOS
from logstore.tools.bench.rocketmq_targets import OursInstance, RealInstance, RocketMQTarget
from logstore.tools.bench.runner import contestants
from logstore.tools.commands.bench import bench


def test_every_figure_that_was_promised_has_a_cell() -> None:
    """The suite holds the bars that the README's table is made of."""
    bars = {
        (cell.scenario, cell.name, metric.name): metric.bar
        for cell in CELLS
        for metric in cell.metrics
        if metric.bar is not None
    }
    for size in ("128 B", "1 KiB", "10 KiB"):
        for threads in ("1 thread", "16 threads", "64 threads"):
            at_least = 1.3 if (size, threads) == ("128 B", "64 threads") else 1
            name = f"{size}, {threads}"
            assert bars["sync", name, "messages_per_s"] == Bar("ratio", ">=", at_least)
            assert bars["sync", name, "p99_ms"] == Bar("ratio", "<=", 0.5)
        name = f"{size}, 256 in flight"
        assert bars["async", name, "messages_per_s"] == Bar("ratio", ">=", 1.3)
    for threads in ("1 thread", "8 threads"):
        name = f"32 x 128 B, {threads}"
        assert bars["batch", name, "messages_per_s"] == Bar("ratio", ">=", 1)
    assert bars["pull", "32 x 128 B, 1 thread", "messages_per_s"] == Bar("ratio", ">=", 1)
    for name in ("any order", "in order", "to each consumer"):
        assert bars["push", f"128 B, {name}", "messages_per_s"] == Bar("ratio", ">=", 1)
    for figure in ("p50_ms", "p99_ms"):
        assert bars["listen", "send to listener, 128 B", figure] == Bar("ratio", "<=", 0.5)
    assert bars["start", "process start to first ack", "ms"] == Bar("value", "<", 500)
    assert bars["start", "TestBroker() until it answers", "ms"] == Bar("value", "<", 60)
    assert bars["memory", "all processes", "idle_mib"] == Bar("value", "<=", 70)
    assert bars["memory", "all processes", "anonymous_mib"] == Bar("value", "<=", 100)


def test_ours_is_held_against_the_newest_real_one() -> None:
    """4.9.8 is shown beside it; alone it is the baseline."""
    assert contestants(["ours", "5.5.0", "4.9.8"]) == ("ours", "5.5.0")
    assert contestants(["4.9.8", "5.5.0"]) == ("4.9.8", "5.5.0")
    assert contestants(["ours", "4.9.8"]) == ("ours", "4.9.8")


def test_a_target_makes_instances_of_its_kind(tmp_path: Path) -> None:
    """Each has ports of its own, and what it was given to write in goes away with it."""
    kinds = {"ours": OursInstance, "5.5.0": RealInstance, "4.9.8": RealInstance}
    for name, kind in kinds.items():
        target = RocketMQTarget(name, str(tmp_path))
        instance = target.fresh_instance()
        assert type(instance) is kind
        assert instance.pids == []
        assert len({instance.address[1], instance.broker[1]}) == 2
        target.close()
    assert list(tmp_path.iterdir()) == []


def test_an_address_without_a_broker_is_refused(tmp_path: Path) -> None:
    """One line says that no name server lists a broker there."""
    target = RocketMQTarget("127.0.0.1:1", str(tmp_path))
    assert not target.can_start
    with pytest.raises(BenchError, match=r"127\.0\.0\.1:1: no name server lists a broker"):
        _ = target.instance
    target.close()


def test_the_command_lists_every_scenario_without_starting_anything() -> None:
    """`--list` shows what would be measured, with the bars."""
    done = CliRunner().invoke(bench, ["rocketmq", "--list"])
    assert done.exit_code == 0
    for scenario in SCENARIOS:
        assert scenario in done.output


def test_what_is_not_there_is_one_clear_line() -> None:
    """An unknown scenario is answered with the known ones, a bad target with what may stand."""
    with pytest.raises(BenchError, match="sync, async, batch"):
        pick(CELLS, ["snyc"], None)
    done = CliRunner().invoke(bench, ["rocketmq", "-t", "somewhere", "-s", "pull"])
    assert done.exit_code == 1
    assert "say ours, 5.5.0, 4.9.8 or HOST:PORT" in done.output
