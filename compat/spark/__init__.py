"""
Stores as DataFrames.

::

    from logstore.compat.spark import local_session

    spark = local_session()         # or register(spark) in a session of your own
    spark.read.format("logstore").load("DIRECTORY").groupBy("topic").count().show()

The schema is that of Spark's own Kafka source; ``option("columns", "topic,offset,file,position")``
chooses others (:mod:`logstore.compat.spark.columns`), and only those are decoded. Filters on topic,
partition, offset and timestamp are pushed down to the indexes. The other options stand in
:mod:`logstore.compat.spark.options`. ``sql(spark, "SELECT ...", "DIRECTORY")`` asks in SQL, and
finds out by itself which columns must be decoded. ``lag(query.lastProgress)`` says how far a
streaming query is behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from logstore.compat.spark.query import sql
from logstore.compat.spark.session import local_session
from logstore.compat.spark.stream_lag import lag

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["counts", "lag", "local_session", "read", "register", "sql"]

_PUSH_DOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Make ``format("logstore")`` known to a session, with its filters pushed down."""
    from logstore.compat.spark.data_source import LogStoreDataSource

    spark.dataSource.register(LogStoreDataSource)
    spark.conf.set(_PUSH_DOWN, "true")


def read(
    spark: SparkSession, path: str, columns: Sequence[str] | None = None, **options: str
) -> DataFrame:
    """
    Return the records of a store, of which only these columns are decoded.

    `options` are those of the data source, such as ``isolation="read_uncommitted"``.
    """
    register(spark)
    reader = spark.read.format("logstore").options(**options)
    if columns is not None:
        reader = reader.option("columns", ",".join(columns))
    return reader.load(path)


def counts(spark: SparkSession, path: str, **options: str) -> DataFrame:
    """
    Return records, first and last offset and bytes of every topic and partition of a store.

    Only headers of batches are read, so that ten gigabytes take seconds.
    """
    from logstore.compat.spark.counting import counts as count

    return count(spark, path, **options)
