"""
Every error that the store raises, as one tree.

::

    LogStoreError
    ├── StorageError               something about files
    │   ├── CorruptEntryError      an entry whose bytes are wrong (file, position, reason)
    │   ├── CorruptFileError       a whole file that is not what its name says
    │   ├── MissingSegmentError    a file that must be there is not
    │   ├── ForeignDirectoryError  a directory that is not ours to open
    │   ├── LockedError            another process has the directory
    │   └── WriteFailedError       the disk refused a write (full, read-only, broken)
    ├── OffsetError                something about offsets
    │   ├── OffsetOutOfRangeError  a read outside of the log
    │   └── OffsetMismatchError    an append that does not start where the log ends
    └── RejectedAppendError        the data offered breaks a rule of the layout

Errors say what was found where and what to do. Wire error codes live in ``compat``; nothing here
knows them.
"""

from __future__ import annotations

from logstore.span import Span


class LogStoreError(Exception):
    """Root of all errors of the store."""


class StorageError(LogStoreError):
    """A file or directory is not as it must be."""


class CorruptEntryError(StorageError):
    """The bytes at one position of a file are not a valid entry."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(f"{path}: position {position}: {reason}")
        self.path = path
        self.position = position
        self.reason = reason


class CorruptFileError(StorageError):
    """A whole file cannot be understood."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class MissingSegmentError(StorageError):
    """A file that the log needs is not there."""


class ForeignDirectoryError(StorageError):
    """A directory holds something that is not a store of the asked layout."""


class LockedError(StorageError):
    """Another process holds the directory's lock."""


class WriteFailedError(StorageError):
    """The disk refused a write; nothing of it remains in the log."""


class OffsetError(LogStoreError):
    """An offset does not fit the log."""


class OffsetOutOfRangeError(OffsetError):
    """A read asked for an offset that the log does not hold."""

    def __init__(self, offset: int, span: Span) -> None:
        super().__init__(f"offset {offset} is outside of {span}")
        self.offset = offset
        self.span = span


class OffsetMismatchError(OffsetError):
    """An append does not start where the log's next entry must start."""

    def __init__(self, path: str, found: int, expected: int) -> None:
        super().__init__(f"{path}: entry starts at offset {found}, the log continues at {expected}")
        self.path = path
        self.found = found
        self.expected = expected


class RejectedAppendError(LogStoreError):
    """The data offered breaks a rule of the layout; nothing was written."""
