"""A small store with a bit of everything, and what reading all of it gives."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import attrs
import pytest

from logstore.errors import LogStoreError
from logstore.host import read_file
from logstore.segments.kafka.batch_walk import iterate_entries
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.legacy.message_set import encode_message_set
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import CorruptRecordError, Record, decode_records
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.store import KafkaStore, StoreOptions
from logstore.testing import SimulatedHost
from tests.segments.kafka.accidents.consumer import fetched, fetched_committed
from tests.segments.kafka.accidents.witnessed_store import DATA, StoreTestimony, WitnessedStore
from tests.segments.kafka.accidents.workload import SMALL

TINY = {**SMALL, "index.interval.bytes": "60", "segment.index.bytes": "48"}
#: (offset, timestamp, key, value)
Plain = tuple[int, int, bytes | None, bytes | None]
#: what each way of reading gives, by (partition, way): records, or the error
Readings = dict[tuple[str, str], "list[Plain] | Exception"]


def small_store(*, is_stopped: bool) -> SimulatedHost:
    """Return the disk of the store, after a clean stop or after the death of the process."""
    host = SimulatedHost(sector_bytes=32)
    host.fs.journal.is_recording = False
    store = WitnessedStore(host, StoreTestimony())
    store.create("plain", 1, TINY)
    store.create("money", 1, TINY)
    store.create("old", 1, TINY)
    for number in range(3):
        codec = Codec.GZIP if number == 1 else Codec.NONE
        store.append("plain", 0, [(b"k%d" % number, b"v" * 30)] * 2, codec=codec, producer_id=7)
    store.append("money", 0, [(b"a", b"1")], producer_id=1, is_transactional=True)
    store.append("money", 0, [(b"b", b"2")], producer_id=2, is_transactional=True)
    store.end_transaction("money", 0, 1, is_commit=False)
    store.end_transaction("money", 0, 2, is_commit=True)
    store.append("money", 0, [(b"c", b"3")])
    legacy = [Record(n, 1_700_000_000_000 + n, b"old", b"%d" % n) for n in range(2)]
    data = bytearray(encode_message_set(legacy, magic=1))
    for entry in iterate_entries(memoryview(data)):
        store.store.partition("old", 0).append_stored(entry)
    for name in ("plain", "money", "old"):
        store.store.partition(name, 0).log.roll()
        store.append(name, 0, [(b"last", b"of all")])
        store.store.partition(name, 0).flush()
    if is_stopped:
        store.store.close()
    host.fs.process_death()
    return host


def records_in(batches: Iterator[RecordBatch]) -> Iterator[Plain]:
    """Yield the data in these batches."""
    for batch in batches:
        if not batch.is_control:
            for record in decode_records(batch.data):
                yield record.offset, record.timestamp_ms, record.key, record.value


def plain_of(partition: KafkaPartition, *, is_committed_only: bool) -> Iterator[Plain]:
    """Yield what `read_records` gives from the log start on."""
    for one in partition.read_records(
        partition.start_offset, 1000, is_committed_only=is_committed_only
    ):
        yield one.offset, one.timestamp_ms, one.key, one.value


def looked_up(partition: KafkaPartition) -> Iterator[Plain]:
    """Yield the record at each offset, found through the index."""
    seen = -1
    start = partition.start_offset
    for offset in range(start, min(start + 20, partition.end_offset)):  # damage may say millions
        for one in partition.read_records(offset, 1):
            if one.offset > seen:
                seen = one.offset
                yield one.offset, one.timestamp_ms, one.key, one.value


WAYS: dict[str, Callable[[KafkaPartition], Iterator[Plain]]] = {
    "read": lambda partition: plain_of(partition, is_committed_only=False),
    "read committed": lambda partition: plain_of(partition, is_committed_only=True),
    "fetch": lambda partition: records_in(fetched(partition)),
    "fetch committed": lambda partition: records_in(fetched_committed(partition)),
    "look up": looked_up,
}


def reading(partition: KafkaPartition, way: str) -> list[Plain] | Exception:
    """Return what one way of reading gives, the error if it raises one of ours."""
    try:
        return list(WAYS[way](partition))
    except LogStoreError as error:
        return error


@attrs.frozen
class Outcome:
    """What opening a store and reading all of it gave."""

    readings: Readings
    #: the store did not open
    refusal: LogStoreError | None
    #: warnings of the log, and what recoveries cut
    told: list[str]


def read_all(
    host: SimulatedHost, caplog: pytest.LogCaptureFixture, *, is_writable: bool
) -> Outcome:
    """Open the store and read everything in every way."""
    caplog.clear()
    caplog.set_level(logging.WARNING)
    try:
        store = KafkaStore(host, DATA, StoreOptions(is_writable=is_writable))
    except LogStoreError as error:
        return Outcome({}, error, [])
    told = [record.getMessage() for record in caplog.records]
    readings: Readings = {}
    for partition in store.partitions():
        for way in WAYS:
            readings[f"{partition.topic}-{partition.index}", way] = reading(partition, way)
        recovery = partition.recovery
        if recovery is not None and recovery.reason:
            told.append(recovery.reason)
    told += [record.getMessage() for record in caplog.records[len(told) :]]
    return Outcome(readings, None, told)


def names_file(error: Exception) -> bool:
    """Tell whether an error says where; a client that fetched has no file to name."""
    return "/data/" in str(error) or isinstance(error, CorruptRecordError)


def places(host: SimulatedHost, directory: str = DATA) -> Iterator[tuple[str, int, int]]:
    """Yield (path, position, byte) of every byte in the store."""
    for entry in host.fs.list_directory(directory):
        path = f"{directory}/{entry.name}"
        if entry.is_directory:
            yield from places(host, path)
        else:
            for position, byte in enumerate(read_file(host.fs, path)):
                yield path, position, byte
