"""The offsets of a stream: where it starts, how far a micro-batch goes, what it must not miss."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from logstore.compat.spark.data_loss import DataLossError
from logstore.os_host import system_host
from logstore.partition import Record
from logstore.segments.kafka.record import Record as KafkaRecord
from logstore.segments.kafka.record import encode_batch
from logstore.segments.kafka.store import KafkaStore
from logstore.testing import ManualClock

pytest.importorskip(
    "pyspark.sql.streaming.datasource", reason="pyspark before 4.2: streams have no limits"
)

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows
from pyspark.sql.types import StructType

from logstore.compat.spark.option_values import OptionError
from logstore.compat.spark.options import parse_options
from logstore.compat.spark.reader import UnitPartition
from logstore.compat.spark.stream_reader import LogStoreStreamReader
from logstore.compat.spark.work_unit import WorkUnit


@pytest.fixture
def store(tmp_path: Path) -> Iterator[KafkaStore]:
    """A live store with a topic of two partitions: ten records and two."""
    store = KafkaStore(system_host(), str(tmp_path / "data"))
    store.create_topic("t", 2)
    append(store, 0, 10)
    append(store, 1, 2)
    yield store
    store.close()


def append(store: KafkaStore, index: int, count: int) -> None:
    """Append so many records, a batch each."""
    for number in range(count):
        store.partition("t", index).append_records([Record(None, b"%d" % number, 1000 + number)])


def reader_of(store: KafkaStore, **options: str) -> LogStoreStreamReader:
    """Return a stream over the store."""
    return LogStoreStreamReader(
        parse_options({"path": store.directory, **options}, is_stream=True), StructType()
    )


def spans(tasks: Any) -> list[tuple[int, int, int]]:
    """Return (partition, start, end) of all units."""
    units = [unit for task in tasks if isinstance(task, UnitPartition) for unit in task.units]
    assert all(isinstance(unit, WorkUnit) for unit in units)
    found = [unit for unit in units if isinstance(unit, WorkUnit)]
    return [(unit.partition, unit.start_offset, unit.end_offset) for unit in found]


def test_a_stream_starts_with_what_is_new(store: KafkaStore) -> None:
    """Or at the beginning, or at offsets, when told so."""
    assert reader_of(store).initialOffset() == {"t": {"0": 10, "1": 2}}
    earliest = reader_of(store, startingOffsets="earliest")
    assert earliest.initialOffset() == {"t": {"0": 0, "1": 0}}
    some = reader_of(store, startingOffsets='{"t": {"0": 4, "1": -1}}')
    assert some.initialOffset() == {"t": {"0": 4, "1": 2}}


def test_micro_batches_touch_and_cover_all(store: KafkaStore) -> None:
    """The end of one is the start of the next; what was appended meanwhile is in it."""
    reader = reader_of(store, startingOffsets="earliest")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    assert spans(reader.partitions(start, end)) == [(0, 0, 10), (1, 0, 2)]
    append(store, 1, 3)
    further = reader.latestOffset(end, ReadAllAvailable())
    assert spans(reader.partitions(end, further)) == [(1, 2, 5)]
    assert reader.partitions(further, further) == []


def test_a_limit_is_shared_out_and_always_moves_on(store: KafkaStore) -> None:
    """By what is waiting where; a partition with little still gets something."""
    reader = reader_of(store, startingOffsets="earliest", maxOffsetsPerTrigger="6")
    assert reader.getDefaultReadLimit() == ReadMaxRows(6)
    offset = reader.initialOffset()
    seen = 0
    while (following := reader.latestOffset(offset, ReadMaxRows(6))) != offset:
        taken = sum(end - start for _, start, end in spans(reader.partitions(offset, following)))
        assert 0 < taken <= 7
        seen += taken
        offset = following
    assert seen == 12


def test_little_is_waited_for_up_to_a_delay(store: KafkaStore) -> None:
    """The first micro-batch starts at once; then enough must have come, or time have passed."""
    clock = ManualClock()
    given = {"path": store.directory, "startingOffsets": "earliest"}
    given |= {"minOffsetsPerTrigger": "4", "maxTriggerDelay": "1m"}
    reader = LogStoreStreamReader(parse_options(given, is_stream=True), StructType(), clock)
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMinRows(4)
    first = reader.latestOffset(reader.initialOffset(), limit)
    assert first == {"t": {"0": 10, "1": 2}}
    append(store, 0, 2)
    append(store, 1, 1)
    assert reader.latestOffset(first, limit) == first
    assert reader.latestOffset(first, ReadAllAvailable()) == {"t": {"0": 12, "1": 3}}
    append(store, 1, 1)
    second = reader.latestOffset(first, limit)
    assert second == {"t": {"0": 12, "1": 4}}
    append(store, 0, 1)
    clock.advance(59_999)
    assert reader.latestOffset(second, limit) == second
    clock.advance(1)
    assert reader.latestOffset(second, limit) == {"t": {"0": 13, "1": 4}}


def test_the_fewest_and_the_most_offsets_go_together(store: KafkaStore) -> None:
    """Too few are waited for, and of many some are taken."""
    reader = reader_of(
        store, startingOffsets="earliest", minOffsetsPerTrigger="3", maxOffsetsPerTrigger="6"
    )
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(6)
    first = reader.latestOffset(reader.initialOffset(), limit)
    assert first == {"t": {"0": 5, "1": 1}}
    second = reader.latestOffset(first, limit)
    assert second == {"t": {"0": 10, "1": 2}}
    append(store, 0, 2)
    assert reader.latestOffset(second, limit) == second


def test_what_is_there_now_is_read_however_little(store: KafkaStore) -> None:
    """A query that ends would otherwise wait for more that it will not take."""
    reader = reader_of(store, startingOffsets="earliest", minOffsetsPerTrigger="50")
    reader.prepareForTriggerAvailableNow()
    limit = reader.getDefaultReadLimit()
    start = reader.initialOffset()
    for _ in range(2):
        assert reader.latestOffset(start, limit) == {"t": {"0": 10, "1": 2}}


def test_available_now_ends_with_what_was_there(store: KafkaStore) -> None:
    """What comes later is left to the next query."""
    reader = reader_of(store, startingOffsets="earliest")
    reader.prepareForTriggerAvailableNow()
    append(store, 0, 5)
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert end == {"t": {"0": 10, "1": 2}}
    assert reader.reportLatestOffset() == {"t": {"0": 15, "1": 2}}


def test_an_undecided_transaction_is_waited_for(store: KafkaStore) -> None:
    """A read_committed stream ends where the oldest open one starts, another does not wait."""
    batch = encode_batch(
        [KafkaRecord(0, 1000, None, b"open")],
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    store.partition("t", 0).append_produced(memoryview(batch), 1000)
    append(store, 0, 3)
    committed = reader_of(store).latestOffset({}, ReadAllAvailable())
    assert committed == {"t": {"0": 10, "1": 2}}
    everything = reader_of(store, isolation="read_uncommitted").latestOffset({}, ReadAllAvailable())
    assert everything == {"t": {"0": 14, "1": 2}}


def test_records_that_were_removed_unread_fail_the_query(store: KafkaStore) -> None:
    """Unless that is said to be fine; the error names partition and offsets."""
    reader = reader_of(store, startingOffsets="earliest")
    start = reader.initialOffset()
    store.partition("t", 0).delete_records(4)
    store.write_checkpoints()
    end = reader.latestOffset(start, ReadAllAvailable())
    with pytest.raises(DataLossError, match="t-0: records 0 to 3 were removed"):
        reader.partitions(start, end)
    lenient = reader_of(store, startingOffsets="earliest", failOnDataLoss="false")
    assert spans(lenient.partitions(start, end)) == [(0, 4, 10), (1, 0, 2)]


def test_a_topic_that_is_gone_is_gone_on_without_where_that_is_fine(store: KafkaStore) -> None:
    """The rest of the micro-batch is read."""
    gone = store.create_topic("u", 1)
    gone.partitions[0].append_records([Record(None, b"x", 1)])
    reader = reader_of(store, startingOffsets="earliest", failOnDataLoss="false")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    store.delete_topic(gone)
    assert spans(reader.partitions(start, end)) == [(0, 0, 10), (1, 0, 2)]


def test_a_start_that_is_not_in_the_store_is_told(store: KafkaStore) -> None:
    """A misspelled topic is not passed over."""
    reader = reader_of(store, startingOffsets='{"tt": {"0": 4}}')
    with pytest.raises(OptionError, match="startingOffsets: 'tt-0' is not what is read"):
        reader.initialOffset()


def test_a_new_topic_is_taken_in(store: KafkaStore) -> None:
    """From its beginning: nothing of it was seen before."""
    reader = reader_of(store)
    start = reader.initialOffset()
    store.create_topic("u", 1).partitions[0].append_records([Record(None, b"x", 1)])
    end = reader.latestOffset(start, ReadAllAvailable())
    assert end["u"] == {"0": 1}
    assert spans(reader.partitions(start, end)) == [(0, 0, 1)]
