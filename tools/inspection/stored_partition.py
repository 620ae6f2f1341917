"""
A partition's directory as it stands: segments, where they end, what their indexes say.

Unlike :class:`logstore.segments.kafka.partition.KafkaPartition` this trusts nothing, mends nothing
and needs no lock: the directory may belong to a running broker, or be a pile of copied files.
"""

from __future__ import annotations

import re
from functools import cached_property

import attrs

from logstore.errors import CorruptEntryError, CorruptFileError, MissingSegmentError
from logstore.host import File, FileSystem
from logstore.segments.kafka.directory_name import (
    DirectoryNameError,
    PartitionDirectory,
    parse_directory_name,
)
from logstore.segments.kafka.offset_index import OffsetIndex
from logstore.segments.kafka.segment_files import (
    INDEX,
    LOG,
    TIME_INDEX,
    TRANSACTION_INDEX,
    offset_file_name,
)
from logstore.segments.kafka.time_index import TimeIndex
from logstore.tools.inspection.batch_walk import walk_batches
from logstore.tools.inspection.facts import Problem

_LOG_NAME = re.compile(r"([0-9]{20})\.log")


@attrs.frozen
class SegmentEnd:
    """Where a segment's last whole batch ends, and the newest timestamp up to there (-1: none)."""

    next_offset: int
    position: int
    largest_timestamp_ms: int
    problem: Problem | None = None


class StoredSegment:
    """One segment's files. `next_base_offset` is where the next segment starts, if there is one."""

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        base_offset: int,
        sizes: dict[str, int],
        next_base_offset: int | None,
    ) -> None:
        self._fs = fs
        self.base_offset = base_offset
        self.next_base_offset = next_base_offset
        self.name = offset_file_name(base_offset, LOG)
        self.path = f"{directory}/{self.name}"
        self.size_bytes = sizes[self.name]
        self.has_index = offset_file_name(base_offset, INDEX) in sizes
        self.has_transaction_index = offset_file_name(base_offset, TRANSACTION_INDEX) in sizes
        self.offset_index = OffsetIndex.open(
            fs, f"{directory}/{offset_file_name(base_offset, INDEX)}", base_offset, 0,
            size_bytes=sizes.get(offset_file_name(base_offset, INDEX), 0), zero_tail=True,
        )  # fmt: skip
        self.time_index = TimeIndex.open(
            fs, f"{directory}/{offset_file_name(base_offset, TIME_INDEX)}", base_offset, 0,
            size_bytes=sizes.get(offset_file_name(base_offset, TIME_INDEX), 0), zero_tail=True,
        )  # fmt: skip

    def open(self) -> File:
        """Open the log to read; to be closed by the caller."""
        return self._fs.open(self.path, writable=False)

    @property
    def is_active(self) -> bool:
        """Tell whether this is the newest segment."""
        return self.next_base_offset is None

    @cached_property
    def end(self) -> SegmentEnd:
        """
        Where the segment ends.

        Of a sealed one the next base offset and the last time index entry tell; else the walk goes
        from the last entry of the offset index, or from the start if that entry leads nowhere.
        """
        if self.next_base_offset is not None and self.time_index.entry_count:
            newest_ms = self.time_index.last_entry[0]
            return SegmentEnd(self.next_base_offset, self.size_bytes, newest_ms)
        position = self.offset_index.last_entry[1]
        end = self._walk(position) if 0 < position < self.size_bytes else None
        if end is None or end.position == position:
            end = self._walk(0)
        if self.next_base_offset is not None:
            end = attrs.evolve(end, next_offset=self.next_base_offset)
        return end

    def _walk(self, start: int) -> SegmentEnd:
        next_offset, position = self.base_offset, start
        newest_ms = self.time_index.last_entry[0] if start else -1
        file = self.open()
        try:
            for found in walk_batches(file, start):
                next_offset, position = found.batch.next_offset, found.end_position
                newest_ms = max(newest_ms, found.batch.max_timestamp_ms)
        except CorruptEntryError as error:
            problem = Problem(self.path, error.position, error.reason)
            return SegmentEnd(next_offset, position, newest_ms, problem)
        finally:
            file.close()
        return SegmentEnd(next_offset, position, newest_ms)


class StoredPartition:
    """
    One partition directory. `log_start_offset` is what a checkpoint says, if it says something.

    Raises:
        OSError: the directory cannot be read.

    """

    def __init__(
        self, fs: FileSystem, directory: str, *, log_start_offset: int | None = None
    ) -> None:
        self.fs = fs
        self.directory = directory
        name = directory.rpartition("/")[2]
        try:
            self.place = parse_directory_name(name)
        except DirectoryNameError:
            self.place = PartitionDirectory(name, -1)
        sizes = {
            entry.name: entry.size_bytes
            for entry in fs.list_directory(directory)
            if not entry.is_directory
        }
        bases = sorted(int(match[1]) for name in sizes if (match := _LOG_NAME.fullmatch(name)))
        self.segments = [
            StoredSegment(fs, directory, base, sizes, following)
            for base, following in zip(bases, [*bases[1:], None], strict=True)
        ]
        first = bases[0] if bases else 0
        self.start_offset = max(first, log_start_offset or 0)

    @property
    def name(self) -> str:
        """How people call it: topic and number."""
        place = self.place
        return place.topic if place.partition < 0 else f"{place.topic}-{place.partition}"

    @property
    def end_offset(self) -> int:
        """Offset that the next record gets."""
        return max(self.segments[-1].end.next_offset, self.start_offset) if self.segments else 0

    @property
    def size_bytes(self) -> int:
        """Bytes in all ``.log`` files."""
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def largest_timestamp_ms(self) -> int:
        """The newest time in the partition, -1 without one."""
        return max((segment.end.largest_timestamp_ms for segment in self.segments), default=-1)

    def problems(self) -> list[Problem]:
        """Return what is wrong with the ends of segments and the shape of their indexes."""
        found: list[Problem] = []
        for segment in self.segments:
            for index in (segment.offset_index, segment.time_index):
                try:
                    index.sanity_check()
                except CorruptFileError as error:
                    found.append(Problem(error.path, None, error.reason))
            if segment.end.problem is not None:
                found.append(segment.end.problem)
        return found

    def segment_of(self, offset: int) -> StoredSegment:
        """
        Return the segment with the greatest base offset at or below `offset`.

        Raises:
            MissingSegmentError: there is none.

        """
        for segment in reversed(self.segments):
            if segment.base_offset <= offset:
                return segment
        raise MissingSegmentError(f"{self.directory}: no segment starts at or below {offset}")
