"""Many partitions: appends all over them, and making them."""

from __future__ import annotations

import time
from collections.abc import Mapping

import attrs

from logstore.tools.bench.cells import CLIENT_BUSY, Cell, Meter, fresh_topic_name
from logstore.tools.bench.client import (
    Connection,
    create_topic,
    delete_topic,
    write_past_first_index_entries,
)
from logstore.tools.bench.figures import Bar, Metric
from logstore.tools.bench.frames import ProduceReplies, produce_frame
from logstore.tools.bench.pipeline import drive_requests
from logstore.tools.bench.scenario_produce import ONE_SMALL
from logstore.tools.bench.targets import Target

CREATED = 1000


@attrs.frozen
class Spread:
    """Appends of one record of 100 bytes, all over a topic, so many partitions in one request."""

    partition_count: int
    partitions_a_request: int

    def __call__(self, target: Target, seconds: float) -> Mapping[str, float]:
        """Append round and round; the topic is written past its first index entries once a run."""
        topic = self._topic(target)
        batch = ONE_SMALL.batch()
        step = self.partitions_a_request
        frames = [
            produce_frame(topic, range(start, start + step), batch)
            for start in range(0, self.partition_count, step)
        ]
        replies = ProduceReplies.about(topic, step)
        in_flight = 64 if step == 1 else 8
        with Connection(target.main.address) as connection:
            drive_requests(connection, frames, replies, in_flight=in_flight, seconds=seconds / 10)
            meter = Meter(target)
            driven = drive_requests(
                connection, frames, replies, in_flight=in_flight, seconds=seconds
            )
        appends = driven.requests * step
        return {"appends_per_s": appends / driven.seconds, **meter.costs(appends)}

    def _topic(self, target: Target) -> str:
        topic = f"bench-spread-{self.partition_count}"
        if topic not in target.topics:
            with Connection(target.main.address) as connection:
                create_topic(connection, topic, self.partition_count)
                write_past_first_index_entries(connection, topic, self.partition_count)
            target.topics.add(topic)
        return topic


def create(target: Target, seconds: float) -> Mapping[str, float]:
    """Create a topic of 1,000 partitions, until each has a leader and tells its end offset."""
    del seconds  # it takes what it takes
    topic = fresh_topic_name("create")
    with Connection(target.main.address) as connection:
        started = time.perf_counter()
        create_topic(connection, topic, CREATED)
        elapsed = time.perf_counter() - started
        delete_topic(connection, topic)
    return {"seconds": elapsed}


def _spread_cell(partition_count: int, partitions_a_request: int) -> Cell:
    return Cell(
        "many-partitions",
        f"{partition_count:,} partitions, {partitions_a_request} a request",
        (
            Metric("appends_per_s", "appends/s", Bar("ratio", ">=", 2)),
            Metric("cpu_us", "us CPU/append"),
            CLIENT_BUSY,
        ),
        Spread(partition_count, partitions_a_request),
    )


CELLS = [
    *(_spread_cell(count, step) for count in (100, 1000) for step in (1, 100)),
    Cell(
        "create-partitions",
        f"{CREATED:,} partitions",
        (Metric("seconds", "s", Bar("value", "<", 0.5)),),
        create,
    ),
]
