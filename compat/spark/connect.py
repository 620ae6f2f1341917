"""
Spark Connect: a session whose Spark runs somewhere else, and is spoken to by gRPC alone.

There is no RDD and no look into Spark's objects, so what others do by these is done by frames here.
The Python of the server must have this package, and see the store under the path that is given.
"""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from logstore.compat.spark.worker_process import SentToWorker, settle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
#: told how many tasks are done
Told = Callable[[int], None]
_MODULE = "pyspark.sql.connect."
_RESULT = "number BIGINT, result BINARY"
#: enough that Spark makes as many partitions of it as it has cores
_PLENTY = 1 << 20
SCHEME = "sc://"
#: what Python says where a function of ours is unpickled without us
_NO_PACKAGE = "No module named 'logstore'"


def is_connected(spark: SparkSession) -> bool:
    """Tell whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith(_MODULE)


def has_package(spark: SparkSession) -> bool:
    """Tell whether the Python of the server has this package; a row is sent there to see."""
    from pyspark.errors import PySparkException

    rows: Any = spark.range(0, 1, 1, 1)
    try:
        rows.mapInArrow(_as_they_come, "id BIGINT").collect()
    except PySparkException as error:
        if _NO_PACKAGE not in str(error):
            raise
        return False
    return True


def _as_they_come(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def core_count(spark: SparkSession) -> int:
    """Return how many tasks the server runs at a time; it is asked by a small job."""
    numbers: Any = spark.range(_PLENTY)
    return int(numbers.selectExpr("spark_partition_id() AS part").distinct().count())


def map_connected(
    spark: SparkSession,
    function: Callable[[ItemT], ResultT],
    items: Sequence[ItemT],
    told: Told | None = None,
) -> list[ResultT]:
    """
    Return what the picklable function returned for each item, each in a task of its own.

    `told` hears, now and then, how many tasks are done.
    """
    pa: Any = importlib.import_module("pyarrow")
    # As Spark does: what stands in the file of a program goes along.
    cloudpickle: Any = importlib.import_module("pyspark.cloudpickle")
    packed = [cloudpickle.dumps(item) for item in items]
    rows = pa.table({"number": pa.array(range(len(items)), pa.int64()), "item": packed})
    session: Any = spark
    spread = session.createDataFrame(rows).repartitionByRange(len(items), "number")
    results = spread.mapInArrow(_InTask(function), _RESULT)
    if told is None:
        found = results.toArrow()
    else:
        watch = _TasksDone(len(items), told)
        session.registerProgressHandler(watch)
        try:
            found = results.toArrow()
        finally:
            session.removeProgressHandler(watch)
    ordered = found.sort_by("number")["result"]
    return [pickle.loads(one) for one in ordered.to_pylist()]  # noqa: S301 - our own worker's


class _InTask(SentToWorker):
    """Calls a function for the items in Arrow batches."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        pa: Any = importlib.import_module("pyarrow")
        for batch in batches:
            results = [
                pickle.dumps(self._function(pickle.loads(one)))  # noqa: S301 - our own driver's
                for one in batch.column("item").to_pylist()
            ]
            names = ["number", "result"]
            yield pa.record_batch([batch.column("number"), pa.array(results, pa.binary())], names)
        settle()


class _TasksDone:
    """What Spark tells of the progress of a query, as tasks of ours."""

    def __init__(self, task_count: int, told: Told) -> None:
        self._task_count = task_count
        self._told = told

    def __call__(self, stages: Any, **_: Any) -> None:
        """Hear of all stages; those that spread the items are short, and have other numbers."""
        done = [
            stage.num_completed_tasks
            for stage in stages or ()
            if stage.num_tasks == self._task_count
        ]
        self._told(max(done, default=0))


def is_asked_later(frame: DataFrame) -> bool:
    """Tell whether a query is text still: its views are looked up when rows are asked for."""
    inner: Any = frame
    plan = inner._plan.plan(inner.sparkSession.client)
    return bool(plan.WhichOneof("rel_type") == "sql")


def over_views(spark: SparkSession, query: str, views: Mapping[str, DataFrame]) -> DataFrame:
    """Return a query over these views, whatever others are called so by then."""
    from pyspark.sql.connect.dataframe import DataFrame as Connected
    from pyspark.sql.connect.plan import SQL, SubqueryAlias

    session: Any = spark
    frames: dict[str, Any] = dict(views)
    named = [SubqueryAlias(frame._plan, name) for name, frame in frames.items()]
    found: Any = Connected(SQL(query, [], {}, named), session)
    rows: DataFrame = found
    return rows
