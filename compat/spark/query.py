"""
SQL over stores.

A store is two views: `records`, a row a record, and `partitions`, a row a partition, which tells of
counts, offsets and sizes without reading a record. Where a query is about several stores, the views
of the others have a name in front: ``copy_records``.

Spark does not tell a source in Python which columns a query needs, and to decode and hand over all
of them costs more than everything else. So a query is planned twice: first over the columns there
are, to see which of them it uses, and then over these alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from logstore.compat.spark.columns import (
    CORRUPT,
    DEFAULT_COLUMNS,
    HEADERS,
    columns_of,
    ddl_of,
)
from logstore.compat.spark.connect import is_asked_later, is_connected, over_views
from logstore.compat.spark.options import PERMISSIVE, parse_options
from logstore.compat.spark.used_columns import used_columns
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORDS = "records"
PARTITIONS = "partitions"
#: what is read where a query needs no column at all, as ``count(*)``
_CHEAPEST = "offset"
#: what ``SELECT *`` gives, as far as a store has them
_USUAL = {*DEFAULT_COLUMNS, HEADERS, "keys", "tags", CORRUPT}
#: how a query starts, behind comments and brackets
_ASKS = re.compile(
    r"(\s|\(|--[^\n]*\n|/\*.*?\*/)*(select|with|from|values|table|desc|describe|show|explain)\b",
    re.IGNORECASE | re.DOTALL,
)
#: how rows would be put somewhere behind a WITH or a FROM
_CHANGES = re.compile(r"\binsert\s+(into|overwrite)\b", re.IGNORECASE)
_DESCRIBE = re.compile(r"\s*desc(ribe)?\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class QueryError(LogStoreError):
    """Spark cannot make anything of a query; it says why."""


def sql(
    spark: SparkSession,
    query: str,
    path: str,
    others: Mapping[str, str] | None = None,
    **options: str,
) -> DataFrame:
    """
    Return what a query says of the store at `path`; only the columns that it uses are decoded.

    `others` are more stores by name. `options` are those of a read, for all of them. ``SELECT *``
    gives the columns of Spark's Kafka source and `headers` (RocketMQ: `keys` and `tags`, too);
    every other column of :mod:`logstore.compat.spark.columns` is there when it is named.

    Raises:
        QueryError: the query is wrong, or the name of a store.
        ForeignDirectoryError: a path is no store.

    """
    from pyspark.errors import PySparkException

    _check_asks(query)
    stores = [_Store(spark, prefix, one, options) for prefix, one in _named(path, others)]
    for store in stores:
        if re.search(rf"\b{re.escape(store.prefix + PARTITIONS)}\b", query, re.IGNORECASE):
            store.show_partitions()
    try:
        frame = _planned(spark, query, stores)
        used = used_columns(frame)
        if used is not None:
            for store in stores:
                store.show_records(tuple(name for name in store.all_columns if name in used))
            frame = spark.sql(query)
        return _kept(spark, query, frame, stores)
    except PySparkException as error:  # what is constant is worked out here, and 1 / 0 fails
        raise QueryError(_first_lines(str(error))) from None


def _check_asks(query: str) -> None:
    """Refuse what does more than ask: Spark would make tables in the working directory."""
    if _ASKS.match(query) is None or _CHANGES.search(query) is not None:
        raise QueryError(
            "a query only asks: SELECT, WITH, FROM, VALUES, TABLE, DESCRIBE, SHOW or EXPLAIN"
        )


def _named(path: str, others: Mapping[str, str] | None) -> Iterator[tuple[str, str]]:
    """Yield what stands in front of the names of each store's views, and its path."""
    yield "", path
    for name, other in (others or {}).items():
        if _PREFIX.fullmatch(name) is None:
            raise QueryError(f"{name!r} is no name for a store: letters, digits, underscores")
        yield f"{name}_", other


def _planned(spark: SparkSession, query: str, stores: list[_Store]) -> DataFrame:
    """Return the query over the usual columns; over all that there are if it names others."""
    words = {word.lower() for word in _WORD.findall(query)}
    for store in stores:
        is_usual = words.isdisjoint(store.unusual_names) and _DESCRIBE.match(query) is None
        store.show_records(store.usual_columns if is_usual else store.all_columns)
    return spark.sql(query)


def _kept(spark: SparkSession, query: str, frame: DataFrame, stores: list[_Store]) -> DataFrame:
    """Return a query that goes on to mean these stores when the views are those of others."""
    if not (is_connected(spark) and is_asked_later(frame)):
        return frame
    views = {name: view for store in stores for name, view in store.views.items()}
    return over_views(spark, query, views)


class _Store:
    """The views of one store."""

    def __init__(
        self, spark: SparkSession, prefix: str, path: str, options: Mapping[str, str]
    ) -> None:
        from logstore.compat.spark.stores import absolute_location, layout_of

        self.prefix = prefix
        self.views: dict[str, DataFrame] = {}
        self._spark = spark
        self._path = absolute_location(path)
        self._options = dict(options)
        layout = layout_of(path)
        is_permissive = parse_options({**options, "path": path}).mode == PERMISSIVE
        self.all_columns = tuple(
            name for name in columns_of(layout) if name != CORRUPT or is_permissive
        )
        self.usual_columns = tuple(name for name in self.all_columns if name in _USUAL)
        self.unusual_names = {name.lower() for name in self.all_columns if name not in _USUAL}

    def show_records(self, columns: tuple[str, ...]) -> None:
        """Let the view of the records have these columns."""
        names = columns or (_CHEAPEST,)
        reader = self._spark.read.format("logstore").options(**self._options)
        frame = reader.option("columns", ",".join(names)).schema(ddl_of(names)).load(self._path)
        self._show(RECORDS, frame)

    def show_partitions(self) -> None:
        """Count, and show what came of it."""
        from logstore.compat.spark.counting import counts

        frame = counts(self._spark, self._path, **self._options)
        self._show(PARTITIONS, frame)

    def _show(self, name: str, frame: DataFrame) -> None:
        frame.createOrReplaceTempView(self.prefix + name)
        self.views[self.prefix + name] = frame


def _first_lines(text: str) -> str:
    """Return what is wrong and where, without the plan or stack that Spark prints below it."""
    told = text.split(";\n", 1)[0].split("\n\n== SQL", 1)[0].split("\n\nJVM stack", 1)[0]
    return " ".join(told.split())
