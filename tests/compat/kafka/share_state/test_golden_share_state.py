"""What a real broker wrote about a share group is read, and written again byte for byte."""

from __future__ import annotations

from collections.abc import Iterator

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.cluster import TopicShape, metadata_hash
from logstore.compat.kafka.groups.modern.records import encoded
from logstore.compat.kafka.groups.share import records as group_records
from logstore.compat.kafka.groups.share.group import ShareGroup
from logstore.compat.kafka.share_state import records
from logstore.compat.kafka.share_state.persister import (
    DeliveryState,
    SharePartitionKey,
    StateBatch,
    StateSummary,
)
from logstore.compat.kafka.share_state.share_partition import SharePartition, StateUpdate
from logstore.segments.kafka.batch_walk import iterate_entries
from logstore.segments.kafka.internal_topics.share_group import ShareGroupMetadataValue
from logstore.segments.kafka.record import decode_records
from tests.compat.kafka.share_state.test_share_coordinator import Stage
from tests.segments.kafka.golden_case import GOLDEN


def stored(topic: str) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield the records of a topic of the golden set."""
    path = GOLDEN / "share-4.3" / "data" / f"{topic}-0" / "00000000000000000000.log"
    for batch in iterate_entries(memoryview(path.read_bytes())):
        for record in decode_records(batch.data):
            assert record.key is not None
            yield record.key, record.value


def test_states_are_written_as_the_real_broker_writes_them() -> None:
    """Each record is what our coordinator would write for what it says."""
    seen: set[type] = set()
    for key, value in stored("__share_group_state"):
        change = records.decoded(key, value)
        assert change is not None
        content = change.content
        seen.add(type(content))
        if isinstance(content, SharePartition):
            assert records.snapshot(change.key, content) == (key, value)
        elif isinstance(content, StateUpdate):
            assert records.update(change.key, content) == (key, value)
        else:
            assert records.tombstone(change.key) == (key, value)
    assert seen == {SharePartition, StateUpdate, type(None)}


def test_the_group_is_where_the_real_broker_left_it() -> None:
    """Of 20 records every fourth was released and the one before it rejected; none is held."""
    stage = Stage()
    stage.log.stored = list(stored("__share_group_state"))
    topic_ids = {
        change.key.topic_id
        for change in (records.decoded(*record) for record in stage.log.stored)
        if change is not None
    }
    (topic_id,) = topic_ids
    stage.topics = {topic_id: 2}
    stage.coordinator = stage.opened()
    key = SharePartitionKey("readers", topic_id, 0)
    found = stage.coordinator.read(key, -1)
    assert (found.error_code, found.start_offset) == (ErrorCode.NONE, 0)
    released = [offset for offset in range(20) if offset % 4 == 3]
    free = DeliveryState.AVAILABLE
    available = [one for one in found.state_batches if one.delivery_state is free]
    assert available == [StateBatch(it, it, free, 1) for it in released]
    summary = stage.coordinator.read_summary(key, -1)
    assert summary.delivery_complete_count == 20 - len(released)
    other = SharePartitionKey("readers", topic_id, 1)
    assert stage.coordinator.read_summary(other, -1) == StateSummary(
        ErrorCode.NONE, None, 2, 0, -1, -1
    )
    moved = SharePartitionKey("moved", topic_id, 0)
    assert stage.coordinator.read(moved, -1).error_code is ErrorCode.INVALID_REQUEST


def test_groups_are_written_as_the_real_broker_writes_them() -> None:
    """Each record is read and written alike, and together they make the group it left."""
    group, kinds = ShareGroup("readers", lambda: 0), set[int]()
    for key, value in stored("__consumer_offsets"):
        change = group_records.KIND.decoded(key, value)
        if change is None:
            continue
        assert encoded(change) == (key, value)
        kinds.add(change.record_type)
        if change.group_id == "readers":
            group.apply(change)
    assert kinds == set(range(10, 16))
    assert (group.members, group.epoch) == ({}, 4)
    states = group.state_partitions
    assert states is not None
    (topic_id,) = states.initialized
    shapes = {"work": TopicShape("work", topic_id, 2)}
    hashes = {
        change.value.metadata_hash
        for change in (
            group_records.KIND.decoded(*record) for record in stored("__consumer_offsets")
        )
        if change is not None and isinstance(change.value, ShareGroupMetadataValue)
    }
    assert hashes == {0, metadata_hash(shapes)}
    ((name, partitions, _),) = states.initialized.values()
    assert (name, partitions, dict(states.initializing)) == ("work", frozenset({0, 1}), {})
