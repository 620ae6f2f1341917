"""
One file of the commit log: records, and a BLANK where the next record did not fit.

An offset of this log is a byte, so that locating is a subtraction. A record goes into the file if
8 bytes are left behind it: every full file ends with a BLANK. (Java:
``CommitLog.DefaultAppendMessageCallback``.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from logstore.errors import OffsetMismatchError, WriteFailedError
from logstore.segment import Draft
from logstore.segments.rocketmq.files.mapped_file import MappedFile
from logstore.segments.rocketmq.log.read_ahead import read_ahead
from logstore.segments.rocketmq.log.record_walk import (
    Mending,
    RecordChecks,
    RecordWalk,
    RunChecker,
    check_run,
)
from logstore.segments.rocketmq.messages.message_draft import MessageEntry, blank_entry
from logstore.segments.rocketmq.messages.message_layout import BLANK_BYTES, PREFIX

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from logstore.host import FileSystem
    from logstore.segments.rocketmq.log.transient_store_pool import WriteBuffer

#: shown (physical offset, whole valid records) of each run that a recovery has checked
RecordsVisitor = Callable[[int, memoryview], None]


class CommitLogFile(MappedFile[MessageEntry]):
    """
    One file of the commit log.

    With a `write_buffer` (transient store pool) appends go there, and into the file when they are
    committed; only that can be read, and only that is ever flushed.
    """

    may_end_padded = True

    def __init__(
        self,
        fs: FileSystem,
        path: str,
        base_offset: int,
        file_size_bytes: int,
        offset_bytes: int = 1,
        *,
        checks: RecordChecks | None = None,
        check: RunChecker = check_run,
    ) -> None:
        super().__init__(fs, path, base_offset, file_size_bytes, offset_bytes)
        self.checks = checks or RecordChecks()
        self.visit: RecordsVisitor | None = None
        #: whether a scan reads and checks the next records while `visit` looks at the last
        self.reads_ahead = False
        self.mending = Mending.NONE
        self.write_buffer: WriteBuffer | None = None
        self._check = check

    # where it is

    @property
    def committed_position(self) -> int:
        """How far what was appended stands in the file."""
        if self.write_buffer is None:
            return self.wrote_position
        return self.write_buffer.position

    @property
    def read_position(self) -> int:
        """How far the file can be read; a BLANK is part of it."""
        return self.wrote_position if self.write_buffer is None else self.write_buffer.position

    # what the core asks of a layout

    def decode(self, position: int) -> MessageEntry | None:
        """Return the record at `position`, its CRC checked; None at a BLANK or where it ends."""
        walk = RecordWalk(
            self.file, self.path, self.base_offset, position, self.checks,
            end_position=self.end_position, step_bytes=0,
            mending=self.mending,
        )  # fmt: skip
        for start, run in walk.runs():
            return MessageEntry(self.base_offset + start, len(run), run)
        return None

    def has_room_for(self, draft: Draft[MessageEntry]) -> bool:
        """A BLANK must fit behind it; a batch goes into one file as a whole."""
        left_bytes = self.file_size_bytes - self.end_position
        return draft.size_bytes + BLANK_BYTES <= left_bytes and not self.is_padded

    def observe(self, entry: MessageEntry, position: int) -> None:
        """Keep nothing: what is derived from the log stands elsewhere."""

    def entries(self, position: int = 0) -> Iterator[MessageEntry]:
        """Yield every record from `position` on; raises CorruptEntryError at a bad one."""
        walk = RecordWalk(
            self.file, self.path, self.base_offset, position, self.checks,
            end_position=self.end_position, check=self._check,
            mending=self.mending,
        )  # fmt: skip
        for start, run in walk.runs():
            index, end = 0, len(run)
            while index < end:
                size_bytes = PREFIX.unpack_from(run, index)[0]
                entry = run[index : index + size_bytes]
                yield MessageEntry(self.base_offset + start + index, size_bytes, entry)
                index += size_bytes

    def scan(self) -> None:
        """Move the end behind every valid record, and show them to the visitor."""
        walk = RecordWalk(
            self.file, self.path, self.base_offset, self.end_position, self.checks,
            check=self._check,
            mending=self.mending,
        )  # fmt: skip
        for start, run in read_ahead(walk.runs()) if self.reads_ahead else walk.runs():
            self.end_position = start + len(run)
            self.next_offset = self.base_offset + self.end_position
            if self.visit is not None:
                self.visit(self.base_offset + start, run)
        if walk.is_padded or self.end_position >= self.file_size_bytes:
            self._fill()

    def _fill(self) -> None:
        self.is_padded = True
        self.next_offset = self.limit_offset

    # appending

    def append(self, entry: MessageEntry) -> int:
        """Append as any segment does; the usual case in one step, it is the broker's hot path."""
        if self._is_unsettled or self.has_remains or entry.base_offset != self.next_offset:
            self._prepare_append(entry.base_offset)
        position = self.end_position
        if self.write_buffer is not None:
            self.write_buffer.append(entry.data)
        else:
            try:
                (self._file or self.file).write(position, entry.data)
            except OSError as error:
                self._undo_write(position, error)
        self.end_position = position + entry.size_bytes
        self.next_offset = entry.next_offset
        return position

    def _prepare_append(self, base_offset: int) -> None:
        if base_offset != self.next_offset:
            raise OffsetMismatchError(self.path, base_offset, self.next_offset)
        if self.has_remains:
            self.settle_remains()
        if self._is_unsettled:
            self.settle()

    def append_raw(self, base_offset: int, data: Buffer) -> None:
        """Append bytes of another commit log, which need not be whole records."""
        size_bytes = memoryview(data).nbytes
        self.append(MessageEntry(base_offset, size_bytes, data))
        if self.end_position >= self.file_size_bytes:
            self._fill()

    def pad(self) -> None:
        """
        Fill the file with a BLANK, so that the log goes on in the next one.

        Raises:
            WriteFailedError: the disk refused.

        """
        if self.is_padded or self.end_position == 0:
            return
        position = self.end_position
        if self.has_remains:
            self.settle_remains()
        data = blank_entry(self.base_offset, self.file_size_bytes - position).data
        if self.write_buffer is not None:
            self.write_buffer.append(data)
        else:
            try:
                self.file.write(position, data)
            except OSError as error:
                self._undo_write(position, error)
        self._fill()

    def resume(self) -> None:
        """Make it the active file again, without its BLANK."""
        buffer = self.write_buffer
        if self.is_padded and buffer is not None:
            if buffer.size_bytes:
                buffer.take_back()
            else:  # it stands in the file already: what comes next goes where it begins
                buffer.position = self.end_position
        super().resume()

    def seal(self) -> None:
        """Commit what waits in the write buffer."""
        self.commit()

    # lasting

    def commit(self) -> bool:
        """
        Put what waits in the write buffer into the file; tell whether there was any.

        Raises:
            WriteFailedError: the disk refused; what waits goes on waiting.

        """
        buffer = self.write_buffer
        if buffer is None or not buffer.size_bytes:
            return False
        try:
            self.file.write(buffer.position, buffer.data())
        except OSError as error:
            raise WriteFailedError(
                f"{self.path}: position {buffer.position}: {error.strerror or error}; the commit "
                "waits for room on the disk"
            ) from error
        buffer.clear()
        if self.is_padded:
            buffer.position = self.file_size_bytes
        return True

    def flush(self) -> None:
        """Make durable what was committed; see :meth:`logstore.segment.LogSegment.flush`."""
        if self.write_buffer is None:
            super().flush()
            return
        self.ensure_writable()
        committed = self.base_offset + self.committed_position
        self._sync()
        self.recovery_point = max(self.recovery_point, min(committed, self.next_offset))
