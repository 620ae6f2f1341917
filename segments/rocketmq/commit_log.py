"""
The commit log: all messages of all topics, one behind the other, in files of one size.

An offset of this log is a byte, the *physical offset*; the name of a file is that of its first
byte. (Java: ``CommitLog`` with its ``MappedFileQueue``.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from logstore.host import Host
    from logstore.recovery import Recovery
    from logstore.segment import Draft, Extent
    from logstore.segmented_log import FlushTask
    from logstore.segments.rocketmq.commit_log_file import CommitLogFile
    from logstore.segments.rocketmq.message_draft import MessageEntry

#: shown (physical offset, whole valid records) of each run that a recovery has checked
RecordsVisitor = Callable[[int, memoryview], None]


@attrs.frozen
class CommitLogSettings:
    """What ``MessageStoreConfig`` says about the commit log's files."""

    file_size_bytes: int = 1024 * 1024 * 1024
    #: a pool of write buffers: what is not committed is lost when the process dies
    has_transient_store_pool: bool = False
    checks_crc_on_recover: bool = True
    verifies_property_crc: bool = False

    @staticmethod
    def of(settings: Mapping[str, str]) -> CommitLogSettings:
        """Take them from Java's keys (``mappedFileSizeCommitLog``, ...)."""
        raise NotImplementedError


class CommitLog:
    """
    The commit log of a store.

    Made by listing the files (the load rules of ``MappedFileQueue.load`` hold); nothing can be
    appended before :meth:`recover` has found the end.

    Raises, on construction:
        CorruptFileError: a file has not the configured size; names the file.
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
        #: store time of the newest message that is known to be durable (checkpoint), in ms
        self.flushed_store_timestamp_ms = 0
        raise NotImplementedError

    # loading and recovery

    def file_bases(self) -> list[int]:
        """Return the physical offsets at which files begin, before and after a recovery."""
        raise NotImplementedError

    def peek(self, physical_offset: int, size_bytes: int) -> bytes:
        """Return raw bytes of a file, also before the recovery; fewer where the file ends."""
        raise NotImplementedError

    def recover(
        self, from_file: int | None = None, visit: RecordsVisitor | None = None
    ) -> Recovery:
        """
        Find the end of the log: check every record from the file that starts at `from_file` on.

        `visit` sees every run of valid records, in order. Files behind the end are taken away, as
        Java does; what stands behind the end within its file stays until the first append.
        ``None`` starts with the first file.
        """
        raise NotImplementedError

    # where it is

    @property
    def file_size_bytes(self) -> int:
        """Length of every file."""
        raise NotImplementedError

    @property
    def min_physical_offset(self) -> int:
        """Where the oldest file starts; 0 where there is none."""
        raise NotImplementedError

    @property
    def max_physical_offset(self) -> int:
        """Where what can be read ends: with a transient store pool the committed end."""
        raise NotImplementedError

    @property
    def wrote_where(self) -> int:
        """Where the next message starts."""
        raise NotImplementedError

    @property
    def flushed_where(self) -> int:
        """Everything below is durable."""
        raise NotImplementedError

    @property
    def committed_where(self) -> int:
        """Everything below stands in files; differs from `wrote_where` with a pool only."""
        raise NotImplementedError

    @property
    def refusal(self) -> str | None:
        """Why nothing is written any more, None while all is well."""
        raise NotImplementedError

    def files(self) -> list[CommitLogFile]:
        """Return the files, oldest first; the last one is written to."""
        raise NotImplementedError

    # writing

    def append(self, draft: Draft[MessageEntry]) -> MessageEntry:
        """
        Append a message or a batch; where it does not fit, fill the file and start the next.

        Raises:
            RejectedAppendError: it does not fit into any file.
            WriteFailedError: the disk refused; the log is as before.

        """
        raise NotImplementedError

    def append_raw(self, physical_offset: int, data: Buffer) -> None:
        """
        Append bytes of a master's log, which need not be whole records (``appendData``).

        Raises:
            OffsetMismatchError: they do not start where the log ends.

        """
        raise NotImplementedError

    def truncate(self, physical_offset: int) -> None:
        """Cut, durably, what stands at or above `physical_offset` (``truncateDirtyFiles``)."""
        raise NotImplementedError

    def delete_below(self, physical_offset: int) -> list[CommitLogFile]:
        """Remove the files that lie wholly below, never the last one; return them."""
        raise NotImplementedError

    # reading

    def read(self, physical_offset: int, size_bytes: int) -> bytes:
        """Return bytes of one file; fewer where what can be read ends."""
        raise NotImplementedError

    def extent(self, physical_offset: int, size_bytes: int) -> Extent:
        """
        Return a run of bytes in one file, to be read or handed to a socket.

        Raises OffsetOutOfRangeError where it does not begin in the log.
        """
        raise NotImplementedError

    def rest_of_file(self, physical_offset: int) -> Extent:
        """Return all that can be read of the file from `physical_offset` on (``getData``)."""
        raise NotImplementedError

    def roll_next_file(self, physical_offset: int) -> int:
        """Return where the file after the one that holds `physical_offset` starts."""
        raise NotImplementedError

    # lasting

    def commit(self, least_pages: int = 0) -> bool:
        """Write what the pool holds, if it is that many pages; tell whether something moved."""
        raise NotImplementedError

    def begin_flush(self, least_pages: int = 0) -> FlushTask:
        """Return what must be synced; run it in any thread, then call :meth:`end_flush`."""
        raise NotImplementedError

    def needs_flush(self, least_pages: int = 0) -> bool:
        """Tell whether so many pages (0: anything at all) wait for a flush."""
        raise NotImplementedError

    def end_flush(self, task: FlushTask) -> None:
        """Take note that `task` has run."""
        raise NotImplementedError

    def flush(self, least_pages: int = 0) -> bool:
        """Flush if so many pages wait; tell whether something was flushed."""
        raise NotImplementedError

    def close(self, *, is_clean: bool = True) -> None:
        """Let go of the files; a clean close removes files that were made ahead and not used."""
        raise NotImplementedError
