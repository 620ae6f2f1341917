"""
A Kafka partition: one segmented log with the state that a leader keeps beside it.

Appends follow the order of Kafka's ``UnifiedLog.append``: validate, assign offsets, roll, check
the producer's sequence, write, take note. With one replica the high watermark is the log end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

import attrs

from logstore.errors import OffsetMismatchError, OffsetOutOfRangeError, RejectedAppendError
from logstore.flush import NEVER
from logstore.host import Host
from logstore.partition import AppendResult
from logstore.partition import Record as PlainRecord
from logstore.recovery import Recovery
from logstore.segment import Extent
from logstore.segmented_log import FlushTask, SegmentedLog
from logstore.segments.kafka.append_errors import RecordListTooLargeError
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.leader_epochs import LeaderEpochs
from logstore.segments.kafka.partition_metadata import FILE_NAME as PARTITION_METADATA
from logstore.segments.kafka.plain_records import from_batches, to_batch
from logstore.segments.kafka.producer_restore import prune_snapshots, replay_producers
from logstore.segments.kafka.producer_state import ProducerStates
from logstore.segments.kafka.record_batch import HEADER_BYTES, MAGIC, NO_TIMESTAMP, RecordBatch
from logstore.segments.kafka.segment import (
    RELATIVE_OFFSET_MAX,
    KafkaSegment,
    TimestampedOffset,
)
from logstore.segments.kafka.segment_files import SNAPSHOT, SegmentFiles
from logstore.segments.kafka.validation import accepted
from logstore.span import Span

_log = logging.getLogger(__name__)


@attrs.define(slots=True)
class Appended:
    """What a leader answers to a produced batch. For a duplicate: the offsets of the first time."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int = NO_TIMESTAMP
    is_duplicate: bool = False


class KafkaPartition:
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
        self.producers = ProducerStates()
        self.leader_epochs = LeaderEpochs.load(host.fs, files.directory)
        self.last_flush_ms = host.clock.monotonic_ms()
        self._is_metadata_durable = True
        #: up to where a producer snapshot is on disk for sure; an empty log needs none
        self._snapshot_offset = 0
        files.witness = self._witness
        bases = files.base_offsets()
        if recovery_point is not None and bases:
            floor = _floor(bases, recovery_point)
            sealed = [files.open(base, is_active=False) for base in bases if base < floor]
            self._restore_producers(sealed, floor, is_clean=False)
        self.log: SegmentedLog[RecordBatch, KafkaSegment] = SegmentedLog(
            files, recovery_point, start_offset=log_start_offset
        )
        if self.log.next_offset < log_start_offset:
            self.log.restart(log_start_offset)
            self.producers.clear()
        self.start_offset = max(log_start_offset, self.log.start_offset)
        if recovery_point is None and bases:
            self._restore_producers(
                list(self.log.segments.values()), self.log.next_offset, is_clean=True
            )
        if files.is_writable and files.snapshot_offsets():
            self._prune_snapshots()
        self.leader_epoch = max(self.leader_epochs.latest_epoch, 0)

    @property
    def recovery(self) -> Recovery | None:
        """What opening after an unclean stop found; None after a clean one."""
        return self.log.recovery

    @property
    def end_offset(self) -> int:
        """Offset that the next record gets (log end offset; high watermark of a lone replica)."""
        return self.log.active.next_offset

    @property
    def last_stable_offset(self) -> int:
        """Where a read_committed reader must stop."""
        return min(self.producers.first_unstable_offset(self.end_offset), self.end_offset)

    @property
    def span(self) -> Span:
        """The offsets that can be read."""
        return Span(self.start_offset, self.end_offset)

    # opening

    def _witness(self, batch: RecordBatch) -> None:
        """Take note of a batch that recovery found good."""
        if batch.leader_epoch > self.leader_epochs.latest_epoch:
            self.leader_epochs.assign(batch.leader_epoch, batch.base_offset)
        if batch.producer_id >= 0:
            self._note_producer(batch)

    def _restore_producers(
        self, segments: list[KafkaSegment], end_offset: int, *, is_clean: bool
    ) -> None:
        """
        Load the newest snapshot at or below `end_offset` and replay what follows it.

        After a clean stop that left no snapshot there were no producers (``UnifiedLog.
        rebuildProducerState``); as in Kafka, those that were silent for a day are forgotten.
        """
        fs, directory = self.host.fs, self.files.directory
        start = self.producers.load_newest(
            fs,
            directory,
            end_offset,
            now_ms=self.host.clock.wall_ms(),
            remove_corrupt=self.files.is_writable,
        )
        self._snapshot_offset = start or 0
        if start is None and is_clean and not self.files.snapshot_offsets():
            return
        replay_producers(segments, start or 0, end_offset, self._note_producer)
        if not is_clean:
            for segment in segments:
                segment.close()

    def _prune_snapshots(self) -> None:
        """Remove the producer snapshots that do not belong to this log any more."""
        log = self.log
        prune_snapshots(
            self.host.fs, self.files.directory, self.span, log.segments, log.active.base_offset
        )
        self._snapshot_offset = min(self._snapshot_offset, self.end_offset)

    def _note_producer(self, batch: RecordBatch) -> None:
        if batch.is_control:
            self.producers.append_marker_batch(batch.data)
        else:
            self.producers.append(
                producer_id=batch.producer_id,
                epoch=batch.producer_epoch,
                first_sequence=batch.base_sequence,
                last_sequence=batch.last_sequence,
                last_offset=batch.last_offset,
                offset_delta=batch.last_offset_delta,
                timestamp_ms=batch.max_timestamp_ms,
                is_transactional=batch.is_transactional,
            )

    # writing

    def become_leader(self, epoch: int, *, sync: bool = True) -> None:
        """
        Lead in `epoch`: batches from now on carry it (``Partition.makeLeader``).

        Without `sync` the first flush makes it durable, together with the partition's metadata.
        """
        self.leader_epoch = epoch
        if epoch > self.leader_epochs.latest_epoch:
            self.leader_epochs.assign(epoch, self.end_offset, sync=sync)
            self._is_metadata_durable = sync

    def append_produced(self, data: memoryview, now_ms: int) -> Appended:
        """
        Append the one batch in `data` (stamped in place) as a leader does.

        Raises:
            RejectedAppendError: and its kinds in ``append_errors`` and ``producer_state``.
            WriteFailedError: the disk refused.

        """
        config = self.config
        batch = accepted(data, config, now_ms)
        active = self.log.active
        if not active.has_room_for(batch):
            active = self._make_room(batch)
        if batch.producer_id >= 0:
            original = self._check_sequence(batch)
            if original is not None:
                self.log.ensure_writable()  # a failed flush may have lost what it repeats
                return original
        start = active.next_offset
        active.append(batch.stamped(start, self.leader_epoch))
        if batch.producer_id >= 0:
            self._note_producer(batch)
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

    def _check_sequence(self, batch: RecordBatch) -> Appended | None:
        """Return the offsets of the first time if the batch is a duplicate."""
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
            self._note_producer(batch)
        self._appended(self.config)

    def _appended(self, config: LogConfig) -> None:
        log = self.log
        if log.active.next_offset - log.recovery_point >= config.flush_messages:
            if self.on_flush_due is None:
                self.flush()
            else:
                self.on_flush_due(self)
        if self.on_append is not None:
            self.on_append(self)

    def _rolled(self) -> None:
        """Take the producer snapshot of the new segment's base; ask for a flush of the old ones."""
        try:
            self.take_snapshot()
        except OSError as error:  # derived: without it the next start replays more of the log
            _log.warning("%s: no producer snapshot: %s", self.files.directory, error)
        if self.on_roll is not None:
            self.on_roll(self)

    def take_snapshot(self, *, sync: bool = False) -> None:
        """Write the producer state up to the log end, unless it is on disk already."""
        offset = self.end_offset
        if offset <= self._snapshot_offset:
            return
        self.producers.snapshot(self.host.fs, self.files.path(offset, SNAPSHOT), sync=sync)
        if sync:
            self._snapshot_offset = offset

    def append_records(self, records: Iterable[PlainRecord]) -> AppendResult:
        """Append records as one batch of the topic's codec; offsets are assigned here."""
        batch = to_batch(records)
        if len(batch) == HEADER_BYTES:
            raise RejectedAppendError(f"{self.topic}-{self.index}: there is nothing to append")
        result = self.append_produced(memoryview(batch), self.host.clock.wall_ms())
        return AppendResult(result.base_offset, result.last_offset + 1)

    # reading

    def read(
        self,
        offset: int,
        size_bytes_max: int,
        *,
        end_offset: int | None = None,
        is_first_whole: bool = True,
    ) -> Extent | None:
        """
        Return stored bytes from the batch that holds `offset` on; None where there are none yet.

        They may start below `offset` and end inside a batch, as in Kafka. `end_offset` (a batch
        boundary, such as the last stable offset) is where they stop.

        Raises:
            OffsetOutOfRangeError: below the log start or above the log end.

        """
        log = self.log
        active = log.active
        log_end = active.next_offset
        if offset < self.start_offset or offset > log_end:
            raise OffsetOutOfRangeError(offset, self.span)
        end = log_end if end_offset is None else min(end_offset, log_end)
        if offset >= end:
            return None
        segment: KafkaSegment | None = active
        if offset < active.base_offset:
            # A truncation may have left a hole in front of the first segment.
            segment = log.find(offset) or log.segments.peekitem(0)[1]
        while segment is not None and segment.base_offset < end:
            position = segment.end_position
            if end < segment.next_offset:
                position = segment.locate(end)
            extent = segment.read_batches(
                offset, size_bytes_max, end_position=position, is_first_whole=is_first_whole
            )
            if extent.size_bytes or segment is active or not is_first_whole:
                return extent
            segment = log.after(segment)
        return None

    def batches(self, offset: int | None = None) -> Iterable[RecordBatch]:
        """Yield every batch from `offset` (default: the log start) on."""
        start = self.start_offset if offset is None else offset
        first = self.log.find(start)
        for segment in list(self.log.segments.values()):
            if first is not None and segment.base_offset < first.base_offset:
                continue
            position = segment.locate(start) if segment is first else 0
            yield from segment.entries(position)

    def read_records(self, offset: int, count_max: int) -> list[PlainRecord]:
        """Return up to `count_max` records from `offset` on; markers are left out."""
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRangeError(offset, self.span)
        return from_batches(self.batches(offset), offset, count_max)

    def find_timestamp(self, timestamp_ms: int) -> TimestampedOffset | None:
        """Return the first readable record that is at least that young."""
        for segment in list(self.log.segments.values()):
            if segment.largest_timestamp_ms() >= timestamp_ms:
                found = segment.find_timestamp(timestamp_ms, self.start_offset)
                if found is not None:
                    return found
        return None

    def find_max_timestamp(self) -> TimestampedOffset | None:
        """Return the record with the largest timestamp (ListOffsets timestamp -3)."""
        segments: list[KafkaSegment] = list(self.log.segments.values())
        newest = max(segments, key=lambda segment: segment.max_timestamp_ms)
        if newest.max_timestamp_ms < 0:
            return None
        return newest.find_timestamp(newest.max_timestamp_ms, self.start_offset)

    def offset_for_timestamp(self, timestamp_ms: int) -> int | None:
        """Return the offset of the first readable record that is at least that young."""
        found = self.find_timestamp(timestamp_ms)
        return None if found is None else found.offset

    # lasting and forgetting

    def flush(self) -> None:
        """Make all appended so far durable."""
        task = self.begin_flush()
        task.run()
        self.end_flush(task)

    def begin_flush(self) -> FlushTask:
        """Return what must be synced; run it in any thread, then :meth:`end_flush`."""
        task = self.log.begin_flush()
        if self._is_metadata_durable:
            return task
        return attrs.evolve(task, first=self._sync_metadata)

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
                self.files.remove_snapshot(segment.base_offset)
        return len(gone)

    def truncate(self, offset: int) -> None:
        """Remove all that reaches to `offset` or above (``UnifiedLog.truncateTo``)."""
        self.log.truncate(offset)
        self.leader_epochs.truncate_from_end(offset, sync=True)
        self.start_offset = min(self.start_offset, offset)
        self._prune_snapshots()
        self.producers.clear()
        for batch in self.batches(self.log.start_offset):
            if batch.producer_id >= 0:
                self._note_producer(batch)

    def reconfigure(self, config: LogConfig) -> None:
        """Use new topic settings from now on; of an open segment too."""
        self.config = self.files.config = config
        for segment in self.log.segments.values():
            segment.config = config

    def close(self) -> None:
        """Stop cleanly: all durable, producer snapshot at the end, indexes trimmed."""
        self.log.ensure_writable()  # what refuses has not stopped cleanly
        self.log.active.seal()
        if self.log.recovery_point < self.end_offset:
            self.flush()
        self.take_snapshot(sync=True)
        self.leader_epochs.flush()
        self.log.close()
        self.files.purge(everything=True)


def _floor(bases: list[int], offset: int) -> int:
    """Return the greatest base offset at or below `offset`, or the first."""
    return max((base for base in bases if base <= offset), default=bases[0])
