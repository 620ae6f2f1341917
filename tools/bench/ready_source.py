"""A Spark source that has its Arrow batches ready: what a Python source can reach at best."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from logstore.compat.spark.columns import DEFAULT_COLUMNS, HEADERS, arrow_schema, ddl_of

_BATCH_ROWS = 4096
_COLUMNS = (*DEFAULT_COLUMNS, HEADERS)


class ReadySource(DataSource):
    """Rows like ours, option `rows`, with values of `valueBytes`; of them `columns`, or all."""

    @classmethod
    def name(cls) -> str:
        """Return what ``format()`` takes."""
        return "ready"

    def schema(self) -> str:
        """Return the columns that are asked for; without the option all, headers too."""
        return ddl_of(self._names())

    def reader(self, schema: object) -> DataSourceReader:
        """Return what hands the batches out."""
        del schema
        value_bytes = int(self.options.get("valueBytes", 0))
        return ReadyReader(int(self.options["rows"]), value_bytes, self._names())

    def _names(self) -> tuple[str, ...]:
        names = self.options.get("columns")
        return _COLUMNS if names is None else tuple(names.split(","))


class ReadyReader(DataSourceReader):
    """Yields one batch over and over."""

    def __init__(self, row_count: int, value_bytes: int, names: Sequence[str]) -> None:
        self._row_count = row_count
        self._value_bytes = value_bytes
        self._names = names

    def partitions(self) -> Sequence[InputPartition]:
        """Return eight tasks."""
        return [InputPartition(self._row_count // 8) for _ in range(8)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of one task."""
        pa: Any = importlib.import_module("pyarrow")
        row = {
            "key": b"k0000000",
            "value": b"x" * self._value_bytes,
            "topic": "bench",
            "partition": 0,
            "offset": 1,
            "timestamp": 1_700_000_000_000_000,
            "timestampType": 0,
            "headers": None,
        }
        row = {name: row[name] for name in self._names}
        batch = pa.RecordBatch.from_pylist([row] * _BATCH_ROWS, schema=arrow_schema(self._names))
        left = partition.value
        while left > 0:
            yield batch.slice(0, min(left, _BATCH_ROWS))
            left -= _BATCH_ROWS
