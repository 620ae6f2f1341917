"""
Opens the partitions of a data directory, as Kafka's ``LogManager.loadLogs`` does.

After a clean stop lengths and indexes are trusted. After any other, every partition is recovered
from its recovery point on, or whole where the checkpoint does not know it.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Container, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol

import attrs

from logstore.errors import CorruptFileError
from logstore.host import Host
from logstore.segments.kafka import checkpoints, clean_shutdown
from logstore.segments.kafka.cluster_metadata.cluster_metadata import ClusterMetadata
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.data_directory import DataDirectory
from logstore.segments.kafka.directory_name import PartitionDirectory
from logstore.segments.kafka.kafka_uuid import random_uuid, uuid_to_text
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.partition_metadata import FILE_NAME as PARTITION_METADATA
from logstore.segments.kafka.partition_metadata import PartitionMetadata
from logstore.segments.kafka.segment_files import LOG, SegmentFiles, offset_file_name
from logstore.segments.kafka.sparse_index import IndexCache
from logstore.segments.kafka.topic import Topic, load_settings

_log = logging.getLogger(__name__)
_FIRST_LOG = offset_file_name(0, LOG)
#: told (done, all, name of the next)
Progress = Callable[[int, int, str], None]


@attrs.frozen
class Stored:
    """
    A partition that is there to be opened.

    `recovery_point` None: all of it is trusted, if it reaches to `durable_end`.
    """

    topic: Topic
    index: int
    config: LogConfig
    recovery_point: int | None
    log_start_offset: int
    durable_end: int = 0
    #: in the metadata, but not in the directory: it begins anew
    is_missing: bool = False


#: calls a function for every partition, like `map`
Run = Callable[[Callable[[Stored], KafkaPartition], list[Stored]], Iterable[KafkaPartition]]


class PartitionMaker(Protocol):
    """Makes an open partition; :class:`KafkaPartition` itself does."""

    def __call__(
        self,
        host: Host,
        files: SegmentFiles,
        topic: str,
        index: int,
        *,
        recovery_point: int | None,
        log_start_offset: int,
    ) -> KafkaPartition:
        """Open the partition; with a `recovery_point` what lies past it is checked."""
        ...


class PartitionLoader:
    """
    Opens the partitions of one data directory: those that are in it, and new ones.

    `was_clean` says that the last stop was. `thread_count` partitions are recovered at a time.
    `make` makes the partition of files that are ready.
    """

    def __init__(
        self,
        host: Host,
        directory: DataDirectory,
        thread_count: int = 1,
        make: PartitionMaker | None = None,
    ) -> None:
        self.host = host
        self._make: PartitionMaker = KafkaPartition if make is None else make
        self.directory = directory
        self.was_clean = clean_shutdown.exists(host.fs, directory.path)
        self._places = directory.partitions()
        self._thread_count = thread_count
        self._cache = IndexCache()
        #: directories of partitions with metadata that cannot be read, and why
        self._unreadable: dict[str, str] = {}
        #: topics of which the recovery points or log starts on disk speak, even if they are gone
        self.checkpointed_topics: set[str] = set()
        #: where logs start, as the checkpoint said at the start
        self.log_starts: dict[tuple[str, int], int] = {}
        #: whether partitions stand empty here because their directories had gone
        self.made_anew = False

    # what is there

    def load(
        self,
        metadata: ClusterMetadata,
        config_of: Callable[[Topic], LogConfig],
        progress: Progress | None = None,
    ) -> list[Topic]:
        """
        Open every partition, topic by topic in the order of the directory names; return the topics.

        Those that `metadata` have beyond it, because a power loss took their directories, follow;
        then topics that have no partition here, which a broker must not take for new names.

        Raises:
            StorageError: a partition cannot be opened.

        """
        found = self._look(metadata, config_of)
        with self._runner(len(found)) as run, _uncollected(self.was_clean):
            opened = iter(run(self._open_stored, found))
            for done, stored in enumerate(found):
                if progress is not None:
                    progress(done, len(found), f"{stored.topic.name}-{stored.index}")
                partition = next(opened)
                _report(partition)
                stored.topic.partitions[stored.index] = partition
        if progress is not None:
            progress(len(found), len(found), "")
        topics = {stored.topic.name: stored.topic for stored in found}
        if self.directory.is_writable:
            topics |= {topic.name: topic for topic in _elsewhere(metadata, topics)}
        return list(topics.values())

    def _look(
        self, metadata: ClusterMetadata, config_of: Callable[[Topic], LogConfig]
    ) -> list[Stored]:
        """
        Return what is to be opened, and how; until then nothing was changed.

        Then the marker of the clean stop goes, so that a crash from now on counts as unclean.
        """
        fs, directory = self.host.fs, self.directory
        if directory.is_writable and directory.futures:
            self._promote_futures(metadata)
        recovery_points = self._checkpoint(checkpoints.RECOVERY_POINT)
        log_starts = self.log_starts = self._checkpoint(checkpoints.LOG_START)
        self.checkpointed_topics = {topic for topic, _ in (*recovery_points, *log_starts)}
        former = load_settings(fs, directory.path)
        is_trusted = self.was_clean or not directory.is_writable
        found: list[Stored] = []
        deleted: list[PartitionDirectory] = []
        topics: dict[str, Topic] = {}
        for name, places in self._by_topic().items():
            ids = self._topic_ids(places)
            gone = [place for place, topic_id in ids.items() if metadata.was_deleted(topic_id)]
            gone += [
                place for place in places
                if place not in gone and self._is_unfinished(place, metadata)
            ]  # fmt: skip
            deleted += gone
            if len(gone) == len(places):
                continue
            known = (topic_id for place, topic_id in ids.items() if place not in gone)
            topic_id = metadata.topic_id_of(name, known) or random_uuid(self.host.rng)
            settings = metadata.settings_of(name) | former.get(name, {})
            topics[name] = topic = Topic(name, topic_id, settings)
            topic.known_count = metadata.partition_count_of(name)
            config = config_of(topic)
            for place in (one for one in places if one not in gone):
                key = (name, place.partition)
                start, durable = log_starts.get(key, 0), recovery_points.get(key, 0)
                point = None if is_trusted else durable
                found.append(Stored(topic, place.partition, config, point, start, durable))
        if directory.is_writable:
            missing = self._missing(metadata, config_of, topics, found)
            self.made_anew = bool(missing)
            found += missing
            clean_shutdown.remove(fs, directory.path)
            for place in deleted:
                directory.condemn(place.topic, place.partition, 0)
            if deleted:  # or one could come back without the file that says whose it is
                fs.sync_directory(directory.path)
        return found

    def _promote_futures(self, metadata: ClusterMetadata) -> None:
        """
        Let abandoned copies stand for their partitions.

        A move between directories ends with two renames, and a crash may come between them: then
        the cluster knows that the partition is here, and only the copy is. Beside a partition that
        is there a copy stays what it is; Kafka would trip over the two
        (``LogManager.recoverAbandonedFutureLogs``).
        """
        here = {(image.name, index): image.topic_id for image, index in metadata.partitions_here()}
        taken = {(place.topic, place.partition) for place in self._places}
        for future in list(self.directory.futures):
            key = (future.topic, future.partition)
            stored = self._metadata(f"{self.directory.path}/{future.name}")
            if key in taken or stored is None or here.get(key) != stored.topic_id:
                continue
            _log.warning("%s: an abandoned copy; it stands for its partition now", future.name)
            self._places.append(self.directory.promote(future))
            taken.add(key)
        self._places.sort(key=lambda place: place.name)

    def _is_unfinished(self, place: PartitionDirectory, metadata: ClusterMetadata) -> bool:
        """
        Tell whether a crash came before the metadata had a partition: nobody was told of it.

        It has no settings, and others of its topic may be missing. One with records in it was put
        there by somebody, and is taken in. Kafka sets either aside (``-stray``).
        """
        if self.was_clean or not self.directory.is_writable or not metadata.were_there:
            return False
        if self.directory.lacks_metadata:  # the node's metadata may be in another directory
            return False
        if metadata.has_partition(place.topic, place.partition):
            return False
        path = self.directory.path_of(place.topic, place.partition)
        logs = [one for one in self.host.fs.list_directory(path) if one.name.endswith(LOG)]
        if any(one.size_bytes or one.name != _FIRST_LOG for one in logs):
            return False
        _log.warning("%s: empty, and the metadata do not know it; it goes", place.name)
        return True

    def _by_topic(self) -> dict[str, list[PartitionDirectory]]:
        by_topic: dict[str, list[PartitionDirectory]] = {}
        for place in self._places:
            by_topic.setdefault(place.topic, []).append(place)
        return by_topic

    def _missing(
        self,
        metadata: ClusterMetadata,
        config_of: Callable[[Topic], LogConfig],
        topics: dict[str, Topic],
        found: list[Stored],
    ) -> list[Stored]:
        """Return the partitions that the metadata have and the directory lacks."""
        there = {(stored.topic.name, stored.index) for stored in found}
        missing: list[Stored] = []
        for image, index in metadata.partitions_here():
            if (image.name, index) in there:
                continue
            topic = topics.get(image.name)
            if topic is None:
                settings = metadata.settings_of(image.name)
                topics[image.name] = topic = Topic(image.name, image.topic_id, settings)
            if topic.topic_id == image.topic_id:
                _log.warning("%s-%s: its directory is gone; made anew", image.name, index)
                config = config_of(topic)
                missing.append(Stored(topic, index, config, None, 0, is_missing=True))
        return missing

    def _checkpoint(self, name: str) -> dict[tuple[str, int], int]:
        """
        Read an offset checkpoint; one that cannot be read counts as empty.

        Kafka means to do so, too, but has taken the directory offline by then.
        """
        try:
            return checkpoints.read_offset_checkpoint(self.host.fs, f"{self.directory.path}/{name}")
        except CorruptFileError as error:
            _log.warning("%s; taken as empty", error)
            return {}

    @contextmanager
    def _runner(self, count: int) -> Generator[Run]:
        """
        Give what calls a function for each of `count` partitions, results in order.

        Threads only where there is something to recover: there they wait for the disk together, and
        check large batches beside each other. Batches of less than 32 KiB are checked under the
        interpreter's lock, so that threads gain little; after a clean stop they only get into each
        other's way. On leaving no thread writes any more, also after an error: then the lock of the
        directory may go.
        """
        thread_count = min(self._thread_count, count)
        if self.was_clean or not self.directory.is_writable or thread_count < 2:
            yield map
            return
        pool = ThreadPoolExecutor(thread_count, "recovery")
        try:
            yield pool.map
        finally:
            pool.shutdown(cancel_futures=True)

    def _open_stored(self, stored: Stored) -> KafkaPartition:
        if stored.is_missing:
            return self.create(stored.topic, stored.index, stored.config)
        return self.open(
            stored.topic,
            stored.index,
            stored.config,
            recovery_point=stored.recovery_point,
            log_start_offset=stored.log_start_offset,
            durable_end=stored.durable_end,
        )

    # identity

    def _topic_ids(self, places: list[PartitionDirectory]) -> dict[PartitionDirectory, bytes]:
        """
        Return the topic ids that a topic's directories hold.

        After a clean stop they hold the same one, so that the first will do.
        """
        found: dict[PartitionDirectory, bytes] = {}
        for place in places:
            metadata = self._metadata(self.directory.path_of(place.topic, place.partition))
            if metadata is not None:
                found[place] = metadata.topic_id
                if self.was_clean:
                    break
        return found

    def _metadata(self, path: str) -> PartitionMetadata | None:
        """
        Return what a partition's metadata say, None where there are none.

        A new partition's are durable only with its first flush, and a power loss may leave anything
        of them. So what cannot be read counts as lost; the topic's id stands in the metadata log
        and with its other partitions, too. Kafka does not start then.
        """
        try:
            return PartitionMetadata.read(self.host.fs, path)
        except CorruptFileError as error:
            self._unreadable[path] = error.reason
            return None

    def _keep_topic_id(self, files: SegmentFiles, topic_id: bytes) -> None:
        """
        Write the topic's id where a partition lacks it, so that the next start finds the same.

        So Kafka did with the partitions that it had when topics began to have ids
        (``UnifiedLog.assignTopicId``).
        """
        found_bytes = files.found_bytes(PARTITION_METADATA)
        if found_bytes and self.was_clean and files.directory not in self._unreadable:
            return
        found = self._metadata(files.directory)
        if found is not None and found.topic_id == topic_id:
            return
        _log.log(
            logging.INFO if found_bytes is None else logging.WARNING,
            "%s/%s: %s; written with topic id %s",
            files.directory,
            PARTITION_METADATA,
            self._unreadable.get(files.directory) or _flaw(found_bytes, found),
            uuid_to_text(topic_id),
        )
        PartitionMetadata(topic_id).write(self.host.fs, files.directory)

    # one partition

    def create(self, topic: Topic, index: int, config: LogConfig) -> KafkaPartition:
        """Create one partition, empty; it is durable with its first flush."""
        path = self.directory.path_of(topic.name, index)
        self.host.fs.make_directory(path)
        PartitionMetadata(topic.topic_id).write(self.host.fs, path, sync=False)
        return self.open(topic, index, config, is_new=True)

    def open(
        self,
        topic: Topic,
        index: int,
        config: LogConfig,
        *,
        recovery_point: int | None = None,
        log_start_offset: int = 0,
        durable_end: int = 0,
        is_new: bool = False,
    ) -> KafkaPartition:
        """
        Open one partition; with a `recovery_point` what lies past it is checked.

        Without, one that ends below `durable_end` is looked at, too.
        """
        files = SegmentFiles(
            self.host,
            self.directory.path_of(topic.name, index),
            config,
            is_clean=recovery_point is None,
            is_writable=self.directory.is_writable,
            is_new=is_new,
            durable_end=durable_end,
            cache=self._cache,
        )
        if self.directory.is_writable and not is_new:
            self._keep_topic_id(files, topic.topic_id)
        partition = self._make(
            self.host,
            files,
            topic.name,
            index,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
        )
        if partition.log.recovery is None and files.mended is not None:
            partition.log.recovery = files.mended._replace(next_offset=partition.end_offset)
        if self.directory.is_writable and _was_never_led(partition):
            # In one that is not new a power loss may have left an older file to write upon.
            partition.become_leader(0, sync=not is_new)
        for segment in partition.log.segments.values():
            # A descriptor is for who reads or writes, not for all that is there. Only the file's:
            # the indexes of the active segment go on.
            segment.release()
        files.forget_listing()
        return partition


@contextmanager
def _uncollected(is_wanted: bool) -> Generator[None]:
    """
    Let nobody look for garbage meanwhile.

    All that a start makes stays: looking through it over and over takes an eighth of the time. Not
    for a recovery, which may read a lot.
    """
    is_paused = is_wanted and gc.isenabled()
    if is_paused:
        gc.disable()
    try:
        yield
    finally:
        if is_paused:
            gc.enable()


def _elsewhere(metadata: ClusterMetadata, topics: Container[str]) -> Iterator[Topic]:
    """Yield the topics of the cluster that have no partition here, but for `topics`."""
    for name, image in metadata.image.topics.items():
        count = metadata.partition_count_of(name)
        if count and name not in topics:
            yield Topic(name, image.topic_id, metadata.settings_of(name), known_count=count)


def _flaw(found_bytes: int | None, found: PartitionMetadata | None) -> str:
    """Return why a partition's metadata are written anew."""
    if found is not None:
        return f"holds topic id {uuid_to_text(found.topic_id)}"
    return "missing" if found_bytes is None else "holds no topic id"


def _was_never_led(partition: KafkaPartition) -> bool:
    """Tell whether it is new, or so new that a power loss took all that was in it."""
    is_empty = partition.start_offset == partition.end_offset
    return is_empty and not partition.leader_epochs.entries


def _report(partition: KafkaPartition) -> None:
    """Log what a recovery had to cut off."""
    outcome = partition.recovery
    if outcome is not None and not outcome.is_clean:
        _log.warning(
            "%s-%s: recovered up to offset %s; %s bytes were cut off: %s; kept aside in %s",
            partition.topic, partition.index, outcome.next_offset, outcome.dropped_bytes,
            outcome.reason, ", ".join(outcome.kept_aside) or "no file: they were never written",
        )  # fmt: skip
