"""Index entries that a pass only counts as right are those that a look at each finds right."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from logstore.os_host import system_host
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.tools.inspection.verification.indexes import (
    Entries,
    IndexFile,
    IndexVerdict,
    SegmentIndexes,
    judged,
)
from logstore.tools.inspection.verification.segment_pass import scan_segment
from logstore.tools.inspection.verification.segment_scan import ScanRequest, SegmentScan

TIME_MS = 1_700_000_000_000
BASE_OFFSET = 100
BATCHES = 12
SEEDS = 150


def make_log(directory: Path, times_ms: list[int]) -> tuple[Path, Entries, Entries]:
    """Write a batch of three records for each time; return the indexes with an entry for each."""
    data, newest_ms = bytearray(), -1
    index: list[tuple[int, int]] = []
    times: list[tuple[int, int]] = []
    for number, time_ms in enumerate(times_ms):
        offset = BASE_OFFSET + 3 * number
        batch = encode_batch([Record(delta, time_ms, None, b"v" * 20) for delta in range(3)])
        RecordBatch(batch, len(batch)).stamped(offset, 0)
        if number:
            index.append((offset + 2, len(data)))
        if time_ms > newest_ms:
            newest_ms = time_ms
            times.append((time_ms, offset + 2))
        data += batch
    path = directory / "log"
    path.write_bytes(data)
    return path, tuple(index), tuple(times)


def look(
    path: Path, index: Entries, times: Entries, *, has_landmarks: bool
) -> tuple[IndexVerdict, SegmentScan]:
    """Judge the indexes by one pass."""
    file = system_host().fs.open(str(path), writable=False)
    request = ScanRequest(
        BASE_OFFSET, index_entries=index, time_entries=times, has_landmarks=has_landmarks
    )
    scan = scan_segment(file, request)
    file.close()
    files = IndexFile("index", index), IndexFile("timeindex", times)
    return judged(SegmentIndexes(*files, scan, is_active=False)), scan


def damaged(entries: Entries, chance: random.Random) -> Entries:
    """Return entries of which some are other, gone, twice there, or in another place."""
    found = list(entries)
    for _ in range(chance.randrange(4)):
        slot = chance.randrange(len(found) - 1)
        first, second = found[slot]
        kind = chance.randrange(6)
        if kind == 0:
            found[slot] = (first + chance.randrange(-4, 5), second)
        elif kind == 1:
            found[slot] = (first, second + chance.randrange(-4, 5))
        elif kind == 2:
            del found[slot]
        elif kind == 3:
            found.insert(slot, found[slot])
        elif kind == 4:
            found[slot], found[slot + 1] = found[slot + 1], found[slot]
        else:  # what a release made that indexed several batches at once
            found[slot] = (found[slot + 1][0], second)
            del found[slot + 1]
    return tuple(found)


@pytest.mark.parametrize("is_rising", [True, False])
def test_entries_as_they_were_made_are_only_counted(tmp_path: Path, is_rising: bool) -> None:
    """Where every entry is as it was made, none of them leaves a landmark."""
    times_ms = [TIME_MS + number * (1 if is_rising else -1) for number in range(BATCHES)]
    path, index, times = make_log(tmp_path, times_ms)

    verdict, scan = look(path, index, times, has_landmarks=False)

    assert (scan.right_entry_count, scan.right_time_count) == (len(index), len(times))
    assert (scan.at_position, scan.at_offset) == ({}, {})
    assert not verdict.is_wrong


def test_an_entry_that_is_other_is_wrong_if_all_landmarks_say_so(tmp_path: Path) -> None:
    """Indexes with any entries are right or wrong alike, however much was noted."""
    outcomes: set[tuple[bool, bool]] = set()
    for seed in range(SEEDS):
        chance = random.Random(seed)
        times_ms = [TIME_MS + chance.randrange(BATCHES) for _ in range(BATCHES)]
        path, index, times = make_log(tmp_path, [TIME_MS, *sorted(times_ms), TIME_MS + BATCHES])
        index, times = damaged(index, chance), damaged(times, chance)

        quick, scan = look(path, index, times, has_landmarks=False)
        thorough, _ = look(path, index, times, has_landmarks=True)

        assert quick.is_wrong == thorough.is_wrong, (seed, index, times)
        if not thorough.is_wrong:
            assert quick == thorough
        is_counted = (scan.right_entry_count, scan.right_time_count) == (len(index), len(times))
        outcomes.add((thorough.is_wrong, is_counted))
    # wrong; right at a glance; right at a second look; but never wrong at a glance
    assert outcomes == {(True, False), (False, True), (False, False)}
