"""
The columns that a reader can ask for, with their Spark types.

The first seven are those of Spark's own Kafka source, in its order.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from logstore.errors import LogStoreError

#: what ``load()`` gives without the option `columns`
DEFAULT_COLUMNS = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
)
HEADERS = "headers"
CORRUPT = "_corrupt"

#: name -> type, as Spark's DDL has it
COLUMN_TYPES = {
    "key": "BINARY",
    "value": "BINARY",
    "topic": "STRING",
    "partition": "INT",
    "offset": "BIGINT",
    "timestamp": "TIMESTAMP",
    "timestampType": "INT",
    HEADERS: "ARRAY<STRUCT<key: STRING, value: BINARY>>",
    "file": "STRING",
    "position": "BIGINT",
    "batchBaseOffset": "BIGINT",
    "batchSizeBytes": "INT",
    "batchCodec": "STRING",
    "leaderEpoch": "INT",
    "producerId": "BIGINT",
    "producerEpoch": "SMALLINT",
    "sequence": "INT",
    "isTransactional": "BOOLEAN",
    "queueOffset": "BIGINT",
    "physicalOffset": "BIGINT",
    "sizeBytes": "INT",
    "keys": "STRING",
    "tags": "STRING",
    "bornTimestamp": "BIGINT",
    "storeTimestamp": "BIGINT",
    "bornHost": "STRING",
    "storeHost": "STRING",
    "sysFlag": "INT",
    "reconsumeTimes": "INT",
    "properties": "MAP<STRING, STRING>",
    CORRUPT: "STRING",
}
_KAFKAS = frozenset(
    (
        "batchBaseOffset",
        "batchSizeBytes",
        "batchCodec",
        "leaderEpoch",
        "producerId",
        "producerEpoch",
        "sequence",
        "isTransactional",
    )
)
_ROCKETMQS = frozenset(
    (
        "queueOffset",
        "physicalOffset",
        "sizeBytes",
        "keys",
        "tags",
        "bornTimestamp",
        "storeTimestamp",
        "bornHost",
        "storeHost",
        "sysFlag",
        "reconsumeTimes",
        "properties",
    )
)


class UnknownColumnError(LogStoreError):
    """A column was asked for that there is not."""


def checked_columns(names: Iterable[str]) -> tuple[str, ...]:
    """
    Return the names as the table above spells them; their case does not matter.

    Raises:
        UnknownColumnError: there is no such column.

    """
    by_lower = {name.lower(): name for name in COLUMN_TYPES}
    found: list[str] = []
    for name in names:
        known = by_lower.get(name.strip().lower())
        if known is None:
            raise UnknownColumnError(
                f"there is no column {name.strip()!r}; there are: {', '.join(COLUMN_TYPES)}"
            )
        if known not in found:
            found.append(known)
    return tuple(found)


def columns_of(layout: str) -> tuple[str, ...]:
    """Return the names of all columns that a store of this layout has."""
    lacking = _lacking(layout)
    return tuple(name for name in COLUMN_TYPES if name not in lacking)


def check_layout(names: Iterable[str], layout: str) -> None:
    """Raise UnknownColumnError if a store of this layout lacks one of the columns."""
    lacking = _lacking(layout)
    missing = [name for name in names if name in lacking]
    if missing:
        raise UnknownColumnError(f"a {layout} store has no column {', '.join(missing)}")


def _lacking(layout: str) -> frozenset[str]:
    return _ROCKETMQS if layout == "kafka" else _KAFKAS


def ddl_of(names: Iterable[str]) -> str:
    """Return the schema of these columns as Spark's DDL."""
    return ", ".join(f"`{name}` {COLUMN_TYPES[name]}" for name in names)


def arrow_schema(names: Iterable[str]) -> Any:
    """Return the ``pyarrow.Schema`` of these columns, as Spark would make it."""
    pa: Any = importlib.import_module("pyarrow")
    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    types = {
        "BINARY": pa.binary(),
        "STRING": pa.string(),
        "INT": pa.int32(),
        "BIGINT": pa.int64(),
        "SMALLINT": pa.int16(),
        "BOOLEAN": pa.bool_(),
        "TIMESTAMP": pa.timestamp("us", tz="UTC"),
        "ARRAY<STRUCT<key: STRING, value: BINARY>>": pa.list_(header),
        "MAP<STRING, STRING>": pa.map_(pa.string(), pa.string()),
    }
    return pa.schema([pa.field(name, types[COLUMN_TYPES[name]]) for name in names])
