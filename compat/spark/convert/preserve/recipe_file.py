"""
Recipes: how a file of the first store is put together, one Parquet file a task.

Rows are written in groups of some megabytes, of which each belongs to one file alone. So whoever
makes a file again reads its groups and no others.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

#: a group is ended when its rows stand for that much
GROUP_BYTES = 8 * 1024 * 1024
_GROUP_ROWS = 100_000


class RecipeWriter:
    """Writes the recipes of one task; the file is durable when it is closed, if it has rows."""

    def __init__(self, path: Path, schema: Any) -> None:
        self._pa: Any = importlib.import_module("pyarrow")
        self._parquet: Any = importlib.import_module("pyarrow.parquet")
        self._path = path
        self._schema = schema
        self._writer: Any = None
        self._rows: list[dict[str, Any]] = []
        self._filled_bytes = 0
        #: how many groups were written so far
        self.group_count = 0

    def __enter__(self) -> Self:
        return self

    def add(self, row: dict[str, Any], size_bytes: int) -> None:
        """Add a row that stands for that many bytes."""
        self._rows.append(row)
        self._filled_bytes += size_bytes
        if self._filled_bytes >= GROUP_BYTES or len(self._rows) >= _GROUP_ROWS:
            self.end_group()

    def end_group(self) -> None:
        """Let the next row begin a group, as the first one of a file must."""
        if not self._rows:
            return
        if self._writer is None:
            self._writer = self._parquet.ParquetWriter(
                str(self._path), self._schema, compression="zstd"
            )
        table = self._pa.Table.from_pylist(self._rows, schema=self._schema)
        self._writer.write_table(table, row_group_size=len(self._rows))
        self.group_count += 1
        self._rows, self._filled_bytes = [], 0

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end_group()
        if self._writer is not None:
            self._writer.close()
            with self._path.open("rb") as file:
                os.fsync(file.fileno())


def read_groups(path: str, first: int, count: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of each of `count` groups."""
    if count == 0:
        return
    parquet: Any = importlib.import_module("pyarrow.parquet")
    with parquet.ParquetFile(path) as file:
        for number in range(first, first + count):
            yield file.read_row_group(number).to_pylist()
