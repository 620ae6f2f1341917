"""The records of a unit as columns, without what was aborted: what every conversion reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.convert.damage import Damage
from logstore.compat.spark.kafka_rows import rows_to_keep
from logstore.compat.spark.planned_file import open_planned
from logstore.compat.spark.salvage import next_batch_position
from logstore.compat.spark.work_unit import WorkUnit
from logstore.errors import CorruptEntryError
from logstore.host import File, FileSystem
from logstore.segments.kafka.columns import (
    BytesColumn,
    HeaderColumns,
    RecordColumns,
    Selection,
    iterate_columns,
)


def committed_columns(
    fs: FileSystem,
    unit: WorkUnit,
    *,
    is_measured: bool = False,
    on_damage: Callable[[Damage], None] | None = None,
    begin: tuple[int, int] | None = None,
) -> Iterator[RecordColumns]:
    """
    Yield the wanted records of a unit, step by step.

    `begin` is where the part begins that nobody has read yet, and the first offset that may stand
    there; None is the whole unit.

    With `is_measured` only sizes are to be known: values have bounds without data, and CRCs are
    not checked unless damage is to be passed over. That is so where there is `on_damage`, which is
    told of it.

    Raises:
        CorruptEntryError: a batch is damaged, without `on_damage`; it names file and position.

    """
    selection = Selection(
        unit.start_offset,
        unit.end_offset,
        has_control=False,
        is_run=True,
        is_checked=not is_measured or on_damage is not None,
        has_value_data=not is_measured,
    )
    file = open_planned(fs, unit)
    try:
        for columns in _sound_columns(file, unit, selection, on_damage, begin):
            rows = rows_to_keep(columns, unit.aborted)
            yield columns if rows is None else taken(columns, rows)
    finally:
        file.close()


def _sound_columns(
    file: File,
    unit: WorkUnit,
    selection: Selection,
    on_damage: Callable[[Damage], None] | None,
    begin: tuple[int, int] | None,
) -> Iterator[RecordColumns]:
    """Yield what is sound of a unit; damage is raised, or told and passed over."""
    position, next_offset = begin or (unit.position, unit.start_offset)
    # The first batch of a unit may begin before it; those behind follow one another.
    seen_offset = None if begin is None else next_offset
    end = unit.end_position
    while position < end:
        try:
            for columns in iterate_columns(file, unit.path, position, end, selection=selection):
                _check_order(columns, unit, seen_offset)
                position = columns.next_position
                seen_offset = next_offset = max(next_offset, _end_offset(columns))
                yield columns
            return
        except CorruptEntryError as error:
            if on_damage is None:
                raise
            if position < error.position:  # what is whole in the step in front of it
                for columns in iterate_columns(
                    file, unit.path, position, error.position, selection=selection
                ):
                    next_offset = max(next_offset, _end_offset(columns))
                    yield columns
            position = next_batch_position(file, error.position, end)
            last = _base_offset(file, position) - 1 if position < end else unit.end_offset - 1
            size_bytes = position - error.position
            known = (next_offset, last) if next_offset <= last else ()
            on_damage(Damage(unit.topic, unit.partition, error, size_bytes, *known))


def _check_order(columns: RecordColumns, unit: WorkUnit, seen_offset: int | None) -> None:
    """Refuse a step that does not begin behind what was read: no CRC covers base offsets."""
    batches = columns.batches
    if seen_offset is None or not len(batches) or batches.base_offset[0] >= seen_offset:
        return
    reason = f"a batch of offset {batches.base_offset[0]} is out of place"
    raise CorruptEntryError(unit.path, int(batches.position[0]), reason)


def _end_offset(columns: RecordColumns) -> int:
    batches = columns.batches
    return int((batches.base_offset + batches.last_offset_delta).max() + 1) if len(batches) else 0


def _base_offset(file: File, position: int) -> int:
    return int.from_bytes(file.read(position, 8), "big", signed=True)


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
