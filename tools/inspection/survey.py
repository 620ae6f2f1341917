"""What is in a directory: whose it is, how it was left, which partitions it has."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from logstore.errors import CorruptFileError, ForeignDirectoryError
from logstore.host import DirectoryEntry, FileSystem
from logstore.segments.kafka import checkpoints, clean_shutdown
from logstore.segments.kafka.data_directory import LOCK_FILE
from logstore.segments.kafka.directory_name import (
    DirectoryNameError,
    is_skipped_directory,
    parse_directory_name,
)
from logstore.segments.kafka.kafka_uuid import uuid_to_text
from logstore.segments.kafka.meta_properties import FILE_NAME as META_PROPERTIES
from logstore.segments.kafka.meta_properties import MetaProperties
from logstore.segments.kafka.partition_metadata import PartitionMetadata
from logstore.segments.kafka.segment_files import LOG
from logstore.tools.inspection.facts import Problem
from logstore.tools.inspection.lock_holder import lock_holder
from logstore.tools.inspection.stored_partition import StoredPartition, StoredSegment

Progress = Callable[[int, int], None]
#: how often a partition is looked at that a broker cleans, shortens or removes meanwhile
_LOOKS_MAX = 5


@attrs.frozen
class SegmentView:
    """One segment. Its end is where the next one starts."""

    base_offset: int
    next_offset: int
    size_bytes: int
    index_entry_count: int
    time_index_entry_count: int
    largest_timestamp_ms: int
    has_aborted_transactions: bool


@attrs.frozen
class PartitionView:
    """One partition directory; `index` is -1 where its name tells none, `role` "" if it is live."""

    directory: str
    topic: str
    index: int
    role: str
    topic_id: str | None
    start_offset: int
    end_offset: int
    size_bytes: int
    largest_timestamp_ms: int
    segments: tuple[SegmentView, ...]


@attrs.frozen
class Survey:
    """
    What a directory holds.

    `state` is "clean" or "unclean" after the last stop, "in use" while a broker has the lock (then
    `process` says which, if known), "unknown" for a partition or a pile of files alone.
    """

    directory: str
    state: str
    process: int | None
    meta: MetaProperties | None
    partitions: tuple[PartitionView, ...]
    problems: tuple[Problem, ...]


def survey_directory(
    fs: FileSystem, directory: str, topic: str | None = None, progress: Progress | None = None
) -> Survey:
    """
    Look at a data directory, or at one partition's, without writing or locking.

    `topic` leaves the others out; `progress` is told (done, all) as partitions are read.

    Raises:
        ForeignDirectoryError: nothing in it is Kafka's, or it is not there.

    """
    entries = listed(fs, directory)
    problems: list[Problem] = []
    if is_partition(entries):
        paths = [directory]
        state, process, meta = "unknown", None, None
    else:
        state, process = _state_of(fs, directory, entries)
        meta = _meta_of(fs, directory, entries, problems)
        paths = _partition_paths(fs, directory, entries, topic)
        if not paths and meta is None:
            raise ForeignDirectoryError(
                f"{directory}: no meta.properties, no partition and no .log file is in it; name a "
                "directory of Kafka's log.dirs, or of one partition, or a RocketMQ store"
            )
    starts = log_starts(fs, directory, problems)
    views: list[PartitionView] = []
    for done, path in enumerate(paths):
        if progress is not None:
            progress(done, len(paths))
        view = _view_of(fs, path, starts, problems, is_live=state == "in use")
        if view is not None:
            views.append(view)
    views.sort(key=lambda view: (view.topic, view.index, view.role))
    return Survey(directory, state, process, meta, tuple(views), tuple(problems))


def topics_in(fs: FileSystem, directory: str) -> set[str]:
    """
    Return the topics of which a data directory, or one partition's, has anything.

    Raises:
        ForeignDirectoryError: it is not there, or is a file.

    """
    entries = listed(fs, directory)
    if is_partition(entries):
        return {StoredPartition(fs, directory).place.topic}
    return {_topic_of(path) for path in _partition_paths(fs, directory, entries, None)}


def _topic_of(path: str) -> str:
    name = path.rpartition("/")[2]
    try:
        return parse_directory_name(name).topic
    except DirectoryNameError:
        return name


def listed(fs: FileSystem, directory: str) -> list[DirectoryEntry]:
    """Return the entries of `directory`. Raises ForeignDirectoryError if it is none."""
    if not fs.exists(directory):
        raise ForeignDirectoryError(f"{directory}: there is no such directory")
    if not fs.is_directory(directory):
        raise ForeignDirectoryError(
            f"{directory}: is a file; name a directory, or look into the file with logstore dump"
        )
    return fs.list_directory(directory)


def is_partition(entries: list[DirectoryEntry]) -> bool:
    """Tell whether these are the files of one partition."""
    return any(
        not entry.is_directory and entry.name.endswith(LOG) and entry.name[:20].isdigit()
        for entry in entries
    )


def holds_a_log(fs: FileSystem, directory: str) -> bool:
    """Tell whether the files of one partition are in it, if it is still there."""
    try:
        return is_partition(fs.list_directory(directory))
    except FileNotFoundError:
        return False


def log_starts(
    fs: FileSystem, directory: str, problems: list[Problem] | None = None
) -> dict[tuple[str, int], int]:
    """Return the log starts that the checkpoint in `directory`, or else beside it, has."""
    for folder in (directory, directory.rpartition("/")[0]):
        path = f"{folder}/{checkpoints.LOG_START}"
        if folder and fs.exists(path):
            try:
                return checkpoints.read_offset_checkpoint(fs, path)
            except CorruptFileError as error:
                if problems is not None:
                    problems.append(Problem(error.path, None, error.reason))
    return {}


def _state_of(
    fs: FileSystem, directory: str, entries: list[DirectoryEntry]
) -> tuple[str, int | None]:
    names = {entry.name for entry in entries}
    if LOCK_FILE in names:
        process = lock_holder(f"{directory}/{LOCK_FILE}")
        if process is not None:
            return "in use", process
    if clean_shutdown.exists(fs, directory):
        return "clean", None
    is_a_brokers = META_PROPERTIES in names or checkpoints.RECOVERY_POINT in names
    return ("unclean" if is_a_brokers else "unknown"), None


def _meta_of(
    fs: FileSystem, directory: str, entries: list[DirectoryEntry], problems: list[Problem]
) -> MetaProperties | None:
    if not any(entry.name == META_PROPERTIES for entry in entries):
        return None
    try:
        return MetaProperties.read(fs, directory)
    except CorruptFileError as error:
        problems.append(Problem(error.path, None, error.reason))
        return None


def _partition_paths(
    fs: FileSystem, directory: str, entries: list[DirectoryEntry], topic: str | None
) -> list[str]:
    """Return the directories that are partitions by their name, or by what is in them."""
    found: list[str] = []
    for entry in entries:
        if not entry.is_directory:
            continue
        path = f"{directory}/{entry.name}"
        try:
            name = parse_directory_name(entry.name).topic
        except DirectoryNameError:
            name = entry.name
            if is_skipped_directory(name) or not holds_a_log(fs, path):
                continue
        if topic is None or topic == name:
            found.append(path)
    return found


def _view_of(
    fs: FileSystem,
    path: str,
    starts: dict[tuple[str, int], int],
    problems: list[Problem],
    *,
    is_live: bool,
) -> PartitionView | None:
    """Look at one partition; again if a broker took a file away meanwhile, None if all of it."""
    for look in range(1, _LOOKS_MAX + 1):
        try:
            return _looked_at(fs, path, starts, problems, is_live=is_live)
        except FileNotFoundError as error:
            if not fs.exists(path):  # its topic was deleted, or it has moved: that is no damage
                return None
            if look == _LOOKS_MAX:
                problems.append(Problem(path, None, f"changes while it is read: {error}"))
        except OSError as error:
            problems.append(Problem(path, None, f"{error.strerror or error}"))
            return None
    return None


def _looked_at(
    fs: FileSystem,
    path: str,
    starts: dict[tuple[str, int], int],
    problems: list[Problem],
    *,
    is_live: bool,
) -> PartitionView:
    partition = StoredPartition(fs, path)
    place = partition.place
    start_offset = starts.get((place.topic, place.partition), 0) if place.is_live else 0
    partition.start_offset = max(partition.start_offset, start_offset)
    topic_id: str | None = None
    found: list[Problem] = []
    try:
        metadata = PartitionMetadata.read(fs, path)
        topic_id = None if metadata is None else uuid_to_text(metadata.topic_id)
    except CorruptFileError as error:
        found.append(Problem(error.path, None, error.reason))
    view = PartitionView(
        directory=path,
        topic=place.topic,
        index=place.partition,
        role=place.role.value.removeprefix("-"),
        topic_id=topic_id,
        start_offset=partition.start_offset,
        end_offset=partition.end_offset,
        size_bytes=partition.size_bytes,
        largest_timestamp_ms=partition.largest_timestamp_ms,
        segments=tuple(_segment_view(segment) for segment in partition.segments),
    )
    found += partition.problems()
    if is_live:  # a batch may be half written, an index may be ahead or behind
        found = [problem for problem in found if not problem.path.endswith(LOG)]
    problems += found
    return view


def _segment_view(segment: StoredSegment) -> SegmentView:
    return SegmentView(
        base_offset=segment.base_offset,
        next_offset=segment.end.next_offset,
        size_bytes=segment.size_bytes,
        index_entry_count=segment.offset_index.entry_count,
        time_index_entry_count=segment.time_index.entry_count,
        largest_timestamp_ms=segment.end.largest_timestamp_ms,
        has_aborted_transactions=segment.has_transaction_index,
    )
