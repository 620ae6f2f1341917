"""Which file of a RocketMQ store holds what: by its name and the folder that it stands in."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import orjson

from logstore.errors import CorruptFileError, LogStoreError
from logstore.host import FileSystem, read_file
from logstore.segments.rocketmq.ha.epoch_file import decode_epochs
from logstore.segments.rocketmq.opening.checkpoint import CHECKPOINT_SIZE_BYTES
from logstore.segments.rocketmq.settings.store_config import StoreConfig
from logstore.segments.rocketmq.tables.java_json import JsonError, ObjectKey, parse_json
from logstore.segments.rocketmq.timer.timer_checkpoint import TimerCheckpoint
from logstore.tools.inspection.facts import Fact, Finding, Problem, Timestamp, Value
from logstore.tools.inspection.rocketmq.index_dump import dump_index_file
from logstore.tools.inspection.rocketmq.index_sizes import index_paths, told_index_sizes
from logstore.tools.inspection.rocketmq.log_dump import (
    Selection,
    dump_commit_log,
    dump_compaction_log,
)
from logstore.tools.inspection.rocketmq.unit_dump import (
    dump_batch_consume_queue,
    dump_consume_queue,
    dump_consume_queue_ext,
    dump_timer_log,
    dump_timer_wheel,
)


class FileKind(enum.Enum):
    """The kinds of files in a store; the value is what ``--kind`` takes."""

    COMMIT_LOG = "commitlog"
    CONSUME_QUEUE = "consumequeue"
    BATCH_CONSUME_QUEUE = "batchconsumequeue"
    CONSUME_QUEUE_EXT = "consumequeue_ext"
    INDEX = "index"
    TIMER_LOG = "timerlog"
    TIMER_WHEEL = "timerwheel"
    TIMER_CHECKPOINT = "timercheck"
    COMPACTION_LOG = "compactionLog"
    COMPACTION_QUEUE = "compactionCq"
    CHECKPOINT = "checkpoint"
    TABLE = "table"
    EPOCHS = "epochs"
    TEXT = "text"


#: folder -> how many folders stand between it and its files
_DEPTHS = {
    FileKind.COMMIT_LOG: 0,
    FileKind.CONSUME_QUEUE: 2,
    FileKind.BATCH_CONSUME_QUEUE: 2,
    FileKind.CONSUME_QUEUE_EXT: 2,
    FileKind.INDEX: 0,
    FileKind.TIMER_LOG: 0,
    FileKind.COMPACTION_LOG: 2,
    FileKind.COMPACTION_QUEUE: 2,
}
_NAMED = {
    "checkpoint": FileKind.CHECKPOINT,
    "timerwheel": FileKind.TIMER_WHEEL,
    "timercheck": FileKind.TIMER_CHECKPOINT,
    "abort": FileKind.TEXT,
    "abort.bak": FileKind.TEXT,
    "lock": FileKind.TEXT,
    "position-checkpoint": FileKind.TABLE,
    "timermetrics": FileKind.TABLE,
    "transactionMetrics": FileKind.TABLE,
    "epochFileCheckpoint": FileKind.EPOCHS,
}
_CHECKPOINT_FIELDS = (
    ("physicMsgTimestamp", True),
    ("logicsMsgTimestamp", True),
    ("indexMsgTimestamp", True),
    ("masterFlushedOffset", False),
    ("confirmPhyOffset", False),
    ("logicsPhysicalOffset", False),
)
_LOG_DUMPS = {
    FileKind.COMMIT_LOG: dump_commit_log,
    FileKind.CONSUME_QUEUE: dump_consume_queue,
    FileKind.BATCH_CONSUME_QUEUE: dump_batch_consume_queue,
    FileKind.CONSUME_QUEUE_EXT: dump_consume_queue_ext,
    FileKind.TIMER_LOG: dump_timer_log,
    FileKind.COMPACTION_LOG: dump_compaction_log,
    FileKind.COMPACTION_QUEUE: dump_batch_consume_queue,
}


def file_kind(path: str) -> FileKind | None:
    """Return what a file is by its path, None where it is none of a RocketMQ store."""
    *folders, name = path.split("/")
    plain = name.removesuffix(".bak")
    if _is_number(name):
        for kind, depth in _DEPTHS.items():
            if len(folders) > depth and folders[-1 - depth] == kind.value:
                return kind
        return None
    if name in _NAMED or plain in _NAMED:
        return _NAMED.get(name) or _NAMED[plain]
    if plain.endswith(".json") and folders and folders[-1] == "config":
        return FileKind.TABLE
    return None


def dump_rocketmq_file(
    fs: FileSystem,
    path: str,
    kind: FileKind,
    selection: Selection,
    settings: Mapping[str, str],
) -> Iterator[Finding]:
    """
    Yield what the file says: a fact that names it, then its content, bad bytes as Problems.

    Raises:
        OSError: it cannot be read at all.

    """
    name = path.rpartition("/")[2]
    base = int(name) if _is_number(name) else 0
    if kind in _LOG_DUMPS:
        yield Fact("file", {"file": path, "startingOffset": base})
        yield from _LOG_DUMPS[kind](fs, path, base, selection)
        return
    yield Fact("file", {"file": path})
    if kind is FileKind.INDEX:
        sizes = told_index_sizes(fs, [path], settings)
        if sizes is None:
            sizes = told_index_sizes(fs, index_paths(fs, path.rpartition("/")[0]), settings)
        yield from dump_index_file(fs, path, sizes)
    elif kind is FileKind.TIMER_WHEEL:
        yield from dump_timer_wheel(fs, path, StoreConfig(settings).timer_precision_ms)
    else:
        yield from _small_file(fs, path, kind)


def _small_file(fs: FileSystem, path: str, kind: FileKind) -> Iterator[Finding]:
    data = read_file(fs, path)
    if not data:
        yield Fact("empty", {"file": path})
    elif kind is FileKind.CHECKPOINT:
        yield from _checkpoint(path, data)
    elif kind is FileKind.TIMER_CHECKPOINT:
        found = TimerCheckpoint.decode(data)
        yield Fact("entry", {
            "lastReadTime": Timestamp(found.last_read_time_ms),
            "lastTimerLogFlushPos": found.last_timer_log_flush_where,
            "lastTimerQueueOffset": found.last_timer_queue_offset,
            "masterTimerQueueOffset": found.master_timer_queue_offset,
            "stateVersion": found.data_version.state_version,
            "timestamp": Timestamp(found.data_version.timestamp_ms),
            "counter": found.data_version.counter,
        })  # fmt: skip
    elif kind is FileKind.EPOCHS:
        yield from _epochs(path, data)
    elif kind is FileKind.TABLE:
        yield from _table(path, data)
    else:
        yield Fact("entry", {"text": data.decode("utf-8", "replace")})


def _checkpoint(path: str, data: bytes) -> Iterator[Finding]:
    fields: dict[str, Value] = {}
    for number, (name, is_time) in enumerate(_CHECKPOINT_FIELDS):
        value = int.from_bytes(data[8 * number : 8 * number + 8].ljust(8, b"\0"), signed=True)
        fields[name] = Timestamp(value) if is_time else value
    yield Fact("entry", fields)
    if len(data) != CHECKPOINT_SIZE_BYTES:
        reason = f"is {len(data)} bytes long, not {CHECKPOINT_SIZE_BYTES}"
        yield Problem(path, None, f"{reason}; what is missing counts as zero")


def _epochs(path: str, data: bytes) -> Iterator[Finding]:
    try:
        for entry in decode_epochs(data, path):
            start = entry.start_physical_offset
            yield Fact("entry", {"epoch": entry.epoch, "startOffset": start})
    except CorruptFileError as error:
        yield Problem(path, None, error.reason)


def _table(path: str, data: bytes) -> Iterator[Finding]:
    """Yield the members of a table; what is no number or text comes as JSON."""
    try:
        content = parse_json(data.decode())
        if not isinstance(content, dict):
            raise JsonError(f"a table is an object, not {type(content).__name__}")
        fields: dict[str, Value] = {
            str(name): value if isinstance(value, int | str) else proper_json(value)
            for name, value in cast("dict[object, object]", content).items()
        }
    except (LogStoreError, UnicodeDecodeError) as error:
        yield Problem(path, None, f"cannot be read: {error}; a broker takes its .bak instead")
        return
    yield Fact("entry", fields)


def proper_json(value: object) -> str:
    """Return JSON that every reader understands: keys are quoted."""
    return orjson.dumps(_proper(value)).decode()


def _proper(value: object) -> object:
    if isinstance(value, dict):
        members = cast("dict[object, object]", value).items()
        return {_proper_key(key): _proper(item) for key, item in members}
    if isinstance(value, list | tuple):
        return [_proper(item) for item in cast("Sequence[object]", value)]
    return value


def _proper_key(key: object) -> str:
    if isinstance(key, ObjectKey):
        return proper_json(key.fields())
    return str(key).lower() if isinstance(key, bool) else str(key)


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit()
