"""
The batches of transactions that are not committed yet, kept beside their queue until they are.

A queue holds what is committed and nothing else. So a partition over one keeps the rest in a Kafka
log of its own, in the directory ``held`` within that of the partition: the batches as they came,
under offsets of that log, which nobody is told; markers as in any partition; and in front of a
COMMIT marker a :mod:`~logstore.compat.bridge.kafka_over_rocketmq.commit_intent`. Producers'
states, fencing, verification, recovery and the cut of a torn tail are those of any partition.

A commit is carried out in an order of which a power loss can leave any beginning:

1. the batches are durable: before their producer has its answer
2. the intent, durable
3. the messages, into the queue, each saying where it was held; durable
4. the marker

A transaction with an intent and no marker is finished at the next start: what the queue has of it,
from the end that the intent names, is passed over. An ABORT marker is durable before it counts.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from logstore.compat.bridge.kafka_over_rocketmq.commit_intent import CommitIntent, intent_of
from logstore.compat.bridge.kafka_over_rocketmq.held_drafts import (
    HeldRunDraft,
    draft_held,
    held_offsets_in,
)
from logstore.errors import LogStoreError, RejectedAppendError, WriteFailedError
from logstore.flush import NEVER
from logstore.segments.kafka.append_errors import InvalidRecordError, MessageTooLargeError
from logstore.segments.kafka.appended import Appended
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import CorruptRecordError
from logstore.segments.kafka.record_run import decode_run
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.segments.kafka.validation import accepted

if TYPE_CHECKING:
    from logstore.compat.bridge.kafka_over_rocketmq.queues import Queues
    from logstore.host import Host
    from logstore.segments.kafka.config import LogConfig
    from logstore.segments.kafka.producer_state import ProducerEntry
    from logstore.segments.kafka.record_batch import RecordBatch
    from logstore.segments.kafka.transaction_verification import Verification

_log = logging.getLogger(__name__)
DIRECTORY = "held"
#: a segment whose transactions have all ended goes as a whole
SEGMENT_BYTES = 16 * 1024 * 1024
#: so much may stay of transactions that have ended
KEPT_BYTES_MAX = 1024 * 1024
#: of what is committed so much is put in one go, and the batch that reaches it
PORTION_RECORDS = 1000
PORTION_BYTES = 1024 * 1024


def held_config(config: LogConfig) -> LogConfig:
    """Return the topic's settings as they hold for what is held: nothing goes by age or size."""
    return attrs.evolve(
        config,
        segment_bytes=max(SEGMENT_BYTES, 2 * config.max_message_bytes),
        segment_index_bytes=256 * 1024,
        segment_ms=NEVER,
        segment_jitter_ms=0,
        retention_ms=-1,
        retention_bytes=-1,
        flush_messages=NEVER,
        flush_ms=NEVER,
        preallocate=False,
    )


class HeldBatches:
    """What is held for one queue; `log` has it, and the states of its transactional producers."""

    def __init__(self, queues: Queues, host: Host, directory: str, log: KafkaPartition) -> None:
        self.queues = queues
        self.host = host
        self.directory = directory
        self.log = log
        #: where the queue ended when an open transaction got its first batch, by producer
        self.began_at: dict[int, int] = {}
        #: commits that have begun, by producer
        self._intents: dict[int, CommitIntent] = {}
        #: how far the messages of such a commit are in the queue: the last one's offset here
        self._last_put: dict[int, int] = {}
        for batch in log.batches():
            intent = intent_of(batch)
            entry = None if intent is None else log.producers.get(intent.producer_id)
            # An intent in front of the open transaction is of one that has ended.
            if (
                intent is not None
                and entry is not None
                and 0 <= entry.transaction_first_offset < batch.base_offset
            ):
                self._intents[intent.producer_id] = intent

    @classmethod
    def exists(cls, host: Host, partition_directory: str) -> bool:
        """Tell whether anything was ever held for a partition."""
        return host.fs.is_directory(f"{partition_directory}/{DIRECTORY}")

    @classmethod
    def open(
        cls,
        queues: Queues,
        host: Host,
        partition_directory: str,
        topic: str,
        index: int,
        config: LogConfig,
    ) -> HeldBatches:
        """
        Open what is held for a partition, or begin to hold.

        Raises:
            StorageError, OSError: the disk refused.

        """
        directory = f"{partition_directory}/{DIRECTORY}"
        is_new = not host.fs.is_directory(directory)
        if is_new:
            host.fs.make_directory(directory)
            host.fs.sync_directory(partition_directory)
            host.fs.sync_directory(partition_directory.rpartition("/")[0])
        files = SegmentFiles(host, directory, held_config(config), is_clean=False, is_new=is_new)
        log = KafkaPartition(host, files, topic, index, recovery_point=0)
        for segment in log.log.segments.values():
            segment.release()
        files.forget_listing()
        return cls(queues, host, directory, log)

    # holding

    def append(self, data: memoryview, now_ms: int, guard: Verification | None) -> Appended:
        """
        Hold the one batch in `data`; only a flush makes that last.

        Raises:
            RejectedAppendError: and its kinds; so for what could not be put into the queue.
            WriteFailedError: the disk refused.

        """
        log = self.log
        batch = accepted(data, log.config, now_ms, f"{log.topic}-{log.index}")
        intent = self._intents.get(batch.producer_id)
        if intent is not None:
            self._carry_out(intent, now_ms)  # what was decided comes first
        self._check(batch)
        return log.append_produced(data, now_ms, guard)

    def _check(self, batch: RecordBatch) -> None:
        """Refuse now what could not be put when it is committed."""
        draft = self._draft(batch, batch.base_offset, batch.base_offset - 1)
        if draft is None:
            raise InvalidRecordError("a batch without records")
        store = self.queues.store
        allowed_bytes = min(
            store.putting.rules.message_size_bytes_max, store.commit_log.file_size_bytes - 8
        )
        if draft.size_bytes > allowed_bytes:
            raise MessageTooLargeError(
                f"the batch takes {draft.size_bytes} bytes as messages, {allowed_bytes} are "
                "allowed (maxMessageSize, mappedFileSizeCommitLog)"
            )

    def _draft(self, batch: RecordBatch, base_offset: int, last_put: int) -> HeldRunDraft | None:
        """Return the messages that a batch becomes, but for those up to `last_put`; or None."""
        log = self.log
        try:
            rows = decode_run(batch)
        except CorruptRecordError as error:
            raise InvalidRecordError(str(error)) from error
        skipped = max(last_put + 1 - base_offset, 0)
        held_offsets = range(base_offset + skipped, base_offset + len(rows))
        if not held_offsets:
            return None
        try:
            return draft_held(log.topic, log.index, rows[skipped:], held_offsets, self.queues.host)
        except RejectedAppendError as error:
            raise InvalidRecordError(str(error)) from error

    def entries(self, end_offset: int) -> list[ProducerEntry]:
        """Return the producers; open transactions with an offset of the queue, `end_offset` now."""
        return [
            attrs.evolve(
                entry,
                transaction_first_offset=self.began_at.setdefault(entry.producer_id, end_offset),
            )
            if entry.is_in_transaction
            else entry
            for entry in self.log.producers
        ]

    # ending

    def prepare(self, intent: CommitIntent, *, version: int, now_ms: int) -> bool:
        """
        Put a portion of what a producer commits; tell whether only the marker is missing.

        `intent` and `version` are those of :meth:`end`, and so is what is raised.
        """
        begun = self._begun(intent, version, now_ms)
        return begun is None or self._put_portion(begun)

    def _begun(self, intent: CommitIntent, version: int, now_ms: int) -> CommitIntent | None:
        """Return the commit that has begun by now, None if nothing is open."""
        producer_id = intent.producer_id
        begun = self._intents.get(producer_id)
        if begun is not None:
            return self._resumed(begun, now_ms)
        self._check_marker(intent, version)
        entry = self.log.producers.get(producer_id)
        if entry is None or not entry.is_in_transaction:
            return None
        self._begin(intent, now_ms)
        return intent

    def end(self, intent: CommitIntent, *, is_commit: bool, version: int, now_ms: int) -> int:
        """
        End a producer's transaction as its marker says; return the marker's offset here.

        `intent` has the marker's epochs. `version` is that of transactions.

        Raises:
            InvalidProducerEpochError, TransactionCoordinatorFencedError: a newer one was here.
            WriteFailedError, OSError: the disk refused; the call may be repeated.

        """
        begun = self._intents.get(intent.producer_id)
        if is_commit:
            begun = self._begun(intent, version, now_ms)
        if begun is not None:
            offset = self._carry_out(begun, now_ms)
            if is_commit:
                return offset
        self._check_marker(intent, version)
        offset = self._mark(intent, now_ms, is_commit=is_commit)
        self.log.flush()
        return offset

    def _check_marker(self, intent: CommitIntent, version: int) -> None:
        self.log.producers.check_marker(
            producer_id=intent.producer_id,
            epoch=intent.epoch,
            coordinator_epoch=intent.coordinator_epoch,
            transaction_version=version,
        )

    def _mark(self, intent: CommitIntent, now_ms: int, *, is_commit: bool) -> int:
        self.began_at.pop(intent.producer_id, None)
        return self.log.append_marker(
            intent.producer_id,
            intent.epoch,
            is_commit=is_commit,
            coordinator_epoch=intent.coordinator_epoch,
            now_ms=now_ms,
        )

    def _begin(self, intent: CommitIntent, now_ms: int) -> None:
        """Let the commit last, before the first message of it."""
        self.log.append_coordinated(memoryview(intent.encoded(now_ms)), now_ms)
        self.log.flush()
        self._intents[intent.producer_id] = intent
        self._last_put[intent.producer_id] = -1

    def _carry_out(self, intent: CommitIntent, now_ms: int) -> int:
        """
        Put what is not in the queue yet, and then the marker; return its offset here.

        Raises:
            WriteFailedError, OSError: the disk refused; the call may be repeated.

        """
        intent = self._resumed(intent, now_ms)
        while not self._put_portion(intent):
            pass
        self.queues.flush()
        offset = self._mark(intent, now_ms, is_commit=True)
        del self._intents[intent.producer_id], self._last_put[intent.producer_id]
        return offset

    def _put_portion(self, intent: CommitIntent) -> bool:
        """Put some batches that are not in the queue yet; tell whether those were the last."""
        log, producer_id = self.log, intent.producer_id
        record_count = size_bytes = 0
        for batch in self._batches(self._entry(intent), self._last_put[producer_id] + 1):
            if record_count >= PORTION_RECORDS or size_bytes >= PORTION_BYTES:
                return False
            draft = self._draft(batch, batch.base_offset, self._last_put[producer_id])
            if draft is not None:
                result = self.queues.put(draft)
                if not result.is_ok:
                    raise WriteFailedError(f"{log.topic}-{log.index}: {result.reason}")
                size_bytes += draft.size_bytes
            record_count += batch.record_count
            self._last_put[producer_id] = max(self._last_put[producer_id], batch.last_offset)
        return True

    def _entry(self, intent: CommitIntent) -> ProducerEntry:
        entry = self.log.producers.get(intent.producer_id)
        assert entry is not None, "an intent is of an open transaction"
        return entry

    def _resumed(self, intent: CommitIntent, now_ms: int) -> CommitIntent:
        """Return a commit of which is known how far it has come."""
        if intent.producer_id in self._last_put:
            return intent
        return self._resume(self._entry(intent), intent, now_ms)

    def _resume(self, entry: ProducerEntry, intent: CommitIntent, now_ms: int) -> CommitIntent:
        """Find out what a commit of before the start has put; it may have to begin anew."""
        log, queues = self.log, self.queues
        queues.served()
        found = set(held_offsets_in(queues.store, log.topic, log.index, intent.queue_offset))
        last_put = max(
            (
                offset
                for batch in self._batches(entry)
                for offset in range(batch.base_offset, batch.last_offset + 1)
                if offset in found
            ),
            default=-1,
        )
        end = queues.store.max_queue_offset(log.topic, log.index, is_committed=False)
        if end < intent.queue_offset:  # the power took the end of the queue: look from here on
            intent = attrs.evolve(intent, queue_offset=end)
            self._begin(intent, now_ms)
        self._last_put[intent.producer_id] = last_put
        return intent

    def _batches(self, entry: ProducerEntry, start: int = 0) -> Iterator[RecordBatch]:
        """Yield the batches of a producer's open transaction, from offset `start` on."""
        for batch in self.log.batches(max(entry.transaction_first_offset, start)):
            if batch.producer_id == entry.producer_id and not batch.is_control:
                yield batch

    def finish(self) -> None:
        """Carry out the commits that had begun before the last stop, as far as the disk lets."""
        now_ms = self.host.clock.wall_ms()
        for intent in list(self._intents.values()):
            try:
                self._carry_out(intent, now_ms)
            except (LogStoreError, OSError) as error:
                _log.error("%s: a commit waits: %s", self.directory, error)

    # lasting and forgetting

    def trim(self) -> None:
        """Let go of what has ended; raises as a flush does."""
        log = self.log
        end_offset = log.end_offset
        log.start_offset = log.producers.first_unstable_offset(end_offset)
        if log.log.refusal is not None or log.start_offset == log.log.start_offset:
            return
        log.flush()  # or a marker could be lost whose batches are gone already
        if log.start_offset == end_offset and log.log.active.end_position > KEPT_BYTES_MAX:
            log.history.take_snapshot(end_offset)
            log.log.roll()
        log.retain()
        log.files.purge(everything=True)

    def close(self) -> None:
        """Stop cleanly."""
        self.log.close()

    def abandon(self) -> None:
        """Let go of the files as they are."""
        self.log.log.close()
