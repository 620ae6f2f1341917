"""Where a commit log begins and ends, and how old its messages are, without reading all of it."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from logstore.errors import CorruptEntryError
from logstore.segments.rocketmq.log.record_walk import FastChecker, RecordChecks, RecordWalk
from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.dispatch_request import (
    Blank,
    DispatchRequest,
    read_dispatch_request,
)
from logstore.tools.inspection.facts import Problem
from logstore.tools.inspection.rocketmq.stored_files import StoredFile, StoredFiles

_HEAD_BYTES = 1 << 16


@attrs.frozen
class FileEnd:
    """
    Where the records of one file end.

    `first_ms` and `last_ms` are the store times of its first and last message, -1 without any.
    """

    file: StoredFile
    position: int
    is_padded: bool
    first_ms: int
    last_ms: int
    problem: Problem | None = None

    @property
    def physical_offset(self) -> int:
        """Where the next record would stand in this file."""
        return self.file.base + self.position


def file_end(log: StoredFiles, file: StoredFile) -> FileEnd:
    """Walk the records of one file, CRCs checked, as a recovery does."""
    handle = log.open(file)
    walk = RecordWalk(handle, file.path, file.base, 0, RecordChecks(), check=FastChecker())
    first_ms = last_ms = -1
    problem = None
    try:
        for position, data in walk.runs():
            if not position:
                first_ms = _store_ms(data, 0)
            last_ms = _last_ms(data)
    except CorruptEntryError as error:
        problem = Problem(file.path, error.position, error.reason)
    return FileEnd(file, walk.position, walk.is_padded, first_ms, last_ms, problem)


def first_request(log: StoredFiles, file: StoredFile) -> DispatchRequest | None:
    """Return the first message of a file, None if what stands there is none."""
    data = log.open(file).read(0, _HEAD_BYTES)
    size_bytes = int.from_bytes(data[:4], "big", signed=True)
    if len(data) < size_bytes <= file.size_bytes:
        data = log.open(file).read(0, size_bytes)
    try:
        found = read_dispatch_request(data)
    except CorruptMessageError:
        return None
    return None if isinstance(found, Blank) else found


def _last_ms(data: memoryview) -> int:
    position = previous = 0
    while position < len(data):
        previous = position
        position += int.from_bytes(data[position : position + 4])
    return _store_ms(data, previous)


def _store_ms(data: memoryview, position: int) -> int:
    found = read_dispatch_request(data, position)
    return -1 if isinstance(found, Blank) else found.store_timestamp_ms


def log_ends(log: StoredFiles) -> Iterator[FileEnd]:
    """
    Yield where each file ends; of a file with a successor only its first message is read.

    The last file that holds records is walked whole.
    """
    firsts = [first_request(log, file) for file in log.files]
    holding = [number for number, first in enumerate(firsts) if first is not None]
    last = holding[-1] if holding else -1
    for number, file in enumerate(log.files):
        first = firsts[number]
        if number == last or (first is None and number < last):
            yield file_end(log, file)
        elif first is None:
            yield FileEnd(file, 0, False, -1, -1)
        else:
            following = firsts[number + 1] if number + 1 < len(firsts) else None
            until = first if following is None else following
            yield FileEnd(
                file, file.size_bytes, True, first.store_timestamp_ms, until.store_timestamp_ms
            )
