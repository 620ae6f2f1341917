"""
Rows about records, partition by partition, to a Parquet file.

Each row group has rows of one partition, so that its statistics say what is in it, and no more
than a reader wants to hold. Steps of a task have fewer rows than a group takes to be worth its
overhead, so they wait for one another. Numbers that rise are written as what they rise by: a tenth
of the time and of the room that a dictionary of them takes.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

_ROWS, _BYTES = 16_384, 4 * 1024 * 1024


class RowGroupWriter:
    """
    Writes one file, which is there with the first row and durable when it is closed.

    Its first columns are `topic` and `partition`, then come those of `names`. Those that are
    `rising` hardly repeat themselves, nor do those that are `odd`; of the rest dictionaries are
    made. `statistics` are the columns by which groups are found, None for all.
    """

    def __init__(
        self,
        path: Path,
        names: Sequence[str],
        *,
        rising: Sequence[str] = (),
        odd: Sequence[str] = (),
        statistics: Sequence[str] | None = None,
    ) -> None:
        self._path = path
        self._names = ["topic", "partition", *names]
        self._options: dict[str, Any] = {
            "compression": "zstd",
            "use_dictionary": [name for name in self._names if name not in (*rising, *odd)],
            "column_encoding": dict.fromkeys(rising, "DELTA_BINARY_PACKED"),
            "write_statistics": True if statistics is None else list(statistics),
        }
        self._pa: Any = importlib.import_module("pyarrow")
        self._writer: Any = None
        self._place = ("", 0)
        self._waiting: list[Any] = []
        self._row_count = 0
        self._size_bytes = 0

    def __enter__(self) -> Self:
        return self

    def add(self, topic: str, partition: int, columns: Sequence[Any]) -> None:
        """Add rows of one partition; they are in order."""
        pa = self._pa
        if (topic, partition) != self._place:
            self._write()
            self._place = topic, partition
        arrays = [pa.array(column) for column in columns]
        count = len(arrays[0])
        topics = pa.DictionaryArray.from_arrays(
            pa.array(np.zeros(count, dtype=np.int32)), pa.array([topic], pa.string())
        )
        place = [topics, pa.array(np.full(count, partition, dtype=np.int32))]
        batch = pa.RecordBatch.from_arrays([*place, *arrays], names=self._names)
        self._waiting.append(batch)
        self._row_count += count
        self._size_bytes += batch.nbytes
        if self._row_count >= _ROWS or self._size_bytes >= _BYTES:
            self._write()

    def _write(self) -> None:
        """Write a row group of what waits."""
        if not self._waiting:
            return
        table = self._pa.Table.from_batches(self._waiting).unify_dictionaries()
        if self._writer is None:
            parquet: Any = importlib.import_module("pyarrow.parquet")
            self._writer = parquet.ParquetWriter(str(self._path), table.schema, **self._options)
        self._writer.write_table(table.combine_chunks(), row_group_size=len(table))
        self._waiting, self._row_count, self._size_bytes = [], 0, 0

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self._write()
        if self._writer is not None:
            self._writer.close()
            with self._path.open("rb") as file:
                os.fsync(file.fileno())
