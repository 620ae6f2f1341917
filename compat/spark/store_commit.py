"""
What tasks have put beside a store is appended to it, once.

Before the first record a journal says which files belong to the job and where each partition ended;
it stands in the folder ``<store>.writing`` beside the store. If the driver dies, the next writer
finishes that job first: of every partition it passes over as many records as are there already.
Only then the batch of a stream counts as taken. Where the store refuses a record, or the disk, or a
power loss has damaged the files of a job that was not finished, what was appended to a Kafka log is
taken back, by the next writer if need be. A commit log keeps what it has: what a full disk leaves
out of the job the next writer appends, what can be no message nobody.
Readers may see a part of a job while it is appended; nobody else may write to the store meanwhile.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path

import attrs

from logstore.compat.spark.predicates import INT64_MAX
from logstore.compat.spark.row_batches import StagedBatch
from logstore.compat.spark.row_messages import StagedMessages, draft_of, takes_together
from logstore.compat.spark.row_places import Place
from logstore.compat.spark.row_rules import RowRules
from logstore.compat.spark.staged_file import Portion, StagedFile
from logstore.compat.spark.write_journal import Job, WriteJournal
from logstore.compat.spark.write_options import WriteOptions
from logstore.errors import LogStoreError, StorageError
from logstore.os_host import system_host
from logstore.partition import PartitionLog, Record
from logstore.segments import recognise_layout
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record_batch import HEADER_BYTES
from logstore.segments.kafka.store import KafkaStore
from logstore.segments.kafka.store import StoreOptions as KafkaOptions
from logstore.segments.rocketmq.bulk_dispatch import bulk_bytes_min
from logstore.segments.rocketmq.queue import RocketMQQueue
from logstore.segments.rocketmq.settings.store_config import StoreConfig
from logstore.segments.rocketmq.store import RocketMQStore
from logstore.segments.rocketmq.store import StoreOptions as RocketMQOptions
from logstore.segments.rocketmq.tables.topics import TopicConfig

#: the varints of a record and of a header at their longest
_RECORD_BYTES = 40
_HEADER_BYTES = 10
#: to put a message by itself takes so much longer than to dispatch it by itself
_MESSAGE_STEPS = 8


@attrs.frozen
class StoreCommit:
    """Appends staged files to one store."""

    options: WriteOptions

    @property
    def folder(self) -> Path:
        """Where jobs put their files."""
        return Path(f"{os.path.abspath(self.options.path)}.writing")

    @property
    def _journal(self) -> WriteJournal:
        return WriteJournal(self.folder)

    def layout(self) -> str:
        """Return the layout of the store: the one that is there, or is to be made."""
        path = Path(self.options.path)
        if not path.is_dir() or not any(path.iterdir()):
            return self.options.layout
        return recognise_layout(system_host(), str(path.absolute())).name

    def partition_counts(self) -> dict[str, int]:
        """Return how many partitions each topic has."""
        path = Path(self.options.path)
        if not path.is_dir() or not any(path.iterdir()):
            return {}
        store = self._open(is_writable=False)
        try:
            counts = {topic: max(found) + 1 for topic, found in store.topics().items() if found}
            if isinstance(store, RocketMQStore):
                for topic, config in store.topic_table.topics.items():
                    counts[topic] = config.write_queue_count
            return counts
        finally:
            store.close()

    def rules(self) -> RowRules:
        """Return what rows must be to go into the store."""
        layout = self.layout()
        body_bytes_max = 0
        if layout == "rocketmq":
            body_bytes_max = StoreConfig(self.options.settings).integer("maxMessageSize")
        return RowRules(layout, body_bytes_max)

    def commit(self, files: Sequence[str], batch: int | None = None) -> None:
        """
        Append what stands in these files, after the job that a driver left unfinished, if any.

        Raises:
            StorageError: the store cannot be written to, or is in use.
            RejectedAppendError: the store does not take a record.

        """
        self.finish_last()
        if batch is not None and self._journal.is_taken(self.options.writer, batch):
            return
        self._append_all(partial(self._begun, files, batch))

    def finish_last(self) -> None:
        """
        Finish the job of a driver that died in the middle of it, or take it back.

        Raises:
            StorageError: the store cannot be written to, or is in use.

        """
        job = self._journal.job()
        if job is None:
            return
        if job.is_whole and not job.is_given_up:
            self._append_all(lambda _: job)
        else:
            self._give_up(job)
        for file in job.files:  # their writer is gone, or has given them up to this one
            Path(file).unlink(missing_ok=True)
        for folder in {Path(file).parent for file in job.files}:
            with suppress(OSError):  # what else is in it belongs to a job
                folder.rmdir()

    def _begun(
        self, files: Sequence[str], batch: int | None, store: KafkaStore | RocketMQStore
    ) -> Job:
        job = Job(tuple(files), batch, self.options.writer, self._ends(store, files))
        self._journal.begin(job)
        return job

    def _append_all(self, job_of: Callable[[KafkaStore | RocketMQStore], Job]) -> None:
        """Append a job's records, given the store; one that fails is taken back if it can be."""
        job: Job | None = None
        try:
            with self._opened() as store:
                job = job_of(store)
                self._append(store, job)
        except Exception as error:
            if job is not None:
                self._failed(job, error)
            raise
        self._journal.finish(job)

    def _failed(self, job: Job, error: Exception) -> None:
        is_kafka = self.layout() == "kafka"
        if not is_kafka and isinstance(error, StorageError | OSError):
            error.add_note("what the store lacks of the job the next writer appends: write it once")
            return
        if not is_kafka:
            error.add_note("the messages before it stand; of the others none was put")
        with suppress(LogStoreError, OSError):  # the next writer does it
            self._give_up(job)

    def _give_up(self, job: Job) -> None:
        """Take back what a Kafka log has of the job; what a commit log has stays."""
        job = attrs.evolve(job, is_given_up=True)
        self._journal.begin(job)
        if self.layout() == "kafka":
            with self._opened() as store:
                for topic, ends in job.ends.items():
                    found = store.topics().get(topic, {})
                    for index, end_offset in ends.items():
                        partition = found.get(int(index))
                        if isinstance(partition, KafkaPartition):
                            partition.truncate(end_offset)
        self._journal.finish(job)

    def remove(self, folder: str) -> None:
        """Remove the files of one job, unless it is still to be finished."""
        job = self._journal.job()
        if job is not None and any(file.startswith(f"{folder}/") for file in job.files):
            return
        shutil.rmtree(folder, ignore_errors=True)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _ends(
        self, store: KafkaStore | RocketMQStore, files: Sequence[str]
    ) -> dict[str, dict[str, int]]:
        """Make the topics that are new; return where every partition that gets records ends."""
        places = sorted({place for file in files for place in StagedFile(file).places()})
        ends: dict[str, dict[str, int]] = {}
        for place in places:
            log = self._partition(store, place)
            ends.setdefault(place[0], {})[str(place[1])] = log.end_offset
        return ends

    def _append(self, store: KafkaStore | RocketMQStore, job: Job) -> None:
        there: dict[Place, int] = {}
        files = [StagedFile(path) for path in job.files]
        size_bytes = sum(file.size_bytes for file in files)
        is_bulk = size_bytes * _MESSAGE_STEPS >= bulk_bytes_min()
        for file in files:
            for place, portion in file.portions():
                log = self._partition(store, place)
                if place not in there:
                    there[place] = log.end_offset - job.ends[place[0]][str(place[1])]
                passed = min(there[place], len(portion))
                there[place] -= passed
                if passed < len(portion):
                    _append_portion(log, portion, passed, is_bulk=is_bulk)

    def _partition(self, store: KafkaStore | RocketMQStore, place: Place) -> PartitionLog:
        topic, index = place
        count = self.options.partition_count
        if isinstance(store, KafkaStore):
            if topic not in store.topics():
                store.create_topic(topic, count)
            return store.partition(topic, index)
        if store.topic_table.get(topic) is None:
            store.topic_table.put(TopicConfig(topic, count, count))
        found = store.topics().get(topic, {}).get(index)
        return RocketMQQueue(store, topic, index) if found is None else found

    @contextmanager
    def _opened(self) -> Generator[KafkaStore | RocketMQStore]:
        """Open the store to write to it; it is closed cleanly unless something fails."""
        store = self._open(is_writable=True)
        try:
            yield store
        except BaseException:
            store.abandon()
            raise
        store.close()

    def _open(self, *, is_writable: bool) -> KafkaStore | RocketMQStore:
        host, path = system_host(), os.path.abspath(self.options.path)
        settings = dict(self.options.settings)
        if self.layout() == "kafka":
            options = KafkaOptions(node_id=1, is_writable=is_writable, log_defaults=settings)
            return KafkaStore(host, path, options)
        return RocketMQStore(
            host, path, RocketMQOptions(is_writable=is_writable, settings=settings)
        )


def _append_portion(log: PartitionLog, portion: Portion, passed: int, *, is_bulk: bool) -> None:
    """
    Append what a task staged together, but for the first records: those are there.

    `is_bulk` says that the job is worth loading the compiled loops that queues and index need.
    """
    if isinstance(portion, StagedBatch):
        if isinstance(log, KafkaPartition) and not passed and len(portion.data) <= _bytes_max(log):
            log.append_produced(memoryview(portion.data), log.host.clock.wall_ms())
            return
        portion = portion.records()
    elif isinstance(portion, StagedMessages):
        if isinstance(log, RocketMQQueue) and is_bulk and takes_together(log, portion):
            log.append_batch(draft_of(log, portion.behind(passed)))
            return
        portion = portion.records()
    for records in _fitting(log, islice(portion, passed, None)):
        log.append_records(records)


def _bytes_max(log: KafkaPartition) -> int:
    return min(log.config.max_message_bytes, log.config.segment_bytes)


def _fitting(log: PartitionLog, records: Iterable[Record]) -> Iterator[list[Record]]:
    """Yield the records in portions that make a batch each which the topic takes, if any is."""
    bytes_max = INT64_MAX
    if isinstance(log, KafkaPartition):
        bytes_max = _bytes_max(log) - HEADER_BYTES
    portion: list[Record] = []
    portion_bytes = 0
    for record in records:
        record_bytes = _bytes_at_most(record)
        if portion and portion_bytes + record_bytes > bytes_max:
            yield portion
            portion, portion_bytes = [], 0
        portion.append(record)
        portion_bytes += record_bytes
    if portion:
        yield portion


def _bytes_at_most(record: Record) -> int:
    """Return how much of a batch the record takes at most, before it is compressed."""
    key, value, _, headers, _ = record
    found = _RECORD_BYTES + len(key or b"") + len(value or b"")
    for name, text in headers:
        found += _HEADER_BYTES + len(name.encode()) + len(text or b"")
    return found
