"""``df.writeStream`` since Spark 4.1: rows come in Arrow batches."""

from __future__ import annotations

from pyspark.sql.datasource import DataSourceStreamArrowWriter

from logstore.compat.spark.writer import StreamWriting


class LogStoreStreamWriter(StreamWriting, DataSourceStreamArrowWriter):
    """``df.writeStream.format("logstore")``: a batch that comes again is not taken twice."""
