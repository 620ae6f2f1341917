"""Example layout: units of 16 bytes, found by multiplication, as in a RocketMQ consume queue."""

from __future__ import annotations

from logstore.checksum import crc32
from logstore.errors import CorruptEntryError
from logstore.segment import Draft, LogSegment

UNIT_BYTES = 16
PAYLOAD_BYTES = 12


class Unit:
    """12 bytes and a checksum of them and of their place; draft and entry in one."""

    size_bytes, offset_count, max_timestamp_ms = UNIT_BYTES, 1, -1

    def __init__(self, payload: bytes, base_offset: int = 0) -> None:
        self.payload = payload
        self.base_offset = base_offset
        self.next_offset = base_offset + 1
        checksum = crc32(base_offset.to_bytes(8, "big") + payload)
        self.data = payload + checksum.to_bytes(4, "big")

    def stamped(self, base_offset: int) -> Unit:
        """Return the same payload at its place."""
        return Unit(self.payload, base_offset)


class UnitSegment(LogSegment[Unit]):
    """Ten units."""

    def locate(self, offset: int) -> int:
        """Multiply."""
        return (offset - self.base_offset) * UNIT_BYTES

    def decode(self, position: int) -> Unit | None:
        """Return the unit at `position` if it belongs there."""
        data = self.file.read(position, UNIT_BYTES)
        unit = Unit(data[:PAYLOAD_BYTES], self.base_offset + position // UNIT_BYTES)
        if data and data != unit.data:
            raise CorruptEntryError(self.path, position, "no unit of this place")
        return unit if data else None

    def has_room_for(self, draft: Draft[Unit]) -> bool:
        """Ten units fit."""
        return self.end_position + draft.size_bytes <= 10 * UNIT_BYTES

    def observe(self, entry: Unit, position: int) -> None:
        """Keep nothing: positions follow from offsets."""
