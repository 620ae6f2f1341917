"""Example layout: length-prefixed paragraphs of lines; an offset is a line, an index finds it."""

from __future__ import annotations

import struct

from sortedcontainers import SortedDict

from logstore.checksum import crc32c
from logstore.errors import CorruptEntryError
from logstore.segment import Draft, LogSegment
from tests.contract.plain_log import PlainDraft, PlainEntry

HEADER = struct.Struct(">IIQ")  # checksum of all that follows, bytes of text, number of first line


def encode(line: int, text: bytes) -> bytes:
    """Put a header before the text."""
    rest = HEADER.pack(0, len(text), line)[4:] + text
    return crc32c(rest).to_bytes(4, "big") + rest


def paragraph(text: bytes) -> PlainDraft:
    """Return the draft of some lines."""
    return PlainDraft(text, encode, offset_count=text.count(b"\n"))


class ParagraphSegment(LogSegment[PlainEntry]):
    """About 300 bytes of paragraphs."""

    def locate(self, offset: int) -> int:
        """Look the last paragraph up that starts at or before the line."""
        index = self._positions.bisect_right(offset) - 1
        return self.end_position if offset >= self.next_offset else self._positions.values()[index]

    def decode(self, position: int) -> PlainEntry | None:
        """Return the paragraph at `position`."""
        header = self.file.read(position, HEADER.size)
        _, size_bytes, line = HEADER.unpack(header.ljust(HEADER.size, b"\0"))
        text = self.file.read(position + HEADER.size, size_bytes)
        if header and (not text or encode(line, text) != header + text):
            raise CorruptEntryError(self.path, position, "no whole paragraph")
        return PlainEntry(line, line + text.count(b"\n"), header + text) if header else None

    def has_room_for(self, draft: Draft[PlainEntry]) -> bool:
        """An empty segment takes any paragraph."""
        return self.end_position == 0 or self.end_position + draft.size_bytes <= 300

    def reset_observations(self) -> None:
        """Start with no paragraph."""
        self._positions = SortedDict[int, int]()

    def observe(self, entry: PlainEntry, position: int) -> None:
        """Remember where it starts."""
        self._positions[entry.base_offset] = position

    def forget(self, offset: int) -> None:
        """Forget the paragraphs that start at or after the line."""
        del self._positions.keys()[self._positions.bisect_left(offset) :]
