"""
Our source and Spark's own Kafka source in one session, one after the other; prints seconds.

Run by :mod:`logstore.tools.bench.spark_peer` with the pyspark that has such a source::

    python -m logstore.tools.bench.spark_versus DIRECTORY BOOTSTRAP TOPIC CORES JAR,JAR ENDING

ENDING is an `endingOffsets`: up to there both are read, and counted, before they are measured.
"""

from __future__ import annotations

import sys

import orjson

from logstore.tools.bench.spark_turns import in_turns, seconds_of, warm

#: so that each core takes part in it
_WARM_TASKS = "8"


def main() -> None:
    """Measure both, and check that both see the same number of the first records."""
    from logstore.compat.spark import local_session, read

    directory, bootstrap, topic, core_count, jars, ending = sys.argv[1:]
    settings = {"spark.jars": jars, "spark.ui.showConsoleProgress": "false"}
    spark = local_session(f"local[{core_count}]", settings)
    spark.sparkContext.setLogLevel("ERROR")
    spark.range(100).rdd.map(lambda row: row.id).count()  # workers are up before anything is timed
    ours = read(spark, directory, includeHeaders="true")
    kafka = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    theirs = kafka.options(subscribe=topic, includeHeaders="true").load()
    few = [
        spark.read.format(kind)
        .options(subscribe=topic, includeHeaders="true", **options)
        .options(endingOffsets=ending, minPartitions=_WARM_TASKS)
        .load()
        for kind, options in (
            ("logstore", {"path": directory}),
            ("kafka", {"kafka.bootstrap.servers": bootstrap}),
        )
    ]
    counts = [frame.count() for frame in few]
    if counts[0] != counts[1]:
        sys.exit(f"the two sources do not see the same records: {counts}")
    warm(counts[0], lambda: seconds_of(few[0]), lambda: seconds_of(few[1]))
    found = in_turns(lambda: seconds_of(ours), lambda: seconds_of(theirs))
    spark.stop()
    print(orjson.dumps(dict(zip(("ours", "theirs"), found, strict=True))).decode())


if __name__ == "__main__":
    main()
