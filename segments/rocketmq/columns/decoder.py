"""
From the bytes of a commit log file to columns.

Messages are read by the compiled loops of :mod:`~logstore.segments.rocketmq.columns.kernel`; what
stops them is looked at by :func:`~logstore.segments.rocketmq.messages.message.decode_message`,
which says what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from logstore.errors import CorruptEntryError
from logstore.host import File
from logstore.segments.compiled.reused_memory import ReusedMemory
from logstore.segments.rocketmq.columns.message_columns import MessageColumns
from logstore.segments.rocketmq.columns.record_scan import RecordScan, ScanStop, scan_records
from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.message import decode_message

if TYPE_CHECKING:
    from typing_extensions import Buffer

#: how much of a file one step reads; larger steps are slower: their arrays leave the caches
STEP_BYTES = 512 * 1024
#: bounds of columns are 32-bit: more bytes than this cannot be decoded at once
SOURCE_BYTES_MAX = 2**31 - 1


def decode_columns(
    data: Buffer, path: str = "buffer", *, verify_crc: bool = True
) -> MessageColumns:
    """
    Return all messages in `data`, which may be memory that maps a file.

    They end at a BLANK, at what was never written (zeros), or where the data end.

    Raises:
        CorruptEntryError: a record is cut short or damaged; it names `path` and the position.
        ValueError: there are 2 GiB or more; use :func:`iterate_columns`.

    """
    view = memoryview(data).cast("B")
    if len(view) > SOURCE_BYTES_MAX:
        raise ValueError(f"{path}: more than {SOURCE_BYTES_MAX} bytes of messages at once")
    scan = scan_records(view, verify_crc=verify_crc)
    _refuse_damage(scan, view, path, 0)
    is_end = scan.stop is ScanStop.BLANK
    return MessageColumns(scan, len(view) if is_end else scan.end_position)


def iterate_columns(
    file: File,
    path: str,
    position: int = 0,
    end_position: int | None = None,
    *,
    verify_crc: bool = True,
    step_bytes: int = STEP_BYTES,
) -> Iterator[MessageColumns]:
    """
    Yield the messages in ``[position, end_position)`` of a file, step by step.

    A step holds about `step_bytes` and at least one message. Each has memory of its own, which a
    later step takes again as soon as nobody holds any of its columns.
    `position` must be where a record starts. `end_position` None is the end of the file; a BLANK
    or zeros end it, too.

    Raises:
        CorruptEntryError: as :func:`decode_columns`; the steps before were yielded.

    """
    end = file.size() if end_position is None else min(end_position, file.size())
    wanted_bytes = step_bytes
    memory = ReusedMemory()
    while position < end:
        data = memory.array(min(wanted_bytes, end - position), np.uint8).data
        data = data[: file.read_into(position, data)]
        scan = scan_records(data, verify_crc=verify_crc, memory=memory)
        is_whole = position + len(data) >= end
        wanted_bytes = step_bytes
        if not (scan.stop is ScanStop.CUT and not is_whole):
            _refuse_damage(scan, data, path, position)
        elif len(scan) == 0:  # one message is longer than a step
            size_bytes = int.from_bytes(data[:4], "big", signed=True) if len(data) > 7 else 0
            wanted_bytes = max(2 * len(data), 8, size_bytes)
            continue
        is_end = scan.stop in (ScanStop.BLANK, ScanStop.FOREIGN)
        position = end if is_end else position + scan.end_position
        if len(scan):
            yield MessageColumns(scan, position)


def _refuse_damage(scan: RecordScan, view: memoryview, path: str, position: int) -> None:
    """Say what is wrong where the scan ended, unless the log may end like this."""
    if scan.stop in (ScanStop.ALL_READ, ScanStop.BLANK):
        return
    rest = view[scan.end_position : scan.end_position + 8]
    if scan.stop is ScanStop.FOREIGN and not any(rest):
        return
    try:
        decode_message(view, scan.end_position)
        reason = "the record is odd"
    except CorruptMessageError as error:
        reason = error.reason
    raise CorruptEntryError(path, position + scan.end_position, reason)
