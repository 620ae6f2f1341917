"""
A partition whose records are the messages of a RocketMQ queue.

To the broker it is a partition like any other: its own log stays empty, and has what a queue has
no place for (leader epochs, the topic's id). Offsets are queue offsets, times are born times.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from logstore.compat.bridge.kafka_over_rocketmq.commit_intent import CommitIntent
from logstore.compat.bridge.kafka_over_rocketmq.held_batches import HeldBatches, held_config
from logstore.compat.bridge.kafka_over_rocketmq.queue_producers import QueueProducers
from logstore.compat.bridge.kafka_over_rocketmq.queue_reads import CHUNK_BYTES
from logstore.compat.bridge.kafka_over_rocketmq.record_drafts import (
    RecordRunDraft,
    draft_records,
    draft_single,
)
from logstore.compat.bridge.kafka_over_rocketmq.single_records import SingleRecords, holds_one
from logstore.compat.bridge.memory_file import extent_of
from logstore.errors import OffsetOutOfRangeError, RejectedAppendError, WriteFailedError
from logstore.flush import NEVER
from logstore.segment import Extent
from logstore.segmented_log import FlushTask
from logstore.segments.kafka.append_errors import (
    InvalidRecordError,
    MessageTooLargeError,
)
from logstore.segments.kafka.appended import Appended
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.producer_state import (
    InvalidTransactionStateError,
    ProducerEntry,
)
from logstore.segments.kafka.readable_partition import CommittedRead
from logstore.segments.kafka.record import CorruptRecordError, decode_records
from logstore.segments.kafka.record_batch import NO_TIMESTAMP, RecordBatch
from logstore.segments.kafka.record_run import decode_run
from logstore.segments.kafka.time_index import TimestampedOffset
from logstore.segments.kafka.usual_batch import UsualBatch, usual_batch
from logstore.segments.kafka.validation import accepted
from logstore.segments.rocketmq.putting.put_result import PutMessageStatus, PutResult

if TYPE_CHECKING:
    from logstore.compat.bridge.compiled.loops import CompiledRunDraft
    from logstore.compat.bridge.kafka_over_rocketmq.queues import Queues
    from logstore.host import Host
    from logstore.segments.kafka.config import LogConfig
    from logstore.segments.kafka.segment_files import SegmentFiles
    from logstore.segments.kafka.transaction_verification import Verification
    from logstore.segments.rocketmq.messages.message_draft import MessageDraft

#: refusals that say something about the batch; all others are the store's
_ILLEGAL = frozenset({PutMessageStatus.MESSAGE_ILLEGAL, PutMessageStatus.PROPERTIES_SIZE_EXCEEDED})


class QueuePartition(KafkaPartition):
    """Partition `index` of `topic`; `queues` has its messages."""

    keeps_batches = False

    def __init__(
        self,
        queues: Queues,
        host: Host,
        files: SegmentFiles,
        topic: str,
        index: int,
        *,
        recovery_point: int | None,
        log_start_offset: int,
    ) -> None:
        self.queues = queues
        self._flushing: FlushTask | None = None
        self._flushing_held: FlushTask | None = None
        self._flush_position = 0
        self._singles = SingleRecords(topic, index)
        #: what producers sent outside of transactions, by queue offsets
        self.idempotent = QueueProducers(topic, index)
        self.held: HeldBatches | None = None
        super().__init__(
            host,
            files,
            topic,
            index,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
        )
        if HeldBatches.exists(host, files.directory):
            self.held = self._open_held()
            self.producers = self.held.log.producers

    # the queue's span

    @property
    def start_offset(self) -> int:  # what is kept beside the queue does not count
        """First queue offset that can be read."""
        return self.queues.store.min_queue_offset(self.topic, self.index)

    @start_offset.setter
    def start_offset(self, offset: int) -> None:
        """Pass over what the empty log says of itself."""

    @property
    def end_offset(self) -> int:
        """Queue offset that the next message gets; the last ones may not be readable yet."""
        store = self.queues.store
        return store.max_queue_offset(self.topic, self.index, is_committed=False)

    @property
    def last_stable_offset(self) -> int:
        """The end: a queue holds nothing that is not committed."""
        return self.end_offset

    @property
    def size_bytes(self) -> int:
        """Bytes of the queue's messages in the commit log."""
        self.queues.catch_up()
        return self.queues.sizes.size_bytes(self.topic, self.index)

    @property
    def flush_position(self) -> int:
        """Counts what is held, too; it stays where it is when the topic goes."""
        held_end = 0 if self.held is None else self.held.log.end_offset
        self._flush_position = max(self._flush_position, self.end_offset + held_end)
        return self._flush_position

    # writing

    def append_produced(
        self, data: memoryview, now_ms: int, guard: Verification | None = None
    ) -> Appended:
        """
        Put the records of the one batch in `data`, as messages of their own, all or none.

        Those of a transaction are held until it is committed. Their offsets are not known before,
        so what is returned has such that every single one is negative.

        Raises:
            RejectedAppendError: and its kinds.
            WriteFailedError: the disk refused, or the store takes nothing.

        """
        batch = accepted(data, self.config, now_ms, f"{self.topic}-{self.index}")
        if batch.is_transactional:
            return self._hold(batch, now_ms, guard)
        if batch.producer_id >= 0:
            original = self._check_sequence(batch, guard)
            if original is not None:
                self._flush_if_due(self.config)
                return original
        result = self._put(batch)
        last_offset = result.queue_offset + result.count - 1
        if batch.producer_id >= 0:
            self.queues.journal.note(self.idempotent.note(batch, last_offset))
        self._appended(self.config)
        appended_ms = now_ms if self.config.is_log_append_time else NO_TIMESTAMP
        return Appended(result.queue_offset, last_offset, appended_ms)

    def _hold(self, batch: RecordBatch, now_ms: int, guard: Verification | None) -> Appended:
        if batch.producer_id < 0:
            raise InvalidRecordError("a batch of a transaction that has no producer")
        held = self._held()
        held.log.verifies_transactions = self.verifies_transactions
        done = held.append(memoryview(batch.data), now_ms, guard)
        held.began_at.setdefault(batch.producer_id, self.end_offset)
        self._flush_now()
        return done._replace(base_offset=-batch.record_count, last_offset=-1)

    def _held(self) -> HeldBatches:
        """Return what is held for the queue; the first transaction begins it."""
        if self.held is None:
            held = self._open_held()
            held.log.producers = held.log.history.states = self.producers
            self.held = held
        return self.held

    def _open_held(self) -> HeldBatches:
        return HeldBatches.open(
            self.queues, self.host, self.files.directory, self.topic, self.index, self.config
        )

    def append_usual(self, data: memoryview, now_ms: int) -> int:
        """Put the one plain record in `data`; -1, and nothing was done, if it is something else."""
        config = self.config
        if config.flush_messages != NEVER or not holds_one(data):
            return -1
        usual = usual_batch(data, config, now_ms)
        if usual is None or usual[2] >= 0:
            return -1
        run = self._singles.run_of(data, self.queues.host)
        if run is None or not self.queues.put_run(run):
            return -1
        if self.on_append is not None:
            self.on_append(self)
        return run.stored[0][3]

    def append_at_once(self, batch: UsualBatch, now_ms: int) -> int:
        """Do what :meth:`append_usual` does."""
        return self.append_usual(batch[1], now_ms)

    def append_run_at_once(self, run: Sequence[UsualBatch]) -> int:
        """Return -1: a queue takes them one by one."""
        del run
        return -1

    def _put(self, batch: RecordBatch) -> PutResult:
        result = self.queues.put(self._draft(batch))
        if result.is_ok:
            return result
        if result.status in _ILLEGAL:
            raise MessageTooLargeError(result.reason)
        raise WriteFailedError(f"{self.topic}-{self.index}: {result.reason}")

    def _draft(self, batch: RecordBatch) -> MessageDraft | RecordRunDraft | CompiledRunDraft:
        """Return the records as messages. Raises InvalidRecordError."""
        has_crc = self.queues.store.putting.rules.has_property_crc
        loops = None if has_crc else self.queues.loops.want(batch.record_count)
        if loops is not None:
            draft = loops.draft_batch(self.topic, self.index, batch, self.queues.host)
            if draft is not None:
                return draft
        try:
            rows = decode_run(batch)
        except CorruptRecordError as error:
            raise InvalidRecordError(str(error)) from error
        if not rows:
            raise InvalidRecordError("a batch without records")
        if len(rows) == 1:
            single = draft_single(self.topic, self.index, rows[0], self.queues.host)
            if single is not None:
                return single
        try:
            return draft_records(self.topic, self.index, rows, self.queues.host)
        except RejectedAppendError as error:
            raise InvalidRecordError(str(error)) from error

    def _check_sequence(self, batch: RecordBatch, guard: Verification | None) -> Appended | None:
        """Return the offsets of the first time if the batch is a duplicate."""
        del guard
        entry = self.producers.get(batch.producer_id)
        if entry is not None and entry.is_in_transaction:
            raise InvalidTransactionStateError(
                f"producer {batch.producer_id} has a transaction open, and this batch is not part"
                " of it"
            )
        return self.idempotent.check(batch)

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
        End a producer's transaction: what is held of it goes into the queue, or is forgotten.

        Returns the end of the queue, as markers have no offset in it.

        Raises:
            InvalidProducerEpochError: the epoch is too old.
            TransactionCoordinatorFencedError: the coordinator is too old.
            WriteFailedError, OSError: the disk refused; the call may be repeated.

        """
        self._held().end(
            CommitIntent(producer_id, epoch, coordinator_epoch, self.end_offset),
            is_commit=is_commit,
            version=transaction_version,
            now_ms=now_ms,
        )
        if self.on_append is not None:
            self.on_append(self)
        return self.end_offset

    def prepare_commit(
        self, producer_id: int, epoch: int, coordinator_epoch: int, now_ms: int, version: int
    ) -> bool:
        """
        Put a portion of what a COMMIT marker puts; tell whether the marker is all that is missing.

        `version` is that of transactions. Raises as :meth:`append_marker` does.
        """
        intent = CommitIntent(producer_id, epoch, coordinator_epoch, self.end_offset)
        return self._held().prepare(intent, version=version, now_ms=now_ms)

    def known_producers(self) -> list[ProducerEntry]:
        """Return all producers; a transaction starts where the queue ended when it did."""
        transactional = [] if self.held is None else self.held.entries(self.end_offset)
        return [*self.idempotent.states, *transactional]

    def expire_producers(self, now_ms: int, expiration_ms: int) -> None:
        """Forget the producers that have been silent for too long."""
        self.idempotent.states.expire(now_ms, expiration_ms)
        self.producers.expire(now_ms, expiration_ms)

    def append_stored(self, batch: RecordBatch) -> None:
        """Refuse: a queue gives out its offsets itself."""
        raise InvalidRecordError(
            f"{self.topic}-{self.index}: a queue has no place for the batch at {batch.base_offset}"
        )

    def _flush_if_due(self, config: object) -> None:
        """The flush settings are those of the store: SYNC_FLUSH asks for one after every append."""
        del config
        if self.config.flush_messages != NEVER:
            self._flush_now()

    def _flush_now(self) -> None:
        if self.on_flush_due is None:
            self.flush()
        else:
            self.on_flush_due(self)

    # lasting and forgetting

    def begin_flush(self) -> FlushTask:
        """Return what makes the commit log durable; its offset is the queue's."""
        self._flushing = flushing = self.queues.store.commit_log.begin_flush()
        self._flushing_held = held = None if self.held is None else self.held.log.begin_flush()

        def first() -> None:
            if held is not None:
                held.run()
            self.queues.journal.sync()
            if flushing.first is not None:
                flushing.first()

        return flushing._replace(offset=self.flush_position, first=first)

    def end_flush(self, task: FlushTask) -> None:
        """Take note that the task has run: what it covers can be read now."""
        del task
        if self._flushing is not None:
            self.queues.store.commit_log.end_flush(self._flushing)
            self._flushing = None
        if self._flushing_held is not None and self.held is not None:
            self.held.log.end_flush(self._flushing_held)
            self._flushing_held = None
        self.last_flush_ms = self.host.clock.monotonic_ms()
        self.queues.served()

    def delete_records(self, offset: int) -> int:
        """
        Let the queue begin at `offset` (-1: its end) for clients of both sides; return its start.

        Raises:
            OffsetOutOfRangeError: that is behind the last record.

        """
        if offset == -1:
            offset = self.end_offset
        if not 0 <= offset <= self.end_offset:
            raise OffsetOutOfRangeError(offset, self.span)
        self.queues.starts.move(self.topic, self.index, offset)
        return self.start_offset

    def retain(self) -> int:
        """Let go of transactions that have ended; the store removes commit log files itself."""
        if self.held is not None:
            self.held.trim()
        return 0

    def reconfigure(self, config: LogConfig) -> None:
        """Use new topic settings from now on."""
        super().reconfigure(config)
        if self.held is not None:
            self.held.log.reconfigure(held_config(config))

    def settle_held(self) -> None:
        """Make durable what is held, if anything of it is not. Raises WriteFailedError, OSError."""
        if self.held is not None and self.held.log.log.recovery_point < self.held.log.end_offset:
            self.held.log.flush()

    def abandon_held(self) -> None:
        """Let go of what is held as it is."""
        if self.held is not None:
            self.held.abandon()
            self.held = None

    def close(self) -> None:
        """Let go of what is kept beside the queue."""
        if self.held is not None:
            self.held.close()
        self.leader_epochs.flush()
        self.log.close()
        self.files.purge(everything=True)

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
        Return record batches from `offset` on, made of the stored messages; None if there are none.

        Raises:
            OffsetOutOfRangeError: below the first message or above the end.

        """
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRangeError(offset, self.span)
        if size_bytes_max < CHUNK_BYTES and (end_offset is None or offset < end_offset):
            return self._read_few(offset, size_bytes_max, is_first_whole=is_first_whole)
        pieces: list[bytes] = []
        size_bytes = 0
        while size_bytes < max(size_bytes_max, 1) and (end_offset is None or offset < end_offset):
            chunk = self.queues.reads.chunk(self.topic, self.index, offset)
            if chunk is None:
                break
            pieces.append(chunk.data)
            size_bytes += len(chunk.data)
            offset = chunk.next_offset
        if not pieces:
            return None
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        whole = max(size_bytes_max, len(pieces[0]) if is_first_whole else 0)
        return extent_of(data[:whole] if whole < size_bytes else data)

    def _read_few(self, offset: int, size_bytes_max: int, *, is_first_whole: bool) -> Extent | None:
        """Return one batch of as many messages as a client takes that takes little."""
        chunk = self.queues.reads.few(self.topic, self.index, offset, size_bytes_max)
        if chunk is None:
            return None
        return extent_of(chunk.data if is_first_whole else chunk.data[: max(size_bytes_max, 0)])

    def read_committed(
        self, offset: int, size_bytes_max: int, *, is_first_whole: bool = True
    ) -> CommittedRead:
        """Return what :meth:`read` does: a queue holds nothing that is not committed."""
        found = self.read(offset, size_bytes_max, is_first_whole=is_first_whole)
        return CommittedRead(found, [])

    def batches(self, offset: int | None = None) -> Iterable[RecordBatch]:
        """Yield every message from `offset` on, in batches made for this."""
        position = self.start_offset if offset is None else offset
        while True:
            chunk = self.queues.reads.chunk(self.topic, self.index, position)
            if chunk is None:
                return
            yield RecordBatch(chunk.data, len(chunk.data))
            position = chunk.next_offset

    def committed_batches(self, offset: int | None = None) -> Iterable[RecordBatch]:  # type: ignore[override] # pyright: ignore[reportIncompatibleMethodOverride] # not an iterator
        """Yield what :meth:`batches` does."""
        return self.batches(offset)

    # time

    def find_timestamp(self, timestamp_ms: int) -> TimestampedOffset | None:
        """Return the first message born then or later, among those stored then or later."""
        self.queues.catch_up()
        position = self.queues.store.queue_offset_for_time(self.topic, self.index, timestamp_ms)
        for batch in self.batches(position):
            for record in decode_records(batch.data):
                if record.timestamp_ms >= timestamp_ms:
                    return TimestampedOffset(record.timestamp_ms, record.offset, self.leader_epoch)
        return None

    def find_max_timestamp(self) -> TimestampedOffset | None:
        """Return the first of the messages that were born last."""
        self.queues.catch_up()
        found = self.queues.births.latest(self.topic, self.index, self.start_offset)
        return None if found is None else TimestampedOffset(*found, self.leader_epoch)
