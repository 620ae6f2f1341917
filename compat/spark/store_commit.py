"""
What tasks have put beside a store is appended to it, once.

Before the first record a journal says which files belong to the job and where each partition ended;
it stands in the folder ``<store>.writing`` beside the store. If the driver dies, the next writer
finishes that job first: of every partition it passes over as many records as are there already.
Only then the batch of a stream counts as taken. Readers may see a part of a job while it is
appended; nobody else may write to the store meanwhile.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import attrs

from logstore.compat.spark.row_staging import Place, staged
from logstore.compat.spark.write_options import WriteOptions
from logstore.os_host import system_host
from logstore.partition import PartitionLog
from logstore.segments import recognise_layout
from logstore.segments.kafka.store import KafkaStore
from logstore.segments.kafka.store import StoreOptions as KafkaOptions
from logstore.segments.rocketmq.queue import RocketMQQueue
from logstore.segments.rocketmq.store import RocketMQStore
from logstore.segments.rocketmq.store import StoreOptions as RocketMQOptions
from logstore.segments.rocketmq.tables.topics import TopicConfig


@attrs.frozen
class StoreCommit:
    """Appends staged files to one store."""

    options: WriteOptions

    @property
    def folder(self) -> Path:
        """Where jobs put their files."""
        return Path(f"{os.path.abspath(self.options.path)}.writing")

    @property
    def _journal(self) -> Path:
        return self.folder / "journal.json"

    @property
    def _taken(self) -> Path:
        return self.folder / "taken.json"

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

    def is_taken(self, batch: int) -> bool:
        """Tell whether this batch of the stream was appended already."""
        return self._batches_taken().get(self.options.writer, -1) >= batch

    def commit(self, files: Sequence[str], batch: int | None = None) -> None:
        """
        Append what stands in these files, after the job that a driver left unfinished, if any.

        Raises:
            StorageError: the store cannot be written to, or is in use.

        """
        self.finish_last()
        if batch is not None and self.is_taken(batch):
            return
        store = self._open(is_writable=True)
        try:
            ends = self._ends(store, files)
            self._put(self._journal, {"files": list(files), "batch": batch,
                                      "writer": self.options.writer, "ends": ends})  # fmt: skip
            self._append(store, files, ends)
        except BaseException:
            store.abandon()
            raise
        store.close()
        self._done(batch, self.options.writer)

    def finish_last(self) -> None:
        """Finish the job of a driver that died in the middle of it."""
        if not self._journal.is_file():
            return
        job: dict[str, Any] = json.loads(self._journal.read_bytes())
        store = self._open(is_writable=True)
        try:
            self._append(store, job["files"], job["ends"])
        except BaseException:
            store.abandon()
            raise
        store.close()
        self._done(job["batch"], job["writer"])

    def _done(self, batch: int | None, writer: str) -> None:
        if batch is not None:
            self._put(self._taken, self._batches_taken() | {writer: batch})
        self._journal.unlink()

    def remove(self, folder: str) -> None:
        """Remove the files of one job."""
        shutil.rmtree(folder, ignore_errors=True)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _batches_taken(self) -> dict[str, int]:
        found: dict[str, int] = (
            json.loads(self._taken.read_bytes()) if self._taken.is_file() else {}
        )
        return found

    def _ends(
        self, store: KafkaStore | RocketMQStore, files: Sequence[str]
    ) -> dict[str, dict[str, int]]:
        """Make the topics that are new; return where every partition that gets records ends."""
        places = sorted({place for file in files for place, _ in staged(file)})
        ends: dict[str, dict[str, int]] = {}
        for place in places:
            log = self._partition(store, place)
            ends.setdefault(place[0], {})[str(place[1])] = log.end_offset
        return ends

    def _append(
        self,
        store: KafkaStore | RocketMQStore,
        files: Sequence[str],
        ends: Mapping[str, Mapping[str, int]],
    ) -> None:
        there: dict[Place, int] = {}
        for file in files:
            for place, records in staged(file):
                log = self._partition(store, place)
                if place not in there:
                    there[place] = log.end_offset - ends[place[0]][str(place[1])]
                passed = min(there[place], len(records))
                there[place] -= passed
                if passed < len(records):
                    log.append_records(islice(records, passed, None))

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

    def _open(self, *, is_writable: bool) -> KafkaStore | RocketMQStore:
        host, path = system_host(), os.path.abspath(self.options.path)
        settings = dict(self.options.settings)
        if self.layout() == "kafka":
            options = KafkaOptions(node_id=1, is_writable=is_writable, log_defaults=settings)
            return KafkaStore(host, path, options)
        return RocketMQStore(
            host, path, RocketMQOptions(is_writable=is_writable, settings=settings)
        )

    def _put(self, path: Path, content: object) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".new")
        with temporary.open("w") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
