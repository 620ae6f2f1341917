"""Example layout: lines behind their length, several to an entry; an offset is a line."""

from __future__ import annotations

from logstore.checksum import crc32c
from logstore.errors import CorruptEntryError
from logstore.segment import Draft, LogSegment

SEGMENT_BYTES = 300


class Lines:
    """Checksum, number of the first line (8 bytes), length (2), text; draft and entry in one."""

    def __init__(self, text: bytes, base_offset: int = 0) -> None:
        self.text, self.base_offset = text, base_offset
        self.offset_count, self.max_timestamp_ms = text.count(b"\n"), -1
        self.next_offset = base_offset + self.offset_count
        rest = base_offset.to_bytes(8, "big") + len(text).to_bytes(2, "big") + text
        self.data = crc32c(rest).to_bytes(4, "big") + rest
        self.size_bytes = len(self.data)

    def stamped(self, base_offset: int) -> Lines:
        """Return the same lines at their place."""
        return Lines(self.text, base_offset)


class LineSegment(LogSegment[Lines]):
    """Up to 300 bytes, and an index in memory: `_positions[n]` is the way to line n from here."""

    def locate(self, offset: int) -> int:
        """Look it up; the last position is the end, or the damage before which the index ends."""
        return self._positions[min(offset - self.base_offset, len(self._positions) - 1)]

    def decode(self, position: int) -> Lines | None:
        """Return the lines at `position` if they are as they were written."""
        data = self.file.read(position, SEGMENT_BYTES)
        size_bytes = int.from_bytes(data[12:14], "big")
        lines = Lines(data[14 : 14 + size_bytes], int.from_bytes(data[4:12], "big"))
        if data and not data.startswith(lines.data):
            raise CorruptEntryError(self.path, position, "no whole lines")
        return lines if data else None

    def has_room_for(self, draft: Draft[Lines]) -> bool:
        """Count bytes."""
        return self.end_position + draft.size_bytes <= SEGMENT_BYTES

    def reset_observations(self) -> None:
        """Begin the index."""
        self._positions = [0]

    def observe(self, entry: Lines, position: int) -> None:
        """Let all lines of the entry lead to it."""
        self._positions[-1:] = [position] * entry.offset_count + [position + entry.size_bytes]

    def forget(self, offset: int) -> None:
        """Cut the index."""
        del self._positions[offset - self.base_offset + 1 :]
