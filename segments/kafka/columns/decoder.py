"""
From the bytes of a ``.log`` to columns.

The batches are walked one by one (:mod:`~logstore.segments.kafka.columns.batch_run`), their headers
read as arrays, and all their records together by the compiled loops of
:mod:`~logstore.segments.kafka.columns.kernel`; one by one where numba is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from logstore.host import File
from logstore.segments.compiled import loops
from logstore.segments.compiled.reused_memory import ReusedMemory
from logstore.segments.kafka.columns import kernel, plain_rows
from logstore.segments.kafka.columns.batch_kernel import SOURCE_BYTES_MAX
from logstore.segments.kafka.columns.batch_run import (
    BatchRun,
    OlderMessageError,
    RecordSource,
    first_batch_bytes,
)
from logstore.segments.kafka.columns.converted_run import ConvertedRun
from logstore.segments.kafka.columns.record_columns import (
    BatchColumns,
    BytesColumn,
    HeaderColumns,
    RecordColumns,
)
from logstore.segments.kafka.columns.selection import EVERYTHING, Selection
from logstore.segments.kafka.columns.usual_steps import UsualSteps
from logstore.segments.kafka.record_batch import HEADER_BYTES

if TYPE_CHECKING:
    from typing_extensions import Buffer

#: How much of a file one step reads, and about what its records have, decompressed. Larger steps
#: are slower: their arrays leave the caches.
STEP_BYTES = 2 * 1024 * 1024
_REST_MAX = 64


def decode_columns(
    data: Buffer, path: str = "buffer", *, selection: Selection = EVERYTHING
) -> RecordColumns:
    """
    Return all records of the batches in `data`, which may be memory that maps a file.

    Raises:
        CorruptEntryError: a batch is cut short, of another magic, its CRC or a record is wrong; it
            names `path` and the position of the batch.
        ValueError: there are more than 2 GiB, decompressed; use :func:`iterate_columns`.

    """
    view = memoryview(data).cast("B")
    run, taken = _taken(view, path, 0, selection, SOURCE_BYTES_MAX)
    if taken < len(view):
        if run.is_full:
            raise ValueError(f"{path}: more than {SOURCE_BYTES_MAX} bytes of records at once")
        run.refuse_tail(taken)
    return _columns(run, taken, ReusedMemory())


def iterate_columns(
    file: File,
    path: str,
    position: int = 0,
    end_position: int | None = None,
    *,
    selection: Selection = EVERYTHING,
    step_bytes: int = STEP_BYTES,
) -> Iterator[RecordColumns]:
    """
    Yield the records of the batches in ``[position, end_position)`` of a file, step by step.

    A step holds about `step_bytes`, read or decompressed, and at least one batch. Each has memory
    of its own, which a later one takes when nobody holds it any more. `position` must be where a
    batch starts, as index entries say; `end_position` where one ends (None: the end).

    Raises:
        CorruptEntryError: as :func:`decode_columns`; the steps before were yielded.

    """
    end = file.size() if end_position is None else min(end_position, file.size())
    steps = _Steps(file, path, (position, end), selection, step_bytes)
    while position < end:
        columns = steps.decode(position)
        position = columns.next_position
        yield columns


class _Steps:
    """
    Decodes one step after the other: the usual in one go, the rest with care.

    Where the usual way finds nothing it is left alone for a while, each time for longer.
    """

    def __init__(
        self, file: File, path: str, span: tuple[int, int], selection: Selection, step_bytes: int
    ) -> None:
        self._file = file
        self._path = path
        position, self._end_position = span
        self._selection = selection
        self._step_bytes = step_bytes
        self._memory = ReusedMemory()
        self._window = bytearray()
        self._usual: UsualSteps | None = None
        if loops.is_available():
            usual_bytes = min(step_bytes, max(self._end_position - position, 0))
            self._usual = UsualSteps(file, span[1], selection, usual_bytes, self._memory)
        #: steps that the usual way is left alone for, now and after the next miss
        self._rest = 0
        self._next_rest = 1
        #: of the batch before, in a selection that is a run
        self._last_offset: int | None = None

    def decode(self, position: int) -> RecordColumns:
        """Decode the step at `position`; raises CorruptEntryError."""
        columns = self._decode_usual(position)
        return self._decode_with_care(position) if columns is None else columns

    def _decode_usual(self, position: int) -> RecordColumns | None:
        if self._usual is None:
            return None
        if self._rest:
            self._rest -= 1
            return None
        found = self._usual.decode(position, self._last_offset)
        if found is None:
            self._rest = self._next_rest - 1
            self._next_rest = min(2 * self._next_rest, _REST_MAX)
            return None
        self._next_rest = 1
        if self._selection.is_run:
            batches = found.batches
            self._last_offset = int(batches.base_offset[-1] + batches.last_offset_delta[-1])
        return found

    def _decode_with_care(self, position: int) -> RecordColumns:
        size_bytes = min(max(self._step_bytes, HEADER_BYTES), self._end_position - position)
        if len(self._window) < size_bytes:
            self._window = bytearray(size_bytes)
        found_bytes = self._file.read_into(position, memoryview(self._window)[:size_bytes])
        view = memoryview(self._window)[:found_bytes]
        if found_bytes >= HEADER_BYTES:
            first_bytes = first_batch_bytes(view)
            if found_bytes < first_bytes <= self._end_position - position:
                view = memoryview(self._file.read(position, first_bytes))
        run, taken = _taken(
            view, self._path, position, self._selection, self._step_bytes, self._last_offset
        )
        if taken == 0:
            run.refuse_tail(0)
        self._last_offset = run.last_offset
        return _columns(run, taken, self._memory)


def _taken(
    view: memoryview,
    path: str,
    file_position: int,
    selection: Selection,
    size_bytes_max: int,
    last_offset: int | None = None,
) -> tuple[BatchRun, int]:
    """Return a run of batches, and where in `view` it ends; older messages are made batches."""
    run = BatchRun(view, path, file_position, selection, last_offset)
    try:
        return run, run.take(size_bytes_max)
    except OlderMessageError:
        run = ConvertedRun(view, path, file_position, selection, last_offset)
        return run, run.take(size_bytes_max)


def _columns(run: BatchRun, taken: int, memory: ReusedMemory) -> RecordColumns:
    """Decode the records of the batches that were taken; the next one starts at `taken`."""
    batches = run.batches()
    source = run.source(batches)
    next_position = run.file_position + taken
    if not loops.is_available():
        return plain_rows.columns(run, source, batches, next_position)
    row_count = int(batches.record_count.sum(dtype=np.int64))
    numbers = memory.array(2 * row_count, np.int64).reshape(2, row_count)
    sequences = memory.array(row_count, np.int32)
    rows = memory.array(row_count, np.int32)
    places = memory.array(kernel.PLACES * row_count, np.int32).reshape(kernel.PLACES, row_count)
    kept, batch, record, fault = kernel.scan(
        source.data,
        _bodies(source, batches),
        batches.is_log_append_time,
        run.selection.span,
        numbers,
        sequences,
        rows,
        places,
    )
    if fault:
        run.refuse(run.starts[int(batch)], f"record {record} {kernel.FAULTS[int(fault)]}")
    places = places[:, : int(kept)]
    selection = run.selection
    return RecordColumns(
        offset=numbers[0, :kept],
        timestamp_ms=numbers[1, :kept],
        sequence=sequences[:kept],
        batch=rows[:kept],
        key=_gathered(source, places, kernel.KEY, memory) if selection.has_keys else None,
        value=_values(source, places, selection, memory) if selection.has_values else None,
        headers=_headers(source, places, memory) if selection.has_headers else None,
        batches=batches,
        next_position=next_position,
        unpacked_bytes=source.ends - source.starts,
    )


def _bodies(source: RecordSource, batches: BatchColumns) -> loops.Int64s:
    """Return what :func:`kernel.scan` wants to know of each batch."""
    base_time = np.where(
        batches.is_log_append_time, batches.max_timestamp_ms, batches.base_timestamp_ms
    )
    return np.stack(
        (
            source.starts,
            source.ends,
            batches.record_count.astype(np.int64),
            batches.base_offset,
            base_time,
            batches.base_sequence.astype(np.int64),
        )
    )


def _values(
    source: RecordSource, places: kernel.Int32s, selection: Selection, memory: ReusedMemory
) -> BytesColumn:
    if selection.has_value_data:
        return _gathered(source, places, kernel.VALUE, memory)
    sizes = places[kernel.VALUE_BYTES]
    bounds = np.empty(len(sizes) + 1, dtype=np.int32)
    is_null = np.empty(len(sizes), dtype=np.bool_)
    null_count = kernel.bound(sizes, bounds, is_null)
    return BytesColumn(np.empty(0, dtype=np.uint8), bounds, is_null, int(null_count))


def _gathered(
    source: RecordSource, places: kernel.Int32s, row: int, memory: ReusedMemory
) -> BytesColumn:
    """Return the bytes whose start and size stand in two rows of `places`."""
    starts, sizes = places[row], places[row + 1]
    bounds = np.empty(len(sizes) + 1, dtype=np.int32)
    is_null = np.empty(len(sizes), dtype=np.bool_)
    null_count = kernel.bound(sizes, bounds, is_null)
    data = memory.array(int(bounds[-1]), np.uint8)
    kernel.gather(source.data, starts, bounds, data)
    return BytesColumn(data, bounds, is_null, int(null_count))


def _headers(source: RecordSource, places: kernel.Int32s, memory: ReusedMemory) -> HeaderColumns:
    counts = places[kernel.HEADER_COUNT]
    bounds = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=bounds[1:])
    found = np.empty((4, int(bounds[-1])), dtype=np.int32)
    if not found.size:
        return HeaderColumns.without_headers(len(counts))
    kernel.scan_headers(source.data, places, found)
    names, values = (_gathered(source, found, row, memory) for row in (0, 2))
    return HeaderColumns(bounds, names, values)
