"""
What a task does with a unit of a Kafka store: from bytes of a file to Arrow batches.

Only the columns that were asked for are decoded. Keys and values are handed on as they stand, and
never become Python objects.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.columns import CORRUPT, HEADERS
from logstore.compat.spark.constant_columns import ConstantColumns
from logstore.compat.spark.planned_file import opened
from logstore.compat.spark.predicates import Where
from logstore.compat.spark.salvage import next_batch_position
from logstore.compat.spark.time_window import wanted_ranges
from logstore.compat.spark.work_unit import AbortedSpan, WorkUnit
from logstore.errors import CorruptEntryError
from logstore.host import File, FileSystem
from logstore.segments.kafka.columns import (
    RecordColumns,
    Selection,
    arrow_column,
    iterate_columns,
    of_numbers,
)
from logstore.segments.kafka.compression import Codec

#: it carries no types
pa: Any = importlib.import_module("pyarrow")
_log = logging.getLogger(__name__)
_FAILFAST, _PERMISSIVE = "failfast", "permissive"
#: our name of a column that the decoder hands over as it is -> the decoder's
_DECODED = {"key": "key", "value": "value", "offset": "offset"}
_NO_TIMESTAMP_TYPE = -1
_TIMESTAMP = pa.timestamp("us", tz="UTC")


class RowReader:
    """Reads units into batches of one schema."""

    def __init__(
        self, fs: FileSystem, schema: Any, where: Where, mode: str, timestamp_slack_ms: int
    ) -> None:
        self._fs = fs
        self._schema = schema
        self._kinds: dict[str, Any] = dict(zip(schema.names, schema.types, strict=True))
        self._names: Sequence[str] = schema.names
        self._where = where
        self._mode = mode
        self._timestamp_slack_ms = timestamp_slack_ms
        self._constants = ConstantColumns()

    def read(self, unit: WorkUnit) -> Iterator[Any]:
        """
        Yield the unit's records as ``pyarrow.RecordBatch``, in order.

        Raises:
            CorruptEntryError: mode failfast, and a batch is damaged; it names file and position.

        """
        with opened(self._fs, unit) as parts:
            for file, part in parts:
                for span in wanted_ranges(file, part, self._where, self._timestamp_slack_ms):
                    yield from self._read_range(file, part, *span)

    def _read_range(self, file: File, unit: WorkUnit, position: int, end: int) -> Iterator[Any]:
        while position < end:
            try:
                for columns in iterate_columns(
                    file, unit.path, position, end, selection=self._selection(unit)
                ):
                    position = columns.next_position
                    rows = rows_to_keep(columns, unit.aborted)
                    if rows is None or len(rows):
                        yield self._batch(columns, unit, rows)
                return
            except CorruptEntryError as error:
                if self._mode == _FAILFAST:
                    raise
                yield from self._read_before(file, unit, position, error.position)
                if self._mode == _PERMISSIVE and CORRUPT in self._names:
                    yield self._told(unit, error)
                _log.warning("%s; passed over", error)
                position = next_batch_position(file, error.position, end)

    def _read_before(self, file: File, unit: WorkUnit, position: int, end: int) -> Iterator[Any]:
        """Yield what is whole in the step in front of a damaged batch."""
        if position < end:
            for columns in iterate_columns(
                file, unit.path, position, end, selection=self._selection(unit)
            ):
                rows = rows_to_keep(columns, unit.aborted)
                yield self._batch(columns, unit, rows)

    def _selection(self, unit: WorkUnit) -> Selection:
        names = self._names
        return Selection(
            unit.start_offset,
            unit.end_offset,
            has_keys="key" in names,
            has_values="value" in names,
            has_headers=HEADERS in names,
            has_control=False,
            is_run=True,
        )

    def _batch(self, columns: RecordColumns, unit: WorkUnit, rows: NDArray[Any] | None) -> Any:
        arrays: list[Any] = []
        for name, kind in self._kinds.items():
            if name in _DECODED:
                array = arrow_column(columns, _DECODED[name])
            elif shared := _shared_value(name, columns, unit):
                array = self._constants.column(name, *shared, kind, len(columns))
            else:
                array = _column(name, columns)
            arrays.append(array if array.type == kind else array.cast(kind))
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        return batch if rows is None else batch.take(of_numbers(rows))

    def _told(self, unit: WorkUnit, error: CorruptEntryError) -> Any:
        """Return the one row that stands for a damaged batch."""
        row = {"topic": unit.topic, "partition": unit.partition, "file": unit.path}
        row |= {"position": error.position, CORRUPT: str(error)}
        return pa.RecordBatch.from_pylist(
            [{name: row.get(name) for name in self._names}], schema=self._schema
        )


def rows_to_keep(columns: RecordColumns, aborted: Sequence[AbortedSpan]) -> NDArray[np.intp] | None:
    """Return the rows that no aborted transaction has; None if all may stay."""
    batches = columns.batches
    gone = np.zeros(len(batches), dtype=np.bool_)
    transactional = batches.is_transactional if aborted else gone
    if transactional.any():
        for span in aborted:
            gone |= (
                transactional
                & (batches.producer_id == span.producer_id)
                & (batches.base_offset >= span.first_offset)
                & (batches.base_offset <= span.last_offset)
            )
    return np.flatnonzero(~gone[columns.batch]) if gone.any() else None


def _shared_value(name: str, columns: RecordColumns, unit: WorkUnit) -> tuple[object] | None:
    """Return what all these rows have in a column; None if they must be looked at."""
    if name == HEADERS:
        assert columns.headers is not None, "they were asked for"
        return None if len(columns.headers.names) else (None,)
    if name == "timestampType":
        types = _types_of_batches(columns)
        return (int(types[0]),) if len(types) and (types == types[0]).all() else None
    of_unit = {"topic": unit.topic, "partition": unit.partition, "file": unit.path, CORRUPT: None}
    return (of_unit[name],) if name in of_unit else None


def _column(name: str, columns: RecordColumns) -> Any:
    """Return a column that the decoder does not make as Spark wants it."""
    if name == "timestamp":
        return of_numbers(columns.timestamp_ms * 1000, _TIMESTAMP)
    if name == "timestampType":
        return of_numbers(_types_of_batches(columns)[columns.batch])
    if name == HEADERS:
        return _headers(columns)
    if name == "sequence":
        return of_numbers(columns.sequence)
    return _of_batch(name, columns)


def _headers(columns: RecordColumns) -> Any:
    """Return the headers, null where a record has none, as in Spark's Kafka source."""
    assert columns.headers is not None, "they were asked for"
    decoded = arrow_column(columns, "headers")
    bounds = columns.headers.bounds
    is_empty = of_numbers(bounds[1:] == bounds[:-1])
    kind = decoded.type
    return pa.ListArray.from_arrays(of_numbers(bounds), decoded.values, kind, mask=is_empty)


def _types_of_batches(columns: RecordColumns) -> NDArray[np.int32]:
    batches = columns.batches
    types = batches.is_log_append_time.astype(np.int32)
    types[batches.magic == 0] = _NO_TIMESTAMP_TYPE
    return types


@cache
def _codec_names() -> Any:
    return pa.array([codec.name.lower() for codec in Codec], pa.string())


def _of_batch(name: str, columns: RecordColumns) -> Any:
    """Return a column of what the batch's header says, a row a record."""
    batches = columns.batches
    if name == "batchCodec":
        return _codec_names().take(of_numbers(batches.codec[columns.batch]))
    values: dict[str, NDArray[Any]] = {
        "position": batches.position,
        "batchBaseOffset": batches.base_offset,
        "batchSizeBytes": batches.size_bytes.astype(np.int32),
        "leaderEpoch": batches.leader_epoch,
        "producerId": batches.producer_id,
        "producerEpoch": batches.producer_epoch,
        "isTransactional": batches.is_transactional,
    }
    return of_numbers(values[name][columns.batch])
