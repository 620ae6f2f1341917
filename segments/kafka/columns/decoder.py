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
from logstore.segments.kafka.record_batch import HEADER_BYTES

if TYPE_CHECKING:
    from typing_extensions import Buffer

#: How much of a file one step reads, and about what its records have, decompressed. Larger steps
#: are slower: their arrays leave the caches.
STEP_BYTES = 2 * 1024 * 1024


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
    memory = ReusedMemory()
    window = bytearray(min(max(step_bytes, HEADER_BYTES), max(end - position, 0)))
    while position < end:
        found_bytes = file.read_into(position, memoryview(window)[: end - position])
        view = memoryview(window)[:found_bytes]
        if found_bytes >= HEADER_BYTES and found_bytes < first_batch_bytes(view) <= end - position:
            view = memoryview(file.read(position, first_batch_bytes(view)))
        run, taken = _taken(view, path, position, selection, step_bytes)
        if taken == 0:
            run.refuse_tail(0)
        position += taken
        yield _columns(run, taken, memory)


def _taken(
    view: memoryview, path: str, file_position: int, selection: Selection, size_bytes_max: int
) -> tuple[BatchRun, int]:
    """Return a run of batches, and where in `view` it ends; older messages are made batches."""
    run = BatchRun(view, path, file_position, selection)
    try:
        return run, run.take(size_bytes_max)
    except OlderMessageError:
        run = ConvertedRun(view, path, file_position, selection)
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
        return HeaderColumns(bounds, _no_bytes(), _no_bytes())
    kernel.scan_headers(source.data, places, found)
    names, values = (_gathered(source, found, row, memory) for row in (0, 2))
    return HeaderColumns(bounds, names, values)


def _no_bytes() -> BytesColumn:
    """Return a column without a row."""
    no_data = np.empty(0, dtype=np.uint8)
    return BytesColumn(no_data, np.zeros(1, dtype=np.int32), np.empty(0, dtype=np.bool_), 0)
