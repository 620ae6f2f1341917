"""
Rows of one task, shared out to partitions and put beside the store until the job commits.

A try of a task has a file of its own, which counts only if the task's message names it: what a try
leaves that failed, or that was not needed, is removed with the job's folder.
"""

from __future__ import annotations

import os
import pickle
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from logstore.compat.spark.option_values import OptionError
from logstore.compat.spark.partitioning import kafka_partition, rocketmq_queue
from logstore.compat.spark.row_rules import WRITE_COLUMNS, RowRules
from logstore.errors import RejectedAppendError
from logstore.os_host import system_host
from logstore.partition import Header, Record

_CHUNK_RECORDS = 1000
Place = tuple[str, int]


@attrs.frozen
class Staging:
    """How a task shares out its rows."""

    folder: str
    layout: str
    topic: str | None
    partition_counts: Mapping[str, int]
    partition_count_new: int
    rules: RowRules

    def stage(self, batches: Iterable[Any]) -> str:
        """
        Write the rows of ``pyarrow.RecordBatch``es to a file of their own; return its path.

        Raises:
            OptionError: a row names no topic, or a partition that its topic does not have.
            RejectedAppendError: the layout cannot hold a row.

        """
        os.makedirs(self.folder, exist_ok=True)
        path = f"{self.folder}/{uuid.uuid4().hex}"
        waiting: dict[Place, list[Record]] = {}
        with open(path, "wb") as file:
            for batch in batches:
                for place, record in self._shared_out(batch):
                    records = waiting.setdefault(place, [])
                    records.append(record)
                    if len(records) >= _CHUNK_RECORDS:
                        pickle.dump((place, waiting.pop(place)), file)
            for place, records in waiting.items():
                pickle.dump((place, records), file)
            file.flush()
            os.fsync(file.fileno())
        return path

    def _shared_out(self, batch: Any) -> Iterator[tuple[Place, Record]]:
        """Yield every row as a record, and where it goes."""
        columns = {
            name: batch.column(name).to_pylist()
            for name in batch.schema.names
            if name in WRITE_COLUMNS
        }
        nulls = [None] * len(batch)
        now_ms = system_host().clock.wall_ms()
        known: set[str] = set()
        given = (columns.get(name, nulls) for name in WRITE_COLUMNS)
        for number, (key, value, topic, index, time, headers) in enumerate(
            zip(*given, strict=True)
        ):
            topic = self.topic or topic
            if topic is None:
                raise OptionError("topic", None, "must be given where rows have no topic")
            if topic not in known and topic not in self.partition_counts:
                self.rules.check_topic(topic)
                known.add(topic)
            key, value = _bytes(key), _bytes(value)
            index = self._partition(topic, index, key, number)
            timestamp_ms = now_ms if time is None else round(time.timestamp() * 1000)
            record = Record(key, value, timestamp_ms, _headers(headers))
            self.rules.check(record)
            yield (topic, index), record

    def _partition(self, topic: str, index: int | None, key: bytes | None, turn: int) -> int:
        """Return the partition of a row: as named, by its key, or in turn."""
        count = self.partition_counts.get(topic, self.partition_count_new)
        if index is not None:
            if not 0 <= index < count:
                raise OptionError("partition", index, f"{topic} has {count} partitions")
            return index
        if key is None:
            return turn % count
        return (kafka_partition if self.layout == "kafka" else rocketmq_queue)(key, count)


def staged(path: str) -> Iterator[tuple[Place, list[Record]]]:
    """Yield what a task wrote, in order."""
    with Path(path).open("rb") as file:
        while True:
            try:
                yield pickle.load(file)  # noqa: S301 - our own file
            except EOFError:
                return


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _headers(headers: Any) -> tuple[Header, ...]:
    found = headers or ()
    if any(one is None or one["key"] is None for one in found):
        raise RejectedAppendError("a header must have a key")
    return tuple(Header(one["key"], one["value"]) for one in found)
