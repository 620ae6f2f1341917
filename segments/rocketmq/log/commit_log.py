"""
The commit log: all messages of all topics, one behind the other, in files of one size.

An offset of this log is a byte, the *physical offset*; the name of a file is that of its first
byte. (Java: ``CommitLog`` with its ``MappedFileQueue``.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from logstore.errors import OffsetMismatchError, OffsetOutOfRangeError, RejectedAppendError
from logstore.recovery import Recovery
from logstore.retention import RetentionPolicy
from logstore.segment import Draft, Extent
from logstore.segments.rocketmq.files.mapped_file import PAGE_BYTES
from logstore.segments.rocketmq.files.mapped_file_directory import MappedFileDirectory
from logstore.segments.rocketmq.files.mapped_file_queue import MappedFileQueue
from logstore.segments.rocketmq.log.commit_log_file import CommitLogFile, RecordsVisitor
from logstore.segments.rocketmq.log.record_walk import (
    FastChecker,
    Mending,
    RecordChecks,
    RunChecker,
    check_run,
)
from logstore.segments.rocketmq.log.transient_store_pool import POOL_SIZE, TransientStorePool
from logstore.segments.rocketmq.messages.message_draft import MessageEntry
from logstore.segments.rocketmq.messages.message_layout import BLANK_BYTES
from logstore.span import Span

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from logstore.host import File, FileSystem, Host
    from logstore.segmented_log import FlushTask

__all__ = ["CommitLog", "CommitLogSettings", "RecordsVisitor"]

#: where what a recovery cuts is kept, beside the commit log's directory
ASIDE_FOLDER = "kept-aside"


@attrs.frozen
class CommitLogSettings:
    """What ``MessageStoreConfig`` says about the commit log's files."""

    file_size_bytes: int = 1024 * 1024 * 1024
    #: appends go into write buffers: what is not committed is lost when the process dies
    has_transient_store_pool: bool = False
    transient_store_pool_size: int = POOL_SIZE
    checks_crc_on_recover: bool = True
    verifies_property_crc: bool = False

    @staticmethod
    def of(settings: Mapping[str, str]) -> CommitLogSettings:
        """Take them from Java's keys (``mappedFileSizeCommitLog``, ...), defaults for the rest."""

        def is_on(key: str, default: bool) -> bool:
            return settings.get(key, str(default)).strip().lower() == "true"

        return CommitLogSettings(
            file_size_bytes=int(settings.get("mappedFileSizeCommitLog", 1024 * 1024 * 1024)),
            has_transient_store_pool=is_on("transientStorePoolEnable", False),
            transient_store_pool_size=int(settings.get("transientStorePoolSize", POOL_SIZE)),
            checks_crc_on_recover=is_on("checkCRCOnRecover", True),
            verifies_property_crc=is_on("forceVerifyPropCRC", False),
        )


class CommitLog:
    """
    The commit log of a store.

    Made by listing the files (the load rules of ``MappedFileQueue.load`` hold); nothing can be
    appended before :meth:`recover` has found the end. The first file is made by the first append.

    Raises, on construction:
        CorruptFileError: a file has not the configured size, or a strange name; names the file.
        MissingSegmentError: the files do not follow one another; names the one that is missing.
    """

    def __init__(
        self,
        host: Host,
        directory: str,
        settings: CommitLogSettings | None = None,
        *,
        is_clean: bool = True,
        is_writable: bool = True,
        aside_directory: str | None = None,
    ) -> None:
        """`aside_directory`: where what a recovery cuts is kept (Java refuses strange names)."""
        self.directory = directory
        self.settings = settings or CommitLogSettings()
        #: length of every file
        self.file_size_bytes = self.settings.file_size_bytes
        #: store time of the newest message that is known to be durable (checkpoint), in ms
        self.flushed_store_timestamp_ms = 0
        self.pool: TransientStorePool | None = None
        if self.settings.has_transient_store_pool:
            self.pool = TransientStorePool(self.settings.transient_store_pool_size)
        self._fs = host.fs
        self._visit: RecordsVisitor | None = None
        self._check: RunChecker = check_run
        self._reads_ahead = False
        self._was_clean = is_clean
        self._directory = MappedFileDirectory(
            host.fs,
            directory,
            self._make_file,
            self.file_size_bytes,
            size_setting="mappedFileSizeCommitLog",
            is_clean=is_clean,
            is_writable=is_writable,
            makes_spare=True,
            aside_directory=aside_directory or f"{directory.rpartition('/')[0]}/{ASIDE_FOLDER}",
        )
        self._queue: MappedFileQueue[MessageEntry, CommitLogFile] | None = None
        self._is_recovered = False
        self._peeked: dict[int, File] = {}
        self._appended_ms = 0
        self._written_ms = 0
        #: (physical offset, store time) of flushes that were begun
        self._begun: deque[tuple[int, int]] = deque()

    def _make_file(
        self, fs: FileSystem, path: str, base_offset: int, size_bytes: int, offset_bytes: int
    ) -> CommitLogFile:
        settings = self.settings
        file = CommitLogFile(
            fs,
            path,
            base_offset,
            size_bytes,
            offset_bytes,
            checks=RecordChecks(settings.checks_crc_on_recover, settings.verifies_property_crc),
            check=self._check,
        )
        file.visit, file.reads_ahead = self._visit, self._reads_ahead
        # After any other stop the last record may be one that was written to a wrong place.
        file.mending = Mending.ANY if self._was_clean else Mending.FOLLOWED
        return file

    # loading and recovery

    def file_bases(self) -> list[int]:
        """Return the physical offsets at which files begin, before and after a recovery."""
        return self._directory.base_offsets()

    def peek(self, physical_offset: int, size_bytes: int) -> bytes:
        """Return raw bytes of a file, also before the recovery; fewer where the file ends."""
        position = physical_offset % self.file_size_bytes
        base = physical_offset - position
        file = self._peeked.get(base)
        if file is None:
            if base not in self._directory.base_offsets():
                return b""
            file = self._fs.open(self._directory.path(base), writable=False)
            self._peeked[base] = file
        return file.read(position, size_bytes)

    def recover(
        self,
        from_file: int | None = None,
        visit: RecordsVisitor | None = None,
        *,
        is_long: bool = False,
    ) -> Recovery:
        """
        Find the end of the log: check every record from the file that starts at `from_file` on.

        `visit` sees every run of valid records, in order. Files behind the end are taken away, as
        in Java, but kept aside; what stands behind the end within its file stays until the first
        append. ``None`` starts with the first file. `is_long` says that there is enough to check
        for the vectorised check to pay from the start, and for a thread that reads and checks
        while `visit` is at work.

        The records that were checked count as durable only after the next flush.
        """
        for file in self._peeked.values():
            file.close()
        self._peeked.clear()
        self._is_recovered = True
        bases = self._directory.base_offsets()
        if not bases:
            return Recovery(0)
        self._visit, self._check = visit, FastChecker(0) if is_long else FastChecker()
        self._reads_ahead = is_long and visit is not None
        self._directory.is_clean = False  # the walk of this recovery is the only one
        try:
            queue = MappedFileQueue[MessageEntry, CommitLogFile](
                self._directory, bases[0] if from_file is None else from_file
            )
        finally:
            self._visit, self._reads_ahead = None, False
        for segment in queue.files():
            segment.visit = None
        self._queue = queue
        self._lend_buffer(queue)
        assert queue.recovery is not None, "the log was opened with a recovery point"
        return queue.recovery._replace(next_offset=queue.next_offset)

    def _start(self, physical_offset: int) -> MappedFileQueue[MessageEntry, CommitLogFile]:
        """Create the first file of an empty log."""
        assert self._is_recovered, "recover() was not called"
        start = physical_offset - physical_offset % self.file_size_bytes
        queue = MappedFileQueue[MessageEntry, CommitLogFile](self._directory, start_offset=start)
        self._queue = queue
        self._lend_buffer(queue)
        return queue

    def _lend_buffer(self, queue: MappedFileQueue[MessageEntry, CommitLogFile]) -> None:
        """Let the active file write into a buffer, if there is a pool, and the others not."""
        if self.pool is None:
            return
        active = queue.active
        for segment in queue.files():
            if segment is not active and segment.write_buffer is not None:
                segment.write_buffer = None
                self.pool.give_back()
        if active.write_buffer is None:
            active.write_buffer = self.pool.borrow(active.end_position)

    # where it is

    @property
    def min_physical_offset(self) -> int:
        """Where the oldest file starts; 0 where there is none."""
        return 0 if self._queue is None else self._queue.start_offset

    @property
    def max_physical_offset(self) -> int:
        """Where what can be read ends: with a transient store pool the committed end."""
        queue = self._queue
        if queue is None:
            return 0
        if self.pool is None:
            return queue.active.next_offset
        return self.committed_where

    @property
    def wrote_where(self) -> int:
        """Where the next message starts."""
        return 0 if self._queue is None else self._queue.next_offset

    @property
    def flushed_where(self) -> int:
        """Everything below is durable."""
        return 0 if self._queue is None else self._queue.recovery_point

    @property
    def committed_where(self) -> int:
        """Everything below stands in files; differs from `wrote_where` with a pool only."""
        if self._queue is None:
            return 0
        active = self._queue.active
        if active.write_buffer is None:
            return active.next_offset
        return active.base_offset + active.committed_position

    @property
    def refusal(self) -> str | None:
        """Why nothing is written any more, None while all is well."""
        return None if self._queue is None else self._queue.refusal

    def files(self) -> list[CommitLogFile]:
        """Return the files, oldest first; the last one is written to."""
        return [] if self._queue is None else self._queue.files()

    # writing

    def append(self, draft: Draft[MessageEntry]) -> MessageEntry:
        """
        Append a message or a batch; where it does not fit, fill the file and start the next.

        Raises:
            RejectedAppendError: it does not fit into any file.
            WriteFailedError: the disk refused; the log is as before.

        """
        queue = self._queue
        if queue is None:
            queue = self._start(0)
        active = queue.active
        if active.is_padded or (
            active.end_position + draft.size_bytes + BLANK_BYTES > active.file_size_bytes
        ):
            active = self._roll(queue, draft)
        entry = draft.stamped(active.next_offset)
        active.append(entry)
        self._appended_ms = draft.max_timestamp_ms
        return entry

    def has_room_for(self, draft: Draft[MessageEntry]) -> bool:
        """Tell whether a draft fits into the file that is written to, which needs to be there."""
        return self._queue is not None and self._queue.active.has_room_for(draft)

    def _roll(
        self, queue: MappedFileQueue[MessageEntry, CommitLogFile], draft: Draft[MessageEntry]
    ) -> CommitLogFile:
        if draft.size_bytes + BLANK_BYTES > self.file_size_bytes:
            raise RejectedAppendError(
                f"{self.directory}: a record of {draft.size_bytes} bytes does not fit into a file "
                f"of {self.file_size_bytes} (mappedFileSizeCommitLog)"
            )
        queue.reserve(draft)
        self._lend_buffer(queue)
        return queue.active

    def append_raw(self, physical_offset: int, data: Buffer) -> None:
        """
        Append bytes of a master's log, which need not be whole records (``appendData``).

        Raises:
            OffsetMismatchError: they do not start where the log ends, or reach beyond a file's end.
            WriteFailedError: the disk refused; the log is as before.

        """
        queue = self._queue
        size = self.file_size_bytes
        if queue is None:
            if physical_offset % size:
                raise OffsetMismatchError(self.directory, physical_offset, 0)
            queue = self._start(physical_offset)
        if queue.active.is_full:
            queue.roll()
            self._lend_buffer(queue)
        active = queue.active
        if physical_offset % size + memoryview(data).nbytes > size:
            raise OffsetMismatchError(active.path, physical_offset, active.limit_offset)
        active.append_raw(physical_offset, data)

    def truncate(self, physical_offset: int) -> None:
        """
        Cut, durably, what stands at or above `physical_offset` (``truncateDirtyFiles``).

        Raises:
            WriteFailedError: the disk refused; so does the log, from now on.

        """
        queue = self._queue
        if queue is None or physical_offset >= queue.next_offset:
            return
        self.commit()
        start = physical_offset
        if physical_offset < queue.start_offset:
            start -= physical_offset % self.file_size_bytes
        queue.truncate(start)
        active = queue.active
        if self.pool is not None and active.write_buffer is not None:
            active.write_buffer = None
            self.pool.give_back()
        self._lend_buffer(queue)

    def delete_below(self, physical_offset: int) -> list[CommitLogFile]:
        """
        Remove the files that lie wholly below, never the last one; return them.

        Whoever is still sending one of them keeps it until he has done.
        """
        if self._queue is None:
            return []
        return self._queue.retain(RetentionPolicy(), 0, physical_offset)

    # reading

    def read(self, physical_offset: int, size_bytes: int) -> bytes:
        """Return bytes of one file; fewer, or none, where what can be read ends."""
        queue = self._queue
        if queue is not None:
            active = queue.active
            position = physical_offset - active.base_offset
            if position >= 0:  # the usual case: what was put lately
                left_bytes = active.read_position - position
                return active.file.read(position, max(0, min(size_bytes, left_bytes)))
        try:
            return self.extent(physical_offset, size_bytes).read()
        except OffsetOutOfRangeError:
            return b""

    def extent(self, physical_offset: int, size_bytes: int) -> Extent:
        """
        Return a run of bytes in one file, to be read or handed to a socket.

        Raises:
            OffsetOutOfRangeError: it does not begin in the log.

        """
        queue = self._queue
        if queue is None:
            raise OffsetOutOfRangeError(physical_offset, Span(0, 0))
        segment: CommitLogFile | None = queue.active
        if physical_offset < queue.active.base_offset:
            segment = queue.find(physical_offset)
        if segment is None:
            raise OffsetOutOfRangeError(physical_offset, queue.span)
        position = physical_offset - segment.base_offset
        left_bytes = segment.read_position - position
        if left_bytes < 0:
            raise OffsetOutOfRangeError(physical_offset, queue.span)
        return Extent(segment.file, position, min(size_bytes, left_bytes))

    def rest_of_file(self, physical_offset: int) -> Extent:
        """Return all that can be read of the file from `physical_offset` on (``getData``)."""
        return self.extent(physical_offset, self.file_size_bytes)

    def roll_next_file(self, physical_offset: int) -> int:
        """Return where the file after the one that holds `physical_offset` starts."""
        return physical_offset + self.file_size_bytes - physical_offset % self.file_size_bytes

    # lasting

    def commit(self, least_pages: int = 0) -> bool:
        """
        Write what the pool holds, if it is that many pages; tell whether something moved.

        Raises:
            WriteFailedError: the disk refused; what waits goes on waiting.

        """
        queue = self._queue
        if queue is None or queue.active.write_buffer is None:
            return False
        active = queue.active
        start, end = active.committed_position, active.wrote_position
        if least_pages > 0 and end // PAGE_BYTES - start // PAGE_BYTES < least_pages:
            return False
        has_moved = active.commit()
        self._written_ms = self._appended_ms
        return has_moved

    def needs_flush(self, least_pages: int = 0) -> bool:
        """Tell whether so many pages (0: anything at all) wait for a flush."""
        queue = self._queue
        return queue is not None and queue.needs_flush(least_pages, self.committed_where)

    def begin_flush(self) -> FlushTask:
        """Return what must be synced; run it in any thread, then call :meth:`end_flush`."""
        queue = self._queue or self._start(0)
        task = queue.begin_flush()
        if self.pool is not None:
            task = task._replace(offset=min(task.offset, self.committed_where))
        self._begun.append((task.offset, self._committed_ms()))
        return task

    def _committed_ms(self) -> int:
        """Return the store time of the newest message that stands in a file."""
        queue = self._queue
        buffer = None if queue is None else queue.active.write_buffer
        if buffer is None or not buffer.size_bytes:
            self._written_ms = self._appended_ms
        return self._written_ms

    def end_flush(self, task: FlushTask) -> None:
        """Take note that `task` has run."""
        if self._queue is None:
            return
        self._queue.end_flush(task)
        begun = self._begun
        while begun and begun[0][0] <= task.offset:
            stored_ms = begun.popleft()[1]
            if stored_ms:  # it goes back where the clock did
                self.flushed_store_timestamp_ms = stored_ms

    def flush(self, least_pages: int = 0) -> bool:
        """
        Flush if so many pages wait (0: anything); tell whether something was flushed.

        Raises:
            OSError: the disk refused; what was written may not survive a power loss.
            WriteFailedError: nothing is written any more.

        """
        if not self.needs_flush(least_pages):
            return False
        (task := self.begin_flush()).run()
        self.end_flush(task)
        return True

    def close(self, *, is_clean: bool = True) -> None:
        """Let go of the files; a clean close removes files that were made ahead and not used."""
        for file in self._peeked.values():
            file.close()
        self._peeked.clear()
        if self._queue is not None:
            self._queue.close(is_clean=is_clean)
