"""
All topics of one data directory: created, grown, changed, deleted, kept in order, closed.

Opening follows Kafka's ``LogManager``: take ``.lock`` and read ``meta.properties``
(:mod:`~logstore.segments.kafka.data_directory`), then load or recover every partition
(:mod:`~logstore.segments.kafka.partition_loader`). A clean stop writes in the opposite order:
flush, producer snapshots, checkpoints, and the clean marker last of all.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import NamedTuple

from logstore.errors import ForeignDirectoryError, MissingSegmentError, StorageError
from logstore.host import Host
from logstore.segments.kafka import checkpoints, clean_shutdown
from logstore.segments.kafka.cluster_metadata.cluster_metadata import ClusterMetadata, Home
from logstore.segments.kafka.cluster_metadata.release import NEWEST, MetadataVersion
from logstore.segments.kafka.config import LogConfig, parse_topic_configs
from logstore.segments.kafka.data_directory import DataDirectory, is_known_directory
from logstore.segments.kafka.directory_name import METADATA_DIRECTORY
from logstore.segments.kafka.kafka_uuid import random_uuid
from logstore.segments.kafka.log_starts import LogStarts
from logstore.segments.kafka.meta_properties import FILE_NAME as META_PROPERTIES
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.partition_loader import PartitionLoader, Progress
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.segments.kafka.topic import Topic, remove_settings

__all__ = ["LAYOUT", "KafkaLayout", "KafkaStore", "Progress", "Run", "StoreOptions"]

_log = logging.getLogger(__name__)
#: calls a function for every partition, like `map`
Run = Callable[
    [Callable[[KafkaPartition], "Exception | None"], list[KafkaPartition]],
    "Iterable[Exception | None]",
]


class StoreOptions(NamedTuple):
    """
    How to open a store.

    `node_id` is the node that the directory must belong to; without it, it is the node that the
    directory names. `log_defaults` are the broker's settings for topics, by Kafka's topic config
    names; `progress` is told (done, all, name) while partitions load. After an unclean stop
    `recovery_thread_count` partitions are recovered at a time; with 1, one after the other.
    `release` is the metadata version that the directory must have, or gets if it is new.
    """

    is_writable: bool = True
    node_id: int | None = None
    log_defaults: Mapping[str, str] = MappingProxyType({})
    progress: Progress | None = None
    recovery_thread_count: int = 1
    release: MetadataVersion | None = None


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
        #: of which topics each file of offsets may tell
        self._checkpointed: dict[str, set[str]] = {}
        #: by file: the offsets that are known to stand in it, durably
        self._kept_offsets: dict[str, dict[tuple[str, int], int]] = {}
        #: whether syncs of the directory are left to :meth:`together`, and one was
        self._is_sync_put_off = self._owes_sync = False
        self._data_directory = DataDirectory(
            host, directory, is_writable=self.options.is_writable, node_id=self.options.node_id
        )
        self.node_id = self._data_directory.node_id
        try:
            self._loader = PartitionLoader(
                host,
                self._data_directory,
                self.options.recovery_thread_count,
                self.make_partition,
            )
            self.was_clean = self._loader.was_clean
            self.metadata = self._open_metadata()
            self.meta = self._data_directory.meta
            self._load()
        except BaseException:
            self._data_directory.release()
            raise

    def make_partition(
        self,
        host: Host,
        files: SegmentFiles,
        topic: str,
        index: int,
        *,
        recovery_point: int | None,
        log_start_offset: int,
    ) -> KafkaPartition:
        """Return the partition of files that are ready; a kind of store may have kinds of these."""
        return KafkaPartition(
            host,
            files,
            topic,
            index,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
        )

    def _open_metadata(self) -> ClusterMetadata:
        directory, release = self._data_directory, self.options.release
        if release is not None and directory.is_writable:
            directory.upgrade()
        directory_id = None if directory.meta is None else directory.meta.directory_id
        metadata = ClusterMetadata(
            self.host,
            directory.path,
            Home(self.node_id) if directory_id is None else Home(self.node_id, directory_id),
            release=release or NEWEST,
            is_upgraded=directory.is_zookeepers,
            min_insync_replicas=self.log_defaults.get("min.insync.replicas", "1"),
            is_writable=directory.is_writable,
        )
        found = metadata.image.metadata_version
        if release is not None and release != found:
            metadata.abandon()
            raise ForeignDirectoryError(
                f"{directory.path}: its metadata version is {found.name}, not {release.name}; "
                "leave the release out, or name an empty directory"
            )
        return metadata

    def _load(self) -> None:
        """Open all partitions; what the metadata lack of them is taken in."""
        try:
            topics = self._loader.load(self.metadata, self.config_of, self.options.progress)
            if self.options.is_writable:
                is_zookeepers = self._data_directory.is_zookeepers
                if topics and self._data_directory.lacks_metadata and not is_zookeepers:
                    self._warn_of_others()
                self.metadata.adopt(topics, is_put_off=is_zookeepers)
                if not is_zookeepers:
                    remove_settings(self.host.fs, self.directory)
        except BaseException:
            self.metadata.abandon()
            raise
        for topic in topics:
            self._enter(topic)
        self._log_starts = LogStarts(self._loader.log_starts, self.partitions())
        for name in (checkpoints.RECOVERY_POINT, checkpoints.LOG_START):
            self._checkpointed[name] = set(self._loader.checkpointed_topics)
        is_as_checkpointed = self.was_clean and not self._loader.made_anew
        if self.options.is_writable and not is_as_checkpointed and self.topics_by_name:
            # A log may end below its old recovery point now. What is appended there is not durable,
            # and after another power loss it must be looked at.
            self.write_checkpoints()

    def _warn_of_others(self) -> None:
        """Say what follows if the node has more directories than this one."""
        _log.warning(
            "%s: has partitions, and no metadata of the cluster: they are made anew of what is "
            "here. If it is one of several log.dirs, the node starts on all of them again only "
            "after you remove %s/%s",
            self.directory, self.directory, METADATA_DIRECTORY,
        )  # fmt: skip

    def lead_anew(self) -> None:
        """
        Lead every partition in a new epoch, as a broker does that was away.

        So clients find out where a log that has lost its end leaves what they have read (KIP-320).
        """
        if not self.options.is_writable or self.metadata.is_waiting:
            return
        for topic in self.topics_by_name.values():
            for partition in topic.partitions.values():
                partition.lead_anew(self.metadata.epoch_to_lead(topic, partition))
        self.metadata.adopt(self.topics_by_name.values())

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

    def _enter(self, topic: Topic) -> None:
        self.topics_by_name[topic.name] = topic
        self.topics_by_id[topic.topic_id] = topic

    def create_topic(
        self, name: str, partition_count: int, settings: Mapping[str, str] | None = None
    ) -> Topic:
        """
        Create a topic with partitions ``[0, partition_count)``; its name must be free.

        Raises:
            ConfigError: a setting has a value that is not allowed.
            WriteFailedError, OSError: the disk refused. Either way nothing of the topic remains.

        """
        assert name not in self.topics_by_name, f"topic {name} exists"
        if any(name in topics for topics in self._checkpointed.values()):
            # A deleted topic of that name: after a crash the new one would start where it did.
            self.write_checkpoints()
        topic = Topic(name, random_uuid(self.host.rng), dict(settings or {}))
        self._grow(topic, partition_count, lambda: self.metadata.create_topic(topic))
        self._enter(topic)
        return topic

    def add_partitions(self, topic: Topic, partition_count: int) -> None:
        """
        Grow the topic to so many partitions.

        Raises:
            WriteFailedError, OSError: the disk refused; the topic is as it was.

        """
        start = topic.partition_count
        self._grow(topic, partition_count, lambda: self.metadata.add_partitions(topic, start))

    @contextmanager
    def together(self) -> Generator[None]:
        """
        Wait for the disk once, at the end, for all topics that are made and deleted until then.

        Raises, at the end:
            WriteFailedError, OSError: the disk refused. What was done stands, until a power loss.

        """
        with self.metadata.log.together():
            self._is_sync_put_off = True
            try:
                yield
            finally:
                self._is_sync_put_off = False
                if self._owes_sync:
                    self._owes_sync = False
                    self._sync_directory()

    def _sync_directory(self) -> None:
        """Make it durable which partitions' directories there are, or leave it to `together`."""
        self._owes_sync |= self._is_sync_put_off
        if not self._is_sync_put_off:
            self.host.fs.sync_directory(self.directory)

    def _grow(self, topic: Topic, partition_count: int, say: Callable[[], None]) -> None:
        """Create partitions, `say` so, or undo it all."""
        config = self.config_of(topic)  # settings are checked before anything stands on disk
        count = topic.partition_count
        try:
            for index in range(count, partition_count):
                topic.partitions[index] = self._loader.create(topic, index, config)
            self._sync_directory()
            say()
        except (OSError, StorageError):
            self._undo_partitions(topic, count, partition_count)
            raise

    def _undo_partitions(self, topic: Topic, start: int, end: int) -> None:
        """Take partitions away that could not all be created."""
        for index in range(start, end):
            partition = topic.partitions.pop(index, None)
            if partition is not None:
                partition.drop()
            self.host.fs.remove_directory(self._data_directory.path_of(topic.name, index))

    def delete_topic(self, topic: Topic) -> None:
        """
        Take the topic away: its directories get ``-delete`` names and go after a delay.

        Raises:
            WriteFailedError, OSError: the disk refused; the topic is still there.

        """
        self.metadata.delete_topic(topic)
        del self.topics_by_name[topic.name]
        del self.topics_by_id[topic.topic_id]
        for partition in topic.partitions.values():
            partition.drop()
            self._data_directory.condemn(
                topic.name, partition.index, partition.config.file_delete_delay_ms
            )
        # Or a directory could come back when the file with its topic's id is gone already.
        self._sync_directory()

    def change_settings(self, topic: Topic, settings: Mapping[str, str]) -> None:
        """
        Replace the topic's own settings; they hold from now on.

        Raises:
            ConfigError: a value is not allowed; nothing was changed.
            WriteFailedError, OSError: the disk refused; nothing was changed.

        """
        config = parse_topic_configs({**self.log_defaults, **settings})
        self.metadata.change_settings(topic, settings)
        topic.settings = dict(settings)
        for partition in topic.partitions.values():
            partition.reconfigure(config)

    # housekeeping

    def write_checkpoints(self) -> None:
        """Write recovery points and log starts, as Kafka does at a clean stop."""
        self.write_recovery_points()
        self.write_log_starts()

    def write_recovery_points(self) -> None:
        """Write up to where logs are durable, as Kafka does every minute."""
        offsets = {(p.topic, p.index): p.log.recovery_point for p in self.partitions()}
        self._keep_offsets(checkpoints.RECOVERY_POINT, offsets)

    def write_log_starts(self) -> None:
        """Write where logs start that start within a segment, as Kafka does every minute."""
        self._keep_offsets(checkpoints.LOG_START, self._log_starts.of(self.partitions()))

    def _keep_offsets(self, name: str, offsets: dict[tuple[str, int], int]) -> None:
        """Write offsets that are not there yet: whoever is served waits for the syncs."""
        if self._kept_offsets.get(name) == offsets:
            return
        self._kept_offsets.pop(name, None)  # where it fails nobody knows what is there
        topics = {topic for topic, _ in offsets}
        self._checkpointed[name] |= topics
        self._write_offsets(name, offsets)
        self._kept_offsets[name], self._checkpointed[name] = offsets, topics

    def write_high_watermarks(self) -> None:
        """Write the high watermarks, as Kafka does every five seconds."""
        self.high_watermark_checkpointing()()

    def high_watermark_checkpointing(self) -> Callable[[], None]:
        """Return what writes the high watermarks as they are now, in any thread."""
        offsets = {(p.topic, p.index): p.end_offset for p in self.partitions()}
        return lambda: self._write_offsets(checkpoints.HIGH_WATERMARK, offsets)

    def _write_offsets(self, name: str, offsets: Mapping[tuple[str, int], int]) -> None:
        checkpoints.write_offset_checkpoint(self.host.fs, f"{self.directory}/{name}", offsets)

    def retain(self) -> int:
        """
        Apply the retention of every topic that is not compacted; return how many segments went.

        Of those that are, the cleaner takes care.
        """
        return sum(
            partition.retain()
            for partition in self.partitions()
            if not partition.config.is_compacted
        )

    def purge(self) -> None:
        """Remove files and directories whose deletion was put off and is due."""
        remove = self.purging()
        if remove is not None:
            remove()

    def purging(self) -> Callable[[], None] | None:
        """Remove files that are due; return what removes directories that are, in any thread."""
        for partition in self.partitions():
            if partition.files.condemned:
                partition.files.purge()
        return self._data_directory.purging()

    def abandon(self) -> None:
        """Let go of everything as it is: for a directory that goes away, or that is only read."""
        for partition in self.partitions():
            partition.drop()
        self.metadata.abandon()
        self._data_directory.release()

    def close(self, run: Run = map) -> None:
        """
        Stop cleanly: everything durable, checkpoints, the clean marker, the lock.

        What deleted topics left is removed, though its time may not have come. `run` closes the
        partitions and may do many at once: closing waits for the disk. If a partition cannot be
        closed the marker is not written, so the next start recovers.
        """
        if not self.options.is_writable:
            self.abandon()
            return
        failures = [failure for failure in run(_close, self.partitions()) if failure is not None]
        try:
            self._remove_condemned()
            self.metadata.close()
            if not failures:
                self.write_checkpoints()
                self.write_high_watermarks()
                broker_epoch = self.metadata.broker_epoch
                clean_shutdown.write(self.host.fs, self.directory, broker_epoch)
        finally:
            self._data_directory.release()
        if failures:
            raise failures[0]

    def _remove_condemned(self) -> None:
        """
        Remove what deleted topics left, due or not.

        Its indexes are in no order, which a Kafka 3.9 that starts here would complain of.
        """
        remove = self._data_directory.purging(everything=True)
        try:
            if remove is not None:
                remove()
        except OSError as error:  # the next start removes it
            _log.warning("%s: what was deleted could not be removed: %s", self.directory, error)

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
        name = f"{partition.topic}-{partition.index}"
        _log.error("%s: could not be closed: %s", name, error)
        _log.debug("%s: could not be closed", name, exc_info=True)
        return error
    return None


class KafkaLayout:
    """The plug of this layout (see :class:`logstore.partition.Layout`)."""

    name = "kafka"

    def recognises(self, host: Host, directory: str) -> bool:
        """Tell whether `directory` has Kafka's files or partition directories."""
        if not host.fs.is_directory(directory):
            return False
        entries = host.fs.list_directory(directory)
        if any(entry.name == META_PROPERTIES for entry in entries):
            return True
        return any(
            entry.is_directory
            and is_known_directory(entry.name)
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
