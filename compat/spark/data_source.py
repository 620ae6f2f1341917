"""``spark.read.format("logstore")``."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter

from logstore.compat.spark.columns import ddl_of
from logstore.compat.spark.option_values import OptionError
from logstore.compat.spark.options import parse_options
from logstore.compat.spark.reader import LogStoreReader
from logstore.compat.spark.write_options import parse_write_options
from logstore.compat.spark.writer import LogStoreWriter

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from logstore.compat.spark.store_follower import StoreFollower

#: where Spark says what a micro-batch may hold, since 4.2
_LIMITS = "pyspark.sql.streaming.datasource"

#: the kind of writer that gets Arrow batches of a stream, since 4.1
_BATCHES = "DataSourceStreamArrowWriter"


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

    def streamReader(self, schema: StructType) -> StoreFollower:  # noqa: N802 - Spark's name
        """Return what follows a live store."""
        options = parse_options(self.options, is_stream=True)
        if importlib.util.find_spec(_LIMITS) is None:
            from logstore.compat.spark.unlimited_stream_reader import UnlimitedStreamReader

            return UnlimitedStreamReader(options, schema)
        from logstore.compat.spark.stream_reader import LogStoreStreamReader

        return LogStoreStreamReader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> LogStoreWriter:
        """Return what appends rows to a store."""
        if overwrite:
            raise OptionError("mode", "overwrite", "is not offered: say append")
        return LogStoreWriter(parse_write_options(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Return what appends a stream to a store."""
        if overwrite:
            raise OptionError("outputMode", "complete", "is not offered: say append")
        options = parse_write_options(self.options)
        if not hasattr(datasource, _BATCHES):
            from logstore.compat.spark.row_stream_writer import RowStreamWriter

            return RowStreamWriter(options, schema)
        from logstore.compat.spark.stream_writer import LogStoreStreamWriter

        return LogStoreStreamWriter(options, schema)
