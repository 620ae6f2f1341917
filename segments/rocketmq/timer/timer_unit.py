"""
The unit of the timer log: one timer message in the time wheel.

::

    size i32 (52)   previous unit of the slot i64 (-1)   magic i32   write time i64
    delay i32 (ms from the write time)   physical offset i64   size i32
    hash of the real topic i32   reserved i64

A file of the log ends with a BLANK: rest i32, 0 i64, magic i32. (``TimerLog``)
"""

from __future__ import annotations

from struct import Struct

import attrs

__all__ = [
    "BLANK",
    "BLANK_MAGIC",
    "DELETE",
    "PUT",
    "ROLL",
    "TIMER_UNIT_BYTES",
    "TimerUnit",
]

_UNIT = Struct(">iqiqiqiiq")
TIMER_UNIT_BYTES = 52
BLANK = Struct(">iqi")
#: ``0xBBCCDDEE ^ 1880681586 + 8`` as Java computes it, a signed number
BLANK_MAGIC = (0xBBCCDDEE ^ (1880681586 + 8)) - (1 << 32)

#: bits of a unit's magic: every unit, one to be put into the timer topic again, one that deletes
PUT, ROLL, DELETE = 1, 2, 4
_MAGIC_MAX = 0xF


@attrs.frozen
class TimerUnit:
    """
    One unit; `previous_timer_offset` leads to the unit before it in its slot, -1 at the first.

    The message is due at `write_time_ms` + `delay_ms`.
    """

    previous_timer_offset: int
    magic: int
    write_time_ms: int
    delay_ms: int
    physical_offset: int
    size_bytes: int
    topic_hash: int
    reserved: int = 0

    @property
    def due_ms(self) -> int:
        """When the message is due."""
        return self.write_time_ms + self.delay_ms

    @property
    def is_roll(self) -> bool:
        """Tell whether the message goes into the timer topic again: it is due far away."""
        return bool(self.magic & ROLL)

    @property
    def is_delete(self) -> bool:
        """Tell whether the message only takes another one back."""
        return bool(self.magic & DELETE)

    def encode(self) -> bytes:
        """Return the 52 bytes."""
        return _UNIT.pack(
            TIMER_UNIT_BYTES,
            self.previous_timer_offset,
            self.magic,
            self.write_time_ms,
            self.delay_ms,
            self.physical_offset,
            self.size_bytes,
            self.topic_hash,
            self.reserved,
        )

    @classmethod
    def decode(cls, data: bytes | memoryview, position: int = 0) -> TimerUnit | None:
        """Return the unit at `position`, None where none stands (``isMagicOK``)."""
        if len(data) - position < TIMER_UNIT_BYTES:
            return None
        size_bytes, *fields = _UNIT.unpack_from(data, position)
        if size_bytes != TIMER_UNIT_BYTES or not 0 <= fields[1] <= _MAGIC_MAX:
            return None
        return cls(*fields)


def is_blank(data: bytes | memoryview, position: int = 0) -> bool:
    """Tell whether a BLANK stands at `position`."""
    if len(data) - position < BLANK.size:
        return False
    return bool(BLANK.unpack_from(data, position)[2] == BLANK_MAGIC)
