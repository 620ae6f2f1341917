"""The partitions that a command works on."""

from __future__ import annotations

import attrs

from logstore.errors import CorruptFileError, ForeignDirectoryError
from logstore.host import FileSystem
from logstore.segments.kafka.checkpoints import CLEANER, read_offset_checkpoint
from logstore.segments.kafka.data_directory import LOCK_FILE
from logstore.segments.kafka.directory_name import (
    METADATA_DIRECTORY,
    DirectoryNameError,
    PartitionDirectory,
    Role,
    is_skipped_directory,
    parse_directory_name,
)
from logstore.tools.inspection.survey import is_partition, listed, log_starts


@attrs.frozen
class WorkPartition:
    """A partition: its directory, what that is called below the one that was named, its topic."""

    directory: str
    relative: str
    place: PartitionDirectory
    log_start_offset: int | None
    #: the cleaner has a checkpoint for it
    is_cleaned: bool


@attrs.frozen
class WorkPlace:
    """A data directory or one partition's, and the data directory that it is (in)."""

    directory: str
    data_directory: str
    partitions: tuple[WorkPartition, ...]

    @property
    def lock_path(self) -> str:
        """The lock that a broker takes on the data directory."""
        return f"{self.data_directory}/{LOCK_FILE}"


def find_work(fs: FileSystem, directory: str) -> WorkPlace:
    """
    Return what is to be worked on in `directory`.

    Raises:
        ForeignDirectoryError: there is no partition.

    """
    entries = listed(fs, directory)
    starts = log_starts(fs, directory)
    around = directory.rpartition("/")[0] or "/"
    if is_partition(entries):
        cleaned = _cleaned(fs, around)
        return WorkPlace(directory, around, (_partition(directory, "", starts, cleaned),))
    cleaned = _cleaned(fs, directory)
    names = [entry.name for entry in entries if entry.is_directory]
    found = tuple(
        _partition(f"{directory}/{name}", name, starts, cleaned)
        for name in names
        if _is_partition_directory(fs, directory, name)
    )
    if not found:
        raise ForeignDirectoryError(
            f"{directory}: no partition and no .log file is in it; name a directory of Kafka's "
            "log.dirs, or of one partition, or a RocketMQ store"
        )
    return WorkPlace(directory, directory, found)


def _cleaned(fs: FileSystem, data_directory: str) -> set[tuple[str, int]]:
    try:
        return set(read_offset_checkpoint(fs, f"{data_directory}/{CLEANER}"))
    except CorruptFileError:
        return set()


def _partition(
    directory: str,
    relative: str,
    starts: dict[tuple[str, int], int],
    cleaned: set[tuple[str, int]],
) -> WorkPartition:
    name = directory.rpartition("/")[2]
    try:
        place = parse_directory_name(name)
    except DirectoryNameError:
        place = PartitionDirectory(name, -1)
    key = (place.topic, place.partition)
    start = starts.get(key) if place.is_live else None
    return WorkPartition(directory, relative, place, start, key in cleaned)


def _is_partition_directory(fs: FileSystem, directory: str, name: str) -> bool:
    try:
        if parse_directory_name(name).role is Role.DELETE:
            return False
    except DirectoryNameError:
        if is_skipped_directory(name) and name != METADATA_DIRECTORY:
            return False
    return is_partition(fs.list_directory(f"{directory}/{name}"))
