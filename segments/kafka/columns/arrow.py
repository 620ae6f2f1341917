"""
Columns handed to Arrow, without a copy of keys and values.

The fields carry what Spark's Kafka source shows of a record, and what its batch says besides.
pyarrow is imported on first use.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logstore.segments.kafka.columns.record_columns import (
    BytesColumn,
    HeaderColumns,
    RecordColumns,
)

#: all there are, in order; see :func:`arrow_schema` for their types
ARROW_FIELDS = (
    "offset",
    "timestamp",
    "timestamp_type",
    "key",
    "value",
    "headers",
    "leader_epoch",
    "producer_id",
    "producer_epoch",
    "sequence",
    "is_transactional",
    "is_control",
    "batch_position",
)


@cache
def _pyarrow() -> Any:
    return importlib.import_module("pyarrow")


@cache
def arrow_schema(fields: tuple[str, ...] = ARROW_FIELDS) -> Any:
    """
    Return the ``pyarrow.Schema`` of these fields.

    Timestamps are milliseconds UTC, and -1 of a record without one stays 1969; the type is 0 for
    CreateTime and 1 for LogAppendTime, as in Spark.
    """
    pa = _pyarrow()
    header = pa.struct([pa.field("key", pa.string(), nullable=False), ("value", pa.binary())])
    types = {
        "offset": pa.int64(),
        "timestamp": pa.timestamp("ms", tz="UTC"),
        "timestamp_type": pa.int32(),
        "key": pa.binary(),
        "value": pa.binary(),
        "headers": pa.list_(pa.field("item", header, nullable=False)),
        "leader_epoch": pa.int32(),
        "producer_id": pa.int64(),
        "producer_epoch": pa.int16(),
        "sequence": pa.int32(),
        "is_transactional": pa.bool_(),
        "is_control": pa.bool_(),
        "batch_position": pa.int64(),
    }
    nullable = ("key", "value")
    return pa.schema([pa.field(name, types[name], name in nullable) for name in fields])


def to_arrow(columns: RecordColumns, fields: Sequence[str] = ARROW_FIELDS) -> Any:
    """
    Return a ``pyarrow.RecordBatch`` of these fields, a row a record.

    Bytes of a header's name that are no UTF-8 become U+FFFD, as in Java's clients. KeyError names
    a field that does not exist, or a column that was not decoded.
    """
    arrays = [arrow_column(columns, name) for name in fields]
    return _pyarrow().RecordBatch.from_arrays(arrays, schema=arrow_schema(tuple(fields)))


def arrow_column(columns: RecordColumns, field: str) -> Any:
    """Return the ``pyarrow.Array`` of one field; as :func:`to_arrow`."""
    pa, kind = _pyarrow(), _type_of(field)
    if field in _NUMBERS:
        return of_numbers(_NUMBERS[field](columns), kind)
    if field == "headers":
        return _headers(pa, columns)
    return _binary(pa, {"key": columns.key, "value": columns.value}[field], field, kind)


def of_numbers(values: NDArray[Any], kind: Any = None) -> Any:
    """
    Return numbers, or truths, as a ``pyarrow.Array`` of type `kind`, which has their size.

    Numbers are not copied. ``pyarrow.array()`` would load pandas before it looks at them, for a
    quarter of a second.
    """
    pa = _pyarrow()
    if values.dtype == np.bool_:
        buffer, kind = np.packbits(values, bitorder="little"), pa.bool_()
    else:
        buffer = np.ascontiguousarray(values)
        kind = pa.from_numpy_dtype(values.dtype) if kind is None else kind
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(buffer)])


@cache
def _type_of(field: str) -> Any:
    return arrow_schema((field,)).field(0).type


def _of_batch(values: NDArray[Any], columns: RecordColumns) -> NDArray[Any]:
    """Return a value a record of a value a batch."""
    taken: NDArray[Any] = values[columns.batch]
    return taken


def _binary(pa: Any, column: BytesColumn | None, name: str, kind: Any) -> Any:
    if column is None:
        raise KeyError(f"the column {name!r} was not decoded; ask for it in the selection")
    valid = None
    if column.null_count:
        valid = pa.py_buffer(np.packbits(~column.is_null, bitorder="little"))
    buffers = [valid, pa.py_buffer(column.bounds), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(kind, len(column), buffers, column.null_count)


def _headers(pa: Any, columns: RecordColumns) -> Any:
    headers = columns.headers
    if headers is None:
        raise KeyError("the column 'headers' was not decoded; ask for it in the selection")
    pairs = pa.StructArray.from_arrays(
        [_names(pa, headers), _binary(pa, headers.values, "headers", pa.binary())],
        fields=_type_of("headers").value_type.fields,
    )
    return pa.ListArray.from_arrays(of_numbers(headers.bounds), pairs, type=_type_of("headers"))


def _names(pa: Any, headers: HeaderColumns) -> Any:
    """Return the names as strings; those that are no UTF-8 are mended."""
    names = headers.names
    if not _is_utf8(names):
        return pa.array([(name or b"").decode("utf-8", "replace") for name in names], pa.string())
    return _binary(pa, names, "headers", pa.string())


def _is_utf8(names: BytesColumn) -> bool:
    """Tell whether each name is UTF-8: all together are, and none begins inside of a character."""
    firsts = names.bounds[:-1][names.bounds[1:] > names.bounds[:-1]]
    if len(firsts) and bool((names.data[firsts] & 0xC0 == 0x80).any()):
        return False
    try:
        names.data.tobytes().decode()
    except UnicodeDecodeError:
        return False
    return True


_NUMBERS: dict[str, Callable[[RecordColumns], NDArray[Any]]] = {
    "offset": lambda columns: columns.offset,
    "timestamp": lambda columns: columns.timestamp_ms,
    "timestamp_type": lambda columns: _of_batch(
        columns.batches.is_log_append_time.astype(np.int32), columns
    ),
    "leader_epoch": lambda columns: _of_batch(columns.batches.leader_epoch, columns),
    "producer_id": lambda columns: _of_batch(columns.batches.producer_id, columns),
    "producer_epoch": lambda columns: _of_batch(columns.batches.producer_epoch, columns),
    "sequence": lambda columns: columns.sequence,
    "is_transactional": lambda columns: _of_batch(columns.batches.is_transactional, columns),
    "is_control": lambda columns: _of_batch(columns.batches.is_control, columns),
    "batch_position": lambda columns: _of_batch(columns.batches.position, columns),
}
