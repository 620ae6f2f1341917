"""
Rows of one task, shared out to partitions and put beside the store until the job commits.

A try of a task has a file of its own, which counts only if the task's message names it: what a try
leaves that failed, or that was not needed, is removed with the job's folder.
"""

from __future__ import annotations

import importlib
import os
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs

from logstore.compat.spark.partitioning import kafka_partition, rocketmq_queue
from logstore.compat.spark.row_batches import packed_rows
from logstore.compat.spark.row_columns import RowColumns, is_packable
from logstore.compat.spark.row_messages import packed_messages
from logstore.compat.spark.row_places import Place, RowPlaces
from logstore.compat.spark.row_rules import WRITE_COLUMNS, RowRules
from logstore.compat.spark.staged_file import Portion, StagedFileWriter
from logstore.errors import RejectedAppendError
from logstore.os_host import system_host
from logstore.partition import Header, Record
from logstore.segments.compiled.reused_memory import ReusedMemory

#: it carries no types
_pa: Any = importlib.import_module("pyarrow")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
#: what is packed at once: enough for large batches in many partitions, little enough to hold
_PACKED_ROWS = 65_536
_PACKED_BYTES = 8 * 1024 * 1024
#: fewer are written one by one in less time than the first loop ever takes to be compiled
_PACKED_ROWS_MIN = 4096
#: records one by one that wait for others of their partition
_CHUNK_RECORDS = 1000
_WAITING_BYTES_MAX = 16 * 1024 * 1024


@attrs.frozen
class Staging:
    """How a task shares out its rows."""

    folder: str
    layout: str
    places: RowPlaces
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
        memory = ReusedMemory()
        # A job for a Kafka log that a power loss has damaged is taken back; a commit log cannot be
        # cut, so there the job must be such that it can be finished.
        with StagedFileWriter(path, is_durable=self.layout != "kafka") as file:
            for batch in _joined(batches):
                now_ms = system_host().clock.wall_ms()
                portions = self._packed(batch, now_ms, memory)
                if portions is None:
                    portions = _chunks(self._records(batch, now_ms))
                for place, portion in portions:
                    file.put(place, portion)
        return path

    def _packed(
        self, batch: Any, now_ms: int, memory: ReusedMemory
    ) -> Iterator[tuple[Place, Portion]] | None:
        """Return what compiled loops make of the rows; None where they go one by one."""
        if len(batch) < _PACKED_ROWS_MIN or not is_packable(batch):
            return None
        rows = RowColumns.of(batch, now_ms)
        if self.layout == "kafka":
            return packed_rows(rows, self.places, memory)
        return packed_messages(rows, self.places, self.rules, memory)

    def _records(self, batch: Any, now_ms: int) -> Iterator[tuple[Place, Record]]:
        """Yield every row as a record, and where it goes."""
        columns = {
            name: batch.column(name).to_pylist()
            for name in batch.schema.names
            if name in WRITE_COLUMNS
        }
        nulls = [None] * len(batch)
        given = (columns.get(name, nulls) for name in WRITE_COLUMNS)
        for number, (key, value, topic, index, time, headers) in enumerate(
            zip(*given, strict=True)
        ):
            topic = self.places.topic or topic
            self.places.check_topic(topic)
            key, value = _bytes(key), _bytes(value)
            index = self._partition(topic, index, key, number)
            timestamp_ms = now_ms if time is None else _time_ms(time)
            record = Record(key, value, timestamp_ms, _headers(headers))
            self.rules.check(record)
            yield (topic, index), record

    def _partition(self, topic: str, index: int | None, key: bytes | None, turn: int) -> int:
        """Return the partition of a row: as named, by its key, or in turn."""
        if index is not None:
            self.places.check_partition(topic, index)
            return index
        count = self.places.partition_count(topic)
        if key is None:
            return turn % count
        return (kafka_partition if self.layout == "kafka" else rocketmq_queue)(key, count)


def _joined(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the batches, small ones joined."""
    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        row_count = sum(map(len, waiting))
        if row_count >= _PACKED_ROWS or sum(one.nbytes for one in waiting) >= _PACKED_BYTES:
            yield from _as_one(waiting)
            waiting = []
    yield from _as_one(waiting)


def _as_one(batches: list[Any]) -> Iterable[Any]:
    if len(batches) < 2:
        return batches
    found: Iterable[Any] = _pa.Table.from_batches(batches).combine_chunks().to_batches()
    return found


def _chunks(records: Iterable[tuple[Place, Record]]) -> Iterator[tuple[Place, list[Record]]]:
    """Yield records of the same place together, in order."""
    waiting: dict[Place, list[Record]] = {}
    waiting_bytes = 0
    for place, record in records:
        chunk = waiting.setdefault(place, [])
        chunk.append(record)
        waiting_bytes += len(record.value or b"")
        if waiting_bytes >= _WAITING_BYTES_MAX:
            yield from waiting.items()
            waiting, waiting_bytes = {}, 0
        elif len(chunk) >= _CHUNK_RECORDS:
            yield place, waiting.pop(place)
    yield from waiting.items()


def _time_ms(time: datetime) -> int:
    return (time.astimezone(UTC) - _EPOCH) // _MILLISECOND


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _headers(headers: Any) -> tuple[Header, ...]:
    found = headers or ()
    if any(one is None or one["key"] is None for one in found):
        raise RejectedAppendError("a header must have a key")
    return tuple(Header(one["key"], one["value"]) for one in found)
