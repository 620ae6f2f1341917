"""What stands in a commit log file, record by record; goes on behind bad bytes."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from logstore.host import File, FileSystem
from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.message import decode_message
from logstore.tools.inspection.facts import Fact, Finding, Problem
from logstore.tools.inspection.rocketmq.log_scan import End, LogScan, Run, Stretch
from logstore.tools.inspection.rocketmq.message_facts import message_fields


@attrs.frozen
class Selection:
    """What of a file is asked for: offsets ``[start, end)`` of its log, and whether payload too."""

    start: int = 0
    end: int = 2**63 - 1
    has_payload: bool = False


def dump_commit_log(
    fs: FileSystem, path: str, base: int, selection: Selection
) -> Iterator[Finding]:
    """Yield the messages of a file that begins at physical offset `base`, and what is none."""
    file = fs.open(path, writable=False)
    try:
        for piece in LogScan().pieces(file, path, base):
            if isinstance(piece, Run):
                yield from _messages(piece, path, base, selection)
                if base + piece.position + len(piece.data) >= selection.end:
                    return
            elif isinstance(piece, Stretch):
                yield Problem(path, piece.position, _said(piece))
            else:
                yield from _end(file, piece)
    finally:
        file.close()


def _messages(run: Run, path: str, base: int, selection: Selection) -> Iterator[Finding]:
    done = 0
    while done < len(run.data):
        place = run.position + done
        if base + place >= selection.end:
            return
        size_bytes = int.from_bytes(run.data[done : done + 4])
        if base + place >= selection.start:
            try:
                message = decode_message(run.data, done)
            except CorruptMessageError as error:
                yield Problem(path, place, error.reason)
            else:
                fields = message_fields(message, place, has_payload=selection.has_payload)
                yield Fact("message", fields)
        done += size_bytes


def _said(stretch: Stretch) -> str:
    rest = "records go on behind them" if stretch.is_followed else "no record follows"
    return f"{stretch.size_bytes} bytes are no record: {stretch.reason}; {rest}"


def _end(file: File, end: End) -> Iterator[Finding]:
    if end.is_padded:
        yield Fact("blank", {"position": end.position, "size": file.size() - end.position})


def dump_compaction_log(
    fs: FileSystem, path: str, base: int, selection: Selection
) -> Iterator[Finding]:
    """Yield the messages of a compacted file: each says where it stood in the commit log."""
    del base
    file = fs.open(path, writable=False)
    try:
        data = memoryview(file.read(0, file.size()))
    finally:
        file.close()
    position = 0
    while position + 8 <= len(data) and any(data[position : position + 8]):
        size_bytes = int.from_bytes(data[position : position + 4], "big", signed=True)
        try:
            message = decode_message(data, position)
        except CorruptMessageError as error:
            if size_bytes == len(data) - position:
                yield Fact("blank", {"position": position, "size": size_bytes})
            else:
                yield Problem(path, position, error.reason)
            return
        fields = message_fields(message, position, has_payload=selection.has_payload)
        if selection.start <= message.physical_offset < selection.end:
            yield Fact("message", fields)
        position += size_bytes
