"""
Our writer and Spark's own Kafka sink in one session, with the same rows; prints seconds.

Run by :mod:`logstore.tools.bench.spark_peer` with the pyspark that has such a sink::

    python -m logstore.tools.bench.spark_sinks FOLDER BOOTSTRAP PARTITIONS JAR,JAR BYTES ROWS

Ours makes a store anew each time, and syncs it; the sink's topics are made by the broker, which
leaves syncing to the system.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from logstore.tools.bench.spark_turns import in_turns, warm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: what each turn writes before anything is timed; more would keep the disk busy for minutes
_WARM_BYTES = 50_000_000


def main() -> None:
    """Measure both."""
    from logstore.compat.spark import local_session

    folder, bootstrap, partitions, jars, value_bytes, count = sys.argv[1:]
    settings = {"spark.jars": jars, "spark.ui.showConsoleProgress": "false"}
    spark = local_session("local[2]", settings)
    spark.sparkContext.setLogLevel("ERROR")
    numbers = itertools.count()

    def rows(row_count: int) -> DataFrame:
        columns = ["string(id) as key", f"repeat('x', {value_bytes}) as value"]
        return spark.range(row_count).selectExpr(*columns)

    def ours(row_count: int) -> float:
        writer = rows(row_count).write.format("logstore").mode("append")
        writer = writer.option("topic", "written").option("partitions", partitions)
        began = time.perf_counter()
        writer.save(str(Path(folder) / f"store-{next(numbers)}"))
        return time.perf_counter() - began

    def theirs(row_count: int) -> float:
        writer = rows(row_count).write.format("kafka")
        writer = writer.option("kafka.bootstrap.servers", bootstrap).option("topic", "written")
        began = time.perf_counter()
        writer.save()
        return time.perf_counter() - began

    few = _WARM_BYTES // int(value_bytes)
    warm(few, lambda: ours(few), lambda: theirs(few))
    found = in_turns(lambda: ours(int(count)), lambda: theirs(int(count)))
    spark.stop()
    print(orjson.dumps(dict(zip(("ours", "theirs"), found, strict=True))).decode())


if __name__ == "__main__":
    main()
