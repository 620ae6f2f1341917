"""The committed offsets of Kafka's consumer groups, read from their own topic."""

from __future__ import annotations

from logstore.segments.kafka.internal_topics.codec import MessageError
from logstore.segments.kafka.internal_topics.offset_commit import (
    OffsetCommitKey,
    OffsetCommitValue,
)
from logstore.segments.kafka.internal_topics.record_types import (
    GROUP_RECORDS,
    decode_internal_record,
)
from logstore.segments.kafka.store import KafkaStore

_TOPIC = "__consumer_offsets"
#: by (group, topic, partition)
CommittedOffsets = dict[tuple[str, str, int], int]


def read_committed_offsets(store: KafkaStore) -> CommittedOffsets:
    """Return what every group has committed; what was deleted or aborted is not there."""
    found: CommittedOffsets = {}
    for partition in store.topics().get(_TOPIC, {}).values():
        offset = partition.start_offset
        while records := partition.read_records(offset, 1000, is_committed_only=True):
            for record in records:
                if record.key is not None:
                    _note(found, record.key, record.value)
            offset = records[-1].offset + 1
    return found


def _note(found: CommittedOffsets, key: bytes, value: bytes | None) -> None:
    try:
        record = decode_internal_record(GROUP_RECORDS, key, value)
    except MessageError:
        return  # of a kind that a newer Kafka writes: no offset
    if not isinstance(record.key, OffsetCommitKey):
        return
    place = (record.key.group, record.key.topic, record.key.partition)
    if isinstance(record.value, OffsetCommitValue):
        found[place] = record.value.offset
    else:
        found.pop(place, None)
