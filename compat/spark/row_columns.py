"""
Rows as Spark hands them over, as columns of numbers and of bytes that stay where Arrow has them.

What compiled loops are given: they pack records and messages without a look at each row in Python.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.convert.batch_packing import Pieces
from logstore.compat.spark.row_places import Place, RowPlaces
from logstore.errors import RejectedAppendError
from logstore.partition import Header

#: it carries no types
_pa: Any = importlib.import_module("pyarrow")
_NONE = np.zeros(0, np.uint8)


@attrs.frozen(eq=False)
class HeaderColumns:
    """
    The headers of rows: row i has `counts[i]`, from number `firsts[i]` on.

    The size of a null is -1.
    """

    firsts: NDArray[np.int64]
    counts: NDArray[np.int64]
    names: Pieces
    values: Pieces

    @property
    def bounds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which of the names and values are of each row, as the compiled loops want it."""
        return self.firsts, self.counts

    def of_row(self, row: int) -> tuple[Header, ...]:
        """Return the headers of one row."""
        first = int(self.firsts[row])
        return tuple(
            Header((_bytes_at(self.names, at) or b"").decode(), _bytes_at(self.values, at))
            for at in range(first, first + int(self.counts[row]))
        )


@attrs.frozen(eq=False)
class RowColumns:
    """Rows of a ``pyarrow.RecordBatch``; the size of a key or value that is null is -1."""

    batch: Any
    keys: Pieces
    values: Pieces
    timestamps_ms: NDArray[np.int64]
    #: None where no row has headers
    headers: HeaderColumns | None

    @classmethod
    def of(cls, batch: Any, now_ms: int) -> RowColumns:
        """
        Return the columns of a batch of which :func:`is_packable` is true.

        Raises:
            RejectedAppendError: a header has no key.

        """
        keys, values = _pieces(_column(batch, "key"), batch), _pieces(batch.column("value"), batch)
        return cls(batch, keys, values, _timestamps_ms(batch, now_ms), _headers(batch))

    def __len__(self) -> int:
        return len(self.batch)

    def key(self, row: int) -> bytes | None:
        """Return one key."""
        return _bytes_at(self.keys, row)

    def by_place(
        self, places: RowPlaces, hashes: NDArray[np.int64]
    ) -> Iterator[tuple[Place, NDArray[np.int64]]]:
        """
        Yield places and the rows that go there, in order.

        `hashes` are those of the keys, not below zero, -1 for none.

        Raises:
            OptionError: a row names no topic, or a partition that its topic does not have.

        """
        for topic, rows in self._by_topic(places):
            partitions = self._partitions(rows, hashes[rows], places, topic)
            order = np.argsort(partitions, kind="stable")
            cuts = np.flatnonzero(np.diff(partitions[order])) + 1
            for picked in np.split(order, cuts):
                if len(picked):
                    yield (topic, int(partitions[picked[0]])), rows[picked]

    def _by_topic(self, places: RowPlaces) -> Iterator[tuple[str, NDArray[np.int64]]]:
        """Yield each topic and the rows that go there, in order."""
        if places.topic is not None:
            places.check_topic(places.topic)
            yield places.topic, np.arange(len(self), dtype=np.int64)
            return
        found = _column(self.batch, "topic")
        if found is None or found.null_count:
            places.check_topic(None)
        found = self.batch.column("topic").dictionary_encode()
        codes = found.indices.to_numpy(zero_copy_only=False)
        for code, topic in enumerate(found.dictionary.to_pylist()):
            places.check_topic(topic)
            yield topic, np.flatnonzero(codes == code)

    def _partitions(
        self,
        rows: NDArray[np.int64],
        hashes: NDArray[np.int64],
        places: RowPlaces,
        topic: str,
    ) -> NDArray[np.int64]:
        """Return where rows of a topic go: as they say, by their keys, or in turn."""
        count = places.partition_count(topic)
        found = np.where(hashes >= 0, hashes, rows) % count
        column = _column(self.batch, "partition")
        if column is None or column.null_count == len(column):
            return found
        is_named = ~column.is_null().to_numpy(zero_copy_only=False)[rows]
        named = column.cast(_pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)[rows]
        for index in np.unique(named[is_named]).tolist():
            places.check_partition(topic, index)
        return np.where(is_named, named, found)


def is_packable(batch: Any) -> bool:
    """Tell whether the times of a ``pyarrow.RecordBatch``, if it has any, are of a zone."""
    column = _column(batch, "timestamp")
    return column is None or column.type.tz is not None


def _column(batch: Any, name: str) -> Any:
    return batch.column(name) if name in batch.schema.names else None


def _pieces(column: Any, batch: Any) -> Pieces:
    """Return where a column's texts stand; all are null where there is no column."""
    count = len(batch if column is None else column)
    if column is None or column.null_count == count:
        return Pieces(_NONE, np.zeros(count, np.int64), np.full(count, -1, np.int64))
    _, bounds_of, data_of = column.buffers()
    is_large = column.type in (_pa.large_string(), _pa.large_binary())
    bounds = np.frombuffer(bounds_of, np.int64 if is_large else np.int32)
    bounds = bounds[column.offset : column.offset + count + 1]
    starts: NDArray[np.int64] = bounds[:-1].astype(np.int64)
    sizes: NDArray[np.int64] = np.diff(bounds).astype(np.int64, copy=False)
    if column.null_count:
        sizes[column.is_null().to_numpy(zero_copy_only=False)] = -1
    data = _NONE if data_of is None else np.frombuffer(data_of, np.uint8)
    return Pieces(data, starts, sizes)


def _bytes_at(pieces: Pieces, at: int) -> bytes | None:
    start, size = int(pieces.starts[at]), int(pieces.sizes[at])
    return None if size < 0 else pieces.data[start : start + size].tobytes()


def _timestamps_ms(batch: Any, now_ms: int) -> NDArray[np.int64]:
    column = _column(batch, "timestamp")
    if column is None:
        return np.full(len(batch), now_ms, np.int64)
    in_us = column.cast(_pa.timestamp("us", tz=column.type.tz)).cast(_pa.int64())
    is_null = in_us.is_null().to_numpy(zero_copy_only=False)
    found: NDArray[np.int64] = in_us.fill_null(0).to_numpy(zero_copy_only=False) // 1000
    return np.where(is_null, now_ms, found)


def _headers(batch: Any) -> HeaderColumns | None:
    """Return the headers of all rows, None if there is not one."""
    column = _column(batch, "headers")
    if column is None or column.null_count == len(column):
        return None
    bounds: NDArray[np.int64] = column.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    counts: NDArray[np.int64] = np.diff(bounds)
    if column.null_count:
        counts[column.is_null().to_numpy(zero_copy_only=False)] = 0
    if not counts.any():
        return None
    names, values = (_pieces(field, batch) for field in column.values.flatten())
    _check_names(bounds[:-1], counts, names)
    return HeaderColumns(bounds[:-1], counts, names, values)


def _check_names(firsts: NDArray[np.int64], counts: NDArray[np.int64], names: Pieces) -> None:
    nulls_before = np.zeros(len(names.sizes) + 1, np.int64)
    np.cumsum(names.sizes < 0, out=nulls_before[1:])
    if np.any(nulls_before[firsts + counts] > nulls_before[firsts]):
        raise RejectedAppendError("a header must have a key")
