"""The reading half of the data source: planned on the driver, decoded in the workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from logstore.compat.spark.arrow_schema import arrow_schema
from logstore.compat.spark.predicates import Where, where_of
from logstore.compat.spark.work_unit import Unit, WorkUnit
from logstore.compat.spark.worker_process import SentToWorker, settle

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

    from logstore.compat.spark.options import ReadOptions


class UnitPartition(InputPartition):
    """The units of one task, and how many bytes all tasks read."""

    def __init__(self, units: list[Unit], scan_bytes: int = 0) -> None:
        super().__init__(len(units))
        self.units = units
        self.scan_bytes = scan_bytes


class LogStoreReader(SentToWorker, DataSourceReader):
    """Plans and reads one query."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._where = Where()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Narrow the search by all filters; Spark applies each of them again."""
        self._where = where_of(filters)
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks, by indexes and file sizes alone."""
        from logstore.compat.spark.data_loss import check_bounds
        from logstore.compat.spark.stores import open_for_reading, plan_tasks

        with open_for_reading(self._options.path) as store:
            check_bounds(store, self._options)
            tasks = plan_tasks(store, self._options, self._where)
        scan_bytes = sum(unit.size_bytes for task in tasks for unit in task)
        return [UnitPartition(task, scan_bytes) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of one task as Arrow batches."""
        return read_rows(partition, self._options, self._schema, self._where)


def read_rows(
    partition: InputPartition, options: ReadOptions, schema: StructType, where: Where
) -> Iterator[Any]:
    """Yield the rows of one task as Arrow batches; this runs in a worker."""
    from logstore.compat.spark.kafka_rows import RowReader
    from logstore.compat.spark.rocketmq_rows import MessageReader
    from logstore.compat.spark.stores import file_system_of

    if not isinstance(partition, UnitPartition):
        return  # where nothing is to be read Spark makes a task all the same
    fs = file_system_of(options.path, partition.scan_bytes)
    wanted = arrow_schema(schema)
    rows = RowReader(fs, wanted, where, options.mode, options.timestamp_slack_ms)
    messages = MessageReader(fs, wanted, options.mode)
    for unit in partition.units:
        yield from rows.read(unit) if isinstance(unit, WorkUnit) else messages.read(unit)
    settle()
