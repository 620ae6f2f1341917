"""Consumers that keep their offsets at the broker: one, many at once, and all of a wide topic."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from logstore.tools.bench.cells import CLIENT_BUSY, Cell, Meter, fresh_topic_name
from logstore.tools.bench.client import (
    Connection,
    create_topic,
    delete_topic,
    wait_for_coordinator,
)
from logstore.tools.bench.figures import Bar, Metric, percentile
from logstore.tools.bench.group_frames import (
    CommitReplies,
    OffsetReplies,
    commit_frame,
    fetch_offsets_frame,
)
from logstore.tools.bench.pipeline import latencies_of_many_us, latencies_us
from logstore.tools.bench.targets import Target

CONSUMERS = 16
PARTITIONS = 1000


def commit_one_by_one(target: Target, seconds: float) -> Mapping[str, float]:
    """One partition's offset, acknowledged before the next is sent."""
    topic, group = fresh_topic_name("commit"), fresh_topic_name("group")
    with Connection(target.main.address) as connection:
        create_topic(connection, topic, 1)
        wait_for_coordinator(connection, group)
        frame = commit_frame(group, topic, [0])
        replies = CommitReplies.about(topic, 1)
        latencies_us(connection, frame, replies, seconds=seconds / 10)
        meter = Meter(target)
        latencies = latencies_us(connection, frame, replies, seconds=seconds)
        costs = meter.costs(len(latencies))
        delete_topic(connection, topic)
    return {"p50_us": percentile(latencies, 0.5), "p99_us": percentile(latencies, 0.99), **costs}


def commit_from_many(target: Target, seconds: float) -> Mapping[str, float]:
    """16 consumers of as many groups, each with one commit of a partition under way."""
    topic, group = fresh_topic_name("commit"), fresh_topic_name("group")
    with contextlib.ExitStack() as stack:
        connections = [
            stack.enter_context(Connection(target.main.address)) for _ in range(CONSUMERS)
        ]
        create_topic(connections[0], topic, CONSUMERS)
        wait_for_coordinator(connections[0], group)
        replies = CommitReplies.about(topic, 1)

        def run(for_seconds: float) -> list[float]:
            return latencies_of_many_us(
                connections,
                lambda at: commit_frame(f"{group}-{at:02}", topic, [at]),
                replies,
                seconds=for_seconds,
            )

        run(seconds / 10)
        meter = Meter(target)
        latencies = run(seconds)
        costs = meter.costs(len(latencies))
        delete_topic(connections[0], topic)
    return {"commits_per_s": len(latencies) / seconds, **costs}


def commit_and_look_up_all(target: Target, seconds: float) -> Mapping[str, float]:
    """The offsets of 1,000 partitions in one request, committed and asked for."""
    topic, group = fresh_topic_name("wide"), fresh_topic_name("group")
    every = range(PARTITIONS)
    with Connection(target.main.address) as connection:
        create_topic(connection, topic, PARTITIONS)
        wait_for_coordinator(connection, group)
        commit = commit_frame(group, topic, every)
        committed = CommitReplies.about(topic, PARTITIONS)
        look_up = fetch_offsets_frame(group, topic, every)
        found = OffsetReplies.about(topic, PARTITIONS)
        figures: dict[str, float] = {}
        for name, frame, replies in (("commit", commit, committed), ("fetch", look_up, found)):
            latencies_us(connection, frame, replies, seconds=seconds / 10)
            latencies = latencies_us(connection, frame, replies, seconds=seconds / 2)
            figures[f"{name}_p50_ms"] = percentile(latencies, 0.5) / 1000
        delete_topic(connection, topic)
    return figures


CELLS = [
    Cell(
        "commits",
        "1 partition, one in flight",
        (
            Metric("p50_us", "us p50", Bar("ratio", "<=", 1)),
            Metric("p99_us", "us p99", Bar("ratio", "<=", 1)),
            Metric("cpu_us", "us CPU/commit"),
            CLIENT_BUSY,
        ),
        commit_one_by_one,
    ),
    Cell(
        "commits",
        f"{CONSUMERS} consumers, 1 partition each",
        (
            Metric("commits_per_s", "commits/s", Bar("ratio", ">=", 1)),
            Metric("cpu_us", "us CPU/commit"),
            CLIENT_BUSY,
        ),
        commit_from_many,
    ),
    Cell(
        "commits",
        f"{PARTITIONS:,} partitions in one request",
        (
            Metric("commit_p50_ms", "ms p50 commit", Bar("ratio", "<=", 1)),
            Metric("fetch_p50_ms", "ms p50 look up", Bar("ratio", "<=", 1)),
        ),
        commit_and_look_up_all,
    ),
]
