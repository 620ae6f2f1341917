"""
Batches decoded to columns: arrays for whole programs of numpy, Arrow and Spark.

::

    from logstore.segments.kafka.columns import decode_columns, iterate_columns, to_arrow

    columns = decode_columns(path.read_bytes(), str(path))
    columns.offset, columns.timestamp_ms          # int64, one a record
    columns.key.data, columns.key.bounds          # as Arrow keeps binary: bytes and int32 bounds
    columns.batches.leader_epoch[columns.batch]   # what all records of a batch share

    for columns in iterate_columns(file, path):   # in steps of bounded size
        table = to_arrow(columns)

Offset, timestamp, key, value and headers come out as :func:`~logstore.segments.kafka.record.
decode_records` reads them; damage is told as CorruptEntryError with file and position. Messages of
magic 0 and 1 come out as the batches that they convert to. numpy is needed (the extra ``columns``),
numba makes it fast, pyarrow is needed for :func:`to_arrow` only; nothing that serves a client
imports this package.
"""

from __future__ import annotations

from logstore.segments.kafka.columns.arrow import (
    ARROW_FIELDS,
    arrow_column,
    arrow_schema,
    of_numbers,
    to_arrow,
)
from logstore.segments.kafka.columns.decoder import STEP_BYTES, decode_columns, iterate_columns
from logstore.segments.kafka.columns.record_columns import (
    BatchColumns,
    BytesColumn,
    HeaderColumns,
    RecordColumns,
)
from logstore.segments.kafka.columns.selection import Selection

__all__ = [
    "ARROW_FIELDS",
    "STEP_BYTES",
    "BatchColumns",
    "BytesColumn",
    "HeaderColumns",
    "RecordColumns",
    "Selection",
    "arrow_column",
    "arrow_schema",
    "decode_columns",
    "iterate_columns",
    "of_numbers",
    "to_arrow",
]
