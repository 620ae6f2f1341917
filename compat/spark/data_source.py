"""``spark.read.format("logstore")``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from logstore.compat.spark.columns import ddl_of
from logstore.compat.spark.option_values import OptionError
from logstore.compat.spark.options import parse_options
from logstore.compat.spark.reader import LogStoreReader
from logstore.compat.spark.stream_reader import LogStoreStreamReader
from logstore.compat.spark.write_options import parse_write_options
from logstore.compat.spark.writer import LogStoreStreamWriter, LogStoreWriter

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

    def writer(self, schema: StructType, overwrite: bool) -> LogStoreWriter:
        """Return what appends rows to a store."""
        if overwrite:
            raise OptionError("mode", "overwrite", "is not offered: say append")
        return LogStoreWriter(parse_write_options(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> LogStoreStreamWriter:  # noqa: N802
        """Return what appends a stream to a store."""
        if overwrite:
            raise OptionError("outputMode", "complete", "is not offered: say append")
        return LogStoreStreamWriter(parse_write_options(self.options), schema)
