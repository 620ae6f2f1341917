"""
Steps of batches that nothing is odd about, decoded window by window.

What a log mostly has is read, checked and copied to its columns a piece at a time, while the piece
is in the processor's cache. Whatever is unusual, damage too, ends a step in front of it, for
:mod:`~logstore.segments.kafka.columns.decoder` to look at with care.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from logstore.checksum import crc32c
from logstore.host import File
from logstore.segments.compiled.reused_memory import ReusedMemory
from logstore.segments.kafka.columns import batch_kernel, fill_kernel, kernel
from logstore.segments.kafka.columns.file_window import FileWindow
from logstore.segments.kafka.columns.record_columns import (
    BatchColumns,
    BytesColumn,
    HeaderColumns,
    RecordColumns,
)
from logstore.segments.kafka.columns.selection import Selection
from logstore.segments.kafka.record_batch import HEADER_BYTES

#: half of a processor's own cache of today; larger batches are decoded with the others
WINDOW_BYTES = 512 * 1024
#: a step has room for this many records
_RECORD_BYTES = 16
_ALIGNED_BYTES = 64
_CRC_START = 21
_CRC = batch_kernel.CRC


class UsualSteps:
    """Decodes steps of a file up to `end_position`, of about `step_bytes` each."""

    def __init__(
        self,
        file: File,
        end_position: int,
        selection: Selection,
        step_bytes: int,
        memory: ReusedMemory,
    ) -> None:
        window_bytes = max(min(step_bytes, WINDOW_BYTES), HEADER_BYTES)
        self._window = FileWindow(file, end_position, window_bytes)
        self._selection = selection
        self._step_bytes = step_bytes
        self._memory = memory
        self._shape = _Shape(step_bytes, window_bytes)
        self._found = np.empty((batch_kernel.ROWS, window_bytes // HEADER_BYTES), dtype=np.int64)

    def decode(self, position: int, last_offset: int | None = None) -> RecordColumns | None:
        """
        Return the records of the step at `position`; None if no usual batch begins there.

        The batches must follow `last_offset`, that of the batch before, if it is told.
        """
        window, found = self._window, self._found
        first, last = self._selection.span
        previous = -1 if last_offset is None else last_offset
        step: _Step | None = None
        left_bytes = self._step_bytes
        window.seek(position)
        while left_bytes > 0:
            count, _, _, _ = batch_kernel.usual_batches(
                window.array, first, last, previous, left_bytes, found
            )
            if not count:
                if window.grow():
                    continue
                break
            step = step or _Step(self._shape, self._memory, self._selection)
            whole = self._whole(found[:, : int(count)])
            taken = step.fill(window, found, whole)
            if taken:
                end = int(found[batch_kernel.START : _CRC, taken - 1].sum())
                left_bytes -= end
                previous = step.last_offset
                window.seek(window.position + end)
            if taken < count:
                break
        return step.columns(window.position) if step is not None and step.batch_count else None

    def _whole(self, found: NDArray[np.int64]) -> int:
        """Return how many batches come before the first whose CRC is wrong."""
        starts, sizes, crcs = found.tolist()
        if self._selection.is_checked:
            view = self._window.view
            for row, crc in enumerate(crcs):
                start = starts[row]
                if crc32c(view[start + _CRC_START : start + sizes[row]]) != crc:
                    return row
        return len(starts)


class _Shape:
    """Where each of a step's arrays stands in one block of memory."""

    def __init__(self, step_bytes: int, window_bytes: int) -> None:
        most_bytes = step_bytes + window_bytes
        rows, batches = step_bytes // _RECORD_BYTES, most_bytes // HEADER_BYTES + 1
        self.row_count = rows
        counts: dict[str, tuple[int, Any]] = {
            "numbers": (2 * rows, np.int64),
            "positions": (batches, np.int64),
            "sequences": (rows, np.int32),
            "batch_rows": (rows, np.int32),
            "key_bounds": (rows + 1, np.int32),
            "value_bounds": (rows + 1, np.int32),
            "key_nulls": (rows, np.uint8),
            "value_nulls": (rows, np.uint8),
            "heads": (batches * HEADER_BYTES, np.uint8),
            "keys": (most_bytes, np.uint8),
            "values": (most_bytes, np.uint8),
        }
        self.size_bytes = 0
        self._places: dict[str, tuple[int, int, Any]] = {}
        for name, (count, kind) in counts.items():
            end = self.size_bytes + count * np.dtype(kind).itemsize
            self._places[name] = (self.size_bytes, end, kind)
            self.size_bytes = -(-end // _ALIGNED_BYTES) * _ALIGNED_BYTES

    def arrays(self, block: NDArray[np.uint8]) -> list[NDArray[Any]]:
        """Return the arrays that stand in `block`, in their order here."""
        return [block[start:end].view(kind) for start, end, kind in self._places.values()]


class _Step:
    """The columns of one step while they are filled."""

    def __init__(self, shape: _Shape, memory: ReusedMemory, selection: Selection) -> None:
        # What is not filled is never touched, so that it is no memory but in name.
        arrays = shape.arrays(memory.array(shape.size_bytes, np.uint8))
        numbers, self._positions, self._sequences, self._batch_rows, *columns = arrays
        self._numbers = numbers.reshape(2, shape.row_count)
        self._key_bounds, self._value_bounds, self._key_nulls, self._value_nulls = columns[:4]
        self._heads, self._keys, self._values = columns[4:]
        self._key_bounds[0] = self._value_bounds[0] = 0
        self._selection = selection
        self._wanted = _wanted(selection)
        self._record = np.empty((kernel.PLACES, 1), dtype=np.int32)
        self._state = np.zeros(fill_kernel.STATES, dtype=np.int64)

    @property
    def batch_count(self) -> int:
        """How many batches it has."""
        return int(self._state[fill_kernel.BATCH])

    @property
    def last_offset(self) -> int:
        """The last offset of its last batch."""
        return int(self._state[fill_kernel.LAST_OFFSET])

    def fill(self, window: FileWindow, found: NDArray[np.int64], count: int) -> int:
        """Append the first `count` batches that were found; return how many could be."""
        return int(
            fill_kernel.fill(
                window.array, found, count, window.position, self._wanted, self._selection.span,
                self._record, self._state, self._numbers, self._sequences, self._batch_rows,
                self._key_bounds, self._key_nulls, self._keys, self._value_bounds,
                self._value_nulls, self._values, self._heads, self._positions,
            )
        )  # fmt: skip

    def columns(self, next_position: int) -> RecordColumns:
        """Return what was filled."""
        count, batch_count, key_nulls, value_nulls, _ = self._state.tolist()
        selection = self._selection
        heads = self._heads[: batch_count * HEADER_BYTES]
        batches = BatchColumns.of_headers(heads, self._positions[:batch_count])
        key = value = headers = None
        if selection.has_keys:
            key = _column(self._keys, self._key_bounds, self._key_nulls, count, key_nulls)
        if selection.has_values:
            data = self._values if selection.has_value_data else self._values[:0]
            value = _column(data, self._value_bounds, self._value_nulls, count, value_nulls)
        if selection.has_headers:
            headers = HeaderColumns.without_headers(count)
        return RecordColumns(
            offset=self._numbers[0, :count],
            timestamp_ms=self._numbers[1, :count],
            sequence=self._sequences[:count],
            batch=self._batch_rows[:count],
            key=key,
            value=value,
            headers=headers,
            batches=batches,
            next_position=next_position,
            unpacked_bytes=batches.size_bytes - HEADER_BYTES,
        )


def _wanted(selection: Selection) -> int:
    return (
        selection.has_keys * fill_kernel.KEYS
        | selection.has_values * fill_kernel.VALUES
        | selection.has_value_data * fill_kernel.VALUE_DATA
        | selection.has_headers * fill_kernel.HEADERS
    )


def _column(
    data: NDArray[np.uint8],
    bounds: NDArray[np.int32],
    is_null: NDArray[np.uint8],
    count: int,
    null_count: int,
) -> BytesColumn:
    end = min(int(bounds[count]), len(data))
    return BytesColumn(data[:end], bounds[: count + 1], is_null[:count].view(np.bool_), null_count)
