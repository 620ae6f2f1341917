"""
Commit logs read in bulk: to columns for programs of numpy and Arrow, and to what dispatch needs.

::

    from logstore.segments.rocketmq.columns import decode_columns, iterate_columns, to_arrow

    columns = decode_columns(path.read_bytes(), str(path))
    columns.queue_offset, columns.store_timestamp_ms   # numbers, one a message
    columns.body.data, columns.body.bounds             # as Arrow keeps binary: bytes and bounds
    columns.topic.numbers, columns.topic.texts         # few different texts

    for columns in iterate_columns(file, path):        # in steps of bounded size
        table = to_arrow(columns)

    scan = scan_records(data)                          # to catch up after a recovery
    for run in scan.queue_runs():
        run.topic, run.queue_id, run.units             # consume queue units, ready to be written

Messages come out as :func:`~logstore.segments.rocketmq.messages.message.decode_message` reads them;
damage is told as CorruptEntryError with file and position. numpy is needed (the extra
``columns``), numba makes it fast (without it the loops run as plain Python, some hundred times
slower), pyarrow is needed for :func:`to_arrow` only; nothing that is needed to serve a client
imports this package.
"""

from __future__ import annotations

from logstore.segments.compiled.loops import is_available
from logstore.segments.rocketmq.columns.arrow import ARROW_FIELDS, arrow_schema, to_arrow
from logstore.segments.rocketmq.columns.decoder import STEP_BYTES, decode_columns, iterate_columns
from logstore.segments.rocketmq.columns.message_columns import (
    BytesColumn,
    MessageColumns,
    NumberedColumn,
)
from logstore.segments.rocketmq.columns.record_scan import (
    IndexEntries,
    QueueRun,
    RecordScan,
    ScanStop,
    scan_records,
)

__all__ = [
    "ARROW_FIELDS",
    "STEP_BYTES",
    "BytesColumn",
    "IndexEntries",
    "MessageColumns",
    "NumberedColumn",
    "QueueRun",
    "RecordScan",
    "ScanStop",
    "arrow_schema",
    "decode_columns",
    "is_available",
    "iterate_columns",
    "scan_records",
    "to_arrow",
]
