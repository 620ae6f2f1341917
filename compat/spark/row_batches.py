"""
Rows that become Kafka's record batches while they are staged, without a look at each.

They have no headers. Keys and values stay where Arrow has them until a compiled loop writes them
into batches, which the commit appends as they are.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.convert.batch_packing import Measures, Pieces, RecordPieces, Rests
from logstore.compat.spark.row_kernel import hash_keys
from logstore.compat.spark.row_places import Place, RowPlaces
from logstore.partition import Record
from logstore.segments.compiled.reused_memory import ReusedMemory
from logstore.segments.kafka.plain_records import from_batches
from logstore.segments.kafka.record_batch import RecordBatch

#: it carries no types
_pa: Any = importlib.import_module("pyarrow")
_NONE = np.zeros(0, np.uint8)
_BASE_OFFSET_BYTES = 8


@attrs.frozen(eq=False)
class StagedBatch:
    """A record batch that was made of so many rows."""

    record_count: int
    data: bytearray

    def __len__(self) -> int:
        return self.record_count

    def records(self) -> list[Record]:
        """Return what it is made of, for a topic that takes no batch of this size."""
        batch = RecordBatch(memoryview(self.data), len(self.data))
        return from_batches([batch], batch.base_offset, self.record_count)


def is_plain(batch: Any) -> bool:
    """Tell whether the rows of a ``pyarrow.RecordBatch`` are such: no headers, times of a zone."""
    for name in batch.schema.names:
        column = batch.column(name)
        if name == "headers" and column.null_count < len(column):
            return False
        if name == "timestamp" and column.type.tz is None:
            return False
    return True


def packed_rows(
    batch: Any, places: RowPlaces, now_ms: int, memory: ReusedMemory
) -> Iterator[tuple[Place, StagedBatch]]:
    """
    Yield the rows of a ``pyarrow.RecordBatch`` as record batches, and where each goes.

    Raises:
        OptionError: a row names no topic, or a partition that its topic does not have.

    """
    keys, values = _pieces(batch, "key"), _pieces(batch, "value")
    times = _timestamps_ms(batch, now_ms)
    sizes = 2 + _field_bytes(keys.sizes) + _field_bytes(values.sizes)
    hashes = np.empty(len(batch), np.int64)
    hash_keys(*keys.arrays, hashes)
    for topic, rows in _by_topic(batch, places):
        partitions = _partitions(batch, rows, hashes[rows], places, topic)
        order = np.argsort(partitions, kind="stable")
        sorted_partitions = partitions[order]
        cuts = np.flatnonzero(np.diff(sorted_partitions)) + 1
        for picked in np.split(order, cuts):
            if not len(picked):
                continue
            place = topic, int(partitions[picked[0]])
            at = rows[picked]
            nothing = np.zeros(len(at), np.int64)
            pieces = RecordPieces(
                np.arange(len(at), dtype=np.int64),
                times[at],
                Pieces(keys.data, keys.starts[at], nothing),
                Pieces(values.data, values.starts[at], values.sizes[at]),
                Rests.none(len(at)),
                Measures(keys.starts[at], keys.sizes[at], nothing, sizes[at]),
            )
            for one in pieces.pack(pieces.cuts(), memory):
                data = bytearray(one.data)
                data[:_BASE_OFFSET_BYTES] = bytes(_BASE_OFFSET_BYTES)  # producers send 0
                yield place, StagedBatch(one.last - one.first, data)


def _column(batch: Any, name: str) -> Any:
    return batch.column(name) if name in batch.schema.names else None


def _pieces(batch: Any, name: str) -> Pieces:
    """Return where a column's texts stand; the size of a null is -1."""
    column = _column(batch, name)
    if column is None or column.null_count == len(column):
        return Pieces(_NONE, np.zeros(len(batch), np.int64), np.full(len(batch), -1, np.int64))
    _, bounds_of, data_of = column.buffers()
    is_large = column.type in (_pa.large_string(), _pa.large_binary())
    bounds = np.frombuffer(bounds_of, np.int64 if is_large else np.int32)
    bounds = bounds[column.offset : column.offset + len(column) + 1]
    starts: NDArray[np.int64] = bounds[:-1].astype(np.int64)
    sizes: NDArray[np.int64] = np.diff(bounds).astype(np.int64, copy=False)
    if column.null_count:
        sizes[column.is_null().to_numpy(zero_copy_only=False)] = -1
    data = _NONE if data_of is None else np.frombuffer(data_of, np.uint8)
    return Pieces(data, starts, sizes)


def _field_bytes(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how much of a record a key or value takes, its length included."""
    zigzag = np.maximum(sizes, 0) * 2
    found = np.maximum(sizes, 0) + 1
    for bits in (7, 14, 21, 28):
        found += zigzag >= 1 << bits
    return found


def _timestamps_ms(batch: Any, now_ms: int) -> NDArray[np.int64]:
    column = _column(batch, "timestamp")
    if column is None:
        return np.full(len(batch), now_ms, np.int64)
    in_us = column.cast(_pa.timestamp("us", tz=column.type.tz)).cast(_pa.int64())
    is_null = in_us.is_null().to_numpy(zero_copy_only=False)
    found: NDArray[np.int64] = in_us.fill_null(0).to_numpy(zero_copy_only=False) // 1000
    return np.where(is_null, now_ms, found)


def _by_topic(batch: Any, places: RowPlaces) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Yield each topic and the rows that go there, in order."""
    if places.topic is not None:
        places.check_topic(places.topic)
        yield places.topic, np.arange(len(batch), dtype=np.int64)
        return
    found = _column(batch, "topic")
    if found is None or found.null_count:
        places.check_topic(None)
    found = batch.column("topic").dictionary_encode()
    codes = found.indices.to_numpy(zero_copy_only=False)
    for code, topic in enumerate(found.dictionary.to_pylist()):
        places.check_topic(topic)
        yield topic, np.flatnonzero(codes == code)


def _partitions(
    batch: Any,
    rows: NDArray[np.int64],
    hashes: NDArray[np.int64],
    places: RowPlaces,
    topic: str,
) -> NDArray[np.int64]:
    """Return where rows of a topic go: as they say, by their keys, or in turn."""
    count = places.partition_count(topic)
    found = np.where(hashes >= 0, hashes, rows) % count
    column = _column(batch, "partition")
    if column is None or column.null_count == len(column):
        return found
    is_named = ~column.is_null().to_numpy(zero_copy_only=False)[rows]
    named = column.cast(_pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)[rows]
    for index in np.unique(named[is_named]).tolist():
        places.check_partition(topic, index)
    return np.where(is_named, named, found)
