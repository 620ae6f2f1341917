"""Old messages, appended again or recovered: the same files with the same bytes come out."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.errors import CorruptEntryError
from logstore.os_host import system_host
from logstore.segments.kafka.batch_walk import iterate_entries, walk_batches
from logstore.segments.kafka.legacy.message import LegacyMessage
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.testing import SimulatedHost
from tests.segments.kafka.golden_case import open_copy
from tests.segments.kafka.legacy.legacy_case import (
    SEVERAL_AN_APPEND,
    UPGRADED,
    LegacyCase,
    copy_of_logs,
    legacy_cases,
)

DERIVED = (".index", ".timeindex")


def files_of(directory: Path, *suffixes: str) -> dict[str, bytes]:
    """Return the files of a partition, all but its metadata or those of some kinds."""
    return {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if path.name != "partition.metadata" and (not suffixes or path.suffix in suffixes)
    }


def new_partition(case: LegacyCase, directory: Path) -> KafkaPartition:
    """Open an empty partition with the settings of a case."""
    host = system_host()
    files = SegmentFiles(host, str(directory), case.config, is_new=True)
    return KafkaPartition(host, files, case.topic, 0)


@pytest.mark.parametrize(
    "case", legacy_cases(without=SEVERAL_AN_APPEND), ids=lambda case: case.name
)
def test_the_same_messages_give_the_same_files(case: LegacyCase, tmp_path: Path) -> None:
    """Segments, both indexes, snapshots, leader epochs if there are any: same names, same bytes."""
    partition = new_partition(case, tmp_path)
    for entry in case.stored_batches(0):
        partition.append_stored(entry)
    partition.close()
    assert files_of(tmp_path) == files_of(case.golden_folder)


@pytest.mark.parametrize(
    "case", [c for c in legacy_cases() if c.name in SEVERAL_AN_APPEND], ids=lambda case: case.name
)
def test_messages_one_by_one_give_the_same_data(case: LegacyCase, tmp_path: Path) -> None:
    """Where the broker appended sets, segments break elsewhere, but the data is the same."""
    partition = new_partition(case, tmp_path)
    for entry in case.stored_batches(0):
        partition.append_stored(entry)
    partition.close()
    found = b"".join(path.read_bytes() for path in sorted(tmp_path.glob("*.log")))
    expected = sorted(case.golden_folder.glob("*.log"))
    assert found == b"".join(path.read_bytes() for path in expected)
    again = KafkaPartition(
        system_host(), SegmentFiles(system_host(), str(tmp_path), case.config), case.topic, 0
    )
    entries = case.stored_batches(0)
    for offset in range(again.end_offset):
        extent = again.read(offset, 1)
        assert extent is not None
        assert extent.read() == bytes(entries[offset].data)
    again.close()


@pytest.mark.parametrize("case", legacy_cases(), ids=lambda case: case.name)
def test_a_recovery_rebuilds_what_the_broker_had(case: LegacyCase, tmp_path: Path) -> None:
    """After an unclean stop no byte goes, and the indexes come out as they were."""
    directory = tmp_path / case.topic
    directory.mkdir()
    for name, data in files_of(case.golden_folder, ".log").items():
        (directory / name).write_bytes(data)
    host = system_host()
    files = SegmentFiles(host, str(directory), case.config, is_clean=False)
    partition = KafkaPartition(host, files, case.topic, 0, recovery_point=0)
    assert partition.recovery is not None
    assert partition.recovery.dropped_bytes == 0
    assert partition.end_offset == case.watermarks[0][1]
    partition.close()
    assert files_of(directory, ".log") == files_of(case.golden_folder, ".log")
    expected = files_of(case.golden_folder, *DERIVED)
    if case.name in SEVERAL_AN_APPEND:
        expected = indexes_by_message(case, expected)
    assert files_of(directory, *DERIVED) == expected


def indexes_by_message(case: LegacyCase, by_append: dict[str, bytes]) -> dict[str, bytes]:
    """
    Return the indexes that a recovery makes where an append was several messages.

    It meets them one by one (``LogSegment.recover``), so an entry can stand before any of them.
    """
    expected: dict[str, bytes] = {}
    entries = iter(case.stored_messages())
    for name in sorted(name for name in by_append if name.endswith(".index")):
        base_offset = int(name.removesuffix(".index"))
        end = (case.golden_folder / name.replace(".index", ".log")).stat().st_size
        offsets, times = bytearray(), bytearray()
        position = since = 0
        largest = (-1, base_offset)
        while position < end:
            entry = next(entries)
            largest = max(largest, (entry.max_timestamp_ms, -entry.last_offset), key=lambda e: e[0])
            if since > 200:
                offsets += (entry.last_offset - base_offset).to_bytes(4) + position.to_bytes(4)
                times += time_entry(times, largest, base_offset)
                since = 0
            since += entry.size_bytes
            position += entry.size_bytes
        times += time_entry(times, largest, base_offset)
        expected[name] = bytes(offsets)
        expected[name.replace(".index", ".timeindex")] = bytes(times)
    return expected


def time_entry(times: bytearray, largest: tuple[int, int], base_offset: int) -> bytes:
    """Return the time index entry for the largest time so far, nothing if it is not news."""
    last = int.from_bytes(times[-12:-4]) if times else -1
    if largest[0] <= last:
        return b""
    return largest[0].to_bytes(8) + (-largest[1] - base_offset).to_bytes(4)


def test_a_whole_directory_recovers_to_what_it_was(tmp_path: Path) -> None:
    """Without the marker of a clean stop the store finds every log whole."""
    copy = copy_of_logs(tmp_path, is_clean=False)
    before = {p.relative_to(copy): p.read_bytes() for p in copy.glob("*/*.log")}
    store = open_copy(copy, is_writable=True)
    for case in legacy_cases():
        partition = store.topics()[case.topic][0]
        assert partition.recovery is not None
        assert partition.recovery.dropped_bytes == 0
        records = partition.read_records(0, 1000)
        assert [record.offset for record in records] == [r["offset"] for r in case.expected]
    store.close()
    assert {p.relative_to(copy): p.read_bytes() for p in copy.glob("*/*.log")} == before


@pytest.mark.parametrize("case", legacy_cases(), ids=lambda case: case.name)
def test_a_recovery_cuts_behind_the_last_whole_message(case: LegacyCase, tmp_path: Path) -> None:
    """A torn or flipped message ends the log in front of it, wherever in its segment it stands."""
    log = min(case.golden_folder.glob("*.log"))
    data = log.read_bytes()
    entries = [e for e in case.stored_batches(0) if e.base_offset < next_base(case, log)]
    position = 0
    for number, entry in enumerate(entries[:6]):
        for torn in (data[: position + entry.size_bytes - 1], flipped(data, position + 16 + 9)):
            directory = tmp_path / f"{number}-{len(torn)}"
            directory.mkdir()
            (directory / log.name).write_bytes(torn)
            host = system_host()
            files = SegmentFiles(host, str(directory), case.config, is_clean=False)
            partition = KafkaPartition(host, files, case.topic, 0, recovery_point=0)
            kept = entries[number - 1].next_offset if number else 0
            assert partition.end_offset == kept
            assert partition.recovery is not None
            assert partition.recovery.dropped_bytes == len(torn) - position
            partition.close()
            assert (directory / log.name).read_bytes() == data[:position]
        position += entry.size_bytes


def next_base(case: LegacyCase, log: Path) -> int:
    """Return where the segment behind this one starts."""
    bases = sorted(int(path.stem) for path in case.golden_folder.glob("*.log"))
    following = [base for base in bases if base > int(log.stem)]
    return following[0] if following else 2**62


def flipped(data: bytes, position: int) -> bytes:
    """Return the data with one bit wrong."""
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


def test_an_old_message_ends_the_history_of_leaders(tmp_path: Path) -> None:
    """As in Kafka a message without leader epoch clears those that the log had."""
    case = LegacyCase("legacy-3.9", UPGRADED)
    partition = new_partition(case, tmp_path)
    entries = case.stored_batches(0)
    batch = next(entry for entry in entries if not isinstance(entry, LegacyMessage))
    partition.append_stored(batch)
    assert partition.leader_epochs.entries == [(0, batch.base_offset)]
    late = LegacyMessage(bytearray(entries[0].data), entries[0].size_bytes)
    late.data = (100).to_bytes(8) + bytes(late.data)[8:]
    partition.append_stored(LegacyMessage(late.data, late.size_bytes))
    assert partition.leader_epochs.entries == []
    assert partition.end_offset == 101
    partition.close()


def test_a_truncation_takes_a_wrapper_as_a_whole(tmp_path: Path) -> None:
    """Cut inside of its span, a wrapper goes; the log continues at the offset asked for."""
    case = LegacyCase("legacy-3.9", "magic1-gzip")
    partition = new_partition(case, tmp_path)
    entries = [entry for entry in case.stored_batches(0) if entry.last_offset < 30]
    for entry in entries:
        partition.append_stored(entry)
    cut = entries[-1].last_offset
    partition.truncate(cut)
    assert partition.end_offset == cut
    left = partition.read_records(0, 100)
    assert [record.offset for record in left] == list(range(entries[-2].next_offset))
    partition.close()


@pytest.mark.parametrize("name", ["magic0-none", "magic1-log-append-time"])
def test_no_flipped_byte_is_served_as_good_data(name: str) -> None:
    """
    Wherever one byte is wrong, the walk names the file and the place of that message.

    But for the offset, which no checksum covers: there the message comes with a wrong one.
    """
    case = LegacyCase("legacy-3.9", name)
    data = min(case.golden_folder.glob("*.log")).read_bytes()
    position = 0
    for entry in iterate_entries(memoryview(data)):
        for place in range(entry.size_bytes):
            damaged = flipped(data, position + place)[position:]
            if place < 8:
                changed = next(iterate_entries(memoryview(damaged)))
                assert changed.last_offset != entry.last_offset
                assert bytes(changed.data)[8:] == bytes(entry.data)[8:]
                continue
            file = SimulatedHost().fs.open("/some.log", create=True)
            file.write(0, damaged)
            with pytest.raises(CorruptEntryError) as caught:
                next(walk_batches(file, "/some.log"))
            assert (caught.value.path, caught.value.position) == ("/some.log", 0), place
        position += entry.size_bytes
    assert position == len(data)
