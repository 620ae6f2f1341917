"""The writing half of the data source: staged by tasks, appended by the driver."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from logstore.compat.spark.option_values import OptionError
from logstore.compat.spark.row_places import RowPlaces
from logstore.compat.spark.row_rules import check_columns
from logstore.compat.spark.row_staging import Staging
from logstore.compat.spark.store_commit import StoreCommit
from logstore.compat.spark.worker_process import SentToWorker

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from logstore.compat.spark.write_options import WriteOptions


class StagedTask(WriterCommitMessage):
    """What a task put beside the store."""

    def __init__(self, path: str) -> None:
        self.path = path


class _Writing(SentToWorker):
    """What both kinds of writers share: one job after the other on one store."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(schema, options.topic)
        self._commit = StoreCommit(options)
        self._commit.finish_last()
        layout, rules = self._commit.layout(), self._commit.rules()
        places = RowPlaces(
            options.topic, self._commit.partition_counts(), options.partition_count, rules
        )
        self._staging = Staging(f"{self._commit.folder}/{uuid.uuid4().hex}", layout, places, rules)

    def stage(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Put the rows of one task beside the store."""
        return StagedTask(self._staging.stage(iterator))

    def take(self, messages: Sequence[WriterCommitMessage | None], batch: int | None) -> None:
        """Append what the tasks put there."""
        files = [one.path for one in messages if isinstance(one, StagedTask)]
        self._commit.commit(files, batch)
        self.drop()

    def drop(self) -> None:
        """Remove what the tasks put there."""
        self._commit.remove(self._staging.folder)


class LogStoreWriter(DataSourceArrowWriter):
    """``df.write.format("logstore").mode("append")``."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        self._writing = _Writing(options, schema)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Put the rows of one task beside the store; this runs in a worker."""
        return self._writing.stage(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Append them to the store; this runs on the driver, once."""
        self._writing.take(messages, None)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove them: a task has failed for good."""
        del messages
        self._writing.drop()


class StreamWriting:
    """What writers of streams do, whatever rows come to them as."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        if not options.writer:
            raise OptionError("checkpointLocation", None, "or `writer` must name the stream")
        self._writing = _Writing(options, schema)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Put the rows of one task beside the store; this runs in a worker."""
        return self._writing.stage(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Append them to the store unless that batch was."""
        self._writing.take(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Remove them: a task has failed for good."""
        del messages, batchId
        self._writing.drop()
