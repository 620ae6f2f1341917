"""
Rows that become Kafka's record batches while they are staged, without a look at each.

Keys and values stay where Arrow has them until a compiled loop writes them into batches, which the
commit appends as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.convert.batch_kernel import measure_rests
from logstore.compat.spark.convert.batch_packing import Measures, Pieces, RecordPieces, Rests
from logstore.compat.spark.row_columns import RowColumns
from logstore.compat.spark.row_kernel import fill_rests, hash_keys, size_rests
from logstore.compat.spark.row_places import Place, RowPlaces
from logstore.partition import Record
from logstore.segments.compiled.reused_memory import ReusedMemory
from logstore.segments.kafka.plain_records import from_batches
from logstore.segments.kafka.record_batch import RecordBatch

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


def packed_rows(
    rows: RowColumns, places: RowPlaces, memory: ReusedMemory
) -> Iterator[tuple[Place, StagedBatch]]:
    """
    Yield rows as record batches, and where each goes.

    Raises:
        OptionError: a row names no topic, or a partition that its topic does not have.

    """
    keys, values = rows.keys, rows.values
    hashes = np.empty(len(rows), np.int64)
    hash_keys(*keys.arrays, hashes)
    rests, header_counts, sizes = _measured(rows)
    for place, at in rows.by_place(places, hashes):
        pieces = RecordPieces(
            np.arange(len(at), dtype=np.int64),
            rows.timestamps_ms[at],
            Pieces(keys.data, keys.starts[at], np.zeros(len(at), np.int64)),
            Pieces(values.data, values.starts[at], values.sizes[at]),
            Rests(rests.data, rests.bounds, rests.rows[at]),
            Measures(keys.starts[at], keys.sizes[at], header_counts[at], sizes[at]),
        )
        for one in pieces.pack(pieces.cuts(), memory):
            data = bytearray(one.data)
            data[:_BASE_OFFSET_BYTES] = bytes(_BASE_OFFSET_BYTES)  # producers send 0
            yield place, StagedBatch(one.last - one.first, data)


def _measured(rows: RowColumns) -> tuple[Rests, NDArray[np.int64], NDArray[np.int64]]:
    """
    Return what rows with headers have besides values, and numbers of headers and sizes of all.

    Sizes are those of the records but for length and both deltas.
    """
    keys, values, headers = rows.keys, rows.values, rows.headers
    count = len(rows)
    header_counts = np.zeros(count, np.int64)
    sizes = 2 + _field_bytes(keys.sizes) + _field_bytes(values.sizes)
    if headers is None:
        return Rests.none(count), header_counts, sizes
    bounds = np.empty(count + 1, np.int64)
    names, contents = headers.names, headers.values
    size_rests(keys.sizes, headers.bounds, names.sizes, contents.sizes, bounds)
    data = np.empty(int(bounds[-1]), np.uint8)
    which = headers.bounds
    fill_rests(keys.arrays, values.sizes, which, names.arrays, contents.arrays, bounds, data)
    rests = Rests(data, bounds, np.arange(count, dtype=np.int64))
    key_sizes = np.empty(count, np.int64)
    measures = keys.starts, key_sizes, header_counts, sizes
    measure_rests(rests.arrays, values.sizes, measures)
    return rests, header_counts, sizes


def _field_bytes(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how much of a record a key or value takes, its length included."""
    zigzag = np.maximum(sizes, 0) * 2
    found = np.maximum(sizes, 0) + 1
    for bits in (7, 14, 21, 28):
        found += zigzag >= 1 << bits
    return found
