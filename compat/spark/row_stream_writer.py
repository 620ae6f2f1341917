"""``df.writeStream`` before Spark 4.1: rows come one by one, and become Arrow batches here."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage

from logstore.compat.spark.arrow_schema import arrow_schema
from logstore.compat.spark.writer import StreamWriting

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from logstore.compat.spark.write_options import WriteOptions

#: as many as Spark itself puts into one
_BATCH_ROWS = 10_000


class RowStreamWriter(StreamWriting, DataSourceStreamWriter):
    """``df.writeStream.format("logstore")``: a batch that comes again is not taken twice."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._schema = schema

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Put the rows of one task beside the store; this runs in a worker."""
        return super().write(_in_batches(iterator, self._schema))


def _in_batches(rows: Iterator[Any], schema: StructType) -> Iterator[Any]:
    """Yield rows as Arrow batches."""
    pa: Any = importlib.import_module("pyarrow")
    wanted = arrow_schema(schema)
    while some := list(islice(rows, _BATCH_ROWS)):
        columns = [
            pa.array([row[place] for row in some], field.type) for place, field in enumerate(wanted)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=wanted)
