"""Tasks on the way back to RocketMQ: files of the commit log, and others, by their recipes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from logstore.compat.record_mapping import MessageParts, restored_record
from logstore.compat.spark.convert.committed_columns import taken
from logstore.compat.spark.convert.kept_fields import KeptFields
from logstore.compat.spark.convert.offset_map import OffsetMapWriter
from logstore.compat.spark.convert.preserve.kafka_ranges import records_between
from logstore.compat.spark.convert.preserve.keep_log import NAME_DIGITS, message_fingerprint
from logstore.compat.spark.convert.preserve.kept_rocketmq import (
    BOUND,
    FILES_PATTERN,
    LOG_PATTERN,
    RESTORED,
    KeptFile,
    KeptLogFile,
    recipe_path,
)
from logstore.compat.spark.convert.preserve.recipe_file import read_groups
from logstore.compat.spark.convert.restored_messages import RestoredBatch
from logstore.compat.spark.convert.work_folder import Attempt
from logstore.compat.spark.stores import file_system_of
from logstore.compat.spark.work_unit import WorkUnit
from logstore.host import File
from logstore.os_host import system_host
from logstore.segments.kafka.columns import RecordColumns
from logstore.segments.rocketmq.messages.gap_filling import LostMessage, fill_gap
from logstore.segments.rocketmq.messages.message_layout import PHYSICAL_OFFSET_POSITION
from logstore.segments.rocketmq.messages.properties import parse_properties

Place = tuple[str, int]
_PHYSICAL_OFFSET = slice(PHYSICAL_OFFSET_POSITION, PHYSICAL_OFFSET_POSITION + 8)


@attrs.frozen
class RestoredPartition:
    """What a queue has become: a partition of Kafka, where that begins, and its units."""

    topic: str
    partition: int
    start_offset: int
    units: tuple[WorkUnit, ...]


@attrs.frozen
class RestoredLog:
    """
    What one task did: how many messages came back, and how many have a stand-in now.

    `changed` are queues of which something is not what it was; all of such a queue goes another
    way.
    """

    count: int
    replaced_count: int
    changed: frozenset[Place]


@attrs.frozen
class RestoreLogTask:
    """
    Writes a file of the commit log as it was, each message where it stood.

    What is gone has a stand-in of its size, so that all else keeps its place: an empty message
    where the partition begins later now, else a record that is rolled back. The latter have the
    messages of queues that are none of `partitions`, too.
    """

    number: int
    source: str
    file: KeptLogFile
    file_bytes: int
    partitions: Mapping[Place, RestoredPartition]

    @property
    def size_bytes(self) -> int:
        """How much it writes, for want of knowing what it reads."""
        return self.file_bytes

    def run(self, attempt: Attempt) -> RestoredLog:
        """Write it, and the map of what stands where."""
        directory = attempt.data / "commitlog"
        directory.mkdir(parents=True, exist_ok=True)
        fs = system_host().fs
        name = f"{self.file.physical_offset:0{NAME_DIGITS}d}"
        file = fs.open(f"{directory}/{name}", create=True)
        file.truncate(0)
        file.truncate(self.file_bytes)
        recipe = str(recipe_path(self.source, LOG_PATTERN, self.file.recipe))
        with OffsetMapWriter(attempt.beside, self.number) as offset_map:
            rows = _LogRows(self, file, offset_map)
            for group in read_groups(recipe, 0, self.file.group_count):
                rows.write(group)
        file.sync()
        file.close()
        fs.sync_directory(str(directory))
        return RestoredLog(rows.count, rows.replaced_count, frozenset(rows.changed))


class _LogRows:
    """The rows of one file's recipe, written where they belong."""

    def __init__(self, task: RestoreLogTask, file: File, offset_map: OffsetMapWriter) -> None:
        self._task = task
        self._file = file
        self._map = offset_map
        self._fs = file_system_of(task.source)
        self._fields = KeptFields(task.source)
        self.count = 0
        self.replaced_count = 0
        self.changed: set[Place] = set()

    def write(self, rows: list[dict[str, Any]]) -> None:
        """Write one group of rows."""
        wanted: dict[Place, dict[int, dict[str, Any]]] = {}
        for row in rows:
            place = (row["topic"], row["queue_id"])
            if row["kind"] == RESTORED:
                wanted.setdefault(place, {})[row["queue_offset"]] = row
            elif row["kind"] == BOUND and place not in self._task.partitions:
                self._replace(row, None)
            else:
                self._file.write(row["position"], row["kept"])
        for place, by_offset in wanted.items():
            partition = self._task.partitions.get(place)
            if partition is not None:
                self._restore(place, partition, by_offset)
            for queue_offset, row in by_offset.items():  # what is left of them
                self._replace(row, partition)
                if partition is not None and queue_offset >= partition.start_offset:
                    self.changed.add(place)

    def _restore(
        self, place: Place, partition: RestoredPartition, wanted: dict[int, dict[str, Any]]
    ) -> None:
        """Write the messages of one queue that are what they were; take them from `wanted`."""
        offsets = np.array(sorted(wanted), dtype=np.int64)
        units = partition.units
        for columns in records_between(self._fs, units, int(offsets[0]), int(offsets[-1])):
            part = taken(columns, np.flatnonzero(np.isin(columns.offset, offsets)))
            found = self._fields.table(partition.topic, partition.partition, part.offset)
            if found is None:
                continue
            table, rows = found
            is_kept = rows >= 0
            part = taken(part, np.flatnonzero(is_kept))
            batch = RestoredBatch(*place, part, table.take(rows[is_kept]))
            self._write_batch(place, part, batch, wanted)

    def _write_batch(
        self,
        place: Place,
        columns: RecordColumns,
        batch: RestoredBatch,
        wanted: dict[int, dict[str, Any]],
    ) -> None:
        count = len(batch)
        data = memoryview(
            bytearray(batch.pack(0, count, columns.offset, columns.timestamp_ms, 0, _zeros(count)))
        )
        at = 0
        written: list[tuple[int, int, int]] = []
        same = _as_stored(columns, batch)
        positions = columns.batches.position[columns.batch].tolist()
        for row, size_bytes in enumerate(batch.sizes.tolist()):
            offset = int(columns.offset[row])
            message = data[at : at + size_bytes]
            at += size_bytes
            recipe = wanted[offset]
            physical_offset = self._task.file.physical_offset + recipe["position"]
            message[_PHYSICAL_OFFSET] = physical_offset.to_bytes(8, "big")
            if next(same) and message_fingerprint(message) == recipe["fingerprint"]:
                self._file.write(recipe["position"], message)
                written.append((offset, positions[row], physical_offset))
                del wanted[offset]
        self.count += len(written)
        if written:
            offsets, places, physical_offsets = np.array(written, dtype=np.int64).T
            self._map.add(*place, offsets, places, offsets, physical_offsets, {})

    def _replace(self, row: dict[str, Any], partition: RestoredPartition | None) -> None:
        """Write a stand-in where a message stood."""
        start = self._task.file.physical_offset + row["position"]
        known: list[LostMessage] = []
        if partition is not None and row["queue_offset"] < partition.start_offset:
            place = (row["topic"], row["queue_id"], row["queue_offset"])
            known.append(LostMessage(start, row["size"], *place))
        position = row["position"]
        for data in fill_gap(start, start + row["size"], known, row["stored_ms"]):
            self._file.write(position, data)
            position += len(data)
        self.replaced_count += 1


def _zeros(count: int) -> Any:
    return np.zeros(count, dtype=np.int64)


def _as_stored(columns: RecordColumns, batch: RestoredBatch) -> Iterator[bool]:
    """Tell of each record whether key and headers are those of the properties that were kept."""
    texts = batch.table.column("properties").to_pylist()
    for record, text in zip(columns.records(), texts, strict=True):
        parts = MessageParts(b"", parse_properties(text or b""))
        key, _, headers = restored_record(parts, None)
        # A property that stands twice in the text is two headers; the last one counts.
        yield record.key == key and dict(record.headers) == dict(headers)


@attrs.frozen
class RestoreFilesTask:
    """Writes other files as they were."""

    number: int
    source: str
    files: tuple[KeptFile, ...]

    @property
    def size_bytes(self) -> int:
        """Holes count as nothing."""
        return 0

    def run(self, attempt: Attempt) -> int:
        """Write them; return how many."""
        fs = system_host().fs
        for one in self.files:
            path = Path(attempt.data, one.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            file = fs.open(str(path), create=True)
            file.truncate(one.size_bytes)
            recipe = str(recipe_path(self.source, FILES_PATTERN, one.recipe))
            for rows in read_groups(recipe, one.first_group, one.group_count):
                for row in rows:
                    file.write(row["position"], row["kept"])
            file.sync()
            file.close()
        return len(self.files)
