"""
The share coordinator: keeps the states of share-partitions in a log, and fences who is behind.

Every change is one record, written before it holds: a ShareUpdate, or, for every so many of them, a
ShareSnapshot. So a state is read again from its last snapshot and what comes behind it. Two epochs
fence: the state's, which grows when a group begins anew, and that of the partition's leader.

Source: ``ShareCoordinatorShard``, ``ShareCoordinatorService``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.error_messages import MESSAGES
from logstore.compat.kafka.share_state import records
from logstore.compat.kafka.share_state.persister import (
    Outcome,
    SharePartitionKey,
    SharePartitionState,
    StateBatch,
    StateSummary,
)
from logstore.compat.kafka.share_state.records import StateChange, StateRecord
from logstore.compat.kafka.share_state.redundant_offsets import RedundantOffsets
from logstore.compat.kafka.share_state.share_partition import (
    UNCHANGED,
    SharePartition,
    StateUpdate,
)
from logstore.compat.kafka.share_state.state_log import StateLog, StatePosition
from logstore.compat.waiting import Timer, Timers
from logstore.errors import LogStoreError, StorageError

_log = logging.getLogger(__name__)

_DONE = Outcome(ErrorCode.NONE)


@attrs.define
class _Kept:
    """A share-partition, the highest epochs that were seen, and the updates since a snapshot."""

    #: that of the log
    partition: int
    state: SharePartition
    leader_epoch: int
    state_epoch: int
    update_count: int = 0


@attrs.frozen
class ShareCoordinatorConfig:
    """How many updates follow a snapshot, and after which time a state is written again."""

    updates_per_snapshot: int = 500
    cold_snapshot_interval_ms: int = 300_000
    prune_interval_ms: int = 300_000


class ShareCoordinator:
    """
    Implements :class:`logstore.compat.kafka.share_state.persister.Persister`.

    `partition_count_of` tells how many partitions the topic of an id has, 0 if there is none.
    """

    def __init__(
        self,
        config: ShareCoordinatorConfig,
        timers: Timers,
        log: StateLog,
        partition_count_of: Callable[[bytes], int],
    ) -> None:
        self.config = config
        self._timers = timers
        self._clock = timers.clock
        self._log = log
        self._partition_count_of = partition_count_of
        self._kept: dict[SharePartitionKey, _Kept] = {}
        self._redundant: dict[int, RedundantOffsets] = {}
        self._pending: dict[str, Timer] = {}

    def load(self) -> None:
        """
        Take over what the log holds.

        Raises:
            ShareStateRecordError: a record cannot be read.

        """
        for entry in self._log.replay():
            change = records.decoded(*entry.record)
            if change is not None:
                self._apply(change, entry.position)
        self._every("snapshot", self.config.cold_snapshot_interval_ms, self.snapshot_cold)
        self._every("prune", self.config.prune_interval_ms, self.prune)

    def close(self) -> None:
        """Do nothing by itself any more, and know nothing."""
        for timer in self._pending.values():
            timer.cancel()
        self._kept.clear()

    def _every(self, name: str, interval_ms: int, call: Callable[[], None]) -> None:
        def run() -> None:
            self._every(name, interval_ms, call)
            call()

        self._pending[name] = self._timers.after(interval_ms, run)

    # what is asked

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> Outcome:
        """Begin a state, or begin it anew under a higher epoch."""
        kept = self._kept.get(key)
        if key.partition < 0:
            return _negative_partition()
        if kept is not None and UNCHANGED != state_epoch < kept.state_epoch:
            return _refused(ErrorCode.FENCED_STATE_EPOCH)
        if not self._is_there(key):
            return _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        snapshot_epoch = 0 if kept is None else kept.state.snapshot_epoch + 1
        now_ms = self._clock.wall_ms()
        begun = SharePartition.begun(snapshot_epoch, state_epoch, start_offset, now_ms)
        return self._write(key, begun)

    def read(self, key: SharePartitionKey, leader_epoch: int) -> SharePartitionState:
        """Return the whole state; another leader epoch, which is not lower, is noted."""
        outcome, kept = self._find(key, leader_epoch, "Read")
        if kept is None:
            return SharePartitionState(*outcome)
        state = kept.state
        if leader_epoch not in (UNCHANGED, kept.leader_epoch):
            outcome = self._change(
                key,
                kept,
                StateUpdate(
                    snapshot_epoch=state.snapshot_epoch,
                    leader_epoch=leader_epoch,
                    start_offset=state.start_offset,
                    delivery_complete_count=state.delivery_complete_count,
                    state_batches=(),
                ),
            )
        if outcome.error_code is not ErrorCode.NONE:
            return SharePartitionState(*outcome)
        return SharePartitionState(
            ErrorCode.NONE, None, state.state_epoch, state.start_offset, state.state_batches
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
        """Put changed batches over those that are known; `start_offset` -1 leaves the start."""
        outcome, kept = self._find(key, leader_epoch, "Write", state_epoch)
        if kept is None:
            return outcome
        changed = StateUpdate(
            snapshot_epoch=kept.state.snapshot_epoch,
            leader_epoch=kept.state.leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=delivery_complete_count,
            state_batches=tuple(state_batches),
        )
        return self._change(key, kept, changed)

    def read_summary(self, key: SharePartitionKey, leader_epoch: int) -> StateSummary:  # noqa: ARG002 - of the interface; Kafka does not look at it either
        """Return where a state starts."""
        if key.partition < 0:
            return StateSummary(*_negative_partition())
        if not self._is_there(key):
            return StateSummary(*_refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        kept = self._kept.get(key)
        if kept is None:
            return StateSummary(ErrorCode.NONE, state_epoch=0, leader_epoch=0)
        state = kept.state
        return StateSummary(
            ErrorCode.NONE, None, state.state_epoch, state.leader_epoch, state.start_offset,
            state.delivery_complete_count,
        )  # fmt: skip

    def delete(self, key: SharePartitionKey) -> Outcome:
        """Forget a state; there need not be one."""
        if key.partition < 0:
            return _negative_partition()
        if not self._is_there(key):
            return _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return self._write(key, None) if key in self._kept else _DONE

    # what happens by itself

    def known(self) -> list[SharePartitionKey]:
        """Return the share-partitions of which there is a state."""
        return list(self._kept)

    def forget_topics(self, topic_ids: Collection[bytes]) -> None:
        """Forget the states of topics that are gone."""
        for key in [key for key in self._kept if key.topic_id in topic_ids]:
            self._write(key, None)

    def snapshot_cold(self) -> None:
        """
        Write the states again that have not been written for long, so that old ones may go.

        Where all of a partition of the log are such, there is nothing old.
        """
        warm = {kept.partition for kept in self._kept.values() if not kept.state.is_cold}
        now_ms = self._clock.wall_ms()
        for key, kept in self._kept.items():
            age_ms = now_ms - kept.state.write_timestamp_ms
            if kept.partition in warm and age_ms >= self.config.cold_snapshot_interval_ms:
                self._write(key, kept.state.cold_snapshot(now_ms))

    def prune(self) -> None:
        """Delete from the front of every partition what is said again later."""
        for partition, redundant in self._redundant.items():
            below = redundant.deletable_below()
            if below is None:
                continue
            try:
                self._log.delete_below(StatePosition(partition, below))
            except (LogStoreError, OSError) as error:  # perhaps the disk recovers
                _log.warning("share state %d: nothing deleted: %s", partition, error)
            else:
                redundant.note_deleted(below)

    # what the steps are made of

    def _is_there(self, key: SharePartitionKey) -> bool:
        return key.partition < self._partition_count_of(key.topic_id)

    def _find(
        self, key: SharePartitionKey, leader_epoch: int, what: str, state_epoch: int = UNCHANGED
    ) -> tuple[Outcome, _Kept | None]:
        """Return a state for somebody who names his epochs, or else what he is told."""
        if key.partition < 0:
            return _negative_partition(), None
        kept = self._kept.get(key)
        if kept is None:
            text = f"{what} operation on uninitialized share partition not allowed."
            return Outcome(ErrorCode.INVALID_REQUEST, text), None
        if UNCHANGED != leader_epoch < kept.leader_epoch:
            return _refused(ErrorCode.FENCED_LEADER_EPOCH), None
        if UNCHANGED != state_epoch < kept.state_epoch:
            return _refused(ErrorCode.FENCED_STATE_EPOCH), None
        if not self._is_there(key):
            return _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), None
        return _DONE, kept

    def _change(self, key: SharePartitionKey, kept: _Kept, changed: StateUpdate) -> Outcome:
        """Write what has changed, as a snapshot if one is due."""
        if kept.update_count < self.config.updates_per_snapshot:
            return self._write(key, changed.merged())
        return self._write(key, kept.state.snapshot_of(changed, self._clock.wall_ms()))

    def _write(
        self, key: SharePartitionKey, content: SharePartition | StateUpdate | None
    ) -> Outcome:
        try:
            position = self._log.append(key, _record(key, content))
            # what is in the log holds, whatever becomes of the flush
            self._apply(StateChange(key, content), position)
            self._log.flush()
        except (LogStoreError, OSError) as error:
            _log.warning("group %s: share state not written: %s", key.group_id, error)
            is_disk = isinstance(error, (StorageError, OSError))
            code = ErrorCode.NOT_COORDINATOR if is_disk else ErrorCode.UNKNOWN_SERVER_ERROR
            return Outcome(code, f"Unable to write share group state: {error}")
        return _DONE

    def _apply(self, change: StateChange, position: StatePosition) -> None:
        """Let a record hold that is in the log."""
        key, content = change
        if isinstance(content, StateUpdate):
            self._apply_update(key, content, position.partition)
            return
        redundant = self._redundant.setdefault(position.partition, RedundantOffsets())
        redundant.note(key, position.offset, is_end=content is None)
        kept = self._kept.get(key)
        if content is None:
            self._kept.pop(key, None)
        elif kept is None:
            partition = position.partition
            self._kept[key] = _Kept(partition, content, content.leader_epoch, content.state_epoch)
        else:
            kept.state = content
            kept.leader_epoch = max(kept.leader_epoch, content.leader_epoch)
            kept.state_epoch = max(kept.state_epoch, content.state_epoch)
            if kept.update_count >= self.config.updates_per_snapshot:
                kept.update_count = 0

    def _apply_update(self, key: SharePartitionKey, update: StateUpdate, partition: int) -> None:
        kept = self._kept.get(key)
        if kept is None:
            # Its state epoch is not known: any is let through until a snapshot tells.
            alone = SharePartition.from_update(update)
            self._kept[key] = _Kept(partition, alone, update.leader_epoch, UNCHANGED, 1)
            return
        kept.state = kept.state.updated(update)
        kept.leader_epoch = max(kept.leader_epoch, update.leader_epoch)
        kept.update_count += 1


def _record(key: SharePartitionKey, content: SharePartition | StateUpdate | None) -> StateRecord:
    if content is None:
        return records.tombstone(key)
    if isinstance(content, StateUpdate):
        return records.update(key, content)
    return records.snapshot(key, content)


def _negative_partition() -> Outcome:
    return Outcome(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number.")


def _refused(code: ErrorCode) -> Outcome:
    return Outcome(code, MESSAGES[code])
