"""
Where the state of share-partitions is kept (KIP-932).

That is what of a partition a share group has acknowledged, and how often it was handed out. The
group coordinator initialises and deletes, the leader of a partition reads when it opens a
share-partition and writes what changed. Kafka's Persister; here it is asked in the same process, so
that its answers need no promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

from logstore.compat.kafka.error_codes import ErrorCode

#: the start of a share-partition that nobody has read yet: ``share.auto.offset.reset`` decides
UNINITIALIZED_OFFSET = -1
#: how many records behind the start are done is not known
UNKNOWN_DELIVERY_COMPLETE_COUNT = -1


class DeliveryState(IntEnum):
    """What became of records; acquired ones are not kept, they are available after a restart."""

    AVAILABLE = 0
    ACKNOWLEDGED = 2
    ARCHIVED = 4


class SharePartitionKey(NamedTuple):
    """One partition as one share group reads it. `topic_id` has 16 bytes."""

    group_id: str
    topic_id: bytes
    partition: int


class StateBatch(NamedTuple):
    """Offsets, the last included, that share a state and a number of deliveries."""

    first_offset: int
    last_offset: int
    delivery_state: DeliveryState
    delivery_count: int


class SharePartitionState(NamedTuple):
    """What is kept of a share-partition. Batches are in order and do not overlap."""

    error_code: ErrorCode
    error_message: str | None = None
    state_epoch: int = -1
    start_offset: int = UNINITIALIZED_OFFSET
    state_batches: tuple[StateBatch, ...] = ()


class StateSummary(NamedTuple):
    """The state of a share-partition without its batches."""

    error_code: ErrorCode
    error_message: str | None = None
    state_epoch: int = -1
    leader_epoch: int = -1
    start_offset: int = UNINITIALIZED_OFFSET
    delivery_complete_count: int = UNKNOWN_DELIVERY_COMPLETE_COUNT


class Outcome(NamedTuple):
    """How a change went: NONE, FENCED_STATE_EPOCH, FENCED_LEADER_EPOCH, ..."""

    error_code: ErrorCode
    error_message: str | None = None


class Persister(Protocol):
    """Keeps states of share-partitions, durably."""

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> Outcome:
        """Begin a state, or begin it anew under a higher epoch."""
        ...

    def read(self, key: SharePartitionKey, leader_epoch: int) -> SharePartitionState:
        """Return the whole state; a leader epoch that is higher than the known one is noted."""
        ...

    def write(
        self,
        key: SharePartitionKey,
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        state_batches: Sequence[StateBatch],
    ) -> Outcome:
        """Put changed batches over those that are known; `start_offset` -1 leaves the start."""
        ...

    def read_summary(self, key: SharePartitionKey, leader_epoch: int) -> StateSummary:
        """Return where a state starts."""
        ...

    def delete(self, key: SharePartitionKey) -> Outcome:
        """Forget a state; there need not be one."""
        ...
