"""
Opens the partitions of a data directory, as Kafka's ``LogManager.loadLogs`` does.

After a clean stop lengths and indexes are trusted. After any other, every partition is recovered
from its recovery point on, or whole where the checkpoint does not know it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from logstore.errors import CorruptFileError
from logstore.host import Host
from logstore.segments.kafka import checkpoints, clean_shutdown
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.data_directory import DataDirectory
from logstore.segments.kafka.directory_name import PartitionDirectory
from logstore.segments.kafka.kafka_uuid import random_uuid
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.partition_metadata import PartitionMetadata
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.segments.kafka.sparse_index import IndexCache
from logstore.segments.kafka.topic import Topic, load_settings

_log = logging.getLogger(__name__)
#: told (done, all, name of the next)
Progress = Callable[[int, int, str], None]


class PartitionLoader:
    """
    Opens the partitions of one data directory: those that are in it, and new ones.

    `was_clean` says that the last stop was. The marker that said so is gone from then on, so that
    a crash while partitions load counts as unclean.
    """

    def __init__(self, host: Host, directory: DataDirectory) -> None:
        self.host = host
        self.directory = directory
        self.was_clean = clean_shutdown.exists(host.fs, directory.path)
        self._cache = IndexCache()

    def load(
        self, config_of: Callable[[Topic], LogConfig], progress: Progress | None = None
    ) -> list[Topic]:
        """
        Open every partition; return their topics, by directory name.

        Raises:
            ForeignDirectoryError: a directory is none of a partition.
            StorageError: a partition cannot be opened.

        """
        fs, path = self.host.fs, self.directory.path
        recovery_points = self._checkpoint(checkpoints.RECOVERY_POINT)
        log_starts = self._checkpoint(checkpoints.LOG_START)
        if self.directory.is_writable:
            clean_shutdown.remove(fs, path)
        settings = load_settings(fs, path)
        is_trusted = self.was_clean or not self.directory.is_writable
        topics: dict[str, tuple[Topic, LogConfig]] = {}
        places = self.directory.partitions()
        for done, place in enumerate(places):
            if progress is not None:
                progress(done, len(places), place.name)
            if place.topic not in topics:
                topic = self._topic(place, settings.get(place.topic, {}))
                topics[place.topic] = topic, config_of(topic)
            topic, config = topics[place.topic]
            key = (place.topic, place.partition)
            topic.partitions[place.partition] = self.open(
                place.topic,
                place.partition,
                config,
                recovery_point=None if is_trusted else recovery_points.get(key, 0),
                log_start_offset=log_starts.get(key, 0),
            )
        if progress is not None:
            progress(len(places), len(places), "")
        return [topic for topic, _ in topics.values()]

    def _checkpoint(self, name: str) -> dict[tuple[str, int], int]:
        """Read an offset checkpoint; one that cannot be read counts as empty, as in Kafka."""
        try:
            return checkpoints.read_offset_checkpoint(self.host.fs, f"{self.directory.path}/{name}")
        except CorruptFileError as error:
            _log.warning("%s; taken as empty", error)
            return {}

    def _topic(self, place: PartitionDirectory, settings: dict[str, str]) -> Topic:
        path = self.directory.path_of(place.topic, place.partition)
        metadata = PartitionMetadata.read(self.host.fs, path)
        topic_id = random_uuid(self.host.rng) if metadata is None else metadata.topic_id
        return Topic(place.topic, topic_id, dict(settings))

    def open(
        self,
        topic: str,
        index: int,
        config: LogConfig,
        *,
        recovery_point: int | None = None,
        log_start_offset: int = 0,
        is_new: bool = False,
    ) -> KafkaPartition:
        """Open one partition; with a `recovery_point` what lies past it is checked."""
        files = SegmentFiles(
            self.host,
            self.directory.path_of(topic, index),
            config,
            is_clean=recovery_point is None,
            is_writable=self.directory.is_writable,
            is_new=is_new,
            cache=self._cache,
        )
        partition = KafkaPartition(
            self.host,
            files,
            topic,
            index,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
        )
        outcome = partition.recovery
        if outcome is not None and not outcome.is_clean:
            _log.warning(
                "%s-%s: recovered up to offset %s; %s bytes were cut off: %s; kept aside in %s",
                topic, index, outcome.next_offset, outcome.dropped_bytes, outcome.reason,
                ", ".join(outcome.kept_aside) or "no file: they were never written",
            )  # fmt: skip
        return partition
