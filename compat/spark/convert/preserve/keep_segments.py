"""One task on the way there: segments of a Kafka store, batch by batch, to recipes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import attrs

from logstore.compat.spark.convert.committed_columns import committed_columns
from logstore.compat.spark.convert.preserve.batch_fingerprint import fingerprint, written_records
from logstore.compat.spark.convert.preserve.kept_kafka import (
    KeptSegment,
    batch_schema,
    batches_path,
)
from logstore.compat.spark.convert.preserve.recipe_file import RecipeWriter
from logstore.compat.spark.convert.work_folder import Attempt
from logstore.compat.spark.stores import file_system_of
from logstore.compat.spark.work_unit import WorkUnit
from logstore.host import File
from logstore.segments.kafka.record import Record
from logstore.segments.kafka.record_batch import (
    HEADER_BYTES,
    MAGIC,
    PREFIX_BYTES,
    RecordBatch,
    batch_size_bytes,
)

_READ_BYTES = 4 * 1024 * 1024
_MAGIC_POSITION = 16


@attrs.frozen
class SegmentPlace:
    """A segment, the units of it that were converted, and what its first record became."""

    topic: str
    partition: int
    path: str
    base_offset: int
    size_bytes: int
    first_queue_offset: int
    units: tuple[WorkUnit, ...]


@attrs.frozen
class KeptSegments:
    """What one task did; `kept_bytes` are those of batches that were kept as they are."""

    segments: tuple[tuple[str, int, KeptSegment], ...]
    size_bytes: int
    kept_bytes: int


@attrs.frozen
class KeepSegmentsTask:
    """Writes the recipe of some segments."""

    number: int
    source: str
    recipe: int
    places: tuple[SegmentPlace, ...]

    @property
    def size_bytes(self) -> int:
        """How much of the source it reads."""
        return sum(place.size_bytes for place in self.places)

    def run(self, attempt: Attempt) -> KeptSegments:
        """Write it; return which of its groups belong to which segment."""
        segments: list[tuple[str, int, KeptSegment]] = []
        kept_bytes = 0
        path = batches_path(attempt.beside, self.recipe)
        with RecipeWriter(path, batch_schema()) as writer:
            for place in self.places:
                first_group = writer.group_count
                kept_bytes += self._keep(place, writer)
                writer.end_group()
                kept = KeptSegment(
                    place.base_offset,
                    place.size_bytes,
                    place.first_queue_offset,
                    self.recipe,
                    first_group,
                    writer.group_count - first_group,
                )
                segments.append((place.topic, place.partition, kept))
        return KeptSegments(tuple(segments), self.size_bytes, kept_bytes)

    def _keep(self, place: SegmentPlace, writer: RecipeWriter) -> int:
        """Write the rows of a segment; return how many of its bytes are kept as they are."""
        fs = file_system_of(self.source)
        groups = (group for unit in place.units for group in self._groups(unit))
        following = next(groups, None)
        queue_offset, kept_bytes = place.first_queue_offset, 0
        file = fs.open(place.path, writable=False)
        try:
            for position, data in _entries(file, place.size_bytes):
                records: list[Record] = []
                while following is not None and following[0] <= position:
                    records += following[1]
                    following = next(groups, None)
                row = _row(position, data, records, queue_offset)
                queue_offset += len(records)
                kept_bytes += len(row["kept"] or b"")
                decoded = sum(len(one.value or b"") for one in records)
                writer.add(row, max(len(data), decoded))
        finally:
            file.close()
        return kept_bytes

    def _groups(self, unit: WorkUnit) -> Iterator[tuple[int, list[Record]]]:
        """Yield the records that were converted, batch by batch, with the batch's position."""
        for columns in committed_columns(file_system_of(self.source), unit):
            records = columns.records()
            first, places = 0, columns.batch.tolist()
            for row in range(1, len(places) + 1):
                if row == len(places) or places[row] != places[first]:
                    yield int(columns.batches.position[places[first]]), records[first:row]
                    first = row


def _entries(file: File, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield everything that stands in a segment with its position; what is no batch is one."""
    position, data, at = 0, b"", 0
    while position < end:
        size_bytes = PREFIX_BYTES
        if len(data) - at >= PREFIX_BYTES:
            size_bytes = batch_size_bytes(data, at)
        if not PREFIX_BYTES < size_bytes <= end - position and len(data) - at >= PREFIX_BYTES:
            size_bytes = end - position  # no batch
        if len(data) - at < min(max(size_bytes, PREFIX_BYTES), end - position):
            data, at = file.read(position, max(_READ_BYTES, size_bytes)), 0
            if len(data) < PREFIX_BYTES:
                size_bytes = len(data)
            else:
                continue
        if size_bytes == 0:
            return
        yield position, data[at : at + size_bytes]
        position += size_bytes
        at += size_bytes


def _row(position: int, data: bytes, records: list[Record], queue_offset: int) -> dict[str, Any]:
    """Return the recipe of a batch or message."""
    row: dict[str, Any] = {
        "position": position,
        "queue_offset": queue_offset,
        "count": len(records),
        "kept": data,
    }
    base_offset, next_offset = _offsets(data, records)
    row |= {"base_offset": base_offset, "next_offset": next_offset}
    if not records:
        return row
    deltas = [record.offset - base_offset for record in records]
    if deltas != list(range(len(deltas))):
        row["deltas"] = struct.pack(f"<{len(deltas)}i", *deltas)
    base_timestamp_ms = records[0].timestamp_ms
    is_plain = data[_MAGIC_POSITION] == MAGIC and not data[22] & 7
    if is_plain:
        base_timestamp_ms = RecordBatch(data, len(data)).base_timestamp_ms
    written = written_records(records, base_offset, base_timestamp_ms)
    if is_plain and written == data[HEADER_BYTES:]:
        row |= {"header": data[:HEADER_BYTES], "kept": None}
    else:
        base_timestamp_ms = records[0].timestamp_ms
        written = written_records(records, base_offset, base_timestamp_ms)
    row["fingerprint"] = fingerprint(written, base_timestamp_ms)
    return row


def _offsets(data: bytes, records: list[Record]) -> tuple[int, int]:
    """Return the offset that deltas count from, and the one behind the batch."""
    offset = int.from_bytes(data[:8], "big", signed=True) if len(data) > _MAGIC_POSITION else 0
    if len(data) >= HEADER_BYTES and data[_MAGIC_POSITION] == MAGIC:
        return offset, offset + RecordBatch(data, len(data)).last_offset_delta + 1
    return (records[0].offset if records else offset), offset + 1
