"""Fetches that no client sends, or seldom."""

from __future__ import annotations

import pytest

from tests.compat.kafka.batches import NOW_MS, batch
from tests.compat.kafka.fetch.test_fetch import SIZE, fetch, filled, log_of
from tests.compat.kafka.peer import Peer, a_broker, fetch_fields


@pytest.mark.parametrize("version", range(4, 13))
def test_a_topic_without_a_name_is_no_topic(version: int) -> None:
    """Who sends null in a name's place loses the connection."""
    peer = Peer(a_broker())
    asked = [("tt", [{"partition": 0, "fetch_offset": 0}])]
    frame = peer.encoded("Fetch", version, fetch_fields(asked, version))[4:]
    null = b"\xff\xff" if version < 12 else b"\0"
    frame = frame.replace(b"\0\2tt" if version < 12 else b"\3tt", null, 1)
    peer.connection.feed(len(frame).to_bytes(4, "big") + frame)
    assert peer.connection.is_closing


def test_aborted_transactions_of_what_does_not_fit() -> None:
    """Of a first batch that is too large none are told; where no byte is left, all."""
    broker = filled(count=1, partitions=2)
    log = log_of(broker, 1)
    log.verifies_transactions = False
    data = batch(b"x", producer=(5, 0, 0), is_transactional=True)
    log.append_produced(memoryview(bytearray(data)), NOW_MS)
    log.append_marker(5, 0, is_commit=False, coordinator_epoch=0, now_ms=NOW_MS)
    aborted = [{"producer_id": 5, "first_offset": 1}]
    for bytes_max, partition_bytes_max, expected in (
        (2**20, 10, None),
        (2**20, 0, aborted),
        (SIZE, 2**20, aborted),
        (SIZE + 10, 2**20, None),
        (2**20, 2**20, aborted),
    ):
        second = {"partition": 1, "partition_max_bytes": partition_bytes_max}
        answer = fetch(broker, {}, second, max_bytes=bytes_max, isolation_level=1)
        told = answer.message["responses"][0]["partitions"][1]
        assert told["aborted_transactions"] == expected
