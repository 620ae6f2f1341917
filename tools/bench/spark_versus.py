"""
Our source and Spark's own Kafka source in one session, one after the other; prints seconds.

Run by :mod:`logstore.tools.bench.spark_peer` with the pyspark that has such a source::

    python -m logstore.tools.bench.spark_versus DIRECTORY BOOTSTRAP TOPIC CORES JAR,JAR WARM

WARM is an `endingOffsets`: up to there both read once before they are measured.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: so that each core takes part in it
_WARM_TASKS = "8"


def main() -> None:
    """Measure both, and check that both saw the same number of records."""
    from logstore.compat.spark import local_session, read

    directory, bootstrap, topic, core_count, jars, warm = sys.argv[1:]
    settings = {"spark.jars": jars, "spark.ui.showConsoleProgress": "false"}
    spark = local_session(f"local[{core_count}]", settings)
    spark.sparkContext.setLogLevel("ERROR")
    spark.range(100).rdd.map(lambda row: row.id).count()  # workers are up before anything is timed
    ours = read(spark, directory, includeHeaders="true")
    kafka = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    theirs = kafka.options(subscribe=topic, includeHeaders="true").load()
    for kind, options in (
        ("logstore", {"path": directory}),
        ("kafka", {"kafka.bootstrap.servers": bootstrap}),
    ):
        few = spark.read.format(kind).options(subscribe=topic, includeHeaders="true", **options)
        _seconds(few.options(endingOffsets=warm, minPartitions=_WARM_TASKS).load())
    found = {"ours": _seconds(ours), "theirs": _seconds(theirs)}
    counts = {ours.count(), theirs.count()}
    spark.stop()
    if len(counts) > 1:
        sys.exit(f"the two sources do not see the same records: {counts}")
    print(orjson.dumps(found).decode())


def _seconds(frame: DataFrame) -> float:
    """Return how long it takes to read all rows and look at none."""
    began = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
