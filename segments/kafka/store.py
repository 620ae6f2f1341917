"""
A Kafka data directory (one entry of ``log.dirs``): its lock, its checkpoints, its partitions.

Opening follows Kafka's ``LogManager``: take ``.lock``, read ``meta.properties``, see whether the
last stop was clean (``.kafka_cleanshutdown``, which is removed at once, so that a crash while
loading counts as unclean), load or recover every partition. A clean stop writes in the opposite
order: flush, producer snapshots, checkpoints, and the clean marker last of all.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

import attrs

from logstore.errors import (
    CorruptFileError,
    ForeignDirectoryError,
    LockedError,
    MissingSegmentError,
    StorageError,
)
from logstore.host import Host, Lock
from logstore.segments.kafka import checkpoints, clean_shutdown
from logstore.segments.kafka.config import LogConfig, parse_topic_configs
from logstore.segments.kafka.directory_name import (
    DirectoryNameError,
    PartitionDirectory,
    Role,
    is_skipped_directory,
    parse_directory_name,
)
from logstore.segments.kafka.kafka_uuid import random_uuid
from logstore.segments.kafka.meta_properties import FILE_NAME as META_PROPERTIES
from logstore.segments.kafka.meta_properties import MetaProperties
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.partition_metadata import PartitionMetadata
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.segments.kafka.sparse_index import IndexCache
from logstore.segments.kafka.topic import Topic, load_settings, save_settings

_log = logging.getLogger(__name__)
LOCK_FILE = ".lock"
#: of a directory that names none
DEFAULT_NODE_ID = 1
Progress = Callable[[int, int, str], None]
#: calls a function for every partition, like `map`
Run = Callable[
    [Callable[[KafkaPartition], "Exception | None"], list[KafkaPartition]],
    "Iterable[Exception | None]",
]


@attrs.frozen
class StoreOptions:
    """
    How to open a store.

    `node_id` is the node that the directory must belong to; without it, it is the node that the
    directory names. `log_defaults` are the broker's settings for topics, by Kafka's topic config
    names; `progress` is told (done, all, name) while partitions load.
    """

    is_writable: bool = True
    node_id: int | None = None
    log_defaults: Mapping[str, str] = attrs.field(factory=dict[str, str])
    progress: Progress | None = None


class KafkaStore:
    """
    All topics of one data directory. Implements :class:`logstore.partition.Store`.

    Raises, on opening:
        ForeignDirectoryError: it is not a Kafka data directory, another node's, or cannot be used
            at all.
        LockedError: another broker has it.
        CorruptFileError: a file in it cannot be understood.
    """

    def __init__(self, host: Host, directory: str, options: StoreOptions | None = None) -> None:
        self.host = host
        self.directory = directory
        self.options = StoreOptions() if options is None else options
        self.log_defaults = dict(self.options.log_defaults)
        self.topics_by_name: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self._cache = IndexCache()
        self._condemned: list[tuple[float, str]] = []
        self._lock: Lock | None = None
        self._check_directory()
        if self.options.is_writable:
            self._take_lock()
        try:
            self.meta = self._load_meta()
            self.was_clean = clean_shutdown.exists(host.fs, directory)
            self._load_partitions()
        except BaseException:
            self._release_lock()
            raise

    # opening

    def _check_directory(self) -> None:
        fs, directory = self.host.fs, self.directory
        if not fs.exists(directory):
            if not self.options.is_writable:
                raise ForeignDirectoryError(f"{directory}: there is no such directory")
            try:
                self._make_directory()
            except OSError as error:
                raise ForeignDirectoryError(
                    f"{directory}: cannot be created: {error.strerror}; name a directory "
                    "that you may write to"
                ) from error
        if not fs.is_directory(directory):
            raise ForeignDirectoryError(f"{directory}: is a file; name a directory")
        if fs.exists(f"{directory}/{META_PROPERTIES}"):
            return
        for entry in fs.list_directory(directory):
            if entry.name.startswith(".") or entry.name.endswith("-checkpoint"):
                continue
            if entry.is_directory and _is_known_directory(entry.name):
                continue
            raise ForeignDirectoryError(
                f"{directory}/{entry.name}: does not belong into a Kafka data directory; "
                "name an empty directory, or one that Kafka wrote"
            )

    def _make_directory(self) -> None:
        """Create the directory and what is missing above it, so that a power loss keeps both."""
        fs, path = self.host.fs, self.directory
        parents: list[str] = []
        while path and not fs.exists(path):
            path = path.rstrip("/").rpartition("/")[0]
            parents.append(path or ("/" if self.directory.startswith("/") else "."))
        fs.make_directory(self.directory)
        for parent in parents:
            fs.sync_directory(parent)

    def _take_lock(self) -> None:
        path = f"{self.directory}/{LOCK_FILE}"
        try:
            self._lock = self.host.fs.lock(path)
        except BlockingIOError as error:
            raise LockedError(
                f"{path}: another broker serves this directory; stop it or name another directory"
            ) from error
        except OSError as error:
            raise ForeignDirectoryError(
                f"{path}: cannot be written: {error.strerror}; the directory must be writable"
            ) from error

    def _release_lock(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _load_meta(self) -> MetaProperties | None:
        fs, directory = self.host.fs, self.directory
        wanted = self.options.node_id
        if fs.exists(f"{directory}/{META_PROPERTIES}"):
            meta = MetaProperties.read(fs, directory)
            if wanted is not None:
                meta.check_node_id(directory, wanted)
            return meta
        if not self.options.is_writable:
            return None
        meta = MetaProperties.generate(DEFAULT_NODE_ID if wanted is None else wanted, self.host.rng)
        meta.write(fs, directory, self.host.clock.wall_ms())
        return meta

    def _load_partitions(self) -> None:
        fs, directory = self.host.fs, self.directory
        recovery_points = self._checkpoint(checkpoints.RECOVERY_POINT)
        log_starts = self._checkpoint(checkpoints.LOG_START)
        if self.options.is_writable:
            clean_shutdown.remove(fs, directory)
        settings = load_settings(fs, directory)
        found = [
            parsed
            for entry in fs.list_directory(directory)
            if entry.is_directory and not is_skipped_directory(entry.name)
            if (parsed := self._parse(entry.name)) is not None
        ]
        for done, place in enumerate(found):
            if self.options.progress is not None:
                self.options.progress(done, len(found), f"{place.topic}-{place.partition}")
            key = (place.topic, place.partition)
            topic = self._topic_of(place, settings)
            is_trusted = self.was_clean or not self.options.is_writable
            topic.partitions[place.partition] = self._open_partition(
                topic,
                place.partition,
                recovery_point=None if is_trusted else recovery_points.get(key, 0),
                log_start_offset=log_starts.get(key, 0),
            )
        if self.options.progress is not None:
            self.options.progress(len(found), len(found), "")

    def _parse(self, name: str) -> PartitionDirectory | None:
        try:
            place = parse_directory_name(name)
        except DirectoryNameError as error:
            raise ForeignDirectoryError(
                f"{self.directory}/{name}: {error}; a data directory holds partitions only"
            ) from error
        if place.role is Role.DELETE and self.options.is_writable:
            self._condemned.append((self.host.clock.monotonic_ms(), f"{self.directory}/{name}"))
        return place if place.is_live else None

    def _checkpoint(self, name: str) -> dict[tuple[str, int], int]:
        """Read an offset checkpoint; one that cannot be read counts as empty, as in Kafka."""
        try:
            return checkpoints.read_offset_checkpoint(self.host.fs, f"{self.directory}/{name}")
        except CorruptFileError as error:
            _log.warning("%s; taken as empty", error)
            return {}

    def _topic_of(self, place: PartitionDirectory, settings: Mapping[str, dict[str, str]]) -> Topic:
        topic = self.topics_by_name.get(place.topic)
        if topic is None:
            path = f"{self.directory}/{place.topic}-{place.partition}"
            metadata = PartitionMetadata.read(self.host.fs, path)
            topic_id = self._new_id() if metadata is None else metadata.topic_id
            topic = Topic(place.topic, topic_id, dict(settings.get(place.topic, {})))
            self._enter(topic)
        return topic

    def _new_id(self) -> bytes:
        return random_uuid(self.host.rng)

    def _enter(self, topic: Topic) -> None:
        self.topics_by_name[topic.name] = topic
        self.topics_by_id[topic.topic_id] = topic

    def _open_partition(
        self,
        topic: Topic,
        index: int,
        *,
        recovery_point: int | None,
        log_start_offset: int,
        is_new: bool = False,
    ) -> KafkaPartition:
        files = SegmentFiles(
            self.host,
            f"{self.directory}/{topic.name}-{index}",
            self.config_of(topic),
            is_clean=recovery_point is None,
            is_writable=self.options.is_writable,
            is_new=is_new,
            cache=self._cache,
        )
        partition = KafkaPartition(
            self.host,
            files,
            topic.name,
            index,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
        )
        outcome = partition.recovery
        if outcome is not None and not outcome.is_clean:
            _log.warning(
                "%s-%s: recovered up to offset %s; %s bytes were cut off: %s; kept aside in %s",
                topic.name, index, outcome.next_offset, outcome.dropped_bytes, outcome.reason,
                ", ".join(outcome.kept_aside) or "no file: they were never written",
            )  # fmt: skip
        return partition

    @property
    def node_id(self) -> int:
        """The node that the directory belongs to."""
        if self.meta is not None and self.meta.node_id is not None:
            return self.meta.node_id
        return DEFAULT_NODE_ID if self.options.node_id is None else self.options.node_id

    # topics

    def topics(self) -> Mapping[str, Mapping[int, KafkaPartition]]:
        """Return the partitions of every topic by name and number."""
        return {name: topic.partitions for name, topic in self.topics_by_name.items()}

    def partitions(self) -> list[KafkaPartition]:
        """Return every partition of the store."""
        return [p for topic in self.topics_by_name.values() for p in topic.partitions.values()]

    def config_of(self, topic: Topic) -> LogConfig:
        """Return what holds for the topic: its own settings over the broker's."""
        return parse_topic_configs({**self.log_defaults, **topic.settings})

    def create_topic(
        self, name: str, partition_count: int, settings: Mapping[str, str] | None = None
    ) -> Topic:
        """
        Create a topic with partitions ``[0, partition_count)``; its name must be free.

        Raises:
            ConfigError: a setting has a value that is not allowed.
            OSError: the disk refused. Either way nothing of the topic remains.

        """
        assert name not in self.topics_by_name, f"topic {name} exists"
        topic = Topic(name, self._new_id(), dict(settings or {}))
        self.config_of(topic)  # settings are checked before anything stands on disk
        self.add_partitions(topic, partition_count)
        self._enter(topic)
        try:
            if topic.settings:
                save_settings(self.host.fs, self.directory, self.topics_by_name)
        except OSError:
            del self.topics_by_name[name], self.topics_by_id[topic.topic_id]
            self._undo_partitions(topic, 0, partition_count)
            raise
        return topic

    def add_partitions(self, topic: Topic, partition_count: int) -> None:
        """Grow the topic to so many partitions, or leave it as it is and raise OSError."""
        count = len(topic.partitions)
        try:
            for index in range(count, partition_count):
                topic.partitions[index] = self._create_partition(topic, index)
            self.host.fs.sync_directory(self.directory)
        except OSError:
            self._undo_partitions(topic, count, partition_count)
            raise

    def _create_partition(self, topic: Topic, index: int) -> KafkaPartition:
        path = f"{self.directory}/{topic.name}-{index}"
        self.host.fs.make_directory(path)
        PartitionMetadata(topic.topic_id).write(self.host.fs, path, sync=False)
        partition = self._open_partition(
            topic, index, recovery_point=None, log_start_offset=0, is_new=True
        )
        partition.become_leader(0, sync=False)
        return partition

    def _undo_partitions(self, topic: Topic, start: int, end: int) -> None:
        """Take partitions away that could not all be created."""
        for index in range(start, end):
            partition = topic.partitions.pop(index, None)
            if partition is not None:
                partition.log.close()
            self.host.fs.remove_directory(f"{self.directory}/{topic.name}-{index}")

    def delete_topic(self, topic: Topic) -> None:
        """Take the topic away: its directories get ``-delete`` names and go after a delay."""
        del self.topics_by_name[topic.name]
        del self.topics_by_id[topic.topic_id]
        clock, fs = self.host.clock, self.host.fs
        for partition in topic.partitions.values():
            partition.log.close()
            live = PartitionDirectory(topic.name, partition.index)
            unique = self.host.rng.getrandbits(128).to_bytes(16, "big")
            condemned = f"{self.directory}/{live.deleted_name(unique.hex())}"
            fs.rename(f"{self.directory}/{live.name}", condemned)
            due_ms = clock.monotonic_ms() + partition.config.file_delete_delay_ms
            self._condemned.append((due_ms, condemned))
        if topic.settings:
            save_settings(fs, self.directory, self.topics_by_name)

    def change_settings(self, topic: Topic, settings: Mapping[str, str]) -> None:
        """
        Replace the topic's own settings; they hold from now on.

        Raises:
            ConfigError: a value is not allowed; nothing was changed.

        """
        config = parse_topic_configs({**self.log_defaults, **settings})
        topic.settings = dict(settings)
        for partition in topic.partitions.values():
            partition.reconfigure(config)
        save_settings(self.host.fs, self.directory, self.topics_by_name)

    # housekeeping

    def write_checkpoints(self) -> None:
        """Write recovery points and log starts, as Kafka does every minute and at a clean stop."""
        fs, directory = self.host.fs, self.directory
        partitions = self.partitions()
        checkpoints.write_offset_checkpoint(
            fs,
            f"{directory}/{checkpoints.RECOVERY_POINT}",
            {(p.topic, p.index): p.log.recovery_point for p in partitions},
        )
        checkpoints.write_offset_checkpoint(
            fs,
            f"{directory}/{checkpoints.LOG_START}",
            {
                (p.topic, p.index): p.start_offset
                for p in partitions
                if p.start_offset > p.log.start_offset
            },
        )

    def write_high_watermarks(self) -> None:
        """Write the high watermarks, as Kafka does every five seconds."""
        checkpoints.write_offset_checkpoint(
            self.host.fs,
            f"{self.directory}/{checkpoints.HIGH_WATERMARK}",
            {(p.topic, p.index): p.end_offset for p in self.partitions()},
        )

    def retain(self) -> int:
        """Apply every topic's retention; return how many segments went."""
        return sum(partition.retain() for partition in self.partitions())

    def purge(self) -> None:
        """Remove files and directories whose deletion was put off and is due."""
        now_ms = self.host.clock.monotonic_ms()
        for partition in self.partitions():
            partition.files.purge()
        due = [entry for entry in self._condemned if entry[0] <= now_ms]
        for entry in due:
            self._condemned.remove(entry)
            self.host.fs.remove_directory(entry[1])

    def abandon(self) -> None:
        """Let go of everything as it is: for a directory that goes away, or that is only read."""
        for partition in self.partitions():
            partition.log.close()
        self._release_lock()

    def close(self, run: Run = map) -> None:
        """
        Stop cleanly: everything durable, checkpoints, the clean marker, the lock.

        `run` closes the partitions and may do many at once: closing waits for the disk. If a
        partition cannot be closed the marker is not written, so the next start recovers.
        """
        if not self.options.is_writable:
            self.abandon()
            return
        failures = [failure for failure in run(_close, self.partitions()) if failure is not None]
        try:
            if not failures:
                self.write_checkpoints()
                self.write_high_watermarks()
                clean_shutdown.write(self.host.fs, self.directory)
        finally:
            self._release_lock()
        if failures:
            raise failures[0]

    def partition(self, topic: str, index: int) -> KafkaPartition:
        """
        Return one partition.

        Raises:
            MissingSegmentError: the store has no such partition.

        """
        found = self.topics_by_name.get(topic)
        if found is None or index not in found.partitions:
            raise MissingSegmentError(f"{self.directory}: there is no partition {topic}-{index}")
        return found.partitions[index]


def _close(partition: KafkaPartition) -> Exception | None:
    """Close one partition; return what kept that from succeeding."""
    try:
        partition.close()
    except (OSError, StorageError) as error:
        _log.exception("%s-%s: could not be closed", partition.topic, partition.index)
        return error
    return None


def _is_known_directory(name: str) -> bool:
    if is_skipped_directory(name):
        return True
    try:
        parse_directory_name(name)
    except DirectoryNameError:
        return False
    return True


@attrs.frozen
class KafkaLayout:
    """The plug of this layout (see :class:`logstore.partition.Layout`)."""

    name: str = "kafka"

    def recognises(self, host: Host, directory: str) -> bool:
        """Tell whether `directory` has Kafka's files or partition directories."""
        if not host.fs.is_directory(directory):
            return False
        entries = host.fs.list_directory(directory)
        if any(entry.name == META_PROPERTIES for entry in entries):
            return True
        return any(
            entry.is_directory
            and _is_known_directory(entry.name)
            and any(
                inner.name.endswith(".log")
                for inner in host.fs.list_directory(f"{directory}/{entry.name}")
            )
            for entry in entries
        )

    def open(self, host: Host, directory: str, *, writable: bool = True) -> KafkaStore:
        """Open the store, recovering it if its last stop was unclean."""
        return KafkaStore(host, directory, StoreOptions(is_writable=writable))


LAYOUT = KafkaLayout()
