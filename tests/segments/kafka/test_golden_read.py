"""Directories of real brokers, opened: every record comes out as their consumer saw it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from logstore.segments.kafka import checkpoints
from logstore.segments.kafka.control_record import decode_marker
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.readable_partition import CommittedRead
from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.record_batch import iterate_batches
from logstore.segments.kafka.store import KafkaStore
from tests.segments.kafka.golden_case import (
    SETS,
    GoldenCase,
    copy_of_data,
    golden_cases,
    open_copy,
)

HASHED_VALUE_BYTES = 512


@pytest.fixture(scope="module")
def stores(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[tuple[str, bool], KafkaStore]]:
    """A copy of each set, opened once to write and once only to read."""
    opened = {
        (name, is_writable): open_copy(
            copy_of_data(name, tmp_path_factory.mktemp("golden")), is_writable=is_writable
        )
        for name in SETS
        for is_writable in (True, False)
    }
    yield opened
    for store in opened.values():
        store.close()


def text(data: bytes | None) -> str | None:
    """Return bytes as expected.jsonl has them."""
    return None if data is None else base64.b64encode(data).decode()


def consumed(partition: KafkaPartition) -> list[dict[str, Any]]:
    """Return what a read_uncommitted consumer gets, as expected.jsonl has it."""
    found: list[dict[str, Any]] = []
    for batch in partition.batches():
        if batch.is_control:
            continue
        for record in decode_records(batch.data):
            if record.offset < partition.start_offset:
                continue
            line: dict[str, Any] = {
                "partition": partition.index,
                "offset": record.offset,
                "timestamp": record.timestamp_ms,
                "timestamp_type": "LogAppendTime" if batch.is_log_append_time else "CreateTime",
                "leader_epoch": batch.leader_epoch,
                "key": text(record.key),
                "headers": [[name, text(value)] for name, value in record.headers],
            }
            if record.value is not None and len(record.value) >= HASHED_VALUE_BYTES:
                line["value_size"] = len(record.value)
                line["value_sha256"] = hashlib.sha256(record.value).hexdigest()
            else:
                line["value"] = text(record.value)
            found.append(line)
    return found


def offsets_expected(case: GoldenCase, partition: KafkaPartition, start_offset: int) -> list[int]:
    """Return the offsets that a read_committed consumer got of a partition, from one on."""
    return [
        record["offset"]
        for record in case.expected
        if record["partition"] == partition.index
        and record["read_committed"]
        and record["offset"] >= start_offset
    ]


def partitions_of(store: KafkaStore, case: GoldenCase) -> list[KafkaPartition]:
    """Return the partitions of a case in order."""
    return [partition for _, partition in sorted(store.topics()[case.topic].items())]


@pytest.mark.parametrize("is_writable", [True, False], ids=["writable", "read-only"])
@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.id)
def test_every_record_reads_as_the_real_consumer_read_it(
    stores: dict[tuple[str, bool], KafkaStore], case: GoldenCase, is_writable: bool
) -> None:
    """Offset, time and its type, leader epoch, key, value and headers: all as expected.jsonl."""
    store = stores[case.set_name, is_writable]
    expected = [
        {name: value for name, value in record.items() if name != "read_committed"}
        for record in case.expected
    ]
    found = [line for partition in partitions_of(store, case) for line in consumed(partition)]
    assert len(found) == len(expected)
    assert found == expected


@pytest.mark.parametrize("is_writable", [True, False], ids=["writable", "read-only"])
@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.id)
def test_watermarks_are_the_brokers(
    stores: dict[tuple[str, bool], KafkaStore], case: GoldenCase, is_writable: bool
) -> None:
    """Log start and last stable offset of every partition are what the broker answered."""
    partitions = partitions_of(stores[case.set_name, is_writable], case)
    found = {p.index: (p.start_offset, p.last_stable_offset) for p in partitions}
    assert found == case.watermarks


@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.id)
def test_plain_records_leave_markers_and_holes_out(
    stores: dict[tuple[str, bool], KafkaStore], case: GoldenCase
) -> None:
    """A reader without a protocol gets the same offsets, from the start and from the middle."""
    for partition in partitions_of(stores[case.set_name, False], case):
        offsets = [r["offset"] for r in case.expected if r["partition"] == partition.index]
        found = partition.read_records(partition.start_offset, len(offsets) + 1)
        assert [record.offset for record in found] == offsets
        middle = (partition.start_offset + partition.end_offset) // 2
        rest = partition.read_records(middle, len(offsets) + 1)
        assert [record.offset for record in rest] == [o for o in offsets if o >= middle]


@pytest.mark.parametrize("is_writable", [True, False], ids=["writable", "read-only"])
@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.id)
def test_read_committed_leaves_out_what_was_aborted_or_is_open(
    stores: dict[tuple[str, bool], KafkaStore], case: GoldenCase, is_writable: bool
) -> None:
    """From any offset on a reader gets the records that the real read_committed consumer got."""
    for partition in partitions_of(stores[case.set_name, is_writable], case):
        count = len(case.expected) + 1
        step = max(1, (partition.end_offset - partition.start_offset) // 20)
        for offset in range(partition.start_offset, partition.end_offset + 1, step):
            found = partition.read_records(offset, count, is_committed_only=True)
            assert [r.offset for r in found] == offsets_expected(case, partition, offset), offset


@pytest.mark.parametrize("size_bytes_max", [1, 500, 5000, 2**31 - 1])
@pytest.mark.parametrize(
    "case", [c for c in golden_cases() if c.name == "transactions"], ids=lambda case: case.id
)
def test_a_committed_fetch_names_the_transactions_to_skip(
    stores: dict[tuple[str, bool], KafkaStore], case: GoldenCase, size_bytes_max: int
) -> None:
    """A consumer that skips them as the protocol says, fetch by fetch, gets what was committed."""
    for partition in partitions_of(stores[case.set_name, False], case):
        for start in range(partition.start_offset, partition.last_stable_offset, 7):
            found: list[int] = []
            offset = start
            while offset < partition.last_stable_offset:
                fetched = partition.read_committed(offset, size_bytes_max)
                assert fetched.extent is not None
                records, offset = as_a_consumer_reads(fetched, offset)
                found += records
            assert found == offsets_expected(case, partition, start), start


def as_a_consumer_reads(fetched: CommittedRead, start_offset: int) -> tuple[list[int], int]:
    """Return the offsets that a client hands on, and where it fetches next (KIP-98)."""
    assert fetched.extent is not None
    to_come = sorted(fetched.aborted, key=lambda entry: entry.first_offset)
    aborting: set[int] = set()
    found: list[int] = []
    for batch in iterate_batches(memoryview(fetched.extent.read())):
        while to_come and to_come[0].first_offset <= batch.last_offset:
            aborting.add(to_come.pop(0).producer_id)
        if batch.is_control:
            if any(m.is_abort for m in map(decode_marker, decode_records(batch.data)) if m):
                aborting.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in aborting):
            offsets = [record.offset for record in decode_records(batch.data)]
            found += [offset for offset in offsets if offset >= start_offset]
        start_offset = batch.next_offset
    return found, start_offset


@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.id)
def test_every_offset_is_found_through_the_brokers_indexes(
    stores: dict[tuple[str, bool], KafkaStore], case: GoldenCase
) -> None:
    """A read at any offset starts with the batch that holds it, or with the next one in a hole."""
    for partition in partitions_of(stores[case.set_name, False], case):
        batches = list(partition.batches(partition.log.start_offset))
        for offset in range(partition.start_offset, partition.end_offset):
            wanted = next((b for b in batches if b.last_offset >= offset), None)
            extent = partition.read(offset, 1)
            found = b"" if extent is None else extent.read()
            assert found == (b"" if wanted is None else bytes(wanted.data)), offset


@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.id)
def test_every_time_is_found_through_the_brokers_indexes(
    stores: dict[tuple[str, bool], KafkaStore], case: GoldenCase
) -> None:
    """The first record at least as young as a time is the one that a walk over all would find."""
    for partition in partitions_of(stores[case.set_name, False], case):
        records = [
            record
            for batch in partition.batches()
            for record in decode_records(batch.data)
            if record.offset >= partition.start_offset
        ]
        for asked in {r.timestamp_ms + delta for r in records for delta in (-1, 0, 1)}:
            wanted = next((r.offset for r in records if r.timestamp_ms >= asked), None)
            assert partition.offset_for_timestamp(asked) == wanted, asked


@pytest.mark.parametrize("set_name", SETS)
def test_reading_changes_nothing(set_name: str, tmp_path: Path) -> None:
    """A store opened only to read leaves every byte and name of the directory as they were."""
    directory = copy_of_data(set_name, tmp_path)
    before = contents_of(directory)
    store = open_copy(directory, is_writable=False)
    for partition in store.partitions():
        assert consumed(partition) is not None
        partition.offset_for_timestamp(0)
    store.close()
    assert contents_of(directory) == before


@pytest.mark.parametrize("set_name", SETS)
def test_a_clean_start_and_stop_keeps_the_logs(set_name: str, tmp_path: Path) -> None:
    """Opened to write and closed again, every partition has the bytes that the broker left."""
    directory = copy_of_data(set_name, tmp_path)
    before = contents_of(directory)
    forgotten = snapshots_below_their_log(directory)
    open_copy(directory, is_writable=True).close()
    after = contents_of(directory)
    changed = {name for name in before | after if before.get(name) != after.get(name)}
    rewritten = {".kafka_cleanshutdown", checkpoints.RECOVERY_POINT, checkpoints.HIGH_WATERMARK}
    assert changed - rewritten - forgotten == {".lock"}
    assert not forgotten & after.keys()
    for name in (checkpoints.RECOVERY_POINT, checkpoints.HIGH_WATERMARK):
        assert sorted(after[name].splitlines()) == sorted(before[name].splitlines())


def snapshots_below_their_log(directory: Path) -> set[str]:
    """Return producer snapshots that no start needs, and that Kafka's next one drops."""
    return {
        str(path.relative_to(directory))
        for path in directory.glob("*-*/*.snapshot")
        if path.stem <= min(path.parent.glob("*.log")).stem
    }


def contents_of(directory: Path) -> dict[str, bytes]:
    """Return every file below a directory."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }
