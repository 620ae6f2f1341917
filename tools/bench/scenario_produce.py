"""Produce with the raw client: a full window, one request at a time, and 500 connections."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import partial

import attrs

from logstore.tools.bench.cells import CLIENT_BUSY, Cell, Meter, topic_on
from logstore.tools.bench.client import Connection
from logstore.tools.bench.figures import Bar, Metric, percentile
from logstore.tools.bench.frames import ProduceReplies, produce_frame, record_batch, text_values
from logstore.tools.bench.numbered_frames import numbered_frames
from logstore.tools.bench.pipeline import (
    Driven,
    drive_requests,
    latencies_of_many_us,
    latencies_us,
)
from logstore.tools.bench.targets import Target

IN_FLIGHT = 64
CONNECTIONS = 500
#: requests made beforehand for each second: faster brokers are done earlier
NUMBERED_A_SECOND_MAX = 200_000


@attrs.frozen
class BatchShape:
    """One batch a request: so many records of so many bytes."""

    label: str
    record_count: int
    record_bytes: int

    def batch(self) -> bytes:
        """Return it encoded."""
        return record_batch(text_values(self.record_bytes, self.record_count))


ONE_SMALL = BatchShape("1 x 100 B", 1, 100)
KB_10 = BatchShape("10 KB batch", 10, 1000)
KB_100 = BatchShape("100 KB batch", 100, 1000)
KB_900 = BatchShape("900 KB batch", 900, 1000)


def produce_windowed(shape: BatchShape, target: Target, seconds: float) -> Mapping[str, float]:
    """Keep 64 requests in flight on one connection to one partition."""
    batch = shape.batch()
    with topic_on(target, "raw", 1) as (connection, topic):
        frames = [produce_frame(topic, [0], batch)]
        replies = ProduceReplies.about(topic, 1)
        run = partial(drive_requests, connection, frames, replies, in_flight=IN_FLIGHT)
        run(seconds=seconds / 10)
        meter = Meter(target)
        driven = run(seconds=seconds)
        rate = driven.requests / driven.seconds
        return {
            "requests_per_s": rate,
            "mb_per_s": rate * len(batch) / 1e6,
            **meter.costs(driven.requests),
        }


def produce_numbered(target: Target, seconds: float) -> Mapping[str, float]:
    """As with a window of small batches, from a producer that numbers them, as Java's do."""
    batch = ONE_SMALL.batch()
    with topic_on(target, "numbered", 1) as (connection, topic):
        replies = ProduceReplies.about(topic, 1)
        first, most = 0, int(NUMBERED_A_SECOND_MAX * seconds)

        def run(count: int, for_seconds: float) -> Driven:
            frames = numbered_frames(topic, batch, producer_id=1, first=first, count=count)
            return drive_requests(
                connection, frames, replies,
                in_flight=IN_FLIGHT, seconds=for_seconds, requests_max=count,
            )  # fmt: skip

        first += run(most // 10, seconds / 10).requests
        meter = Meter(target)
        driven = run(most, seconds)
        return {
            "requests_per_s": driven.requests / driven.seconds,
            **meter.costs(driven.requests),
        }


def produce_one_by_one(target: Target, seconds: float) -> Mapping[str, float]:
    """One record of 100 bytes, acknowledged before the next is sent."""
    with topic_on(target, "latency", 1) as (connection, topic):
        frame = produce_frame(topic, [0], ONE_SMALL.batch())
        replies = ProduceReplies.about(topic, 1)
        latencies_us(connection, frame, replies, seconds=seconds / 10)
        meter = Meter(target)
        latencies = latencies_us(connection, frame, replies, seconds=seconds)
        return {
            "p50_us": percentile(latencies, 0.5),
            "p99_us": percentile(latencies, 0.99),
            **meter.costs(len(latencies)),
        }


def produce_from_many(target: Target, seconds: float) -> Mapping[str, float]:
    """500 connections, each with one record of 100 bytes in flight all the time, 6 partitions."""
    batch = ONE_SMALL.batch()
    with topic_on(target, "connections", 6) as (_, topic), contextlib.ExitStack() as stack:
        replies = ProduceReplies.about(topic, 1)
        connections = [
            stack.enter_context(Connection(target.main.address)) for _ in range(CONNECTIONS)
        ]
        frames = [produce_frame(topic, [index], batch) for index in range(6)]

        def run(for_seconds: float) -> list[float]:
            return latencies_of_many_us(
                connections, lambda at: frames[at % 6], replies, seconds=for_seconds
            )

        run(seconds / 4)
        meter = Meter(target)
        latencies = run(seconds)
        return {
            "p50_ms": percentile(latencies, 0.5) / 1000,
            "p99_ms": percentile(latencies, 0.99) / 1000,
            **meter.costs(len(latencies)),
        }


def _window_cell(shape: BatchShape, metric: Metric) -> Cell:
    return Cell(
        "raw-produce",
        f"{shape.label}, {IN_FLIGHT} in flight",
        (metric, Metric("cpu_us", "us CPU/request"), CLIENT_BUSY),
        partial(produce_windowed, shape),
    )


CELLS = [
    _window_cell(ONE_SMALL, Metric("requests_per_s", "requests/s", Bar("ratio", ">=", 5))),
    _window_cell(KB_10, Metric("mb_per_s", "MB/s", Bar("ratio", ">=", 2))),
    _window_cell(KB_100, Metric("mb_per_s", "MB/s", Bar("ratio", ">=", 1.3))),
    _window_cell(KB_900, Metric("mb_per_s", "MB/s", Bar("ratio", ">=", 1.5))),
    Cell(
        "raw-produce",
        f"{ONE_SMALL.label} numbered, {IN_FLIGHT} in flight",
        (
            Metric("requests_per_s", "requests/s", Bar("ratio", ">=", 5)),
            Metric("cpu_us", "us CPU/request"),
            CLIENT_BUSY,
        ),
        produce_numbered,
    ),
    Cell(
        "raw-latency",
        "1 x 100 B, one in flight",
        (
            Metric("p50_us", "us p50", Bar("ratio", "<=", 1)),
            Metric("p99_us", "us p99", Bar("ratio", "<=", 2 / 3)),
            Metric("cpu_us", "us CPU/request"),
            CLIENT_BUSY,
        ),
        produce_one_by_one,
    ),
    Cell(
        "connections",
        f"{CONNECTIONS} connections, 1 x 100 B each",
        (
            Metric("p50_ms", "ms p50"),
            Metric("p99_ms", "ms p99", Bar("ratio", "<=", 0.5)),
            Metric("cpu_us", "us CPU/request"),
            CLIENT_BUSY,
        ),
        produce_from_many,
    ),
]
