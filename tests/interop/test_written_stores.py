"""Stores that Spark's writer made, in the real brokers: they start on them, and serve every row."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest

from logstore.compat.spark.store_commit import StoreCommit
from logstore.compat.spark.write_options import parse_write_options
from logstore.tools.dev.kafka_peer import KafkaPeer
from logstore.tools.dev.maven import PeerUnavailable
from tests.compat.spark.test_row_batches import records_of
from tests.compat.spark.test_writing import commit_to, staged_by
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


def test_a_real_kafka_serves_what_was_written(tmp_path: Path) -> None:
    """Packed by loops, and one by one after that; a job that failed in between left nothing."""
    store = tmp_path / "store"
    commit = commit_to(store)
    commit.commit([staged_by(commit, rows_of(0, 9000))])
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
    finally:
        real.stop()
    assert [(*row[:3], *row[4:]) for row in found] == sorted(expected)


def test_a_real_rocketmq_serves_what_was_written(tmp_path: Path) -> None:
    """With its own file sizes; its Java client pulls every message."""
    store = tmp_path / "store"
    given = {"path": str(store), "layout": "rocketmq", "partitions": "3"}
    commit = StoreCommit(parse_write_options(given))
    rows = rows_of(0, 700)
    commit.commit([staged_by(commit, rows)])
    real = start_real("5", tmp_path / "real", {}, store)
    try:
        found = pulled(real.bootstrap, ["t"])
    finally:
        real.stop()
    told = sorted((len(row["value"]), zlib.crc32(row["value"])) for row in rows)
    assert sorted(row[-2:] for row in found) == told
