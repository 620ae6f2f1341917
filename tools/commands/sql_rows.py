"""
Rows of a query as people and programs want them.

Bytes are shown as text where they are UTF-8, for JSON in base64 where not, as ``convert --to
jsonl`` has it; times as ISO 8601 in UTC.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import click
import orjson

from logstore.compat.spark.convert.json_lines import plain_bytes
from logstore.errors import LogStoreError
from logstore.tools.inspection.json_line import json_line
from logstore.tools.os_failure import os_failure

if TYPE_CHECKING:
    from collections.abc import Generator

    from pyspark.sql import DataFrame

_FAILURE = re.compile(
    r"^(?:logstore(?:\.\w+)+|(?:\w+\.)*(?:OS|Permission|FileNotFound|IsADirectory|NotADirectory)Error)"
    r": (.+)$",
    re.MULTILINE,
)
#: what a worker prints of an error of the operating system
_REFUSED = re.compile(r"\[Errno (\d+)\] (.+?): '(.+)'")
#: what Spark makes of a time
_TIME_FORMAT = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"
#: of a table that goes to no terminal, so that nothing is folded
_WIDTH = 1_000_000


class FailedQueryError(LogStoreError):
    """A query went wrong while it ran."""


def say_json(frame: DataFrame) -> None:
    """Print one JSON object a row, as they come."""
    names = _different(frame.columns)
    for row in _rows(frame):
        content = {name: _plain(value) for name, value in zip(names, row, strict=True)}
        click.echo(json_line(content))


def say_csv(frame: DataFrame) -> None:
    """Print the names, then all rows as they come; NULL is an empty field."""
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(frame.columns)
    for row in _rows(frame):
        out.writerow(["" if value is None else _shown(value) for value in row])


def say_table(frame: DataFrame, limit: int) -> None:
    """Print up to `limit` rows as a table (0: all), and whether there are more."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, kind in frame.dtypes:
        table.add_column(Text(name), justify="right" if _is_number(kind) else "left")
    rows = list(_rows(frame.limit(limit + 1) if limit else frame))
    for row in rows[: limit or None]:
        table.add_row(*(Text("NULL" if value is None else _shown(value)) for value in row))
    console = Console() if sys.stdout.isatty() else Console(width=_WIDTH)
    console.print(table)
    if limit and len(rows) > limit:
        click.echo(f"{limit:,} rows of more; --limit 0 shows all", err=True)


def _rows(frame: DataFrame) -> Iterator[Any]:
    """Yield the rows as Spark has them, but for times: those of records may have any year."""
    from pyspark.sql.functions import col, date_format

    numbered = frame.toDF(*(f"c{number}" for number in range(len(frame.columns))))
    columns = [
        date_format(col(name), _TIME_FORMAT) if kind == "timestamp" else col(name)
        for name, kind in numbered.dtypes
    ]
    with _in_one_line():
        yield from numbered.select(columns).toLocalIterator(prefetchPartitions=True)


@contextmanager
def _in_one_line() -> Generator[None]:
    """Turn what Spark says of a failure, with all its stacks, into the line that matters."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        text = str(error)
        found = _FAILURE.findall(text)
        told = found[-1] if found else " ".join(text.split("\n", 1)[0].split())
        refused = _REFUSED.fullmatch(told)
        if refused is not None:
            told = os_failure(OSError(int(refused[1]), refused[2], refused[3]))
        raise FailedQueryError(told) from error


def _different(names: list[str]) -> list[str]:
    """Return the names, which JSON objects must have but once."""
    for name in names:
        if names.count(name) > 1:
            raise FailedQueryError(f"two columns are called {name}: give them names with AS")
    return names


def _is_number(kind: str) -> bool:
    return kind.endswith("int") or kind in {"float", "double"} or kind.startswith("decimal")


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, (bytes, bytearray)):
        return plain_bytes(value)
    if isinstance(value, datetime):
        return _time(value)
    if isinstance(value, dict):
        return {str(_plain(name)): _plain(one) for name, one in value.items()}  # pyright: ignore
    if hasattr(value, "asDict"):
        return {name: _plain(one) for name, one in value.asDict().items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]  # pyright: ignore
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return value.isoformat() if isinstance(value, date) else str(value)


def _time(value: datetime) -> str:
    """Return a time as ISO 8601; Spark hands it over in this machine's time, without a zone."""
    text = value.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _shown(value: Any) -> str:
    """Return a value as people read it."""
    if isinstance(value, (bytes, bytearray)):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return f"0x{value.hex()}"
    plain = _plain(value)
    return plain if isinstance(plain, str) else orjson.dumps(plain).decode()
