"""
A query that follows a store, as a process of its own that can be killed.

``python spark_follower.py STORE SINK CHECKPOINT PROGRESS KIND``: with the kind ``files`` each
micro-batch becomes a file of SINK, named by its id; any other is the layout of the store SINK. A
line of PROGRESS is what Spark says of a micro-batch, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from logstore.compat.spark import local_session

TOPIC = "live"
#: so few that the query is behind now and then
OFFSETS_A_BATCH = 1000


class Notes(StreamingQueryListener):
    """Writes down what Spark says of every micro-batch."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing is to be noted."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Add a line."""
        line = json.dumps(json.loads(event.progress.json)) + "\n"
        with self._path.open("a") as file:
            file.write(line)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing is to be noted."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing is to be noted."""


class BatchFiles:
    """An idempotent sink: a batch that comes again must be what it was."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self, rows: DataFrame, batch: int) -> None:
        """Write the rows of a batch, all or nothing."""
        content = json.dumps(
            sorted([row.partition, row.offset, bytes(row.value).decode()] for row in rows.collect())
        )
        path = self._folder / f"{batch:06d}.json"
        if path.exists() and path.read_text() != content:
            raise ValueError(f"{path}: the batch came again, with other rows")
        temporary = path.with_suffix(".new")
        temporary.write_text(content)
        os.replace(temporary, path)


def main(store: str, sink: str, checkpoint: str, progress: str, kind: str) -> None:
    """Run the query until somebody ends the process."""
    spark = local_session("local[2]", {"spark.sql.session.timeZone": "UTC"})
    spark.streams.addListener(Notes(Path(progress)))
    rows = (
        spark.readStream.format("logstore")
        .option("subscribe", TOPIC)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", str(OFFSETS_A_BATCH))
        .load(store)
    )
    writer = rows.writeStream.option("checkpointLocation", checkpoint)
    if kind == "files":
        query = writer.foreachBatch(BatchFiles(Path(sink)).take).start()
    else:
        into = writer.format("logstore").option("layout", kind).option("partitions", "3")
        if kind == "rocketmq":
            into = into.option("set.mappedFileSizeCommitLog", str(1 << 20))
        query = into.start(sink)
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
