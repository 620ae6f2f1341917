"""``spark.read.format("logstore")``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from logstore.compat.spark.columns import ddl_of
from logstore.compat.spark.options import parse_options
from logstore.compat.spark.reader import LogStoreReader
from logstore.compat.spark.stream_reader import LogStoreStreamReader

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class LogStoreDataSource(DataSource):
    """A store's records as rows; see :mod:`logstore.compat.spark`."""

    @classmethod
    def name(cls) -> str:
        """Return what ``format()`` takes."""
        return "logstore"

    def schema(self) -> str:
        """Return the columns that the options ask for."""
        return ddl_of(parse_options(self.options).columns)

    def reader(self, schema: StructType) -> LogStoreReader:
        """Return what plans and reads one query."""
        return LogStoreReader(parse_options(self.options), schema)

    def streamReader(self, schema: StructType) -> LogStoreStreamReader:  # noqa: N802 - Spark's name
        """Return what follows a live store."""
        return LogStoreStreamReader(parse_options(self.options, is_stream=True), schema)
