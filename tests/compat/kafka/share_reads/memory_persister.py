"""States of share-partitions in memory, offset by offset; a test can have it refuse."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.share_state.persister import (
    UNINITIALIZED_OFFSET,
    DeliveryState,
    Outcome,
    SharePartitionKey,
    SharePartitionState,
    StateBatch,
    StateSummary,
)


@attrs.define
class _Kept:
    state_epoch: int
    start_offset: int
    delivery_complete_count: int = -1
    offsets: dict[int, tuple[DeliveryState, int]] = attrs.field(
        factory=dict[int, tuple[DeliveryState, int]]
    )


class MemoryPersister:
    """Implements :class:`~logstore.compat.kafka.share_state.persister.Persister`."""

    def __init__(self) -> None:
        self._kept: dict[SharePartitionKey, _Kept] = {}
        #: what every write is told from now on
        self.refusal: ErrorCode | None = None
        #: what is read, whatever was kept
        self.answer: SharePartitionState | None = None
        #: start offset, count and batches of each write
        self.writes: list[tuple[int, int, tuple[StateBatch, ...]]] = []

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> Outcome:
        """Begin a state."""
        self._kept[key] = _Kept(state_epoch, start_offset)
        return Outcome(ErrorCode.NONE)

    def read(self, key: SharePartitionKey, leader_epoch: int) -> SharePartitionState:
        """Return the whole state."""
        del leader_epoch
        if self.answer is not None:
            return self.answer
        kept = self._kept.get(key)
        if kept is None:
            return SharePartitionState(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no state")
        offsets = sorted(offset for offset in kept.offsets if offset >= kept.start_offset)
        batches: list[StateBatch] = []
        for offset in offsets:
            state, count = kept.offsets[offset]
            if batches and batches[-1][1:] == (offset - 1, state, count):
                batches[-1] = batches[-1]._replace(last_offset=offset)
            else:
                batches.append(StateBatch(offset, offset, state, count))
        return SharePartitionState(
            ErrorCode.NONE, None, kept.state_epoch, kept.start_offset, tuple(batches)
        )

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
        """Put changed batches over those that are known."""
        del leader_epoch
        if self.refusal is not None:
            return Outcome(self.refusal, "refused")
        kept = self._kept.get(key)
        if kept is None:
            return Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no state")
        if state_epoch != kept.state_epoch:
            return Outcome(ErrorCode.FENCED_STATE_EPOCH, "fenced")
        self.writes.append((start_offset, delivery_complete_count, tuple(state_batches)))
        if start_offset != UNINITIALIZED_OFFSET:
            kept.start_offset = start_offset
        kept.delivery_complete_count = delivery_complete_count
        for first_offset, last_offset, state, count in state_batches:
            for offset in range(first_offset, last_offset + 1):
                kept.offsets[offset] = state, count
        return Outcome(ErrorCode.NONE)

    def read_summary(self, key: SharePartitionKey, leader_epoch: int) -> StateSummary:
        """Return where a state starts."""
        state = self.read(key, leader_epoch)
        return StateSummary(state.error_code, None, state.state_epoch, 0, state.start_offset)

    def delete(self, key: SharePartitionKey) -> Outcome:
        """Forget a state."""
        self._kept.pop(key, None)
        return Outcome(ErrorCode.NONE)
