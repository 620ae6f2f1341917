"""One task on the way back: segments of a partition, made of messages by their recipes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from logstore.compat.record_mapping import MessageParts, message_parts, restored_record
from logstore.compat.spark.convert.kafka_segment_task import KafkaSegmentTask
from logstore.compat.spark.convert.kept_parts import kept_rests
from logstore.compat.spark.convert.offset_map import OffsetMapWriter
from logstore.compat.spark.convert.preserve.batch_fingerprint import fingerprint, written_records
from logstore.compat.spark.convert.preserve.kept_kafka import KeptSegment, batches_path
from logstore.compat.spark.convert.preserve.recipe_file import read_groups
from logstore.compat.spark.convert.record_packing import RecordBatches
from logstore.compat.spark.convert.work_folder import Attempt
from logstore.os_host import system_host
from logstore.segments.kafka.record import CorruptRecordError, Record, encode_batch
from logstore.segments.rocketmq.columns import MessageColumns
from logstore.segments.rocketmq.messages.properties import parse_properties

NAME_DIGITS = 20
#: of a header: flags, last offset delta, base timestamp
_BASE_TIMESTAMP = slice(27, 35)


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
class _Found:
    """A record and where its message stood."""

    record: Record
    physical_offset: int


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
        self._reader = task.reader
        self._segment = segment
        self._map = offset_map
        commit_log = Path(task.reader.commit_log)
        self._rests = kept_rests(str(commit_log.parent)).of_partition(
            task.reader.source_topic, task.reader.partition
        )
        units = task.reader.units
        self._queue_start, self._queue_end = units.first, units.first + units.count
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
            found = self._found(rows)
            for row in rows:
                if not row["count"]:
                    waiting.append(row["kept"])
                    continue
                records = self._records(row, found)
                self._behind = row["queue_offset"] + row["count"]
                data = self._unchanged(row, records)
                is_known = data is not None
                if data is not None:
                    yield from self._written(waiting)
                else:
                    self.is_whole = False
                    data = self._ordinary(row, records)
                waiting = []
                if data:
                    self._note(row, records)
                    yield from self._written([data])
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
        return self._queue_start <= self._behind <= self._queue_end

    def _written(self, pieces: list[bytes]) -> Iterator[tuple[int, bytes]]:
        for data in pieces:
            yield self.position, data
            self.position += len(data)

    def _found(self, rows: list[dict[str, Any]]) -> dict[int, _Found]:
        """Return the records of all messages of these rows by queue offset, if they are there."""
        wanted = [row for row in rows if row["count"]]
        if not wanted:
            return {}
        first = max(wanted[0]["queue_offset"], self._queue_start)
        last = min(wanted[-1]["queue_offset"] + wanted[-1]["count"], self._queue_end)
        if first >= last:
            return {}
        units = attrs.evolve(self._reader.units, first=first, count=last - first)
        found: dict[int, _Found] = {}
        for columns, offsets in self._reader.steps(units.read(system_host().fs)):
            records = self._made(columns, offsets.tolist())
            places = columns.physical_offset.tolist()
            for offset, record, place in zip(offsets.tolist(), records, places, strict=True):
                found[offset] = _Found(record, place)
        return found

    def _made(self, columns: MessageColumns, offsets: list[int]) -> Iterator[Record]:
        """Yield the records that messages were."""
        bodies, texts = list(RecordBatches(columns).bodies), list(columns.properties_text)
        times = columns.born_timestamp_ms.tolist()
        for row, offset in enumerate(offsets):
            parts = MessageParts(bodies[row] or b"", parse_properties(texts[row] or b""))
            kept = self._rests.get(offset)
            rest = None if kept is None else kept["rest"]
            record = Record(offset, times[row], *restored_record(parts, rest))
            if rest is not None and message_parts(record) != (parts, rest):
                # The queue was made anew: it is the rest of a message that is there no more.
                record = Record(offset, times[row], *restored_record(parts, None))
            yield record

    def _records(self, row: dict[str, Any], found: dict[int, _Found]) -> list[_Found]:
        """Return what is there of a batch's records, each with the offset that it had."""
        deltas = None if row["deltas"] is None else np.frombuffer(row["deltas"], dtype="<i4")
        there: list[_Found] = []
        for index in range(row["count"]):
            one = found.get(row["queue_offset"] + index)
            if one is not None:
                delta = index if deltas is None else int(deltas[index])
                record = attrs.evolve(one.record, offset=row["base_offset"] + delta)
                there.append(attrs.evolve(one, record=record))
        return there

    def _unchanged(self, row: dict[str, Any], found: list[_Found]) -> bytes | None:
        """Return a batch as it was, None if its records are not what they were."""
        if len(found) != row["count"]:
            return None
        records = [one.record for one in found]
        header, base_timestamp_ms = row["header"], records[0].timestamp_ms
        if header is not None:
            base_timestamp_ms = int.from_bytes(header[_BASE_TIMESTAMP], "big", signed=True)
        try:
            written = written_records(records, row["base_offset"], base_timestamp_ms)
        except CorruptRecordError:
            return None
        if fingerprint(written, base_timestamp_ms) != row["fingerprint"]:
            return None
        kept: bytes = row["kept"] if header is None else header + written
        return kept

    def _ordinary(self, row: dict[str, Any], found: list[_Found]) -> bytes:
        """Return a batch of what is there now, nothing if nothing is."""
        if not found:
            return b""
        records = [one.record for one in found]
        if len(found) < row["count"] and not self.count:
            self.start_offset = records[0].offset
        base_offset = records[0].offset
        epoch = max(0, self._reader.leader_epoch)
        codec = self._reader.codec
        return bytes(
            encode_batch(records, base_offset=base_offset, codec=codec, leader_epoch=epoch)
        )

    def _note(self, row: dict[str, Any], found: list[_Found]) -> None:
        """Enter records that are about to be written at `position` into the map."""
        if row["queue_offset"] > self._segment.first_queue_offset and not self.count:
            self.start_offset = found[0].record.offset
        first = row["queue_offset"]
        offsets = np.array([one.record.offset for one in found], dtype=np.int64)
        places = np.array([one.physical_offset for one in found], dtype=np.int64)
        queue_offsets = np.arange(first, first + len(found), dtype=np.int64)
        if len(found) < row["count"] and self._queue_start > first:
            queue_offsets += row["count"] - len(found)
        positions = np.full(len(found), self.position, dtype=np.int64)
        self._map.add(
            self._reader.topic,
            self._reader.partition,
            queue_offsets,
            places,
            offsets,
            positions,
            {},
        )
        self.count += len(found)
