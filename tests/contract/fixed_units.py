"""Example layout: units of 16 bytes, found by multiplication, as in a RocketMQ consume queue."""

from __future__ import annotations

from logstore.checksum import crc32
from logstore.errors import CorruptEntryError
from logstore.segment import Draft, LogSegment
from tests.contract.plain_log import PlainDraft, PlainEntry

UNIT_BYTES = 16


def encode(offset: int, payload: bytes) -> bytes:
    """Append a checksum of offset and payload: a unit in the wrong place is a bad one."""
    return payload + crc32(offset.to_bytes(8, "big") + payload).to_bytes(4, "big")


def unit(payload: bytes) -> PlainDraft:
    """Return the draft of a unit with 12 bytes of payload."""
    return PlainDraft(payload, encode)


class UnitSegment(LogSegment[PlainEntry]):
    """Ten units."""

    def locate(self, offset: int) -> int:
        """Multiply."""
        return (offset - self.base_offset) * UNIT_BYTES

    def decode(self, position: int) -> PlainEntry | None:
        """Return the unit at `position` if it belongs there."""
        data = self.file.read(position, UNIT_BYTES)
        offset = self.base_offset + position // UNIT_BYTES
        if data and data != encode(offset, data[:12]):
            raise CorruptEntryError(self.path, position, "no unit of this place")
        return PlainEntry(offset, offset + 1, data) if data else None

    def has_room_for(self, draft: Draft[PlainEntry]) -> bool:
        """Ten units fit."""
        return self.end_position + draft.size_bytes <= 10 * UNIT_BYTES

    def observe(self, entry: PlainEntry, position: int) -> None:
        """Keep nothing: positions follow from offsets."""
