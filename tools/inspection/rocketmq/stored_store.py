"""
A store's directory as it stands: logs, queues, index, settings; nothing is mended or locked.

Unlike :class:`~logstore.segments.rocketmq.store.RocketMQStore` this trusts nothing: it may
belong to a running broker, be damaged, or be a copy of a part of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import cast

from logstore.errors import ForeignDirectoryError
from logstore.host import FileSystem, read_file
from logstore.segments.rocketmq.index.index_file import IndexSizes
from logstore.segments.rocketmq.opening.abort_file import ABORT_NAME
from logstore.segments.rocketmq.opening.directory import COMMIT_LOG_FOLDER, INDEX_FOLDER
from logstore.segments.rocketmq.opening.elsewhere import queues_in_rocksdb, refuse_without_log
from logstore.segments.rocketmq.opening.found_sizes import found_sizes
from logstore.segments.rocketmq.opening.store_lock import LOCK_NAME
from logstore.segments.rocketmq.putting.multi_dispatch import MultiDispatch
from logstore.segments.rocketmq.queues.batch_consume_queue import BATCH_UNIT_BYTES
from logstore.segments.rocketmq.queues.consume_queue_unit import UNIT_BYTES
from logstore.segments.rocketmq.queues.consume_queues import BATCH_FOLDER, EXT_FOLDER, SIMPLE_FOLDER
from logstore.segments.rocketmq.settings.java_config import ConfigError
from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.settings.store_config import StoreConfig
from logstore.segments.rocketmq.tables.java_json import JsonError, parse_json
from logstore.tools.inspection.lock_holder import lock_holder
from logstore.tools.inspection.rocketmq.index_sizes import index_paths, told_index_sizes
from logstore.tools.inspection.rocketmq.stored_files import StoredFiles

QueueKey = tuple[str, int]

#: what only 5.x leaves in a store
_NEW_NAMES = ("abort.bak", "compaction", "rocksdbstore", "timerwheel", "batchconsumequeue")
_NEW_CHECKPOINT = slice(24, 48)


class StoredQueue:
    """The files of one queue; `unit_bytes` is 20, or 46 for one of batches."""

    def __init__(
        self, store: StoredStore, folder: str, topic: str, queue_id: int, unit_bytes: int
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.unit_bytes = unit_bytes
        self.relative = f"{folder}/{topic}/{queue_id}"
        size_bytes = store.size_setting(folder)
        self.files = StoredFiles(store.fs, store.directory, self.relative, size_bytes)
        ext = f"{EXT_FOLDER}/{topic}/{queue_id}"
        has_ext = not self.is_batch and store.fs.is_directory(f"{store.directory}/{ext}")
        self.ext = StoredFiles(store.fs, store.directory, ext) if has_ext else None

    @property
    def is_batch(self) -> bool:
        """Whether a unit stands for a batch."""
        return self.unit_bytes == BATCH_UNIT_BYTES

    @property
    def name(self) -> str:
        """How people call it: topic and queue id."""
        return f"{self.topic}-{self.queue_id}"

    def place(self, number: int) -> tuple[str, int]:
        """Return (file, position) of a unit by its number."""
        byte = number * self.unit_bytes
        file = self.files.file_of(byte)
        return (self.relative, byte) if file is None else (file.relative, byte - file.base)


class StoredStore:
    """
    The store in `directory`. `settings` are Java's, as far as they are known; files tell the rest.

    Raises:
        ForeignDirectoryError: there is no such directory.
        MissingSegmentError: its commit log is elsewhere.

    """

    def __init__(
        self, fs: FileSystem, directory: str, settings: Mapping[str, str] | None = None
    ) -> None:
        if not fs.is_directory(directory):
            raise ForeignDirectoryError(f"{directory}: there is no such directory")
        self.fs = fs
        self.directory = directory
        self.settings = {**_sound_sizes(fs, directory), **(settings or {})}
        self.config = StoreConfig(self.settings)
        self._told = dict(settings or {})
        refuse_without_log(fs, directory, f"{directory}/{COMMIT_LOG_FOLDER}")
        self.commit_log = StoredFiles(
            fs, directory, COMMIT_LOG_FOLDER, self.size_setting(COMMIT_LOG_FOLDER)
        )

    def size_setting(self, folder: str) -> int | None:
        """Return how long files in a folder must be by what was told, or most of them show."""
        config, told = self.config, self.settings
        if folder == COMMIT_LOG_FOLDER and "mappedFileSizeCommitLog" in told:
            return config.commit_log_file_size_bytes
        if folder == SIMPLE_FOLDER and "mappedFileSizeConsumeQueue" in told:
            return config.consume_queue_file_size_bytes
        if folder == BATCH_FOLDER and "mapperFileSizeBatchConsumeQueue" in told:
            return -(-config.batch_consume_queue_file_size_bytes // 46) * 46
        return None

    @cached_property
    def queues(self) -> dict[QueueKey, StoredQueue]:
        """Every queue that has a folder, by topic and queue id."""
        found: dict[QueueKey, StoredQueue] = {}
        for folder, unit_bytes in ((SIMPLE_FOLDER, UNIT_BYTES), (BATCH_FOLDER, BATCH_UNIT_BYTES)):
            path = f"{self.directory}/{folder}"
            topics = self.fs.list_directory(path) if self.fs.is_directory(path) else []
            for topic in topics:
                if not topic.is_directory:
                    continue
                for queue in self.fs.list_directory(f"{path}/{topic.name}"):
                    if queue.is_directory and queue.name.isascii() and queue.name.isdigit():
                        key = topic.name, int(queue.name)
                        found[key] = StoredQueue(self, folder, *key, unit_bytes)
        return dict(sorted(found.items()))

    @cached_property
    def rocksdb_folder(self) -> str | None:
        """The folder in which the queues stand as RocksDB, None where they are files."""
        return queues_in_rocksdb(self.fs, self.directory)

    @cached_property
    def index_paths(self) -> list[str]:
        """The index files, oldest first."""
        return index_paths(self.fs, f"{self.directory}/{INDEX_FOLDER}")

    @cached_property
    def index_sizes(self) -> IndexSizes | None:
        """How many slots and entries an index file has, None where nothing tells."""
        return told_index_sizes(self.fs, self.index_paths, self._told)

    @cached_property
    def release(self) -> Release:
        """Whose habits the store has: 5.x leaves files that 4.x does not know."""
        names = {entry.name for entry in self.fs.list_directory(self.directory)}
        if names & set(_NEW_NAMES):
            return Release.V5
        if "checkpoint" not in names:
            return Release.V5
        data = read_file(self.fs, f"{self.directory}/checkpoint")
        return Release.V5 if any(data[_NEW_CHECKPOINT]) else Release.V4

    @cached_property
    def topics(self) -> dict[str, object] | None:
        """What ``config/topics.json`` says of each topic, None where it cannot be read."""
        for name in ("topics.json", "topics.json.bak"):
            path = f"{self.directory}/config/{name}"
            if not self.fs.exists(path):
                continue
            try:
                content = parse_json(read_file(self.fs, path).decode())
                return dict(content["topicConfigTable"])
            except (JsonError, UnicodeDecodeError, KeyError, TypeError, ValueError):
                continue
        return None

    def is_batch_topic(self, topic: str) -> bool:
        """Tell whether the queues of a topic are batch consume queues."""
        config = (self.topics or {}).get(topic)
        if isinstance(config, dict):
            attributes = cast("dict[str, object]", config).get("attributes")
            if isinstance(attributes, dict) and "queue.type" in attributes:
                return cast("dict[str, object]", attributes)["queue.type"] == "BatchCQ"
        return any(queue.is_batch for key, queue in self.queues.items() if key[0] == topic)

    def is_deleted(self, topic: str) -> bool:
        """Tell whether a topic is neither configured nor the broker's own, nor of a light queue."""
        if self.topics is None or topic in self.topics:
            return False
        return not topic.lower().startswith(("rmq_sys_", "%lmq%", "schedule_topic_"))

    @cached_property
    def multi_dispatch(self) -> MultiDispatch:
        """The rule of light message queues; on where a setting says so, or where there are any."""
        has_lmq = any(topic.startswith("%LMQ%") for topic, _ in self.queues)
        asked = self.config.boolean("enableMultiDispatch")
        return MultiDispatch(
            is_enabled=asked or has_lmq, has_lmq=self.config.boolean("enableLmq") or has_lmq
        )

    @property
    def was_clean(self) -> bool:
        """Whether the last broker stopped cleanly, or none has had it."""
        return not self.fs.exists(f"{self.directory}/{ABORT_NAME}")

    @cached_property
    def process(self) -> int | None:
        """The process that has the store open, if that can be known."""
        path = f"{self.directory}/{LOCK_NAME}"
        return lock_holder(path) if self.fs.exists(path) else None


def _sound_sizes(fs: FileSystem, directory: str) -> dict[str, str]:
    """Return the sizes that files show, but for those that no broker accepts: files were cut."""
    sound: dict[str, str] = {}
    for name, value in found_sizes(fs, directory).items():
        with suppress(ConfigError):
            StoreConfig({name: value})
            sound[name] = value
    return sound
