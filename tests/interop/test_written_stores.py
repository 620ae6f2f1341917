"""Stores that Spark's writer made, in the real brokers: they start on them, and serve every row."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from logstore.compat.spark import store_commit
from logstore.compat.spark.store_commit import StoreCommit
from logstore.compat.spark.write_options import parse_write_options
from logstore.tools.dev.kafka_peer import KafkaPeer
from logstore.tools.dev.maven import PeerUnavailable
from tests.compat.spark.test_row_batches import records_of
from tests.compat.spark.test_writing import commit_to, staged_by
from tests.interop.clients import settings
from tests.interop.conftest import missing
from tests.interop.rocketmq_sessions import start_real
from tests.interop.test_convert import consumed, pulled

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]


def rows_of(start: int, count: int) -> list[dict[str, Any]]:
    """Return rows with keys, of very different sizes."""
    return [
        {"key": b"k%d" % (number % 97), "value": b"%d " % number * (1 + number % 300)}
        for number in range(start, start + count)
    ]


def headed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with headers, most of them tags and a property."""
    for number, row in enumerate(rows):
        row["headers"] = [
            {"key": "TAGS", "value": b"tag%d" % (number % 3)},
            {"key": "from", "value": "K\u00f6ln".encode() if number % 5 else b"here"},
        ][: number % 7]
    return rows


def headers_at(bootstrap: str, count: int) -> list[tuple[Any, ...]]:
    """Return partition, offset and headers of so many records of topic t."""
    consumer = Consumer(settings(bootstrap) | {"group.id": "h", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition("t", index, 0) for index in range(3)])
    found: list[tuple[Any, ...]] = []
    while len(found) < count:
        messages = consumer.consume(count - len(found), timeout=20)
        assert messages, f"{len(found)} of {count} records came"
        found += [(one.partition(), one.offset(), one.headers() or []) for one in messages]
    consumer.close()
    return sorted(found)


def test_a_real_kafka_serves_what_was_written(tmp_path: Path) -> None:
    """Packed by loops, and one by one after that; a job that failed in between left nothing."""
    store = tmp_path / "store"
    commit = commit_to(store)
    rows = headed(rows_of(0, 9000))
    commit.commit([staged_by(commit, rows)])
    refused = [staged_by(commit, rows_of(9000, 20)), staged_by(commit, [{"value": bytes(2**21)}])]
    with pytest.raises(Exception, match=r"max\.message\.bytes"):
        commit.commit(refused)
    commit = commit_to(store)
    commit.commit([staged_by(commit, rows_of(9000, 50))])
    expected = [
        ("t", index, offset, key, value)
        for index, records in enumerate(records_of(store))
        for offset, key, value in records
    ]
    assert sorted(row[4] for row in expected) == sorted(row["value"] for row in rows_of(0, 9050))
    try:
        real = KafkaPeer("4", tmp_path / "real", as_is=store).start()
    except PeerUnavailable as reason:
        missing(str(reason))
    try:
        found = consumed(real.bootstrap, {("t", index): 0 for index in range(3)}, len(expected))
        headers = headers_at(real.bootstrap, len(expected))
    finally:
        real.stop()
    assert [(*row[:3], *row[4:]) for row in found] == sorted(expected)
    given = {row["value"]: [(one["key"], one["value"]) for one in row["headers"]] for row in rows}
    values = {(index, offset): value for _, index, offset, _, value in expected}
    for index, offset, one in headers:
        assert one == given.get(values[index, offset] or b"", [])


def test_a_real_rocketmq_serves_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its own file sizes; packed by loops and put together, and one by one after that."""
    store = tmp_path / "store"
    given = {"path": str(store), "layout": "rocketmq", "partitions": "3"}
    commit = StoreCommit(parse_write_options(given))
    rows = headed(rows_of(0, 9000)) + headed(rows_of(9000, 50))
    with monkeypatch.context() as patch:
        patch.setattr(store_commit, "bulk_bytes_min", lambda: 0)
        commit.commit([staged_by(commit, rows[:9000])])
    commit.commit([staged_by(commit, rows[9000:])])
    real = start_real("5", tmp_path / "real", {}, store)
    try:
        found = pulled(real.bootstrap, ["t"])
        by_key = real.mqadmin("queryMsgByKey", "-n", real.bootstrap, "-t", "t", "-k", "k13")
    finally:
        real.stop()
    told = sorted((len(row["value"]), zlib.crc32(row["value"])) for row in rows)
    assert sorted(row[-2:] for row in found) == told
    # Its answer ends at 64.
    lines = [line for line in by_key.splitlines() if line.startswith("7F000001")]
    assert len(lines) == min(sum(row["key"] == b"k13" for row in rows), 64)
