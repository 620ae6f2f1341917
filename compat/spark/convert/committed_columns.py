"""The records of a unit as columns, without what was aborted: what every conversion reads."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.kafka_rows import rows_to_keep
from logstore.compat.spark.work_unit import WorkUnit
from logstore.host import FileSystem
from logstore.segments.kafka.columns import (
    BytesColumn,
    HeaderColumns,
    RecordColumns,
    Selection,
    iterate_columns,
)


def committed_columns(
    fs: FileSystem, unit: WorkUnit, *, is_measured: bool = False
) -> Iterator[RecordColumns]:
    """
    Yield the wanted records of a unit, step by step.

    With `is_measured` only sizes are to be known: CRCs are not checked, and values have bounds
    without data.

    Raises:
        CorruptEntryError: a batch is damaged; it names file and position.

    """
    selection = Selection(
        unit.start_offset,
        unit.end_offset,
        has_control=False,
        is_run=True,
        is_checked=not is_measured,
        has_value_data=not is_measured,
    )
    file = fs.open(unit.path, writable=False)
    try:
        for columns in iterate_columns(
            file, unit.path, unit.position, unit.end_position, selection=selection
        ):
            rows = rows_to_keep(columns, unit.aborted)
            yield columns if rows is None else taken(columns, rows)
    finally:
        file.close()


def taken(columns: RecordColumns, rows: NDArray[np.intp]) -> RecordColumns:
    """Return these rows alone."""
    assert columns.key is not None
    assert columns.value is not None
    assert columns.headers is not None
    return attrs.evolve(
        columns,
        offset=columns.offset[rows],
        timestamp_ms=columns.timestamp_ms[rows],
        sequence=columns.sequence[rows],
        batch=columns.batch[rows],
        key=_taken_bytes(columns.key, rows),
        value=_taken_bytes(columns.value, rows),
        headers=_taken_headers(columns.headers, rows),
    )


def _taken_bytes(column: BytesColumn, rows: NDArray[np.intp]) -> BytesColumn:
    sizes = np.diff(column.bounds)[rows]
    bounds = np.zeros(len(rows) + 1, dtype=np.int32)
    np.cumsum(sizes, out=bounds[1:])
    starts = column.bounds[:-1][rows]
    shifts = np.repeat(starts - bounds[:-1], sizes)
    places: NDArray[np.intp] = np.add(shifts, np.arange(int(bounds[-1]), dtype=np.intp))
    is_null = column.is_null[rows]
    data = column.data[places] if len(column.data) else column.data  # bounds may stand alone
    return BytesColumn(data, bounds, is_null, int(is_null.sum()))


def _taken_headers(headers: HeaderColumns, rows: NDArray[np.intp]) -> HeaderColumns:
    counts = np.diff(headers.bounds)[rows]
    bounds = np.zeros(len(rows) + 1, dtype=np.int32)
    np.cumsum(counts, out=bounds[1:])
    starts = headers.bounds[:-1][rows]
    shifts = np.repeat(starts - bounds[:-1], counts)
    places: NDArray[np.intp] = np.add(shifts, np.arange(int(bounds[-1]), dtype=np.intp))
    return HeaderColumns(
        bounds, _taken_bytes(headers.names, places), _taken_bytes(headers.values, places)
    )
