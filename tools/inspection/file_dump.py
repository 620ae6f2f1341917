"""Which file holds what: chooses by name how a file is dumped."""

from __future__ import annotations

import re
from collections.abc import Iterator

from logstore.host import FileSystem
from logstore.segments.kafka import checkpoints
from logstore.tools.inspection.facts import Fact, Finding, Problem
from logstore.tools.inspection.index_dump import (
    dump_offset_index,
    dump_time_index,
    dump_transaction_index,
)
from logstore.tools.inspection.log_dump import LogSelection, dump_log
from logstore.tools.inspection.state_dump import (
    dump_json,
    dump_leader_epochs,
    dump_offset_checkpoint,
    dump_properties,
    dump_snapshot,
)

_OFFSET_CHECKPOINTS = {
    checkpoints.RECOVERY_POINT,
    checkpoints.LOG_START,
    checkpoints.HIGH_WATERMARK,
    checkpoints.CLEANER,
}
_PROPERTIES = {"meta.properties", "partition.metadata"}
_JSON = {".kafka_cleanshutdown", "quorum-state", "topic-settings.json"}
#: what stands behind the kind while a file is made, condemned, or kept of what was cut off
_LATER = r"(\.deleted|\.cleaned|\.swap|\.cut-at-[0-9]+)?"
_NUMBERED = re.compile(
    rf"([0-9]{{20}})(?:-[0-9]{{10}})?\.(log|index|timeindex|txnindex|snapshot|checkpoint){_LATER}"
)
_KNOWN = (
    ".log, .index, .timeindex, .txnindex, .snapshot, the checkpoints, meta.properties and "
    "partition.metadata; those of a RocketMQ store are known by the folder in which they stand "
    "(else say --kind)"
)


def dump_file(fs: FileSystem, path: str, selection: LogSelection) -> Iterator[Finding]:
    """
    Yield what the file says: a fact that names it, then its content, bad bytes as Problems.

    Raises:
        OSError: it cannot be read at all.

    """
    if fs.is_directory(path):
        yield Problem(path, None, "is a directory; name files in it, or list it with logstore ls")
        return
    try:
        fs.modified_ms(path)
    except FileNotFoundError:  # one that must not be looked at is none of these
        yield Problem(path, None, "there is no such file")
        return
    name = path.rpartition("/")[2]
    numbered = _NUMBERED.fullmatch(name)
    if numbered is not None:
        yield from _dump_numbered(fs, path, int(numbered[1]), numbered[2], selection)
        return
    if name == "bootstrap.checkpoint":
        yield from _dump_numbered(fs, path, 0, "checkpoint", selection)
        return
    if name in _OFFSET_CHECKPOINTS:
        dump = dump_offset_checkpoint
    elif name == checkpoints.LEADER_EPOCHS:
        dump = dump_leader_epochs
    elif name in _PROPERTIES:
        dump = dump_properties
    elif name in _JSON:
        dump = dump_json
    else:
        yield Problem(path, None, f"no file of a known kind; there are {_KNOWN}")
        return
    yield Fact("file", {"file": path})
    yield from dump(fs, path)


def _dump_numbered(
    fs: FileSystem, path: str, offset: int, kind: str, selection: LogSelection
) -> Iterator[Finding]:
    if kind in ("log", "checkpoint"):
        file = fs.open(path, writable=False)
        try:
            yield Fact("file", {"file": path, "startingOffset": offset})
            yield from dump_log(file, path.rpartition("/")[2], selection)
        finally:
            file.close()
        return
    yield Fact("file", {"file": path})
    if kind == "index":
        yield from dump_offset_index(fs, path, offset)
    elif kind == "timeindex":
        yield from dump_time_index(fs, path, offset)
    elif kind == "snapshot":
        yield from dump_snapshot(fs, path)
    else:
        file = fs.open(path, writable=False)
        try:
            yield from dump_transaction_index(file)
        finally:
            file.close()
