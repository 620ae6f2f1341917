"""The way without numba: records decoded one by one, their fields put into columns."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from logstore.segments.kafka.columns.batch_run import BatchRun, RecordSource
from logstore.segments.kafka.columns.record_columns import (
    BatchColumns,
    BytesColumn,
    HeaderColumns,
    RecordColumns,
)
from logstore.segments.kafka.record import CorruptRecordError, Record, decode_records
from logstore.segments.kafka.record_batch import CODEC_MASK, HEADER_BYTES, PREFIX_BYTES

_LENGTH = struct.Struct(">i")
_ATTRIBUTES = struct.Struct(">h")


def columns(
    run: BatchRun, source: RecordSource, batches: BatchColumns, next_position: int
) -> RecordColumns:
    """Return what the compiled loops would; raises CorruptEntryError as they do."""
    first, last = run.selection.span
    kept: list[Record] = []
    rows: list[int] = []
    for row in range(len(batches)):
        for record in _records(run, source, row):
            if first <= _wrapped(record.offset) <= last:
                kept.append(record)
                rows.append(row)
    selection = run.selection
    return RecordColumns(
        offset=np.array([_wrapped(record.offset) for record in kept], dtype=np.int64),
        timestamp_ms=np.array([_wrapped(record.timestamp_ms) for record in kept], dtype=np.int64),
        sequence=np.array([record.sequence for record in kept], dtype=np.int32),
        batch=np.array(rows, dtype=np.int32),
        key=_column([record.key for record in kept]) if selection.has_keys else None,
        value=_column([record.value for record in kept]) if selection.has_values else None,
        headers=_headers(kept) if selection.has_headers else None,
        batches=batches,
        next_position=next_position,
        unpacked_bytes=source.ends - source.starts,
    )


def _records(run: BatchRun, source: RecordSource, row: int) -> list[Record]:
    """Return the records of one batch, which is put together anew, uncompressed."""
    start = run.starts[row]
    head = bytearray(run.view[start : start + HEADER_BYTES])
    body = source.data[source.starts[row] : source.ends[row]].tobytes()
    attributes: int = _ATTRIBUTES.unpack_from(head, 21)[0]
    _ATTRIBUTES.pack_into(head, 21, attributes & ~CODEC_MASK)
    _LENGTH.pack_into(head, 8, HEADER_BYTES - PREFIX_BYTES + len(body))
    try:
        return decode_records(bytes(head) + body)
    except CorruptRecordError as error:
        run.refuse(start, str(error))


def _wrapped(number: int) -> int:
    """Return a sum as 64 bits hold it, in Java and in the compiled loops."""
    return ((number + 2**63) & (2**64 - 1)) - 2**63


def _column(values: Sequence[bytes | None]) -> BytesColumn:
    is_null = np.array([value is None for value in values], dtype=np.bool_)
    pieces = [value or b"" for value in values]
    bounds = np.array(list(accumulate(map(len, pieces), initial=0)), dtype=np.int32)
    data = np.frombuffer(b"".join(pieces), dtype=np.uint8)
    return BytesColumn(data, bounds, is_null, int(is_null.sum()))


def _headers(records: Sequence[Record]) -> HeaderColumns:
    counts = accumulate((len(record.headers) for record in records), initial=0)
    pairs = [pair for record in records for pair in record.headers]
    return HeaderColumns(
        np.array(list(counts), dtype=np.int32),
        _column([name.encode("utf-8", "surrogateescape") for name, _ in pairs]),
        _column([value for _, value in pairs]),
    )
