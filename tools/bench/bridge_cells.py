"""What is measured of a protocol on the other's layout: at least a third of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from logstore.tools.bench import rocketmq_cells
from logstore.tools.bench.bridge_targets import KAFKA, ROCKETMQ, BridgeTarget
from logstore.tools.bench.cells import CLIENT_BUSY, Cell
from logstore.tools.bench.figures import Bar, Metric
from logstore.tools.bench.rocketmq_cells import BATCH_MESSAGES, IN_FLIGHT, Sending
from logstore.tools.bench.scenario_fetch import fetch_stored
from logstore.tools.bench.scenario_librdkafka import Mix
from logstore.tools.bench.scenario_produce import (
    KB_10,
    ONE_SMALL,
    BatchShape,
    produce_windowed,
)
from logstore.tools.bench.targets import Target

Measure = Callable[[Target, float], Mapping[str, float]]

AT_LEAST = Bar("ratio", ">=", 1 / 3)
SMALL_RECORDS = BatchShape("100 x 100 B", 100, 100)
#: loops are compiled, or loaded, after so much of a load
_WARM_SECONDS = 3.0


def _on(protocol: str, measure: Measure) -> Measure:
    def run(target: Target, seconds: float) -> Mapping[str, float]:
        assert isinstance(target, BridgeTarget), "cells of the bridge ask for a protocol"
        return measure(target.of(protocol), seconds)

    return run


def warm(target: Target, seconds: float) -> None:
    """Load both brokers with a little of everything."""
    seconds = max(seconds, _WARM_SECONDS)
    works: list[tuple[str, Measure]] = [
        (KAFKA, partial(produce_windowed, SMALL_RECORDS)),
        (KAFKA, fetch_stored),
        (ROCKETMQ, Sending("sync", 128, (64,))),
        (ROCKETMQ, rocketmq_cells.pull),
    ]
    for protocol, work in works:
        _on(protocol, work)(target, seconds)


def _kafka(scenario: str, name: str, figure: tuple[str, str], measure: Measure) -> Cell:
    metrics = (Metric(*figure, AT_LEAST), Metric("cpu_us", "us CPU/unit"), CLIENT_BUSY)
    return Cell(scenario, name, metrics, _on(KAFKA, measure))


def _rocketmq(scenario: str, name: str, measure: Measure) -> Cell:
    metrics = (
        Metric("messages_per_s", "messages/s", AT_LEAST),
        Metric("p99_ms", "ms p99"),
        Metric("cpu_us", "us CPU/message"),
    )
    return Cell(scenario, name, metrics, _on(ROCKETMQ, measure))


_REQUESTS, _RECORDS = ("requests_per_s", "requests/s"), ("records_per_s", "records/s")

CELLS: list[Cell] = [
    *(
        _kafka("kafka-produce", shape.label, _REQUESTS, partial(produce_windowed, shape))
        for shape in (ONE_SMALL, SMALL_RECORDS, KB_10)
    ),
    *(
        _kafka("kafka-librdkafka", f"{label}, 6 partitions", _RECORDS, Mix(size, -1, 6, "none"))
        for label, size in (("100 B", 100), ("1 KiB", 1024))
    ),
    _kafka("kafka-fetch", "1 MiB of 1,000 B records", ("mb_per_s", "MB/s"), fetch_stored),
    *(
        _rocketmq("rocketmq-send", f"{label}, {threads} threads", Sending("sync", size, (threads,)))
        for label, size in (("128 B", 128), ("1 KiB", 1024))
        for threads in (1, 64)
    ),
    _rocketmq(
        "rocketmq-async", f"128 B, {IN_FLIGHT} in flight", Sending("async", 128, (IN_FLIGHT,))
    ),
    _rocketmq(
        "rocketmq-batch",
        f"{BATCH_MESSAGES} x 128 B, 8 threads",
        Sending("batch", 128, (8, BATCH_MESSAGES)),
    ),
    _rocketmq("rocketmq-pull", "32 x 128 B, 1 thread", rocketmq_cells.pull),
]

#: Names in the order of the first cell of each.
SCENARIOS: list[str] = list(dict.fromkeys(cell.scenario for cell in CELLS))
