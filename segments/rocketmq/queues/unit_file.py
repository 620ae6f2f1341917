"""
One file of units of one length: of a consume queue, of a batch consume queue.

An offset of such a log is the number of a unit, so that locating is a multiplication, and a file
ends when it is full. Units carry no checksum: one counts as valid when its numbers are possible
(``ConsumeQueue.recover``), unless somebody who knows more says that it is not genuine.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from logstore.errors import CorruptEntryError, WriteFailedError
from logstore.segment import Draft
from logstore.segments.rocketmq.files.mapped_file import MappedFile

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from logstore.host import FileSystem

#: how many units one step of a scan reads at most
STEP_UNITS = 60_000
#: and the first one: files are large, and most of a store's thousands of queues are short
_FIRST_STEP_UNITS = 200
_find_negative = re.compile(rb"[\x80-\xff]").search

#: (number of a unit, the unit) -> whether it is what was written there
Witness = Callable[[int, bytes], bool]


@attrs.frozen
class UnitRules:
    """
    What is possible in a unit of `size_bytes`: where numbers stand that are not negative.

    `positive` are (position, length) of numbers that must not be 0 either.
    """

    size_bytes: int
    not_negative: tuple[int, ...]
    positive: tuple[tuple[int, int], ...]

    def count_valid(self, data: bytes) -> int:
        """Return how many units from the start on are valid; strides, no loop over units."""
        unit_bytes = self.size_bytes
        count = len(data) // unit_bytes
        end = count * unit_bytes
        for position in (*self.not_negative, *(start for start, _ in self.positive)):
            signs = data[position:end:unit_bytes]
            if not signs.isascii():
                found = _find_negative(signs)
                count = found.start() if found else count
                end = count * unit_bytes
        for position, length in self.positive:
            bits = 0
            for place in range(position, position + length):
                bits |= int.from_bytes(data[place:end:unit_bytes], "big")
            zero = bits.to_bytes(count, "big").find(0)
            if zero >= 0:
                count = zero
                end = count * unit_bytes
        return count


class UnitRun:
    """Units that are appended together; draft and entry of the core in one."""

    __slots__ = ("base_offset", "data", "next_offset", "offset_count", "size_bytes")

    max_timestamp_ms = -1

    def __init__(self, base_offset: int, data: Buffer, unit_bytes: int) -> None:
        self.base_offset = base_offset
        self.data = data
        self.size_bytes = memoryview(data).nbytes
        self.offset_count = self.size_bytes // unit_bytes
        self.next_offset = base_offset + self.offset_count

    def stamped(self, base_offset: int) -> UnitRun:
        """Return the same units at their place."""
        return UnitRun(base_offset, self.data, self.size_bytes // self.offset_count)


class UnitFile(MappedFile[UnitRun]):
    """One file of units. They are derived from the commit log: nothing is kept aside of them."""

    keeps_remains_aside = False

    def __init__(
        self,
        fs: FileSystem,
        path: str,
        base_offset: int,
        file_size_bytes: int,
        rules: UnitRules,
        witness: Witness | None = None,
    ) -> None:
        super().__init__(fs, path, base_offset, file_size_bytes, rules.size_bytes)
        self.rules = rules
        self.witness = witness

    def decode(self, position: int) -> UnitRun | None:
        """Return the unit at `position`, None at the end or where nothing was written."""
        return None if position >= self.end_position else self._decode_at(position)

    def _decode_at(self, position: int) -> UnitRun | None:
        unit_bytes = self.offset_bytes
        data = self.file.read(position, unit_bytes)
        if not data or data == bytes(unit_bytes):
            return None
        number = self.base_offset + position // unit_bytes
        if not self.rules.count_valid(data):
            raise CorruptEntryError(self.path, position, f"{data.hex()} is no unit")
        if self.witness is not None and not self.witness(number, data):
            raise CorruptEntryError(self.path, position, f"unit {number} is not that of a message")
        return UnitRun(number, data, unit_bytes)

    def has_room_for(self, draft: Draft[UnitRun]) -> bool:
        """Count bytes."""
        return self.end_position + draft.size_bytes <= self.file_size_bytes

    def observe(self, entry: UnitRun, position: int) -> None:
        """Keep nothing: positions follow from numbers."""

    def scan(self) -> None:
        """Move the end behind every valid unit."""
        unit_bytes = self.offset_bytes
        step_units = _FIRST_STEP_UNITS
        while self.end_position < self.file_size_bytes:
            data = self.file.read(self.end_position, step_units * unit_bytes)
            step_units = min(step_units * 8, STEP_UNITS)
            count = self.rules.count_valid(data)
            if self.witness is not None:
                count = self._count_genuine(data, count)
            self.end_position += count * unit_bytes
            self.next_offset += count
            if count < len(data) // unit_bytes:
                self._decode_at(self.end_position)  # raises, unless nothing was written there
                return

    def _count_genuine(self, data: bytes, count: int) -> int:
        unit_bytes = self.offset_bytes
        assert self.witness is not None
        for index in range(count):
            unit = data[index * unit_bytes : (index + 1) * unit_bytes]
            if not self.witness(self.next_offset + index, unit):
                return index
        return count

    def unit(self, number: int) -> bytes:
        """Return the unit of that number."""
        return self.file.read((number - self.base_offset) * self.offset_bytes, self.offset_bytes)

    def pad(self) -> None:
        """
        Do nothing: the next file starts when this one is full.

        Raises:
            WriteFailedError: it is not full.

        """
        if 0 < self.end_position < self.file_size_bytes:
            raise WriteFailedError(f"{self.path}: is not full; the next file cannot be begun")
