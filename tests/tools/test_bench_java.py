"""What Kafka's performance tools say, and what becomes of it."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from logstore.tools.bench import scenario_java
from logstore.tools.bench.frames import BenchError
from logstore.tools.bench.scenario_java import CELLS, Consume, Produce, end_to_end

if TYPE_CHECKING:
    from collections.abc import Generator

_PRODUCED = """\
1205 records sent, 240.9 records/sec (0.24 MB/sec), 9.0 ms avg latency, 99.0 ms max latency.
5000 records sent, 96000.5 records/sec (93.75 MB/sec), 4.28 ms avg latency, 404.00 ms max \
latency, 1 ms 50th, 22 ms 95th, 27 ms 99th, 34 ms 99.9th.
"""
_CONSUMED = """\
start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, \
rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec
2026-12-01 14:10:09:324, 2026-12-01 14:10:12:731, 0.2861, 0.0840, 3000, 880.5, 3349, 58, 4.9, \
51724.1379
"""
_LATENCY = "0\t59.508023\n1000\t0.892021\nAvg latency: 0.8114 ms\nPercentiles: 50th = 0, 99th = 3\n"


class _Tools:
    """Tools that say what they are told to, and a target without a broker."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.says: dict[str, str] = {}
        self.asked: list[list[str]] = []
        self.code = 0
        self.target: Any = SimpleNamespace(
            main=SimpleNamespace(bootstrap="broker.test:9092"), cpu_seconds=lambda: None
        )

        @contextmanager
        def topic_on(*_: object) -> Generator[tuple[None, str]]:
            yield None, "topic"

        def java(_version: str, main: str, *arguments: str, jvm: str) -> list[str]:
            assert jvm == "-Xmx512m"
            return [main.rpartition(".")[2], *arguments]

        monkeypatch.setattr(scenario_java, "topic_on", topic_on)
        monkeypatch.setattr(scenario_java, "java", java)
        monkeypatch.setattr(subprocess, "run", self._run)

    def _run(self, command: list[str], **_: object) -> SimpleNamespace:
        self.asked.append(command)
        said = self.says.get(command[0], "")
        return SimpleNamespace(stdout=said, stderr="no broker there", returncode=self.code)


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> _Tools:
    """Tools that say nothing yet."""
    return _Tools(monkeypatch)


def test_the_producer_is_asked_for_seconds_of_records(tools: _Tools) -> None:
    """Its last line counts; those before are of each five seconds."""
    tools.says["ProducerPerformance"] = _PRODUCED
    found = Produce(1024, 80_000, ("acks=all", "compression.type=lz4"))(tools.target, 2.0)
    assert found == {"records_per_s": 96000.5, "average_ms": 4.28}
    assert tools.asked == [
        [
            *("ProducerPerformance", "--topic", "topic", "--num-records", "320000"),
            *("--record-size", "1024", "--throughput", "-1", "--producer-props"),
            *("bootstrap.servers=broker.test:9092", "acks=all", "compression.type=lz4"),
        ]
    ]


def test_the_consumer_has_seen_all_that_was_produced(tools: _Tools) -> None:
    """The rate is that of its fetches: joining a group takes as long as Kafka has it take."""
    tools.says |= {"ProducerPerformance": _PRODUCED, "ConsumerPerformance": _CONSUMED}
    assert Consume(100, 1000)(tools.target, 1.0) == {"records_per_s": 51724.1379}
    assert [one[0] for one in tools.asked] == ["ProducerPerformance", "ConsumerPerformance"]
    with pytest.raises(BenchError, match="saw not all of 4000"):
        Consume(100, 1000)(tools.target, 2.0)


def test_a_latency_is_the_average(tools: _Tools) -> None:
    """The tool's percentiles are whole milliseconds."""
    tools.says["EndToEndLatency"] = _LATENCY
    assert end_to_end(tools.target, 2.0) == {"average_ms": 0.8114}


@pytest.mark.parametrize("run", [Produce(100, 1000), end_to_end])
def test_a_tool_that_says_nothing_or_fails_is_no_figure(tools: _Tools, run: Any) -> None:
    """Its own words are told."""
    with pytest.raises(BenchError, match="told n"):
        run(tools.target, 1.0)
    tools.code = 1
    with pytest.raises(BenchError, match="ended with 1: no broker there"):
        run(tools.target, 1.0)


def test_every_rate_is_held_against_kafkas() -> None:
    """As is the processor time of each record."""
    bars = [(m.name, m.bar.limit) for cell in CELLS for m in cell.metrics if m.bar is not None]
    assert bars == [("records_per_s", 1), ("cpu_us", 1)] * 6 + [("average_ms", 1)]
