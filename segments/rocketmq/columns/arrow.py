"""
Columns handed to Arrow, without a copy of bodies and properties.

pyarrow is imported on first use.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from logstore.segments.rocketmq.columns.message_columns import (
    BytesColumn,
    MessageColumns,
    NumberedColumn,
)

#: all there are, in order; see :func:`arrow_schema` for their types
ARROW_FIELDS = (
    "topic",
    "queue_id",
    "queue_offset",
    "physical_offset",
    "size_bytes",
    "born_timestamp",
    "born_host",
    "store_timestamp",
    "store_host",
    "flag",
    "sys_flag",
    "reconsume_times",
    "prepared_transaction_offset",
    "body_crc",
    "tags_code",
    "tags",
    "keys",
    "unique_key",
    "properties",
    "body",
)


@cache
def _pyarrow() -> Any:
    return importlib.import_module("pyarrow")


@cache
def arrow_schema(fields: tuple[str, ...] = ARROW_FIELDS) -> Any:
    """
    Return the ``pyarrow.Schema`` of these fields.

    Timestamps are milliseconds UTC. Topics and hosts are dictionaries. Texts are binary as they
    are stored, but for tags, keys and unique key, in which bytes that are no UTF-8 are mended.
    """
    pa = _pyarrow()
    numbered = pa.dictionary(pa.int32(), pa.string())
    types = {
        "topic": numbered,
        "queue_id": pa.int32(),
        "queue_offset": pa.int64(),
        "physical_offset": pa.int64(),
        "size_bytes": pa.int32(),
        "born_timestamp": pa.timestamp("ms", tz="UTC"),
        "born_host": numbered,
        "store_timestamp": pa.timestamp("ms", tz="UTC"),
        "store_host": numbered,
        "flag": pa.int32(),
        "sys_flag": pa.int32(),
        "reconsume_times": pa.int32(),
        "prepared_transaction_offset": pa.int64(),
        "body_crc": pa.int32(),
        "tags_code": pa.int64(),
        "tags": pa.string(),
        "keys": pa.string(),
        "unique_key": pa.string(),
        "properties": pa.binary(),
        "body": pa.binary(),
    }
    nullable = ("tags", "keys", "unique_key")
    return pa.schema([pa.field(name, types[name], name in nullable) for name in fields])


def to_arrow(columns: MessageColumns, fields: Sequence[str] = ARROW_FIELDS) -> Any:
    """Return a ``pyarrow.RecordBatch`` of these fields; KeyError names one that does not exist."""
    pa = _pyarrow()
    schema = arrow_schema(tuple(fields))
    arrays = [_FIELDS[name](pa, columns).cast(schema.field(name).type) for name in fields]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _binary(pa: Any, column: BytesColumn, kind: Any) -> Any:
    valid = None
    if column.null_count:
        valid = pa.py_buffer(np.packbits(~column.is_null, bitorder="little"))
    buffers = [valid, pa.py_buffer(column.bounds), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(kind, len(column), buffers, column.null_count)


def _strings(pa: Any, column: BytesColumn) -> Any:
    """Return texts; if bytes somewhere are no UTF-8, all are mended as Java would read them."""
    if bool((column.data >= 0x80).any()):
        texts = [None if one is None else one.decode("utf-8", "replace") for one in column]
        return pa.array(texts, pa.string())
    return _binary(pa, column, pa.string())


def _numbered(pa: Any, column: NumberedColumn) -> Any:
    texts = pa.array(column.texts, pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(column.numbers), texts)


def _numbers(name: str) -> Callable[[Any, MessageColumns], Any]:
    return lambda pa, columns: pa.array(getattr(columns, name))


_FIELDS: dict[str, Callable[[Any, MessageColumns], Any]] = {
    **{
        name: _numbers(name)
        for name in (
            "queue_id",
            "queue_offset",
            "physical_offset",
            "size_bytes",
            "flag",
            "sys_flag",
            "reconsume_times",
            "prepared_transaction_offset",
            "body_crc",
            "tags_code",
        )
    },
    "born_timestamp": _numbers("born_timestamp_ms"),
    "store_timestamp": _numbers("store_timestamp_ms"),
    "topic": lambda pa, columns: _numbered(pa, columns.topic),
    "born_host": lambda pa, columns: _numbered(pa, columns.born_host),
    "store_host": lambda pa, columns: _numbered(pa, columns.store_host),
    "tags": lambda pa, columns: _strings(pa, columns.tags),
    "keys": lambda pa, columns: _strings(pa, columns.keys),
    "unique_key": lambda pa, columns: _strings(pa, columns.unique_key),
    "properties": lambda pa, columns: _binary(pa, columns.properties_text, pa.binary()),
    "body": lambda pa, columns: _binary(pa, columns.body, pa.binary()),
}
