"""
One index file: from the hash of a key to the physical offsets of messages.

::

    0             40   header
    40            4*S  slots: the number of the newest entry of each chain, 0 for none
    40 + 4*S      20*N entries; number 0 is never used

    header:  begin and end store timestamp (8, 8), begin and end physical offset (8, 8),
             slots in use (4), number of the next entry (4; 0 in a file that was never written)
    entry:   hash of the key (4), physical offset (8), seconds since the begin timestamp (4),
             number of the entry before it in the chain (4)

All integers are big-endian. The slot of a key is its hash modulo S; a chain goes from the newest
entry to the oldest and mixes all keys of the slot. Nothing has a checksum. A file has its full,
sparse size from the start.

Source: ``IndexFile``, ``IndexHeader``.
"""

from __future__ import annotations

import mmap
import struct
import sys
from array import array
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import attrs

from logstore.errors import WriteFailedError
from logstore.host import File, Host
from logstore.segments.rocketmq.messages.equal_rows import pack_rows
from logstore.segments.rocketmq.messages.java_int import as_java_int
from logstore.segments.rocketmq.settings.release import Release

if TYPE_CHECKING:
    from logstore.segments.compiled.loops import Int64s

HEADER = struct.Struct(">qqqqii")
ENTRY = struct.Struct(">iqii")
SLOT_BYTES = 4
_pack_entry = ENTRY.pack
_INT_MAX = 2**31 - 1
#: slots are written in blocks of 2 to the power of this: 4 KiB
_BLOCK_SHIFT = 10
#: more pieces than this are one write of all between them
_RUNS_MAX = 256
_CHUNK_SLOTS = 256 * 1024


@attrs.frozen
class IndexSizes:
    """How many slots and entries an index file has (``maxHashSlotNum``, ``maxIndexNum``)."""

    slot_count: int = 5_000_000
    entry_count: int = 20_000_000

    @property
    def entries_position(self) -> int:
        """Where entry 0 would stand."""
        return HEADER.size + SLOT_BYTES * self.slot_count

    @property
    def file_size_bytes(self) -> int:
        """Length of every file."""
        return self.entries_position + ENTRY.size * self.entry_count


class IndexFile:
    """
    One index file. What is put waits in memory until :meth:`write`; reads see it at once.

    Header fields: `begin_timestamp_ms`, `end_timestamp_ms`, `begin_physical_offset`,
    `end_physical_offset`, `slot_count_used`, `next_number` (Java's ``indexCount``). A file that is
    put into keeps all of its slots in memory, four bytes each, until it is full and written.
    """

    __slots__ = (
        "_dirty_blocks",
        "_file",
        "_host",
        "_is_empty_count_written",
        "_is_header_dirty",
        "_is_writable",
        "_pending",
        "_slots",
        "begin_physical_offset",
        "begin_timestamp_ms",
        "end_physical_offset",
        "end_timestamp_ms",
        "file_size_bytes",
        "next_number",
        "path",
        "sizes",
        "slot_count_used",
    )

    def __init__(
        self, host: Host, path: str, sizes: IndexSizes, *, is_writable: bool = True
    ) -> None:
        self.path = path
        self.sizes = sizes
        self._is_writable = is_writable
        self._host = host
        self._file: File | None = None
        self._pending = bytearray()
        self._slots: memoryview | None = None
        #: for each block of slots whether pending entries changed one of them
        self._dirty_blocks = bytearray((sizes.slot_count >> _BLOCK_SHIFT) + 1)
        self._is_header_dirty = False
        self._is_empty_count_written = False
        header = self._open().read(0, HEADER.size)
        fields: tuple[int, ...] = HEADER.unpack(header.ljust(HEADER.size, b"\0"))
        (
            self.begin_timestamp_ms,
            self.end_timestamp_ms,
            self.begin_physical_offset,
            self.end_physical_offset,
            self.slot_count_used,
            count,
        ) = fields
        self.next_number = max(count, 1)
        #: length that it was found with; Java opens, and where it is short extends, any
        self.file_size_bytes = self._open().size()

    @classmethod
    def create(
        cls,
        host: Host,
        path: str,
        sizes: IndexSizes,
        *,
        previous: IndexFile | None = None,
        release: Release = Release.V5,
    ) -> IndexFile:
        """
        Make a new, sparse file that begins where `previous` ends.

        Raises:
            WriteFailedError: the disk refused; no file is left behind.

        """
        try:
            file = host.fs.open(path, create=True)
            try:
                file.truncate(sizes.file_size_bytes)
            finally:
                file.close()
        except OSError as error:
            with suppress(OSError):
                host.fs.remove(path)
            raise WriteFailedError(f"{path}: cannot make an index file: {error}") from error
        made = cls(host, path, sizes)
        made._is_empty_count_written = release is Release.V5
        # A new file is all zeros: its slots need no reading.
        made._slots = _empty_slots(sizes.slot_count)
        made._is_header_dirty = True
        if previous is not None:
            made.follow(previous)
            with suppress(WriteFailedError):  # it is written again with the first entries
                made.write()
        return made

    def follow(self, previous: IndexFile) -> None:
        """
        Begin where `previous` ends, if nothing stands in here.

        A crash may leave a file without header, which would take in again what is in others.
        """
        if self.next_number > 1 or self.end_physical_offset or self.end_timestamp_ms:
            return
        if previous.end_physical_offset > 0:
            self.begin_physical_offset = self.end_physical_offset = previous.end_physical_offset
        if previous.end_timestamp_ms > 0:
            self.begin_timestamp_ms = self.end_timestamp_ms = previous.end_timestamp_ms
        self._is_header_dirty = self._is_writable

    @property
    def is_full(self) -> bool:
        """Whether no entry fits any more."""
        return self.next_number >= self.sizes.entry_count

    @property
    def room_count(self) -> int:
        """How many entries fit into the file."""
        return max(self.sizes.entry_count - self.next_number, 0)

    def is_one_time(self, first_ms: int, last_ms: int) -> bool:
        """Tell whether entries of messages stored between these times say the same time."""
        return self._seconds(first_ms) == self._seconds(last_ms)

    @property
    def is_dirty(self) -> bool:
        """Whether something waits for :meth:`write`."""
        return self._is_header_dirty

    @property
    def pending_count(self) -> int:
        """How many entries wait for :meth:`write`."""
        return len(self._pending) // ENTRY.size

    def put(self, key_hashes: Sequence[int], physical_offset: int, store_timestamp_ms: int) -> int:
        """
        Add an entry for each hash of one message; return for how many there was no room.

        Args:
            key_hashes: of topic and key, not negative.
            physical_offset: where the message stands; not checked to rise.
            store_timestamp_ms: when it was stored; rounded down to seconds since the file's first.

        """
        slots = self._slots
        if slots is None:
            slots = self._load_slots()
        number, dirty_blocks = self.next_number, self._dirty_blocks
        slot_count, entry_count = self.sizes.slot_count, self.sizes.entry_count
        left = len(key_hashes)
        seconds = self._seconds(store_timestamp_ms)
        for key_hash in key_hashes:
            if number >= entry_count:
                break
            slot = key_hash % slot_count
            previous = slots[slot]
            if previous <= 0 or previous > number:
                previous = 0
                self.slot_count_used += 1
            self._pending += _pack_entry(key_hash, physical_offset, seconds, previous)
            slots[slot] = number
            dirty_blocks[slot >> _BLOCK_SHIFT] = 1
            if number <= 1:
                self.begin_physical_offset = physical_offset
                self.begin_timestamp_ms = store_timestamp_ms
                seconds = 0
            number += 1
            left -= 1
        if number > self.next_number:
            self.next_number = number
            self.end_physical_offset = physical_offset
            self.end_timestamp_ms = store_timestamp_ms
            self._is_header_dirty = True
        return left

    def put_run(
        self, key_hashes: Sequence[int], physical_offsets: Sequence[int], store_timestamp_ms: int
    ) -> int:
        """
        Add entries of messages that were stored together; return for how many there was no room.

        As :meth:`put` does for each; a hash and a physical offset for one entry. The file is not
        empty.
        """
        slots = self._slots
        if slots is None:
            slots = self._load_slots()
        number = self.next_number
        slot_count, pending = self.sizes.slot_count, self._pending
        dirty_blocks = self._dirty_blocks
        count = min(len(key_hashes), max(self.sizes.entry_count - number, 0))
        left = len(key_hashes) - count
        if not count:
            return left
        seconds = self._seconds(store_timestamp_ms)
        entries: list[int] = [0, 0, seconds, 0] * count
        entries[::4] = key_hashes = key_hashes[:count]
        entries[1::4] = physical_offsets[:count]
        for place, key_hash in zip(range(3, 4 * count, 4), key_hashes, strict=True):
            slot = key_hash % slot_count
            if 0 < (previous := slots[slot]) <= number:
                entries[place] = previous
            slots[slot] = number
            dirty_blocks[slot >> _BLOCK_SHIFT] = 1
            number += 1
        pending += pack_rows("iqii", entries, count)
        self.slot_count_used += entries[3::4].count(0)
        self.next_number = number
        self.end_physical_offset = physical_offsets[count - 1]
        self.end_timestamp_ms = store_timestamp_ms
        self._is_header_dirty = True
        return left

    def put_many(
        self, key_hashes: Int64s, physical_offsets: Int64s, store_timestamps_ms: Int64s
    ) -> int:
        """
        Add entries in bulk, an element of each array for one; return for how many there was room.

        As :meth:`put` does one message at a time; needs numpy, and numba to be fast.
        """
        import numpy as np

        from logstore.segments.rocketmq.columns.index_fill import fill_entries

        slots = self._slots
        if slots is None:
            slots = self._load_slots()
        number = self.next_number
        count = min(len(key_hashes), max(self.sizes.entry_count - number, 0))
        if not count:
            return 0
        packed = np.empty(ENTRY.size * count, np.uint8)
        self.slot_count_used += int(
            fill_entries(
                key_hashes[:count],
                physical_offsets[:count],
                store_timestamps_ms[:count],
                np.frombuffer(slots, np.int32),
                np.frombuffer(self._dirty_blocks, np.uint8),
                _BLOCK_SHIFT,
                number,
                self.begin_timestamp_ms,
                packed,
            )
        )
        self._pending += packed.data
        if number <= 1:
            self.begin_physical_offset = int(physical_offsets[0])
            self.begin_timestamp_ms = int(store_timestamps_ms[0])
        self.next_number = number + count
        self.end_physical_offset = int(physical_offsets[count - 1])
        self.end_timestamp_ms = int(store_timestamps_ms[count - 1])
        self._is_header_dirty = True
        return count

    def _seconds(self, store_timestamp_ms: int) -> int:
        """Return how many whole seconds after the begin timestamp; 0 where there is none."""
        begin_ms = self.begin_timestamp_ms
        if 0 < begin_ms < store_timestamp_ms:
            return min((store_timestamp_ms - begin_ms) // 1000, _INT_MAX)
        return 0

    # reading

    def is_time_matched(self, begin_ms: int, end_ms: int) -> bool:
        """Tell whether messages of the file may be in [begin, end]."""
        first_ms, last_ms = self.begin_timestamp_ms, self.end_timestamp_ms
        return (
            (begin_ms < first_ms and end_ms > last_ms)
            or first_ms <= begin_ms <= last_ms
            or first_ms <= end_ms <= last_ms
        )

    def select(self, key_hash: int, count_max: int, begin_ms: int, end_ms: int) -> list[int]:
        """
        Return physical offsets of entries with this hash in [begin, end], newest first.

        Times are those of the entries: whole seconds after the file's first message. A chain that
        leads back into itself, as a damaged file may have one, is followed once.
        """
        found: list[int] = []
        number = self._slot(key_hash % self.sizes.slot_count)
        if number <= 0 or number > self.next_number or self.next_number <= 1:
            return found
        seen: set[int] = set()
        while len(found) < count_max and number < self.sizes.entry_count and number not in seen:
            seen.add(number)
            entry_hash, physical_offset, seconds, previous = self.entry(number)
            if seconds < 0:
                break
            time_ms = self.begin_timestamp_ms + seconds * 1000
            if entry_hash == key_hash and begin_ms <= time_ms <= end_ms:
                found.append(physical_offset)
            if previous <= 0 or previous > self.next_number or time_ms < begin_ms:
                break
            number = previous
        return found

    def entry(self, number: int) -> tuple[int, int, int, int]:
        """Return (hash, physical offset, seconds, number before in the chain) of an entry."""
        first_pending = self.next_number - len(self._pending) // ENTRY.size
        if first_pending <= number < self.next_number:
            return ENTRY.unpack_from(self._pending, ENTRY.size * (number - first_pending))
        position = self.sizes.entries_position + ENTRY.size * number
        data = self._open().read(position, ENTRY.size)
        return ENTRY.unpack(data.ljust(ENTRY.size, b"\0"))

    def _slot(self, slot: int) -> int:
        """Return the number in a slot as it stands, whatever it is."""
        if self._slots is not None:
            return int(self._slots[slot])
        data = self._open().read(HEADER.size + SLOT_BYTES * slot, SLOT_BYTES)
        return int.from_bytes(data.ljust(SLOT_BYTES, b"\0"), "big", signed=True)

    def _load_slots(self) -> memoryview:
        """Take the slots of a file that goes on into memory."""
        count = self.sizes.slot_count
        slots = _empty_slots(count)
        file = self._open()
        for start in range(0, count, _CHUNK_SLOTS):
            wanted = min(_CHUNK_SLOTS, count - start)
            data = file.read(HEADER.size + SLOT_BYTES * start, SLOT_BYTES * wanted)
            if data.count(0) < len(data):  # what stays untouched costs no memory
                data = data.ljust(SLOT_BYTES * wanted, b"\0")
                slots[start : start + wanted] = _swapped(array("i", data))
        self._slots = slots
        return slots

    # writing

    def write(self) -> None:
        """
        Hand everything pending to the file in a few calls: entries, slots, then the header.

        Raises:
            WriteFailedError: the disk refused; all stays pending and can be written again.

        """
        if not self._is_header_dirty:
            return
        try:
            self._write()
        except OSError as error:
            self._pending = bytearray(self._pending)  # whoever keeps the traceback keeps the other
            raise WriteFailedError(f"{self.path}: cannot write the index: {error}") from error
        self._pending = bytearray()
        self._dirty_blocks = bytearray(len(self._dirty_blocks))
        self._is_header_dirty = False
        if self.is_full:
            self._slots = None

    def _write(self) -> None:
        file = self._open()
        if file.size() < self.sizes.file_size_bytes:
            file.truncate(self.sizes.file_size_bytes)
        pending = self._pending
        if pending:
            first = self.next_number - len(pending) // ENTRY.size
            file.write(self.sizes.entries_position + ENTRY.size * first, pending)
            for start, end in self._dirty_runs():
                self._write_slots(file, start, end)
        is_unused = self.next_number == 1 and not self._is_empty_count_written
        header = HEADER.pack(
            self.begin_timestamp_ms,
            self.end_timestamp_ms,
            self.begin_physical_offset,
            self.end_physical_offset,
            as_java_int(self.slot_count_used),
            0 if is_unused else self.next_number,
        )
        file.write(0, header)

    def _dirty_runs(self) -> list[tuple[int, int]]:
        """Return [start, end) of the slots that pending entries changed, in whole blocks."""
        blocks, last = self._dirty_blocks, self.sizes.slot_count
        runs: list[tuple[int, int]] = []
        start = blocks.find(1)
        while start >= 0:
            end = blocks.find(0, start)
            end = len(blocks) if end < 0 else end
            runs.append((start << _BLOCK_SHIFT, min(end << _BLOCK_SHIFT, last)))
            start = blocks.find(1, end)
        return runs if len(runs) <= _RUNS_MAX else [(runs[0][0], runs[-1][1])]

    def _write_slots(self, file: File, start: int, end: int) -> None:
        assert self._slots is not None, "what is pending was put through the slots"
        for chunk in range(start, end, _CHUNK_SLOTS):
            chunk_end = min(chunk + _CHUNK_SLOTS, end)
            data = _swapped(array("i", self._slots[chunk:chunk_end].tobytes()))
            file.write(HEADER.size + SLOT_BYTES * chunk, data.tobytes())

    def sync(self) -> None:
        """Make what was written durable; may run beside everything else, in any thread."""
        self._open().sync()

    def _open(self) -> File:
        """Return the handle."""
        if self._file is None:
            self._file = self._host.fs.open(self.path, writable=self._is_writable)
        return self._file

    def close(self) -> None:
        """Give the handle back; does not write. The next read or write opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _empty_slots(count: int) -> memoryview:
    """Return zeros that take memory only where they are touched, which a bytearray does at once."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    return memoryview(mmap.mmap(-1, SLOT_BYTES * count, flags=flags)).cast("i")


def _swapped(slots: array[int]) -> array[int]:
    """Turn slots from the file's byte order to the machine's, or back."""
    if sys.byteorder == "little":
        slots.byteswap()
    return slots
