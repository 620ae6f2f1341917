"""
The records of ``__share_group_state``, byte for byte as release 4.3 writes them.

====  =============  ==============================================================
type  record         says
====  =============  ==============================================================
0     ShareSnapshot  all that is known of a share-partition; without a value: nothing
1     ShareUpdate    what has changed since
====  =============  ==============================================================

Source: ``ShareCoordinatorRecordHelpers``, ``ShareCoordinatorRecordSerde``.
"""

from __future__ import annotations

import uuid
from typing import NamedTuple, cast

from logstore.compat.kafka.share_state.persister import (
    DeliveryState,
    SharePartitionKey,
    StateBatch,
)
from logstore.compat.kafka.share_state.share_partition import SharePartition, StateUpdate
from logstore.errors import StorageError
from logstore.segments.kafka.internal_topics import share_group
from logstore.segments.kafka.internal_topics.codec import MessageError, encode_versioned
from logstore.segments.kafka.internal_topics.record_types import (
    SHARE_RECORDS,
    UnknownRecordTypeError,
    decode_internal_record,
)

_SNAPSHOT = 0
_UPDATE = 1
_VERSION = 0

#: a record as the log takes and gives it: key, and value or None for a tombstone
StateRecord = tuple[bytes, bytes | None]


class ShareStateRecordError(StorageError):
    """A key or value of ``__share_group_state`` cannot be read; the message says why."""


class StateChange(NamedTuple):
    """A record, read: a whole state, an update of one, or the end of it (None)."""

    key: SharePartitionKey
    content: SharePartition | StateUpdate | None


def delivery_state(number: int) -> DeliveryState:
    """Return a state by its number; one of a newer release stays the number that it is."""
    try:
        return DeliveryState(number)
    except ValueError:
        return cast("DeliveryState", number)


def snapshot(key: SharePartitionKey, state: SharePartition) -> StateRecord:
    """Return the record of a whole state."""
    value = share_group.ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=state.create_timestamp_ms,
        write_timestamp=state.write_timestamp_ms,
        state_batches=stored_batches(state.state_batches),
    )
    return _key(key, _SNAPSHOT), encode_versioned(value, _VERSION)


def update(key: SharePartitionKey, changed: StateUpdate) -> StateRecord:
    """Return the record of what has changed."""
    value = share_group.ShareUpdateValue(
        snapshot_epoch=changed.snapshot_epoch,
        leader_epoch=changed.leader_epoch,
        start_offset=changed.start_offset,
        delivery_complete_count=changed.delivery_complete_count,
        state_batches=stored_batches(changed.state_batches),
    )
    return _key(key, _UPDATE), encode_versioned(value, _VERSION)


def tombstone(key: SharePartitionKey) -> StateRecord:
    """Return the record after which there is no state."""
    return _key(key, _SNAPSHOT), None


def decoded(key: bytes, value: bytes | None) -> StateChange | None:
    """
    Return what a record says, None if it is of a type that nobody here knows.

    Raises:
        ShareStateRecordError: it cannot be read.

    """
    try:
        found = decode_internal_record(SHARE_RECORDS, key, value)
    except UnknownRecordTypeError:
        return None
    except MessageError as error:
        raise ShareStateRecordError(str(error)) from error
    about = found.key
    assert isinstance(about, share_group.SharePartitionKey), "the key of both types"
    partition = SharePartitionKey(about.group_id, about.topic_id.bytes, about.partition)
    content = found.value
    if isinstance(content, share_group.ShareSnapshotValue):
        return StateChange(partition, _snapshot_in(content))
    if isinstance(content, share_group.ShareUpdateValue):
        return StateChange(partition, _update_in(content))
    return StateChange(partition, None) if found.record_type == _SNAPSHOT else None


def _snapshot_in(value: share_group.ShareSnapshotValue) -> SharePartition:
    return SharePartition(
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        state_batches=batches_in(value.state_batches),
        create_timestamp_ms=value.create_timestamp,
        write_timestamp_ms=value.write_timestamp,
    )


def _update_in(value: share_group.ShareUpdateValue) -> StateUpdate:
    return StateUpdate(
        snapshot_epoch=value.snapshot_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        state_batches=batches_in(value.state_batches),
    )


def _key(key: SharePartitionKey, record_type: int) -> bytes:
    message = share_group.SharePartitionKey(
        group_id=key.group_id, topic_id=uuid.UUID(bytes=key.topic_id), partition=key.partition
    )
    return encode_versioned(message, record_type)


def stored_batches(batches: tuple[StateBatch, ...]) -> tuple[share_group.StateBatch, ...]:
    """Return batches as records and messages have them."""
    return tuple(
        share_group.StateBatch(
            first_offset=one.first_offset,
            last_offset=one.last_offset,
            delivery_state=one.delivery_state,
            delivery_count=one.delivery_count,
        )
        for one in batches
    )


def batches_in(batches: tuple[share_group.StateBatch, ...]) -> tuple[StateBatch, ...]:
    """Return the batches of a record or message."""
    return tuple(
        StateBatch(
            one.first_offset,
            one.last_offset,
            delivery_state(one.delivery_state),
            one.delivery_count,
        )
        for one in batches
    )
