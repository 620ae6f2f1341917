"""
Kafka's own performance tools: the Java producer and consumer as people measure brokers with them.

Each measurement is a fresh JVM, which compiles its code while it runs, and has threads enough to
fill two processors: a broker must get its share beside them.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping

import attrs

from logstore.tools.bench.cells import Cell, Meter, topic_on
from logstore.tools.bench.figures import Bar, Metric
from logstore.tools.bench.frames import BenchError
from logstore.tools.bench.targets import Target
from logstore.tools.dev.kafka_peer import VERSION_4, java

#: a client as people run it: nothing set but the heap, which is that of Kafka's own scripts
_JVM = "-Xmx512m"
_SECONDS_MAX = 180
_PRODUCED = re.compile(
    r"^\d+ records sent, ([\d.]+) records/sec .* ([\d.]+) ms avg latency,", re.MULTILINE
)
_LATENCY = re.compile(r"^Avg latency: ([\d.]+) ms$", re.MULTILINE)


@attrs.frozen
class Produce:
    """``kafka-producer-perf-test.sh``: `rate` records a second are expected, about."""

    record_bytes: int
    rate: int
    settings: tuple[str, ...] = ("acks=all",)

    def __call__(self, target: Target, seconds: float) -> Mapping[str, float]:
        """Produce to one partition, as fast as the client can, with two seconds to warm up."""
        count = int(self.rate * (2 + seconds))
        with topic_on(target, "java", 1) as (_, topic):
            meter = Meter(target)
            told = _run("ProducerPerformance", *self.arguments(target, topic, count))
            costs = meter.costs(count)
        found = _PRODUCED.findall(told)
        if not found:
            raise BenchError(f"the producer's tool told no rate: {told[-500:]}")
        rate, latency_ms = found[-1]
        return {"records_per_s": float(rate), "average_ms": float(latency_ms), **_server(costs)}

    def arguments(self, target: Target, topic: str, count: int) -> list[str]:
        """Return what the tool is told."""
        return [
            *("--topic", topic, "--num-records", str(count)),
            *("--record-size", str(self.record_bytes), "--throughput", "-1"),
            *("--producer-props", f"bootstrap.servers={target.main.bootstrap}", *self.settings),
        ]


@attrs.frozen
class Consume:
    """``kafka-consumer-perf-test.sh`` over records that were produced just before."""

    record_bytes: int
    rate: int

    def __call__(self, target: Target, seconds: float) -> Mapping[str, float]:
        """Consume one partition from its start with a group of its own."""
        count = int(self.rate * (2 + seconds))
        with topic_on(target, "java", 1) as (_, topic):
            filling = Produce(self.record_bytes, 0).arguments(target, topic, count)
            _run("ProducerPerformance", *filling)
            meter = Meter(target)
            where = ("--bootstrap-server", target.main.bootstrap, "--topic", topic)
            told = _run("ConsumerPerformance", *where, "--num-records", str(count))
            costs = meter.costs(count)
        names, values = (line.split(", ") for line in told.strip().splitlines()[-2:])
        figures = dict(zip(names, values, strict=True))
        if int(figures["data.consumed.in.nMsg"]) < count:
            raise BenchError(f"the consumer's tool saw not all of {count} records: {told}")
        return {"records_per_s": float(figures["fetch.nMsg.sec"]), **_server(costs)}


def end_to_end(target: Target, seconds: float) -> Mapping[str, float]:
    """``kafka-e2e-latency.sh``: a record of 100 B, acknowledged and consumed before the next."""
    count = int(1000 * (2 + seconds))
    with topic_on(target, "java", 1) as (_, topic):
        told = _run("EndToEndLatency", target.main.bootstrap, topic, str(count), "all", "100")
    found = _LATENCY.search(told)
    if found is None:
        raise BenchError(f"the tool for latencies told none: {told[-500:]}")
    return {"average_ms": float(found[1])}


def _run(tool: str, *arguments: str) -> str:
    command = java(VERSION_4, f"org.apache.kafka.tools.{tool}", *arguments, jvm=_JVM)
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=_SECONDS_MAX, check=False
    )
    if ended.returncode:
        raise BenchError(f"{tool} ended with {ended.returncode}: {ended.stderr[-500:]}")
    return ended.stdout


def _server(costs: Mapping[str, float]) -> Mapping[str, float]:
    """Return what the server used; what this process did says nothing of the client."""
    return {name: figure for name, figure in costs.items() if name == "cpu_us"}


def _produce(name: str, record_bytes: int, rate: int, *more: str) -> Cell:
    metrics = (
        Metric("records_per_s", "records/s", Bar("ratio", ">=", 1)),
        Metric("average_ms", "ms on average"),
        Metric("cpu_us", "us CPU/record", Bar("ratio", "<=", 1)),
    )
    return Cell(
        "java", f"produce {name}", metrics, Produce(record_bytes, rate, ("acks=all", *more))
    )


def _consume(name: str, record_bytes: int, rate: int) -> Cell:
    metrics = (
        Metric("records_per_s", "records/s", Bar("ratio", ">=", 1)),
        Metric("cpu_us", "us CPU/record", Bar("ratio", "<=", 1)),
    )
    return Cell("java", f"consume {name}", metrics, Consume(record_bytes, rate))


CELLS = [
    _produce("100 B", 100, 500_000),
    _produce("1 KiB", 1024, 80_000),
    _produce("1 KiB, lz4", 1024, 100_000, "compression.type=lz4", "linger.ms=10"),
    _produce("10 KiB", 10_240, 9_000),
    _consume("100 B", 100, 1_000_000),
    _consume("1 KiB", 1024, 250_000),
    Cell(
        "java",
        "100 B, acknowledged and consumed",
        (Metric("average_ms", "ms on average", Bar("ratio", "<=", 1)),),
        end_to_end,
    ),
]
