"""The records of a unit, counted by walking over batch headers; payload is not read."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import attrs

from logstore.compat.spark.planned_file import opened
from logstore.compat.spark.read_ahead import ReadAhead, indexed_places
from logstore.compat.spark.work_unit import WorkUnit
from logstore.errors import CorruptEntryError
from logstore.host import File, FileSystem
from logstore.segments.kafka.legacy.message import is_legacy_magic
from logstore.segments.kafka.record_batch import (
    CONTROL_BIT,
    HEADER_BYTES,
    MAGIC,
    PREFIX_BYTES,
    TRANSACTIONAL_BIT,
)

# base offset, length, magic, attributes, last offset delta, producer id, record count
_unpack = struct.Struct(">qi4xb4xhi16xq6xi").unpack_from
#: where batches are small many headers are read at once, else each on its own
_WINDOW_BYTES = 64 * 1024
_SMALL_BATCH_BYTES = 4 * 1024


@attrs.define
class Counted:
    """What a unit holds of the wanted offsets."""

    record_count: int = 0
    first_offset: int = -1
    last_offset: int = -1
    size_bytes: int = 0

    def add(self, count: int, first_offset: int, last_offset: int, size_bytes: int) -> None:
        """Take so many records more into account."""
        if count and self.first_offset < 0:
            self.first_offset = first_offset
        if count:
            self.last_offset = last_offset
        self.record_count += count
        self.size_bytes += size_bytes


def count_unit(fs: FileSystem, unit: WorkUnit) -> Counted:
    """
    Count the records of a unit.

    Raises:
        CorruptEntryError: a header cannot be one; it names file and position.

    """
    counted = Counted()
    with opened(fs, unit) as parts:
        for file, part in parts:
            places = indexed_places(fs, part) if file.fileno() is not None else ()
            _count(file, part, places, counted)
    return counted


def _count(file: File, unit: WorkUnit, places: Sequence[int], counted: Counted) -> None:
    position, window, window_start = unit.position, b"", 0
    ahead = ReadAhead(file, unit.position, unit.end_position, places, HEADER_BYTES)
    read_bytes = _WINDOW_BYTES
    while position < unit.end_position:
        index = position - window_start
        if index + HEADER_BYTES > len(window):
            window, window_start, index = file.read(position, read_bytes), position, 0
        if len(window) < HEADER_BYTES or is_legacy_magic(window[index + 16]):
            _add_decoded(counted, file, unit, position, unit.end_position)
            break
        base_offset, length, magic, attributes, last_delta, producer_id, count = _unpack(
            window, index
        )
        size_bytes = PREFIX_BYTES + length
        is_cut = position + size_bytes > unit.end_position
        if magic != MAGIC or size_bytes < HEADER_BYTES or count < 0 or is_cut:
            raise CorruptEntryError(unit.path, position, "no header of a batch stands there")
        last_offset = base_offset + last_delta
        if base_offset < unit.start_offset or last_offset >= unit.end_offset:
            _add_decoded(counted, file, unit, position, position + size_bytes)
        elif attributes & CONTROL_BIT:
            pass
        elif not attributes & TRANSACTIONAL_BIT or not _is_aborted(unit, producer_id, base_offset):
            # A compacted batch may lack its first records: then its first offset is the base only.
            counted.add(count, base_offset, last_offset, size_bytes)
        position += size_bytes
        ahead.look(position, size_bytes)
        read_bytes = _WINDOW_BYTES if size_bytes < _SMALL_BATCH_BYTES else HEADER_BYTES


def _is_aborted(unit: WorkUnit, producer_id: int, base_offset: int) -> bool:
    return any(
        span.producer_id == producer_id and span.first_offset <= base_offset <= span.last_offset
        for span in unit.aborted
    )


def _add_decoded(
    counted: Counted, file: File, unit: WorkUnit, position: int, end_position: int
) -> None:
    """Count by offsets where a header does not tell enough."""
    # Here, as most workers never need it: the compiled loops take long to be loaded.
    from logstore.segments.kafka.columns import Selection, iterate_columns

    selection = Selection(
        unit.start_offset,
        unit.end_offset,
        has_keys=False,
        has_values=False,
        has_headers=False,
        has_control=False,
    )
    for columns in iterate_columns(file, unit.path, position, end_position, selection=selection):
        offsets = columns.offset
        if len(offsets):
            size_bytes = int(columns.batches.size_bytes.sum())
            counted.add(len(offsets), int(offsets[0]), int(offsets[-1]), size_bytes)
