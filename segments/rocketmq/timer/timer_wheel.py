"""
The time wheel: for each second of two weeks, which timer messages are due then.

File ``timerwheel``: slots of 32 bytes, one for each tick of `precision_ms` in a ring. A slot names
the first and the last unit of its tick in the timer log; units of a tick lead from the last to the
first. All is big-endian::

    tick i64 (time / precision)   first i64   last i64   count i32   magic i32 (unused)

Java holds the whole file (38 MB, nearly all zeros) in memory twice and compares it byte by byte to
flush. Here only slots that changed are held, until :meth:`TimerWheel.flush` writes them.
(``TimerWheel``, ``Slot``)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from struct import Struct
from typing import TYPE_CHECKING

import attrs

from logstore.errors import CorruptFileError
from logstore.recovery import holds_something

if TYPE_CHECKING:
    from logstore.host import File, Host

__all__ = ["NO_SLOT", "SLOT_COUNT", "Slot", "TimerWheel"]

_SLOT = Struct(">qqqii")
#: a tick each second of a week; the ring has twice as many slots
SLOT_COUNT = 7 * 24 * 3600
_SCAN_BYTES = 1 << 20


@attrs.frozen
class Slot:
    """The messages of one tick; timer offsets are bytes of the timer log, -1 for none."""

    time_ms: int
    first_timer_offset: int
    last_timer_offset: int
    count: int = 0
    magic: int = 0


#: what a tick without messages has
NO_SLOT = Slot(-1, -1, -1)


class TimerWheel:
    """
    The ring of slots in its file, which is made, sparse, if it is not there.

    A shorter file that holds nothing is one whose making a power loss has cut short: it is made.

    Raises, on construction:
        CorruptFileError: the file has another length than the ring.
    """

    def __init__(
        self,
        host: Host,
        path: str,
        *,
        slot_count: int = SLOT_COUNT,
        precision_ms: int = 1000,
        is_writable: bool = True,
    ) -> None:
        self.path = path
        self.precision_ms = precision_ms
        self.slot_count = slot_count
        self._ring = slot_count * 2
        self._changed: dict[int, bytes] = {}
        self._file: File | None = None
        #: False for a wheel that was made just now and holds nothing
        self.is_used = False
        fs = host.fs
        if not fs.exists(path):
            if not is_writable:
                return
            directory = path.rpartition("/")[0]
            if not fs.exists(directory):
                fs.make_directory(directory)
                fs.sync_directory(directory.rpartition("/")[0] or "/")
        self._file = fs.open(path, create=is_writable, writable=is_writable)
        size_bytes = self._file.size()
        if is_writable and size_bytes < self.size_bytes and not holds_something(self._file, 0):
            self._file.truncate(self.size_bytes)
            self._file.sync()
            fs.sync_directory(path.rpartition("/")[0])
        elif size_bytes != self.size_bytes:
            self._file.close()
            raise CorruptFileError(
                path,
                f"is {size_bytes} bytes long, a wheel of {self._ring} slots has {self.size_bytes}; "
                "move it away: it is made again from the timer log and the timer topic",
            )
        else:
            self.is_used = True

    @property
    def size_bytes(self) -> int:
        """Length of the file."""
        return self._ring * _SLOT.size

    def index(self, time_ms: int) -> int:
        """Return which slot of the ring a time has."""
        return time_ms // self.precision_ms % self._ring

    # slots

    def slot(self, time_ms: int) -> Slot:
        """Return the slot of a time; `NO_SLOT` if the ring has another tick there."""
        found = self.raw_slot(time_ms)
        tick_ms = time_ms // self.precision_ms * self.precision_ms
        return found if found.time_ms == tick_ms else NO_SLOT

    def raw_slot(self, time_ms: int) -> Slot:
        """Return what stands in the slot of a time, of whatever round of the ring."""
        tick, first, last, count, magic = _SLOT.unpack(self._bytes_at(self.index(time_ms)))
        return Slot(tick * self.precision_ms, first, last, count, magic)

    def put(self, time_ms: int, first: int, last: int, count: int, magic: int = 0) -> None:
        """Set the slot of a time."""
        tick = time_ms // self.precision_ms
        self.is_used = True
        self._changed[self.index(time_ms)] = _SLOT.pack(tick, first, last, count, magic)

    def revise(self, time_ms: int, last: int) -> None:
        """
        Let the slot of a time end with the unit at `last`, as a recovery found it.

        A slot of another tick becomes one of this time with that unit alone; its count stays as it
        was, as in Java (``reviseSlot``).
        """
        found = self.raw_slot(time_ms)
        tick_ms = time_ms // self.precision_ms * self.precision_ms
        first = found.first_timer_offset if found.time_ms == tick_ms else last
        self.put(time_ms, first, last, found.count, found.magic)

    def _bytes_at(self, index: int) -> bytes:
        changed = self._changed.get(index)
        if changed is not None:
            return changed
        data = b"" if self._file is None else self._file.read(index * _SLOT.size, _SLOT.size)
        return data if len(data) == _SLOT.size else bytes(_SLOT.size)

    # the whole ring

    def slots(self) -> Iterator[tuple[int, Slot]]:
        """Yield (index, slot) of every slot that was ever used, by index; zeros are passed over."""
        if not self.is_used:
            return
        for start in range(0, self._ring, _SCAN_BYTES // _SLOT.size):
            end = min(start + _SCAN_BYTES // _SLOT.size, self._ring)
            size_bytes = (end - start) * _SLOT.size
            data = b""
            if self._file is not None:
                data = self._file.read(start * _SLOT.size, size_bytes)
            changed = [index for index in self._changed if start <= index < end]
            if changed:
                patched = bytearray(data.ljust(size_bytes, b"\0"))
                for index in changed:
                    position = (index - start) * _SLOT.size
                    patched[position : position + _SLOT.size] = self._changed[index]
                data = bytes(patched)
            if data.count(0) == len(data):
                continue
            for number, found in enumerate(_SLOT.iter_unpack(data), start):
                if any(found):
                    tick, *rest = found
                    yield number, Slot(tick * self.precision_ms, *rest)

    def pending(self, time_ms: int) -> list[Slot]:
        """Return the slots from `time_ms` on, one round of the ring, in the order of time."""
        end_ms = time_ms + self._ring * self.precision_ms
        start_ms = time_ms // self.precision_ms * self.precision_ms
        found = [slot for _, slot in self.slots() if start_ms <= slot.time_ms < end_ms]
        return sorted(found, key=lambda slot: slot.time_ms)

    def first_unit_above(self, time_ms: int, timer_offset: int) -> int | None:
        """
        Return the first unit of the slots that lead above `timer_offset`; None if none does.

        Such slots mean that the timer log has lost its end (``checkPhyPos``).
        """
        found = [
            slot.first_timer_offset
            for slot in self.pending(time_ms)
            if slot.last_timer_offset > timer_offset
        ]
        return min(found, default=None)

    def count_from(self, time_ms: int) -> int:
        """Return how many messages wait from `time_ms` on (``getAllNum``)."""
        return sum(slot.count for slot in self.pending(time_ms))

    # lasting

    def begin_flush(self) -> dict[int, bytes]:
        """Return what changed, by index, for :meth:`write`; then :meth:`end_flush` follows."""
        return dict(self._changed)

    def write(self, changed: Mapping[int, bytes]) -> None:
        """
        Write slots, neighbours at once, and make them durable; may run in any thread.

        Raises:
            OSError: the disk refused.

        """
        if self._file is None or not changed:
            return
        for index, data in _runs(changed):
            self._file.write(index * _SLOT.size, data)
        self._file.sync()

    def end_flush(self, written: Mapping[int, bytes]) -> None:
        """Let go of what is written, unless it has changed again meanwhile."""
        for index, data in written.items():
            if self._changed.get(index) is data:
                del self._changed[index]

    def flush(self) -> None:
        """
        Write what changed and make it durable.

        Raises:
            OSError: the disk refused; what changed is kept and written next time.

        """
        changed = self.begin_flush()
        self.write(changed)
        self.end_flush(changed)

    def close(self) -> None:
        """Let go of the file; what was not flushed is gone."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _runs(changed: Mapping[int, bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield (first index, bytes) of the slots, neighbours joined."""
    start, run = -1, bytearray()
    for index in sorted(changed):
        if index != start + len(run) // _SLOT.size:
            if run:
                yield start, bytes(run)
            start, run = index, bytearray()
        run += changed[index]
    if run:
        yield start, bytes(run)
