"""Logs of before Kafka 0.11, opened: every record comes out as a consumer saw it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from logstore.segments.kafka.legacy.message import MAGIC_0, LegacyMessage
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.store import KafkaStore
from logstore.segments.kafka.time_index import TimestampedOffset
from tests.segments.kafka.golden_case import open_copy
from tests.segments.kafka.legacy.legacy_case import LegacyCase, copy_of_logs, legacy_cases


@pytest.fixture(scope="module", params=[True, False], ids=["writable", "read-only"])
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaStore]:
    """A copy of the set, opened to write, and only to read."""
    copy = copy_of_logs(tmp_path_factory.mktemp("legacy"))
    opened = open_copy(copy, is_writable=request.param)
    yield opened
    opened.close()


def text(data: bytes | None) -> str | None:
    """Return bytes as expected.jsonl has them."""
    return None if data is None else base64.b64encode(data).decode()


def timestamp_type(batch: RecordBatch) -> str | None:
    """Return what a consumer was told: nothing where the format has no time."""
    if batch.magic == MAGIC_0:
        return None
    return "LogAppendTime" if batch.is_log_append_time else "CreateTime"


def consumed(partition: KafkaPartition) -> list[dict[str, Any]]:
    """Return all records as expected.jsonl has them; librdkafka says 0 where there is no time."""
    return [
        {
            "partition": partition.index,
            "offset": record.offset,
            "timestamp": 0 if batch.magic == MAGIC_0 else record.timestamp_ms,
            "timestamp_type": timestamp_type(batch),
            "leader_epoch": None if batch.leader_epoch < 0 else batch.leader_epoch,
            "read_committed": True,
            "key": text(record.key),
            "headers": [[name, text(value)] for name, value in record.headers],
            "value": text(record.value),
        }
        for batch in partition.batches()
        for record in decode_records(batch.data)
    ]


@pytest.mark.parametrize("case", legacy_cases(), ids=lambda case: case.name)
def test_every_record_reads_as_the_real_consumer_read_it(
    store: KafkaStore, case: LegacyCase
) -> None:
    """Offset, time and its type, leader epoch, key and value: all as expected.jsonl."""
    partition = store.topics()[case.topic][0]
    assert consumed(partition) == case.expected
    assert (partition.start_offset, partition.last_stable_offset) == case.watermarks[0]
    count = len(case.expected)
    found = partition.read_records(0, count + 1)
    assert [record.offset for record in found] == list(range(count))
    middle = [record.offset for record in partition.read_records(count // 2, count)]
    assert middle == list(range(count // 2, count))


@pytest.mark.parametrize("case", legacy_cases(), ids=lambda case: case.name)
def test_every_offset_is_found_through_the_brokers_indexes(
    store: KafkaStore, case: LegacyCase
) -> None:
    """A read at any offset starts with the message, or the wrapper, that holds it."""
    partition = store.topics()[case.topic][0]
    entries = list(partition.batches())
    for offset in range(partition.end_offset):
        holder = next(entry for entry in entries if entry.last_offset >= offset)
        extent = partition.read(offset, 1)
        assert extent is not None
        assert extent.read() == bytes(holder.data), offset
        assert offset in {record.offset for record in decode_records(extent.read())}


@pytest.mark.parametrize("case", legacy_cases(), ids=lambda case: case.name)
def test_every_time_is_found_through_the_brokers_indexes(
    store: KafkaStore, case: LegacyCase
) -> None:
    """The first record at least as young as a time is found; in magic 0 none ever is."""
    partition = store.topics()[case.topic][0]
    records = [
        (record.timestamp_ms, record.offset, entry.leader_epoch)
        for entry in partition.batches()
        for record in decode_records(entry.data)
    ]
    times = {timestamp_ms for timestamp_ms, _, _ in records} | {0, 2**62}
    asked = {timestamp_ms + delta for timestamp_ms in times for delta in (-1, 0, 1)}
    for timestamp_ms in asked - {-1, -2}:
        wanted = next((record for record in records if record[0] >= timestamp_ms), None)
        found = partition.find_timestamp(timestamp_ms)
        assert found == (None if wanted is None else TimestampedOffset(*wanted)), timestamp_ms
    newest = partition.find_max_timestamp()
    largest = max(records, key=lambda record: (record[0], -record[1]))
    assert newest == (None if largest[0] < 0 else TimestampedOffset(*largest))


def test_headers_tell_what_dump_log_segments_tells() -> None:
    """Offset, position, size, magic, codec, CRC and time of every message are those of dump.txt."""
    compared = 0
    for case in legacy_cases():
        position = 0
        lines = iter(case.dump.split("\n"))
        for entry in case.stored_messages():
            line = next(line for line in lines if line.startswith("offset: ") and "magic" in line)
            time = f"CreateTime: {entry.max_timestamp_ms}"
            if entry.is_log_append_time:
                time = f"LogAppendTime: {entry.max_timestamp_ms}"
            if entry.magic == MAGIC_0:
                time = "NoTimestampType: -1"
            start = f"offset: {entry.last_offset} "
            codec = ("none", "gzip", "snappy", "lz4")[entry.codec]
            facts = f"{time} size: {entry.size_bytes} magic: {entry.magic} compresscodec: {codec}"
            assert line.startswith(start), (case.name, line)
            if f"position: {position} " not in line:
                position = 0  # the next file
            assert f"position: {position} {facts} crc: {entry.crc} isvalid: true" in line
            position += entry.size_bytes
            compared += 1
    assert compared > 150


def test_reading_and_a_clean_start_and_stop_change_no_log(tmp_path: Path) -> None:
    """Every file of every partition stays as the broker left it."""
    copy = copy_of_logs(tmp_path)
    before = {p.relative_to(copy): p.read_bytes() for p in copy.glob("*/*")}
    for is_writable in (False, True):
        opened = open_copy(copy, is_writable=is_writable)
        for partition in opened.partitions():
            partition.read_records(0, 1000)
        opened.close()
        assert {p.relative_to(copy): p.read_bytes() for p in copy.glob("*/*")} == before


def test_messages_are_entries_beside_batches(store: KafkaStore) -> None:
    """One log yields wrappers of magic 0, then of magic 1, then batches; spans rise throughout."""
    entries = list(store.topics()["magic-upgrade"][0].batches())
    assert [entry.magic for entry in entries] == [0] * 4 + [1] * 4 + [2] * 4
    assert [isinstance(entry, LegacyMessage) for entry in entries] == [True] * 8 + [False] * 4
    assert {entry.leader_epoch for entry in entries[:8]} == {-1}
    for earlier, later in pairwise(entries):
        assert earlier.next_offset <= later.base_offset <= later.last_offset
