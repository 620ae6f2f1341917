"""
A Kafka partition: one segmented log with the state that a leader keeps beside it.

Appends follow the order of Kafka's ``UnifiedLog.append``: validate, assign offsets, roll, check
the producer's sequence, write, take note. With one replica the high watermark is the log end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from logstore.errors import OffsetMismatchError, OffsetOutOfRangeError, RejectedAppendError
from logstore.flush import NEVER
from logstore.host import Host
from logstore.partition import AppendResult
from logstore.partition import Record as PlainRecord
from logstore.recovery import Recovery
from logstore.segmented_log import FlushTask, SegmentedLog
from logstore.segments.kafka.append_errors import RecordListTooLargeError
from logstore.segments.kafka.appended import Appended
from logstore.segments.kafka.checkpoints import LOG_START
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.control_record import ControlType, encode_control
from logstore.segments.kafka.crash_leftovers import SWAP
from logstore.segments.kafka.indexed_segment import RELATIVE_OFFSET_MAX
from logstore.segments.kafka.leader_epochs import LeaderEpochs
from logstore.segments.kafka.partition_metadata import FILE_NAME as PARTITION_METADATA
from logstore.segments.kafka.plain_records import to_batch
from logstore.segments.kafka.producer_entry import NO_SEQUENCE
from logstore.segments.kafka.producer_history import ProducerHistory
from logstore.segments.kafka.record_batch import HEADER_BYTES, MAGIC, NO_TIMESTAMP, RecordBatch
from logstore.segments.kafka.recovery_witness import PartitionWitness
from logstore.segments.kafka.segment import KafkaSegment
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.segments.kafka.transaction_verification import Verification
from logstore.segments.kafka.usual_appends import UsualAppends
from logstore.segments.kafka.validation import accepted

_log = logging.getLogger(__name__)


class KafkaPartition(UsualAppends):
    """
    One partition, open for appends and reads.

    `on_append` is called after every append, `on_roll` when a segment was sealed and waits to be
    flushed. Implements :class:`logstore.partition.PartitionLog`.
    """

    def __init__(
        self,
        host: Host,
        files: SegmentFiles,
        topic: str,
        index: int,
        *,
        recovery_point: int | None = None,
        log_start_offset: int = 0,
    ) -> None:
        self.host = host
        self.topic = topic
        self.index = index
        self.files = files
        self.config: LogConfig = files.config
        self.on_append: Callable[[KafkaPartition], None] | None = None
        self.on_roll: Callable[[KafkaPartition], None] | None = None
        #: takes over flushes that ``flush.messages`` makes due; None: flush within the append
        self.on_flush_due: Callable[[KafkaPartition], None] | None = None
        self.leader_epochs = LeaderEpochs.load_or_flaw(
            host.fs, files.directory, is_new=files.is_new
        )
        self.history = ProducerHistory(
            host, files.directory, files.snapshot_offsets(), is_writable=files.is_writable
        )
        self.producers = self.history.states
        #: transactional batches need the guard of a question that the coordinator has answered
        self.verifies_transactions = False
        self.last_flush_ms = host.clock.monotonic_ms()
        self._is_metadata_durable = True
        is_known = bool(files.base_offsets())
        files.witness = PartitionWitness(self.history, self.leader_epochs, log_start_offset)
        self.log: SegmentedLog[RecordBatch, KafkaSegment] = SegmentedLog(
            files, recovery_point, start_offset=log_start_offset
        )
        files.witness = None  # from now on nothing is recovered as a part of opening the log
        self.start_offset = max(log_start_offset, self.log.start_offset)
        if self.leader_epochs.flaw is not None:
            self.leader_epochs.rebuild(self.log.segments.values(), is_writable=files.is_writable)
        if is_known:
            self._load(log_start_offset, is_clean=recovery_point is None)
        self.leader_epoch = max(self.leader_epochs.latest_epoch, 0)

    def _load(self, log_start_offset: int, *, is_clean: bool) -> None:
        """Bring what is kept beside the log in line with it (the end of ``LogLoader.load``)."""
        log, history = self.log, self.history
        if log.recovery is not None and self.files.mended is not None:
            log.recovery = self.files.mended.joined(log.recovery)
        if log.next_offset < log_start_offset:
            if self.files.is_writable:
                self._begin_above_end(log_start_offset)
            else:
                log_start_offset = 0  # for whoever looks into it: all that is there
        if self.files.is_writable:
            # An epoch that starts at the very end stays: there is no controller that remembers it.
            # Synced, or a second power loss would leave a file that no start can read.
            self.leader_epochs.truncate_from_end(log.next_offset + 1, sync=True)
            self.leader_epochs.truncate_from_start(log_start_offset, sync=True)
        self.start_offset = max(log_start_offset, log.start_offset)
        history.remove_strays(list(log.segments))
        history.start_over()
        history.rebuild(
            list(log.segments.values()), self.start_offset, log.next_offset, is_clean=is_clean
        )

    def _begin_above_end(self, log_start_offset: int) -> None:
        """
        Begin anew where the checkpoint has the log start, though it ends below that.

        As in Kafka: these records were deleted, and the end of the log was lost since. Or the one
        number is wrong, or the offsets in the newest segment, so all that is there is kept aside;
        Kafka removes it.
        """
        log, end_offset, size_bytes = self.log, self.log.next_offset, self.log.size_bytes
        kept_aside = log.restart(log_start_offset, sets_aside=True)
        self.leader_epochs.clear()
        self.history.restart(log_start_offset)
        reason = (
            f"{LOG_START} has the log start at offset {log_start_offset}, but it ends at "
            f"{end_offset}; if the start is wrong, stop the broker, correct it, and give the files "
            f"that are kept aside their old names"
        )
        begun = Recovery(log_start_offset, 0, size_bytes, reason, kept_aside)
        before = log.recovery or self.files.mended
        log.recovery = begun if before is None else before.joined(begun)

    @property
    def recovery(self) -> Recovery | None:
        """What opening after an unclean stop found; None after a clean one."""
        return self.log.recovery

    # writing

    def lead_anew(self, epoch: int) -> None:
        """Lead in `epoch` from a broker's start on; the first append in it is worth a write."""
        self.leader_epoch = epoch
        self.leader_epochs.assign(epoch, self.end_offset, is_put_off=True)

    def become_leader(self, epoch: int, *, sync: bool = True) -> None:
        """
        Lead in `epoch`: batches from now on carry it (``Partition.makeLeader``).

        Without `sync` the first flush makes it durable, together with the partition's metadata.
        """
        self.leader_epoch = epoch
        if epoch > self.leader_epochs.latest_epoch:
            self.leader_epochs.assign(epoch, self.end_offset, sync=sync)
            self._is_metadata_durable = self._is_metadata_durable and sync

    def append_produced(
        self, data: memoryview, now_ms: int, guard: Verification | None = None
    ) -> Appended:
        """
        Append the one batch in `data` (stamped in place) as a leader does.

        If the partition :attr:`verifies_transactions`, the first batch of one needs the `guard`
        that :meth:`ProducerStates.start_verification` gave out.

        Raises:
            RejectedAppendError: and its kinds in ``append_errors`` and ``producer_state``.
            WriteFailedError: the disk refused.

        """
        config = self.config
        batch = accepted(data, config, now_ms, f"{self.topic}-{self.index}")
        active = self.log.active
        if not active.has_room_for(batch):
            active = self._make_room(batch)
        if batch.producer_id >= 0:
            original = self._check_sequence(batch, guard)
            if original is not None:
                self.log.ensure_writable()  # a failed flush may have lost what it repeats
                self._flush_if_due(config)  # or the flush of what it repeats may be under way
                return original
        start = active.next_offset
        active.append(batch.stamped(start, self.leader_epoch))
        if batch.producer_id >= 0:
            self.history.note(batch, active)
        if config.flush_messages != NEVER or self.on_append is not None:
            self._appended(config)
        return Appended(
            start,
            start + batch.last_offset_delta,
            now_ms if config.is_log_append_time else NO_TIMESTAMP,
        )

    def _make_room(self, batch: RecordBatch) -> KafkaSegment:
        """Roll for a batch that the active segment has no room for; return the new one."""
        if batch.size_bytes > self.config.segment_bytes:
            raise RecordListTooLargeError(
                f"the batch has {batch.size_bytes} bytes, "
                f"a segment holds {self.config.segment_bytes}"
            )
        self.log.reserve(batch)
        self._rolled()
        return self.log.active

    def _check_sequence(self, batch: RecordBatch, guard: Verification | None) -> Appended | None:
        """Return the offsets of the first time if the batch is a duplicate."""
        if self.verifies_transactions and batch.is_transactional:
            self._check_verified(batch, batch.base_sequence, guard)
        original = self.producers.check(
            producer_id=batch.producer_id,
            epoch=batch.producer_epoch,
            first_sequence=batch.base_sequence,
            last_sequence=batch.last_sequence,
            is_transactional=batch.is_transactional,
        )
        if original is None:
            return None
        return Appended(
            original.base_offset, original.last_offset, original.timestamp_ms, is_duplicate=True
        )

    def _check_verified(
        self, batch: RecordBatch, first_sequence: int, guard: Verification | None
    ) -> None:
        self.producers.check_verified(
            producer_id=batch.producer_id,
            epoch=batch.producer_epoch,
            first_sequence=first_sequence,
            last_sequence=batch.last_sequence,
            guard=guard,
        )

    def append_marker(
        self,
        producer_id: int,
        epoch: int,
        *,
        is_commit: bool,
        coordinator_epoch: int,
        now_ms: int,
        transaction_version: int = 0,
    ) -> int:
        """
        Append the marker that ends a producer's transaction here; return its offset.

        With `transaction_version` 2 its epoch must be above that of the data. A marker without
        data before it is appended, too.

        Raises:
            InvalidProducerEpochError: the epoch is too old.
            TransactionCoordinatorFencedError: the coordinator is too old.
            WriteFailedError: the disk refused.

        """
        self.producers.check_marker(
            producer_id=producer_id,
            epoch=epoch,
            coordinator_epoch=coordinator_epoch,
            transaction_version=transaction_version,
        )
        data = encode_control(
            ControlType.COMMIT if is_commit else ControlType.ABORT,
            timestamp_ms=now_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=coordinator_epoch,
        )
        return self._append_own(RecordBatch(memoryview(data), len(data)), now_ms)

    def append_coordinated(
        self, data: memoryview, now_ms: int, guard: Verification | None = None
    ) -> int:
        """
        Append a batch of a group coordinator, whose sequences do not count; return its base offset.

        So are the offsets that a transactional producer commits for its group.

        Raises:
            InvalidProducerEpochError: a newer instance of the producer has written.
            InvalidTransactionStateError: as for :meth:`append_produced`.
            WriteFailedError: the disk refused.

        """
        batch = RecordBatch(data, len(data))
        if self.verifies_transactions and batch.is_transactional:
            self._check_verified(batch, NO_SEQUENCE, guard)
        self.producers.check_epoch(batch.producer_id, batch.producer_epoch)
        return self._append_own(batch, now_ms)

    def _append_own(self, batch: RecordBatch, now_ms: int) -> int:
        """Append a batch that this very broker made."""
        if self.config.is_log_append_time:
            batch.restamp_time(now_ms, is_log_append_time=True)
        is_roomy = self.log.active.has_room_for(batch)
        active = self.log.active if is_roomy else self._make_room(batch)
        if batch.is_control:
            active.transaction_index.prepare()
        start = active.next_offset
        active.append(batch.stamped(start, self.leader_epoch))
        if batch.producer_id >= 0:
            self.history.note(batch, active)
        self._appended(self.config)
        return start

    def append_stored(self, batch: RecordBatch) -> None:
        """
        Append a batch that has its offsets and epoch already, as a replica or a restore does.

        Raises:
            OffsetMismatchError: it starts below the log's end.

        """
        active = self.log.active
        if batch.base_offset < active.next_offset:
            raise OffsetMismatchError(active.path, batch.base_offset, active.next_offset)
        if batch.size_bytes > self.config.segment_bytes:
            raise RecordListTooLargeError(
                f"the batch has {batch.size_bytes} bytes, "
                f"a segment holds {self.config.segment_bytes}"
            )
        first_offset = batch.base_offset
        if batch.magic < MAGIC:
            # Its header tells the last offset only. A log that takes such has no epochs any more.
            first_offset = batch.last_offset - RELATIVE_OFFSET_MAX
            self.leader_epochs.clear()
        elif batch.leader_epoch > self.leader_epochs.latest_epoch:
            self.leader_epochs.assign(batch.leader_epoch, first_offset)
        if batch.last_offset - active.base_offset > RELATIVE_OFFSET_MAX:
            self.log.roll(first_offset)
        self.log.reserve(batch, first_offset)
        if self.log.active is not active:
            self._rolled()
        self.log.append(batch)
        if batch.producer_id >= 0:
            self.history.note(batch, self.log.active)
        self._appended(self.config)

    def _appended(self, config: LogConfig) -> None:
        self._flush_if_due(config)
        if self.on_append is not None:
            self.on_append(self)

    def _flush_if_due(self, config: LogConfig) -> None:
        log = self.log
        if log.active.next_offset - log.recovery_point >= config.flush_messages:
            if self.on_flush_due is None:
                self.flush()
            else:
                self.on_flush_due(self)

    def _rolled(self) -> None:
        """Take the producer snapshot of the new segment's base; ask for a flush of the old ones."""
        try:
            self.history.take_snapshot(self.end_offset, sync=False)
        except OSError as error:  # derived: without it the next start replays more of the log
            _log.warning("%s: no producer snapshot: %s", self.files.directory, error)
        if self.on_roll is not None:
            self.on_roll(self)

    def append_records(self, records: Iterable[PlainRecord]) -> AppendResult:
        """Append records as one batch of the topic's codec; offsets are assigned here."""
        batch = to_batch(records)
        if len(batch) == HEADER_BYTES:
            raise RejectedAppendError(f"{self.topic}-{self.index}: there is nothing to append")
        result = self.append_produced(memoryview(batch), self.host.clock.wall_ms())
        return AppendResult(result.base_offset, result.last_offset + 1)

    # lasting and forgetting

    def flush(self) -> None:
        """Make all appended so far durable."""
        task = self.begin_flush()
        task.run()
        self.end_flush(task)

    def begin_flush(self) -> FlushTask:
        """Return what must be synced; run it in any thread, then :meth:`end_flush`."""
        task = self.log.begin_flush()
        if self._is_metadata_durable and not self.leader_epochs.is_put_off:
            return task
        return task._replace(first=self._sync_metadata)

    def _sync_metadata(self) -> None:
        """Sync what was written when the partition was created, before any data counts."""
        self.leader_epochs.flush()
        path = f"{self.files.directory}/{PARTITION_METADATA}"
        if self.host.fs.exists(path):
            file = self.host.fs.open(path)
            file.sync()
            file.close()

    def end_flush(self, task: FlushTask) -> None:
        """Take note that the task has run."""
        self._is_metadata_durable = True
        self.log.end_flush(task)
        self.last_flush_ms = self.host.clock.monotonic_ms()

    def delete_records(self, offset: int) -> int:
        """
        Move the log start up to `offset` (-1: the log end); return the new log start.

        Raises:
            OffsetOutOfRangeError: above the high watermark.

        """
        if offset == -1:
            offset = self.end_offset
        if offset > self.end_offset or offset < 0:
            raise OffsetOutOfRangeError(offset, self.span)
        self.start_offset = max(self.start_offset, offset)
        self.leader_epochs.truncate_from_start(self.start_offset, sync=True)
        return self.start_offset

    def retain(self) -> int:
        """Remove the segments that retention gives up; return how many."""
        active = self.log.active
        gone = self.log.retain(
            self.config.retention_policy, self.host.clock.wall_ms(), self.start_offset
        )
        if self.log.active is not active:
            self._rolled()
        if gone:
            self.start_offset = max(self.start_offset, self.log.start_offset)
            self.leader_epochs.truncate_from_start(self.start_offset, sync=True)
            for segment in gone:
                self.history.forget_snapshot(segment.base_offset)
                self.files.remove_snapshot(segment.base_offset)
        return len(gone)

    def replace(self, old: Sequence[KafkaSegment], new: KafkaSegment) -> None:
        """
        Let `new`, a segment called ``.cleaned`` and synced, stand for the sealed segments `old`.

        What each name means after a power loss in between, and so the order of what is done here,
        see :mod:`~logstore.segments.kafka.crash_leftovers` (``LocalLog.replaceSegments``).

        Raises:
            MissingSegmentError: one of `old` is not part of the log any more; nothing was done.
            WriteFailedError: the disk refused; so does the log, from now on.

        """
        fs, files = self.host.fs, self.files

        def swap() -> None:
            new.rename(SWAP)
            fs.sync_directory(files.directory)  # from now on it counts
            for segment in old:
                files.condemn(segment)
            fs.sync_directory(files.directory)  # or one could come back beside its replacement
            new.rename("")
            fs.sync_directory(files.directory)

        self.log.replace(old, [new], swap)
        for segment in old[1:]:
            self.history.forget_snapshot(segment.base_offset)
            files.remove_snapshot(segment.base_offset)

    def truncate(self, offset: int) -> None:
        """Remove all that reaches to `offset` or above (``UnifiedLog.truncateTo``)."""
        old_end, old_start = self.end_offset, self.log.start_offset
        self.log.truncate(offset)
        self.leader_epochs.truncate_from_end(offset, sync=True)
        self.start_offset = min(self.start_offset, offset)
        if offset < old_start:
            self.history.restart(offset)
        elif offset < old_end:
            self.history.end_offset = old_end
            segments: list[KafkaSegment] = list(self.log.segments.values())
            self.history.rebuild(segments, self.start_offset, offset)

    def reconfigure(self, config: LogConfig) -> None:
        """Use new topic settings from now on; of an open segment too."""
        self.config = self.files.config = config
        for segment in self.log.segments.values():
            segment.config = config

    def drop(self) -> None:
        """Give all handles back of what goes away, or was only read: nothing is put in order."""
        for segment in self.log.segments.values():
            segment.drop()

    def close(self) -> None:
        """Stop cleanly: all durable, producer snapshot at the end, indexes trimmed."""
        self.log.ensure_writable()  # what refuses has not stopped cleanly
        self.log.active.seal()
        if self.log.recovery_point < self.end_offset or not self._is_metadata_durable:
            self.flush()
        self.history.take_snapshot(self.end_offset)
        if not self.leader_epochs.is_put_off or self.leader_epochs.has_begun(self.end_offset):
            self.leader_epochs.flush()
        self.log.close()
        self.files.purge(everything=True)
