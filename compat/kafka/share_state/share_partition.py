"""What is known of one share-partition: its last snapshot with all updates since laid over it."""

from __future__ import annotations

from typing import NamedTuple

from logstore.compat.kafka.share_state.persister import (
    UNINITIALIZED_OFFSET,
    UNKNOWN_DELIVERY_COMPLETE_COUNT,
    StateBatch,
)
from logstore.compat.kafka.share_state.state_batches import combined

#: what a request or a record says that leaves the epoch, or the start, as it is
UNCHANGED = -1


class StateUpdate(NamedTuple):
    """What changes a share-partition: the content of a ShareUpdate record."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: tuple[StateBatch, ...]

    def merged(self) -> StateUpdate:
        """Return the same with the batches merged that overlap among themselves."""
        return self._replace(state_batches=combined((), self.state_batches, self.start_offset))


class SharePartition(NamedTuple):
    """
    The state of a share-partition: the content of a ShareSnapshot record.

    `create_timestamp_ms` is when the last snapshot with news was written, `write_timestamp_ms` when
    any was: a partition that nobody writes to has its state written again from time to time.
    Source: ``ShareGroupOffset``.
    """

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: tuple[StateBatch, ...]
    create_timestamp_ms: int
    write_timestamp_ms: int

    @classmethod
    def begun(
        cls, snapshot_epoch: int, state_epoch: int, start_offset: int, now_ms: int
    ) -> SharePartition:
        """Return a state from which nothing is known yet but, perhaps, where it starts."""
        is_open = start_offset == UNINITIALIZED_OFFSET
        return cls(
            snapshot_epoch=snapshot_epoch,
            state_epoch=state_epoch,
            leader_epoch=0,
            start_offset=start_offset,
            delivery_complete_count=UNKNOWN_DELIVERY_COMPLETE_COUNT if is_open else 0,
            state_batches=(),
            create_timestamp_ms=now_ms,
            write_timestamp_ms=now_ms,
        )

    @classmethod
    def from_update(cls, update: StateUpdate) -> SharePartition:
        """Return what an update alone tells, whose snapshot is gone."""
        return cls(
            snapshot_epoch=update.snapshot_epoch,
            state_epoch=0,
            leader_epoch=update.leader_epoch,
            start_offset=update.start_offset,
            delivery_complete_count=update.delivery_complete_count,
            state_batches=update.state_batches,
            create_timestamp_ms=0,
            write_timestamp_ms=0,
        )

    @property
    def is_cold(self) -> bool:
        """Tell whether the last snapshot was written because nobody had written for long."""
        return self.create_timestamp_ms != self.write_timestamp_ms

    def updated(self, update: StateUpdate) -> SharePartition:
        """Return the state after an update."""
        start = self.start_offset if update.start_offset == UNCHANGED else update.start_offset
        epoch = self.leader_epoch if update.leader_epoch == UNCHANGED else update.leader_epoch
        return self._replace(
            leader_epoch=epoch,
            start_offset=start,
            delivery_complete_count=update.delivery_complete_count,
            state_batches=combined(self.state_batches, update.state_batches, start),
        )

    def snapshot_of(self, update: StateUpdate, now_ms: int) -> SharePartition:
        """Return the state after an update as the next snapshot."""
        return self.updated(update)._replace(
            snapshot_epoch=self.snapshot_epoch + 1,
            create_timestamp_ms=now_ms,
            write_timestamp_ms=now_ms,
        )

    def cold_snapshot(self, now_ms: int) -> SharePartition:
        """Return the same state as a snapshot of its own, for nobody has written for long."""
        return self._replace(snapshot_epoch=self.snapshot_epoch + 1, write_timestamp_ms=now_ms)
