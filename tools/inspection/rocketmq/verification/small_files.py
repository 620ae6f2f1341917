"""The small files of a store: checkpoint, tables, epochs, and the timer's wheel and log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from logstore.errors import CorruptFileError, LogStoreError
from logstore.host import FileSystem, read_file
from logstore.segments.rocketmq.ha.epoch_file import decode_epochs
from logstore.segments.rocketmq.opening.checkpoint import CHECKPOINT_SIZE_BYTES
from logstore.segments.rocketmq.tables.java_json import parse_json
from logstore.segments.rocketmq.timer.timer_checkpoint import TimerCheckpoint
from logstore.segments.rocketmq.timer.timer_unit import TIMER_UNIT_BYTES, TimerUnit
from logstore.tools.inspection.rocketmq.stored_files import StoredFiles
from logstore.tools.inspection.rocketmq.stored_store import StoredStore
from logstore.tools.inspection.rocketmq.unit_dump import wheel_slots
from logstore.tools.inspection.rocketmq.verification.followed_log import FollowedLog
from logstore.tools.inspection.times import iso_time
from logstore.tools.inspection.verification.finding import Finding, Severity

#: fields of the checkpoint that are times, by position
_INDEX = 16
_TIMES = {
    0: "the commit log is on disk",
    8: "the queues are on disk",
    _INDEX: "the index is on disk",
}
#: fields that are physical offsets
_PLACES = {24: "its master has flushed", 32: "messages are confirmed", 40: "the queues are on disk"}


def checkpoint_findings(store: StoredStore, log: FollowedLog) -> Iterator[Finding]:
    """Yield where the checkpoint says more than the commit log holds."""
    path = f"{store.directory}/checkpoint"
    if not store.fs.exists(path):
        if log.message_count:
            said = "is missing: after an unclean stop a broker reads the whole commit log"
            yield Finding("checkpoint", "checkpoint", said, severity=Severity.NOTE)
        return
    data = read_file(store.fs, path)
    if len(data) != CHECKPOINT_SIZE_BYTES:
        said = f"is {len(data)} bytes long, not {CHECKPOINT_SIZE_BYTES}; what is missing is zero"
        yield Finding("checkpoint", "checkpoint", said)
    if store.process is not None:
        return  # it is read after the log, to which the broker has appended since
    lost = "the commit log has lost its end, or the file is another store's"
    for position, what in _TIMES.items():
        value = int.from_bytes(data[position : position + 8].ljust(8, b"\0"), signed=True)
        if value > max(log.newest_ms, 0):
            newest = iso_time(log.newest_ms) if log.newest_ms >= 0 else "no message at all"
            said = f"says that {what} up to {iso_time(value)}, the newest is {newest}"
            if position == _INDEX and store.commit_log.start:
                # The time is that of the last full file of the index, and stays until the next one
                # is full, however long ago the messages of that time have gone.
                said += ": the clock was set back since, and the messages of that time are gone"
                yield Finding("checkpoint", "checkpoint", said, position, severity=Severity.NOTE)
            else:
                yield Finding("checkpoint", "checkpoint", f"{said}: {lost}", position)
    for position, what in _PLACES.items():
        value = int.from_bytes(data[position : position + 8].ljust(8, b"\0"), signed=True)
        if value > log.end:
            said = f"says that {what} up to physical offset {value}, the log ends at {log.end}"
            yield Finding(
                "checkpoint", "checkpoint", f"{said}: {lost}", position, physical_offset=value
            )


def topic_findings(store: StoredStore) -> Iterator[Finding]:
    """Yield the topics that have queues and are in no table."""
    queue_counts = Counter(topic for topic, _ in store.queues if store.is_deleted(topic))
    for topic, count in sorted(queue_counts.items()):
        said = f"has no topic {topic}, of which {count} queues are there"
        rest = "the topic was deleted, or is to be made again for clients to read them"
        yield Finding("topic", "config/topics.json", f"{said}: {rest}", severity=Severity.NOTE)
    if store.topics is None and store.queues:
        said = "is missing or cannot be read: clients can read no topic until it is made again"
        yield Finding("topic", "config/topics.json", said, severity=Severity.NOTE)


def table_findings(store: StoredStore) -> Iterator[Finding]:
    """Yield the tables that cannot be read."""
    fs = store.fs
    for folder in ("config", "compaction"):
        path = f"{store.directory}/{folder}"
        if not fs.is_directory(path):
            continue
        for entry in fs.list_directory(path):
            plain = entry.name.removesuffix(".bak")
            if plain.endswith(".json") or plain in ("position-checkpoint", "timermetrics"):
                yield from _table(fs, path, f"{folder}/{entry.name}")
    for name in ("epochFileCheckpoint", "epochFileCheckpoint.bak"):
        if fs.exists(f"{store.directory}/{name}"):
            try:
                decode_epochs(read_file(fs, f"{store.directory}/{name}"), name)
            except CorruptFileError as error:
                yield Finding("epochs", name, f"cannot be read: {error.reason}")


def _table(fs: FileSystem, folder: str, relative: str) -> Iterator[Finding]:
    name = relative.rpartition("/")[2]
    text = read_file(fs, f"{folder}/{name}").decode(errors="replace")
    try:
        if text and not isinstance(parse_json(text), dict):
            raise CorruptFileError(relative, "it holds no object")
        if "\ufffd" in text:
            said = "holds bytes that are no UTF-8; a name in which they stand is another one"
            yield Finding("table", relative, said)
    except LogStoreError as error:
        is_backed = not name.endswith(".bak") and fs.exists(f"{folder}/{name}.bak")
        rest = "; a broker takes its .bak instead" if is_backed else ""
        yield Finding("table", relative, f"cannot be read: {error}{rest}")


def timer_findings(store: StoredStore, log: FollowedLog) -> Iterator[Finding]:
    """Yield the slots of the wheel whose units or messages are not there."""
    path = f"{store.directory}/timerwheel"
    files = StoredFiles(store.fs, store.directory, "timerlog")
    for oddity in files.oddities:
        yield Finding(oddity.kind, oddity.relative, oddity.reason)
    if not store.fs.exists(path):
        return
    over_ms = _read_until_ms(store)
    for index, slot in wheel_slots(store.fs, path, store.config.timer_precision_ms):
        # What was delivered may be lost since: a crash cost the log its end, which no flush had.
        # And where a broker is running, its messages may be younger than the look at the log.
        is_known = slot.time_ms >= over_ms and store.process is None
        log_end = log.end if is_known else None
        reason = _broken_chain(files, slot.first_timer_offset, slot.last_timer_offset, log_end)
        if reason:
            said = f"the slot of {iso_time(slot.time_ms)}: {reason}"
            yield Finding("timer", "timerwheel", said, 32 * index)
    files.close()


def _read_until_ms(store: StoredStore) -> int:
    """Return up to when the wheel is read, 0 if that is not known."""
    path = f"{store.directory}/config/timercheck"
    data = read_file(store.fs, path) if store.fs.exists(path) else b""
    return TimerCheckpoint.decode(data).last_read_time_ms


def _broken_chain(files: StoredFiles, first: int, last: int, log_end: int | None) -> str:
    """Follow a slot's units from the last to the first one; return what is wrong, or nothing."""
    place, below = last, files.end
    while True:
        if not files.start <= place < below:
            if place >= below and below != files.end:
                return f"unit {below} leads to {place}: the chain is a loop"
            return f"leads to timer offset {place}, the timer log holds [{files.start}, {below})"
        unit = TimerUnit.decode(files.read(place, TIMER_UNIT_BYTES))
        if unit is None:
            return f"no unit stands at timer offset {place}"
        if log_end is not None and unit.physical_offset >= log_end:
            return f"unit {place} leads to physical offset {unit.physical_offset}, behind the log"
        if place == first or unit.previous_timer_offset < files.start:
            return ""
        place, below = unit.previous_timer_offset, place
