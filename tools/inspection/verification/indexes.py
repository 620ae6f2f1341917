"""
Offset and time indexes held against what a scan saw of their log.

An offset entry must lead to a batch, and its offset must be the last one of that batch or of one
behind it; a time entry must have the largest timestamp up to its offset. What a search needs and
does not find is said as what the index misses.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from operator import lt, sub
from typing import TypeAlias

import attrs

from logstore.host import FileSystem, read_file
from logstore.segments.kafka.segment_files import INDEX, TIME_INDEX, offset_file_name
from logstore.tools.inspection.times import iso_time
from logstore.tools.inspection.verification.finding import Finding
from logstore.tools.inspection.verification.segment_scan import Landmark, SegmentScan
from logstore.zero_tail import written_length

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
#: how much longer than elsewhere the way behind the last entry may be
_RUN_FACTOR = 4
#: ``index.interval.bytes`` where no entries tell what it was
_INTERVAL_BYTES = 4096
Entries: TypeAlias = tuple[tuple[int, int], ...]
#: how many wrong entries of one file are named
_SHOWN_MAX = 3


@attrs.frozen
class IndexFile:
    """
    The entries of one index; `rest_bytes` are behind the last whole one.

    `entries` are (offset, position) or (timestamp, offset). The zeros behind the last entry of a
    preallocated file are none.
    """

    name: str
    entries: Entries
    rest_bytes: int = 0
    is_missing: bool = False


def read_index(fs: FileSystem, directory: str, base_offset: int) -> IndexFile:
    """Return the offset index of a segment."""
    name = offset_file_name(base_offset, INDEX)
    data = _content(fs, f"{directory}/{name}")
    if data is None:
        return IndexFile(name, (), is_missing=True)
    whole, rest_bytes = _whole(data, _OFFSET_ENTRY.size)
    return IndexFile(
        name,
        tuple((base_offset + offset, place) for offset, place in _OFFSET_ENTRY.iter_unpack(whole)),
        rest_bytes,
    )


def read_time_index(fs: FileSystem, directory: str, base_offset: int) -> IndexFile:
    """Return the time index of a segment."""
    name = offset_file_name(base_offset, TIME_INDEX)
    data = _content(fs, f"{directory}/{name}")
    if data is None:
        return IndexFile(name, (), is_missing=True)
    whole, rest_bytes = _whole(data, _TIME_ENTRY.size)
    return IndexFile(
        name,
        tuple(
            (time_ms, base_offset + offset) for time_ms, offset in _TIME_ENTRY.iter_unpack(whole)
        ),
        rest_bytes,
    )


def _content(fs: FileSystem, path: str) -> bytes | None:
    return read_file(fs, path) if fs.exists(path) else None


def _whole(data: bytes, entry_bytes: int) -> tuple[bytes, int]:
    """Cut zeros off the end, but not the zeros of the last entry, and what is no whole entry."""
    used = written_length(data)
    used = min(len(data), -(-used // entry_bytes) * entry_bytes)
    if used == len(data):
        return data[: used - used % entry_bytes], used % entry_bytes
    return data[:used], 0


@attrs.frozen
class SegmentIndexes:
    """The indexes of one segment with the scan of its log; `is_active` that of the last one."""

    offsets: IndexFile
    times: IndexFile
    scan: SegmentScan
    is_active: bool


@attrs.frozen
class Runs:
    """
    How many bytes are between two entries that follow each other, at the most; None: no two do.

    `interval_bytes` is about what must be between them (``index.interval.bytes``).
    Without `is_even` there may be longer ways elsewhere: the cleaner indexes in long steps.
    """

    longest_bytes: int | None
    interval_bytes: int
    is_even: bool


@attrs.frozen
class IndexEnd:
    """
    Where the entries of an offset index end, and how many each of the two indexes has.

    Behind that end, batches that entries of the time index tell of are up to `time_step_bytes`
    apart, and for up to `untold_bytes` there is no entry of either index.
    """

    offset: int
    position: int
    entry_count: int
    time_entry_count: int
    time_step_bytes: int
    untold_bytes: int


@attrs.frozen
class IndexVerdict:
    """
    What is to be said of the two indexes of a segment, but for what depends on other segments.

    `end` is None where it does not matter; `longest_bytes` and `shortest_bytes` are how far two
    entries that follow each other are apart, None if no two do. It stays small however long the
    indexes are.
    """

    name: str
    offset_findings: tuple[Finding, ...]
    time_findings: tuple[Finding, ...]
    end: IndexEnd | None
    longest_bytes: int | None
    shortest_bytes: int | None
    #: there are entries that lead elsewhere than they should
    is_wrong: bool


def judged(segment: SegmentIndexes) -> IndexVerdict:
    """Hold the two indexes of a segment against the scan of its log."""
    offsets, times, scan = segment.offsets, segment.times, segment.scan
    wrong = list(_wrong_offsets(segment))
    end = None
    if not wrong and not offsets.is_missing:
        end = _end_of(offsets, times, scan)
    wrong_times = list(_wrong_times(segment))
    time_findings = [*_shape(times, scan), *_first_of(wrong_times)]
    if not wrong_times and not times.is_missing and not times.rest_bytes:
        time_findings += _missed_times(segment)
    positions = [position for _, position in offsets.entries]
    steps = list(map(sub, positions[1:], positions))
    return IndexVerdict(
        offsets.name,
        (*_shape(offsets, scan), *_first_of(wrong)),
        tuple(time_findings),
        end,
        max(steps, default=None),
        min([*positions[:1], *steps], default=None),  # the first one had to wait, too
        bool(wrong or wrong_times),
    )


def _end_of(offsets: IndexFile, times: IndexFile, scan: SegmentScan) -> IndexEnd:
    """Return where the offset index ends, and what the time index says of the log behind that."""
    last_offset, position = offsets.entries[-1] if offsets.entries else (scan.base_offset - 1, 0)
    others = [scan.at_offset.get(offset) for _, offset in times.entries[scan.right_time_count :]]
    begin = max(position, scan.told_position)
    marks = [begin, *(one.position for one in others if one is not None and one.position > begin)]
    steps = list(map(sub, marks[1:], marks))
    return IndexEnd(
        last_offset,
        position,
        len(offsets.entries),
        len(times.entries),
        time_step_bytes=max([scan.time_step_bytes, *steps]),
        untold_bytes=max([scan.time_step_bytes, *steps, scan.last_position - marks[-1]]),
    )


def index_findings(verdict: IndexVerdict, scan: SegmentScan, elsewhere: Runs) -> Iterator[Finding]:
    """Yield what is wrong with the two indexes of a segment."""
    yield from verdict.offset_findings
    if verdict.end is not None:
        yield from _missed_offsets(verdict.name, verdict.end, scan, elsewhere)
    yield from verdict.time_findings


def _first_of(wrong: list[Finding]) -> Iterator[Finding]:
    """Yield some findings of one file, and how many more there are."""
    yield from wrong[:_SHOWN_MAX]
    if len(wrong) > _SHOWN_MAX:
        first = wrong[_SHOWN_MAX]
        text = f"{len(wrong) - _SHOWN_MAX} more entries are wrong"
        yield attrs.evolve(first, text=text, offset=None)


def _shape(index: IndexFile, scan: SegmentScan) -> Iterator[Finding]:
    if index.is_missing and scan.batch_count:
        yield Finding(
            "index-missing",
            index.name,
            f"is missing: a search reads the log from its start ({_range(scan)})",
        )
    if index.rest_bytes:
        yield Finding(
            "index-size",
            index.name,
            f"ends with {index.rest_bytes} bytes that are no whole entry",
        )


def _wrong_offsets(segment: SegmentIndexes) -> Iterator[Finding]:
    index, scan = segment.offsets, segment.scan
    start = scan.right_entry_count
    previous = index.entries[start - 1] if start else (scan.base_offset - 1, -1)
    if _are_offsets_right(index.entries, start, scan):
        return
    for slot, (offset, position) in enumerate(index.entries[start:], start):
        reason = None
        target, holder = scan.at_position.get(position), scan.at_offset.get(offset)
        if offset <= previous[0] or position <= previous[1]:
            reason = (
                f"entry ({offset}, {position}) does not come after ({previous[0]}, {previous[1]})"
            )
        elif target is None:
            reason = f"offset {offset} leads to position {position}, where no good batch starts"
        elif holder is None:
            reason = f"offset {offset} is not in the log, which ends at {scan.next_offset}"
        elif not _leads_there(offset, position, holder):
            reason = (
                f"offset {offset} leads to position {position}, where the batch of the offsets "
                f"{target.base_offset} to {target.last_offset} is"
            )
        previous = (max(previous[0], offset), max(previous[1], position))
        if reason is not None and not scan.is_lost(offset, position):
            yield Finding("index-entry", index.name, reason, slot * _OFFSET_ENTRY.size, offset)


def _leads_there(offset: int, position: int, holder: Landmark) -> bool:
    """
    Tell whether a broker made that entry for the batch that `holder` is.

    Before 2.0 an entry had the first offset of what was appended; where that was compressed, before
    0.11, the message that stands there tells only its last one.
    """
    if holder.last_offset == offset:
        return holder.position >= position
    is_first = offset == holder.base_offset or offset < holder.base_offset == holder.last_offset
    return holder.position == position and is_first


def _are_offsets_right(entries: Entries, start: int, scan: SegmentScan) -> bool:
    """Tell quickly, as an index may have a million entries, whether each is as it was made."""
    offsets = [offset for offset, _ in entries[start:]]
    found = [scan.at_position.get(position) for _, position in entries[start:]]
    is_behind = not start or not offsets or offsets[0] > entries[start - 1][0]
    return (
        is_behind
        and _rises(offsets)
        and offsets == [batch and batch.last_offset for batch in found]
    )


def _are_times_right(entries: Entries, start: int, scan: SegmentScan) -> bool:
    times = [time_ms for time_ms, _ in entries[max(start - 1, 0) :]]
    offsets = [offset for _, offset in entries[max(start - 1, 0) :]]
    found = [scan.at_offset.get(offset) for _, offset in entries[start:]]
    return (
        _rises(times)
        and offsets == sorted(offsets)
        and times[bool(start) :] == [batch and batch.max_timestamp_ms for batch in found]
        and times[bool(start) :] == [batch and batch.max_timestamp_so_far_ms for batch in found]
    )


def _rises(numbers: list[int]) -> bool:
    return all(map(lt, numbers, numbers[1:]))


def _missed_offsets(
    name: str, end: IndexEnd, scan: SegmentScan, elsewhere: Runs
) -> Iterator[Finding]:
    last_offset, position = end.offset, end.position
    run_bytes = scan.last_position - position
    # Each entry but the last one of a time index was made with one here, or at a stop. Behind a
    # stop a new leader epoch starts if there is a controller; and it may be closer to the entry
    # before than an entry here would be. Without a stop the way to the end is about as long as
    # elsewhere.
    is_short = end.entry_count < end.time_entry_count - max(1, len(scan.epochs))
    is_short = is_short and end.time_step_bytes >= elsewhere.interval_bytes
    if elsewhere.longest_bytes is not None:
        is_short = is_short and run_bytes > elsewhere.longest_bytes
        has_restarted = any(place > position for _, _, place in scan.epochs)
        if elsewhere.is_even and not has_restarted:
            is_short |= end.untold_bytes > _RUN_FACTOR * elsewhere.longest_bytes
    if is_short and scan.batch_count > 1:
        yield Finding(
            "index-misses",
            name,
            f"misses entries: the records {last_offset + 1} to {scan.next_offset - 1} are found "
            f"only by reading up to {run_bytes} bytes of the log",
            offset=last_offset + 1,
        )


def _wrong_times(segment: SegmentIndexes) -> Iterator[Finding]:
    index, scan = segment.times, segment.scan
    start = scan.right_time_count
    last_ms, last_offset = index.entries[start - 1] if start else (-1, scan.base_offset)
    if _are_times_right(index.entries, start, scan):
        return
    for slot, (time_ms, offset) in enumerate(index.entries[start:], start):
        holder, reason = scan.at_offset.get(offset), None
        if time_ms <= last_ms or offset < last_offset:
            reason = f"entry ({time_ms}, {offset}) does not come after ({last_ms}, {last_offset})"
        elif holder is None:
            reason = f"offset {offset} is not in the log, which ends at {scan.next_offset}"
        elif _is_timeless(holder):
            reason = None  # a message of magic 0: the broker indexed the time that it was sent with
        elif holder.max_timestamp_ms != time_ms:
            reason = (
                f"says {_time(time_ms)} for offset {offset}, whose batch has "
                f"{_time(holder.max_timestamp_ms)}"
            )
        elif holder.max_timestamp_so_far_ms != time_ms:
            reason = (
                f"says that nothing up to offset {offset} is younger than {_time(time_ms)}, but "
                f"{_time(holder.max_timestamp_so_far_ms)} is there"
            )
        last_ms, last_offset = max(last_ms, time_ms), max(last_offset, offset)
        if reason is not None and not scan.is_lost(offset):
            yield Finding("time-index-entry", index.name, reason, slot * _TIME_ENTRY.size, offset)


def _is_timeless(holder: Landmark) -> bool:
    return holder.max_timestamp_ms == -1 and holder.base_offset == holder.last_offset


def _missed_times(segment: SegmentIndexes) -> Iterator[Finding]:
    """A finished time index ends with the largest timestamp of its segment."""
    index, scan = segment.times, segment.scan
    newest_ms, offset = index.entries[-1] if index.entries else (-1, scan.base_offset - 1)
    if segment.is_active or scan.max_timestamp_ms <= newest_ms:
        return
    yield Finding(
        "time-index-misses",
        index.name,
        f"misses its last entry: that the records {offset + 1} to {scan.next_offset - 1} reach "
        f"{_time(scan.max_timestamp_ms)} is not known, so a search by time passes them over",
        offset=offset + 1,
    )


def runs_of(verdicts: Iterable[IndexVerdict], *, is_even: bool) -> Runs:
    """Return how far apart the entries of all segments are."""
    known = list(verdicts)
    longest = [one.longest_bytes for one in known if one.longest_bytes is not None]
    shortest = [one.shortest_bytes for one in known if one.shortest_bytes is not None]
    interval_bytes = min(shortest, default=_INTERVAL_BYTES)
    return Runs(max(longest, default=None), interval_bytes, is_even)


def _range(scan: SegmentScan) -> str:
    return f"records {scan.base_offset} to {scan.next_offset - 1}"


def _time(ms: int) -> str:
    return "no time" if ms == -1 else f"{iso_time(ms)} ({ms})"
