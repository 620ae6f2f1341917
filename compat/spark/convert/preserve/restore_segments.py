"""One task on the way back: segments of a partition, made of messages by their recipes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from logstore.compat.spark.convert.kafka_segment_task import KafkaSegmentTask
from logstore.compat.spark.convert.offset_map import OffsetMapWriter
from logstore.compat.spark.convert.preserve.kept_kafka import KeptSegment, batches_path
from logstore.compat.spark.convert.preserve.recipe_file import read_groups
from logstore.compat.spark.convert.preserve.todays_batches import TodaysBatch, TodaysQueue
from logstore.compat.spark.convert.work_folder import Attempt
from logstore.os_host import system_host

NAME_DIGITS = 20


@attrs.frozen
class RestoredSegments:
    """
    What one task did: how many records, and and which files are what they were or are others now.

    `start_offset` is that of the first record if some in front of it are gone, else -1.
    """

    count: int
    whole: tuple[str, ...]
    changed: tuple[str, ...]
    start_offset: int


@attrs.frozen
class RestoreSegmentsTask:
    """
    Writes segments as they were; where messages are others now, or gone, what became of them.

    `reader` has all units of the queue that may be wanted; a segment of no bytes is left out if
    another task begins where it does.
    """

    number: int
    beside: str
    reader: KafkaSegmentTask
    segments: tuple[KeptSegment, ...]
    left_out: int = -1

    @property
    def size_bytes(self) -> int:
        """How much it writes, for want of knowing what it reads."""
        return sum(segment.size_bytes for segment in self.segments)

    def run(self, attempt: Attempt) -> RestoredSegments:
        """Write them and the map of what stands where."""
        directory = attempt.data / self.reader.partition_folder
        directory.mkdir(parents=True, exist_ok=True)
        fs = system_host().fs
        count, start_offset = 0, -1
        names: dict[str, list[str]] = {"whole": [], "changed": [], "gone": []}
        with OffsetMapWriter(attempt.beside, self.number) as offset_map:
            for segment in self.segments:
                name = f"{segment.base_offset:0{NAME_DIGITS}d}.log"
                rows = _SegmentRows(self, segment, offset_map)
                file = fs.open(f"{directory}/{name}", create=True)
                file.truncate(0)
                for position, data in rows.pieces():
                    file.write(position, data)
                file.sync()
                file.close()
                count += rows.count
                if rows.start_offset >= 0:
                    start_offset = rows.start_offset
                if rows.became == "gone" or (
                    segment.base_offset == self.left_out and rows.position == 0
                ):
                    Path(directory, name).unlink()
                names[rows.became].append(f"{directory.name}/{name}")
        fs.sync_directory(str(directory))
        return RestoredSegments(count, tuple(names["whole"]), tuple(names["changed"]), start_offset)


class _SegmentRows:
    """The rows of one segment's recipe, made batches again one after the other."""

    def __init__(
        self, task: RestoreSegmentsTask, segment: KeptSegment, offset_map: OffsetMapWriter
    ) -> None:
        self._task = task
        self._segment = segment
        self._map = offset_map
        self._queue = TodaysQueue(task.reader)
        #: queue offset behind the last row with records
        self._behind = segment.first_queue_offset
        #: how many records were written
        self.count = 0
        self.position = 0
        self.is_whole = True
        self.start_offset = -1

    def pieces(self) -> Iterator[tuple[int, bytes]]:
        """Yield what is to be written, and where."""
        path = str(batches_path(self._task.beside, self._segment.recipe))
        #: what is without messages waits here until it is known whether it still belongs there
        waiting: list[bytes] = []
        is_known = True
        for rows in read_groups(path, self._segment.first_group, self._segment.group_count):
            ready = self._queue.unchanged_batches(rows)
            for number, row in enumerate(rows):
                if not row["count"]:
                    waiting.append(row["kept"])
                    continue
                self._behind = row["queue_offset"] + row["count"]
                batch = ready.get(number)
                is_known = batch is not None
                if batch is not None:
                    yield from self._written(waiting)
                else:
                    batch = self._queue.batch_of_today(row)
                    is_known = batch is not None and batch.is_unchanged
                    if is_known:
                        yield from self._written(waiting)
                    self.is_whole = self.is_whole and is_known
                waiting = []
                if batch is not None:
                    self._note(row, batch)
                    yield from self._written([batch.data])
        if waiting and is_known and self._is_there():
            yield from self._written(waiting)
        self.is_whole = self.is_whole and self.position == self._segment.size_bytes

    @property
    def became(self) -> str:
        """What the segment is: as it was, as what is left or new says, or nothing."""
        if self.is_whole:
            return "whole"
        return "changed" if self.position else "gone"

    def _is_there(self) -> bool:
        """Tell whether the queue is neither shorter nor begins later than this segment."""
        return self._queue.start <= self._behind <= self._queue.end

    def _written(self, pieces: list[bytes]) -> Iterator[tuple[int, bytes]]:
        for data in pieces:
            yield self.position, data
            self.position += len(data)

    def _note(self, row: dict[str, Any], batch: TodaysBatch) -> None:
        """Enter records that are about to be written at `position` into the map."""
        is_first = row["queue_offset"] == self._segment.first_queue_offset
        if not self.count and (not is_first or len(batch.offsets) < row["count"]):
            self.start_offset = int(batch.offsets[0])
        positions = np.full(len(batch.offsets), self.position, dtype=np.int64)
        reader = self._task.reader
        self._map.add(
            reader.topic,
            reader.partition,
            batch.queue_offsets,
            batch.physical_offsets,
            batch.offsets,
            positions,
            {},
        )
        self.count += len(batch.offsets)
