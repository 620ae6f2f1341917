"""What both example layouts share: entries as plain bytes, one file per segment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import attrs

from logstore.errors import CorruptEntryError
from logstore.host import FileSystem
from logstore.segment import LogSegment

SegmentT = TypeVar("SegmentT", bound=LogSegment[Any])


@attrs.frozen
class PlainEntry:
    """An entry that is nothing but its span and its bytes."""

    base_offset: int
    next_offset: int
    data: bytes

    @property
    def size_bytes(self) -> int:
        """Length of `data`."""
        return len(self.data)


@attrs.frozen
class PlainDraft:
    """A payload that `encode` (base offset, payload) turns into the bytes of an entry."""

    payload: bytes
    encode: Callable[[int, bytes], bytes]
    offset_count: int = 1
    max_timestamp_ms: int = -1

    @property
    def size_bytes(self) -> int:
        """Length that the entry will have."""
        return len(self.encode(0, self.payload))

    def stamped(self, base_offset: int) -> PlainEntry:
        """Return the entry that starts at `base_offset`."""
        data = self.encode(base_offset, self.payload)
        return PlainEntry(base_offset, base_offset + self.offset_count, data)


class PlainFiles(Generic[SegmentT]):
    """
    Implements :class:`logstore.segmented_log.SegmentFamily`; files are named after base offsets.

    `is_clean` says that the last stop was clean: a bad entry is then an error.
    """

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        make: Callable[[FileSystem, str, int], SegmentT],
        *,
        is_clean: bool,
    ) -> None:
        self.fs = fs
        self.directory = directory
        self._make = make
        self._is_clean = is_clean

    def base_offsets(self) -> list[int]:
        """Return the offsets that files are named after."""
        names = [entry.name for entry in self.fs.list_directory(self.directory)]
        return [int(name) for name in names if name.isdigit()]

    def create(self, base_offset: int) -> SegmentT:
        """Create an empty file, also where an old one was left."""
        segment = self._segment(base_offset)
        segment.reset_observations()
        file = self.fs.open(segment.path, create=True)
        file.truncate(0)
        file.close()
        return segment

    def open(self, base_offset: int, *, is_active: bool) -> SegmentT:
        """Walk through the entries to the end; after an unclean stop, to the first bad one."""
        segment = self._segment(base_offset)
        segment.reset_observations()
        try:
            for entry in segment.entries():
                segment.observe(entry, segment.end_position)
                segment.end_position += entry.size_bytes
                segment.next_offset = max(segment.next_offset, entry.next_offset)
        except CorruptEntryError:
            if self._is_clean:
                raise
        if not is_active:  # bad or not, it ends where the next one starts
            bases = self.base_offsets()
            segment.next_offset = bases[bases.index(base_offset) + 1]
            segment.end_position = segment.file.size()
        segment.recovery_point = segment.next_offset
        return segment

    def remove(self, segment: SegmentT) -> None:
        """Remove the file."""
        segment.close()
        self.fs.remove(segment.path)

    def _segment(self, base_offset: int) -> SegmentT:
        return self._make(self.fs, f"{self.directory}/{base_offset:020d}", base_offset)
