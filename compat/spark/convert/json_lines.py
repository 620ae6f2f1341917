"""
Rows as lines of JSON.

Bytes are a string where they are UTF-8, else ``{"base64": ...}``, so that no record needs a guess.
Times are milliseconds.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import orjson


def json_lines(batch: Any) -> Iterator[bytes]:
    """Yield a line, with its end, for each row of a ``pyarrow.RecordBatch``."""
    for row in batch.to_pylist():
        yield orjson.dumps(
            {name: _plain(value) for name, value in row.items()}, option=orjson.OPT_APPEND_NEWLINE
        )


def plain_bytes(data: bytes | bytearray) -> str | dict[str, str]:
    """Return bytes as JSON has them."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, bytes):
        return plain_bytes(value)
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}  # pyright: ignore
    if isinstance(value, list):
        return [_plain(one) for one in value]  # pyright: ignore
    if isinstance(value, tuple):  # an entry of a map
        return [_plain(one) for one in value]  # pyright: ignore
    return value
