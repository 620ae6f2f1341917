"""The records of the brokers' own topics are read and written as real brokers wrote them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from logstore.segments.kafka.batch_walk import iterate_entries
from logstore.segments.kafka.internal_topics.codec import encode_message, encode_versioned
from logstore.segments.kafka.internal_topics.group_metadata import GroupMetadataValue
from logstore.segments.kafka.internal_topics.offset_commit import (
    OffsetCommitKey,
    OffsetCommitValue,
)
from logstore.segments.kafka.internal_topics.record_types import (
    GROUP_RECORDS,
    SHARE_RECORDS,
    TRANSACTION_RECORDS,
    InternalRecord,
    RecordTypes,
    decode_internal_record,
)
from logstore.segments.kafka.internal_topics.transaction_log import (
    TransactionLogValue,
    TransactionStatus,
)
from logstore.segments.kafka.record import decode_records
from tests.segments.kafka.golden_case import GOLDEN

_TOPICS: dict[str, RecordTypes] = {
    "__consumer_offsets": GROUP_RECORDS,
    "__transaction_state": TRANSACTION_RECORDS,
    "__share_group_state": SHARE_RECORDS,
}


def _partitions(topic: str) -> list[Path]:
    return [
        folder for folder in sorted(GOLDEN.glob(f"*/data/{topic}-*")) if any(folder.glob("*.log"))
    ]


def _records(folder: Path) -> Iterator[tuple[bytes, bytes | None]]:
    for path in sorted(folder.glob("*.log")):
        for batch in iterate_entries(memoryview(path.read_bytes())):
            for record in () if batch.is_control else decode_records(batch.data):
                assert record.key is not None
                yield record.key, record.value


def _decoded(topic: str, set_name: str) -> list[InternalRecord]:
    folder = GOLDEN / set_name / "data" / f"{topic}-0"
    return [decode_internal_record(_TOPICS[topic], *record) for record in _records(folder)]


@pytest.mark.parametrize("topic", _TOPICS)
def test_what_brokers_wrote_comes_out_byte_for_byte(topic: str) -> None:
    """Every key and value of every golden set is decoded, and encoded to the same bytes."""
    seen: set[tuple[int, int | None]] = set()
    for folder in _partitions(topic):
        for key, value in _records(folder):
            record = decode_internal_record(_TOPICS[topic], key, value)
            assert key[:2] + encode_message(record.key, 0) == key
            if record.value is not None and record.version is not None:
                assert encode_versioned(record.value, record.version) == value
            seen.add((record.record_type, record.version))
    if topic == "__transaction_state":
        assert seen == {(0, 0), (0, 1)}
    elif topic == "__share_group_state":
        assert seen == {(0, 0), (0, None), (1, 0)}
    else:
        assert {kind for kind, _ in seen} == {1, 2, 3, 5, 6, 7, 8, *range(10, 16)}
        assert {(1, 3), (1, 4), (1, None), (2, 3), (2, None)} <= seen


def test_committed_offsets_say_what_was_committed() -> None:
    """A committed offset has its group, topic, partition, note, and in 4.3 the topic's id."""
    records = _decoded("__consumer_offsets", "kafka-4.3")
    record = next(r for r in records if isinstance(r.key, OffsetCommitKey) and r.value is not None)
    assert record.key == OffsetCommitKey(group="group-classic", topic="groups", partition=0)
    assert isinstance(record.value, OffsetCommitValue)
    assert record.value.offset == 1
    assert record.value.metadata == "note 1 \N{CHECK MARK}\0"
    assert record.value.topic_id.int != 0


def test_groups_say_who_is_in_them() -> None:
    """A classic group's record names generation, protocol, leader and members."""
    records = _decoded("__consumer_offsets", "kafka-3.9")
    group = next(
        record.value
        for record in records
        if isinstance(record.value, GroupMetadataValue) and record.value.members
    )
    assert (group.protocol_type, group.generation, group.protocol) == ("consumer", 1, "range")
    (member,) = group.members
    assert group.leader == member.member_id
    assert member.session_timeout == 45000
    assert member.client_host == "/127.0.0.1"


def test_transactions_say_how_far_they_are() -> None:
    """The states of an aborted transaction follow each other, with the partitions in them."""
    values = [
        record.value
        for record in _decoded("__transaction_state", "kafka-4.3")
        if isinstance(record.value, TransactionLogValue) and record.value.producer_id == 1
    ]
    states = [TransactionStatus(value.transaction_status).java_name for value in values]
    assert states[:4] == ["Empty", "Ongoing", "PrepareAbort", "CompleteAbort"]
    ongoing = values[1].transaction_partitions
    assert ongoing is not None
    assert [(topic.topic, topic.partition_ids) for topic in ongoing] == [("transactions", (0,))]
    assert values[2].client_transaction_version == 2
