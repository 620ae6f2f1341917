"""Fetch with the raw client: stored data at full speed, and a record to a waiting fetch."""

from __future__ import annotations

from collections.abc import Mapping

from logstore.tools.bench.cells import CLIENT_BUSY, Cell, Meter, topic_on
from logstore.tools.bench.client import Connection, end_offsets
from logstore.tools.bench.figures import Bar, Metric, percentile
from logstore.tools.bench.frames import FetchReply, ProduceReplies, fetch_frame, produce_frame
from logstore.tools.bench.pipeline import delivery_latencies_us, drive_fetch, drive_requests
from logstore.tools.bench.scenario_produce import KB_100, ONE_SMALL
from logstore.tools.bench.targets import Target

FETCH_BYTES = 1 << 20
STORED_BATCHES = 640
FETCHES_IN_FLIGHT = 2


def fetch_stored(target: Target, seconds: float) -> Mapping[str, float]:
    """Fetch 1 MiB at a time, two requests in flight, all over 64 MB that were just written."""
    with topic_on(target, "fetch", 1) as (connection, topic):
        (first,) = end_offsets(connection, topic, 1) or [0]
        drive_requests(
            connection,
            [produce_frame(topic, [0], KB_100.batch())],
            ProduceReplies.about(topic, 1),
            in_flight=16,
            seconds=60,
            requests_max=STORED_BATCHES,
        )
        starts = range(first, first + (STORED_BATCHES - 16) * KB_100.record_count, 1000)
        frames = [fetch_frame(topic, 0, start, bytes_max=FETCH_BYTES) for start in starts]
        reply = FetchReply.about(topic)
        drive_fetch(connection, frames, reply, in_flight=FETCHES_IN_FLIGHT, seconds=seconds / 10)
        meter = Meter(target)
        driven = drive_fetch(
            connection, frames, reply, in_flight=FETCHES_IN_FLIGHT, seconds=seconds
        )
        return {
            "mb_per_s": driven.received_bytes / driven.seconds / 1e6,
            "mb_per_reply": driven.received_bytes / driven.requests / 1e6,
            **meter.costs(driven.requests),
        }


def deliver(target: Target, seconds: float) -> Mapping[str, float]:
    """Send a record while a fetch at the end of the log waits, and wait for that fetch."""
    with (
        topic_on(target, "deliver", 1) as (producer, topic),
        Connection(target.main.address) as consumer,
    ):
        frame = produce_frame(topic, [0], ONE_SMALL.batch())

        def run(for_seconds: float) -> list[float]:
            (next_offset,) = end_offsets(producer, topic, 1) or [0]
            return delivery_latencies_us(
                producer,
                consumer,
                frame,
                lambda offset: fetch_frame(topic, 0, offset, bytes_max=FETCH_BYTES, wait_ms=5000),
                next_offset=next_offset,
                seconds=for_seconds,
            )

        run(seconds / 10)
        meter = Meter(target)
        latencies = run(seconds)
        return {
            "p50_us": percentile(latencies, 0.5),
            "p99_us": percentile(latencies, 0.99),
            **meter.costs(len(latencies)),
        }


CELLS = [
    Cell(
        "raw-fetch",
        "1 MiB a request",
        (
            Metric("mb_per_s", "MB/s", Bar("ratio", ">=", 0.9)),
            Metric("cpu_us", "us CPU/request"),
            Metric("mb_per_reply", "MB/reply", is_shown=False),
            CLIENT_BUSY,
        ),
        fetch_stored,
    ),
    Cell(
        "end-to-end",
        "produce to a waiting fetch",
        (
            Metric("p50_us", "us p50", Bar("ratio", "<=", 1 / 1.5)),
            Metric("p99_us", "us p99", Bar("ratio", "<=", 1 / 3)),
            Metric("cpu_us", "us CPU/record"),
        ),
        deliver,
    ),
]
