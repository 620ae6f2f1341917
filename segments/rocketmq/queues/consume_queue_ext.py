"""
The extension of a consume queue: tags code, store time and filter bit map of its messages.

A unit of the queue whose tags code is an address leads here (``enableConsumeQueueExt``). An offset
of this log is a byte. Units: ``short size, long tags code, long store time, short n, n bytes of bit
map``; where the next one does not fit, ``short -1`` ends the file. (Java: ``ConsumeQueueExt``.)
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import attrs

from logstore.errors import CorruptEntryError
from logstore.retention import RetentionPolicy
from logstore.segment import Draft
from logstore.segments.rocketmq.files.mapped_file import MappedFile
from logstore.segments.rocketmq.files.mapped_file_directory import MappedFileDirectory
from logstore.segments.rocketmq.files.mapped_file_queue import MappedFileQueue
from logstore.segments.rocketmq.files.whole_removal import remove_whole
from logstore.segments.rocketmq.messages.message_draft import MessageEntry

if TYPE_CHECKING:
    from logstore.host import FileSystem, Host
    from logstore.segmented_log import FlushTask

#: tags codes at or below this are addresses; hash codes are above
ADDRESS_MAX = -(2**31) - 1
UNIT_SIZE_BYTES_MAX = 32767
_FIRST_ADDRESS = -(2**63)
_REAL_POSITION_MAX = ADDRESS_MAX - _FIRST_ADDRESS
_HEAD = struct.Struct(">hqqh")
_SIZE = struct.Struct(">h")
_END = _SIZE.pack(-1)
#: how much Java keeps free for the end mark
_END_BYTES = 4
_STEP_BYTES = 1 << 20


def is_ext_address(tags_code: int) -> bool:
    """Tell whether a tags code leads into the extension."""
    return tags_code <= ADDRESS_MAX


@attrs.frozen
class ConsumeQueueExtUnit:
    """What the extension holds of one message; `filter_bit_map` None is an empty one."""

    tags_code: int
    store_timestamp_ms: int
    filter_bit_map: bytes | None = None

    @property
    def bit_map(self) -> bytes:
        """The bloom filter of the consumers whose expression it matched; empty without one."""
        return self.filter_bit_map or b""

    @property
    def size_bytes(self) -> int:
        """How long the unit is."""
        return _HEAD.size + len(self.bit_map)

    def encode(self) -> bytes:
        """Return the unit as it stands in a file."""
        bit_map = self.bit_map
        head = _HEAD.pack(self.size_bytes, self.tags_code, self.store_timestamp_ms, len(bit_map))
        return head + bit_map

    @staticmethod
    def decode(data: bytes) -> ConsumeQueueExtUnit | None:
        """Return the unit that `data` begins with, None if there is none."""
        if len(data) < _HEAD.size:
            return None
        size_bytes, tags_code, store_timestamp_ms, bit_map_bytes = _HEAD.unpack_from(data)
        if size_bytes < 1:
            return None
        bit_map = data[_HEAD.size : _HEAD.size + max(bit_map_bytes, 0)]
        return ConsumeQueueExtUnit(tags_code, store_timestamp_ms, bit_map or None)


@attrs.frozen
class _ExtDraft:
    """A unit on its way."""

    data: bytes
    max_timestamp_ms: int

    @property
    def size_bytes(self) -> int:
        return len(self.data)

    @property
    def offset_count(self) -> int:
        return len(self.data)

    def stamped(self, base_offset: int) -> MessageEntry:
        return MessageEntry(base_offset, len(self.data), self.data)


class ConsumeQueueExtFile(MappedFile[MessageEntry]):
    """One file of the extension: derived from the commit log, nothing is kept aside of it."""

    may_end_padded = True
    keeps_remains_aside = False
    #: another file follows: whatever stands at the end, the log goes on there (Java)
    has_successor = False

    def decode(self, position: int) -> MessageEntry | None:
        """Return the unit at `position`, None at the end mark or where nothing was written."""
        size_bytes = self._size_at(position) if position < self.end_position else 0
        if size_bytes <= 0:
            return None
        data = self.file.read(position, size_bytes)
        if size_bytes < _HEAD.size or len(data) < size_bytes:
            raise CorruptEntryError(self.path, position, f"no unit has {size_bytes} bytes here")
        return MessageEntry(self.base_offset + position, size_bytes, data)

    def _size_at(self, position: int) -> int:
        data = self.file.read(position, _SIZE.size)
        return _SIZE.unpack(data)[0] if len(data) == _SIZE.size else 0

    def has_room_for(self, draft: Draft[MessageEntry]) -> bool:
        """The end mark must fit behind it."""
        left_bytes = self.file_size_bytes - self.end_position - _END_BYTES
        return draft.size_bytes <= left_bytes and not self.is_padded

    def observe(self, entry: MessageEntry, position: int) -> None:
        """Keep nothing."""

    def scan(self) -> None:
        """Move the end behind every unit, by their sizes alone, as Java does."""
        while self.end_position < self.file_size_bytes:
            data = self.file.read(self.end_position, _STEP_BYTES)
            index = 0
            size_bytes = 0
            while index + _SIZE.size <= len(data):
                size_bytes = _SIZE.unpack_from(data, index)[0]
                if size_bytes <= 0 or index + size_bytes > len(data):
                    break
                index += size_bytes
            self.end_position += index
            if not index or size_bytes <= 0:
                break
        self.next_offset = self.base_offset + self.end_position
        if self.has_successor or self._size_at(self.end_position) < 0:
            self._fill()

    def _fill(self) -> None:
        self.is_padded = True
        self.next_offset = self.limit_offset

    def pad(self) -> None:
        """Write the end mark."""
        if self.is_padded or self.end_position == 0:
            return
        if self.has_remains:
            self.settle_remains()
        try:
            self.file.write(self.end_position, _END)
        except OSError as error:
            self._undo_write(self.end_position, error)
        self._fill()


class ConsumeQueueExt:
    """The extension of one queue; its files are made when the first unit is put."""

    def __init__(
        self,
        host: Host,
        directory: str,
        *,
        file_size_bytes: int = 48 * 1024 * 1024,
        is_clean: bool = True,
        is_writable: bool = True,
    ) -> None:
        self.directory = directory
        self._fs = host.fs
        self._is_writable = is_writable
        self._directory = MappedFileDirectory(
            host.fs,
            directory,
            self._make_file,
            file_size_bytes,
            size_setting="mappedFileSizeConsumeQueueExt",
            is_clean=is_clean,
            is_writable=is_writable,
        )
        self._queue: MappedFileQueue[MessageEntry, ConsumeQueueExtFile] | None = None

    def _make_file(
        self, fs: FileSystem, path: str, base_offset: int, size_bytes: int, offset_bytes: int
    ) -> ConsumeQueueExtFile:
        file = ConsumeQueueExtFile(fs, path, base_offset, size_bytes, offset_bytes)
        file.has_successor = base_offset + size_bytes in self._directory.base_offsets()
        return file

    def put(self, unit: ConsumeQueueExtUnit) -> int | None:
        """
        Append a unit; return its address, None where it cannot be stored.

        So it is with a unit that is too long, and in a store that is only read.

        Raises:
            WriteFailedError: the disk refused; nothing was appended.

        """
        if unit.size_bytes > UNIT_SIZE_BYTES_MAX or not self._is_writable:
            return None
        queue = self._queue
        if queue is None:
            queue = self._queue = MappedFileQueue[MessageEntry, ConsumeQueueExtFile](
                self._directory
            )
        if queue.next_offset + unit.size_bytes > _REAL_POSITION_MAX:
            return None
        draft = _ExtDraft(unit.encode(), unit.store_timestamp_ms)
        entry = draft.stamped(queue.reserve(draft))
        queue.append(entry)
        return entry.base_offset + _FIRST_ADDRESS

    def get(self, address: int) -> ConsumeQueueExtUnit | None:
        """Return the unit at an address, None where there is none."""
        queue = self._queue
        if queue is None or not is_ext_address(address):
            return None
        position = address - _FIRST_ADDRESS
        file = queue.find(position)
        if file is None or position >= min(file.limit_offset, queue.next_offset):
            return None
        start = position - file.base_offset
        head = file.file.read(start, 256)
        size_bytes = _SIZE.unpack_from(head)[0] if len(head) >= _SIZE.size else 0
        data = head if size_bytes <= len(head) else file.file.read(start, size_bytes)
        return ConsumeQueueExtUnit.decode(data)

    def recover(self) -> None:
        """Find the end; all files are walked, as in Java."""
        bases = self._directory.base_offsets()
        if not bases:
            return
        self._directory.is_clean = False
        self._queue = MappedFileQueue[MessageEntry, ConsumeQueueExtFile](self._directory, bases[0])
        for file in self._queue.files():
            file.has_successor = False

    def truncate_above(self, address: int) -> None:
        """Let go of all behind the unit at `address` (``truncateByMaxAddress``)."""
        unit = self.get(address)
        if unit is not None and self._queue is not None:
            self._queue.leave_behind(address - _FIRST_ADDRESS + unit.size_bytes)

    def truncate_below(self, address: int) -> None:
        """Remove files that end below `address` (``truncateByMinAddress``)."""
        if self._queue is None or not is_ext_address(address):
            return
        self._queue.retain(RetentionPolicy(), 0, address - _FIRST_ADDRESS)

    def settle(self) -> None:
        """Zero, durably, what a recovery left behind the end."""
        if self._queue is not None and self._queue.has_remains:
            self._queue.settle_remains()

    def begin_flush(self) -> FlushTask | None:
        """Return what must be synced, None if nothing waits; run it, then call `end_flush`."""
        queue = self._queue
        if queue is None or not queue.needs_flush():
            return None
        return queue.begin_flush()._replace(first=self._directory.sync_names)

    def end_flush(self, task: FlushTask) -> None:
        """Take note that `task` has run."""
        if self._queue is not None:
            self._queue.end_flush(task)

    def flush(self) -> bool:
        """Sync what waits; tell whether there was anything."""
        if (task := self.begin_flush()) is None:
            return False
        task.run()
        self.end_flush(task)
        return True

    def close(self) -> None:
        """Let go of the files."""
        if self._queue is not None:
            self._queue.close()

    def destroy(self) -> None:
        """Remove all files; the names of folders that others share are durable first."""
        self._directory.sync_names()
        if self._queue is not None:
            self._queue.abandon()
            self._queue = None
        remove_whole(self._fs, self.directory)
