"""A piece of a Kafka segment, measured: every record is decoded, but for its value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.planned_file import opened
from logstore.compat.spark.predicates import Where
from logstore.compat.spark.salvage import next_batch_position
from logstore.compat.spark.time_window import wanted_ranges
from logstore.compat.spark.work_unit import WorkUnit
from logstore.errors import CorruptEntryError
from logstore.host import File, FileSystem
from logstore.segments.kafka.columns import RecordColumns, Selection, iterate_columns
from logstore.segments.kafka.compression import Codec
from logstore.tools.inspection.stats.key_hash import key_hashes
from logstore.tools.inspection.stats.partition_stats import PartitionStats

_HEADER_BYTES = 61
#: passes over nothing that may hold a wanted record
_CERTAIN = -1


def measure_kafka(fs: FileSystem, unit: WorkUnit, where: Where) -> PartitionStats:
    """Return what is in the unit between the times of `where`; damage is counted."""
    stats = PartitionStats()
    with opened(fs, unit) as parts:
        for file, part in parts:
            measure = _Measure(file, part, where, stats)
            for position, end in wanted_ranges(file, part, where, _CERTAIN):
                measure.take_range(position, end)
    return stats


class _Measure:
    def __init__(self, file: File, unit: WorkUnit, where: Where, stats: PartitionStats) -> None:
        self.stats = stats
        self._file = file
        self._unit = unit
        self._where = where
        self._selection = Selection(
            unit.start_offset,
            unit.end_offset,
            has_headers=False,
            has_value_data=False,
            is_run=True,
        )

    def take_range(self, position: int, end: int) -> None:
        """Take the batches in ``[position, end)`` of the file."""
        while position < end:
            try:
                for columns in self._columns(position, end):
                    position = columns.next_position
                    self._take(columns)
                return
            except CorruptEntryError as error:
                if position < error.position:  # what is whole in the step in front of it
                    for columns in self._columns(position, error.position):
                        self._take(columns)
                self.stats.damaged_count += 1
                position = next_batch_position(self._file, error.position, end)

    def _columns(self, position: int, end: int) -> Any:
        return iterate_columns(
            self._file, self._unit.path, position, end, selection=self._selection
        )

    def _take(self, columns: RecordColumns) -> None:
        batches, times = columns.batches, columns.timestamp_ms
        low, high = self._where.timestamp_ms_min, self._where.timestamp_ms_max
        is_control = batches.is_control
        is_wanted = ~is_control[columns.batch]
        if self._where.has_times:
            is_wanted &= (times >= low) & (times <= high)
            newest = batches.max_timestamp_ms
            is_control = is_control & (newest >= low) & (newest <= high)
        rows = np.flatnonzero(is_wanted)
        kept = np.bincount(columns.batch[rows], minlength=len(batches))
        a_record = batches.size_bytes / np.maximum(batches.record_count, 1)
        assert columns.key is not None, "keys were asked for"
        hashes = key_hashes(columns.key.data, columns.key.bounds)
        is_keyed = is_wanted & ~columns.key.is_null
        stats = self.stats
        stats.add_records(
            columns.offset[rows], times[rows], a_record[columns.batch[rows]], hashes[is_keyed]
        )
        assert columns.value is not None, "values were asked for"
        stats.null_count += int((columns.value.is_null & is_wanted).sum())
        stats.entry_count += int((kept > 0).sum())
        stats.control_count += int(is_control.sum())
        stats.entry_sizes.add(batches.size_bytes[kept > 0])
        share = np.where(is_control, 1.0, kept / np.maximum(batches.record_count, 1))
        self._take_packed(columns, share)

    def _take_packed(self, columns: RecordColumns, share: NDArray[np.float64]) -> None:
        batches = columns.batches
        plain = np.where(batches.codec == 0, batches.size_bytes, _HEADER_BYTES)
        unpacked = plain + np.where(batches.codec == 0, 0, columns.unpacked_bytes)
        for codec in np.unique(batches.codec[share > 0]).tolist():
            rows = np.flatnonzero(batches.codec == codec)
            self.stats.add_packed(
                Codec(codec).name.lower(),
                float((batches.size_bytes[rows] * share[rows]).sum()),
                float((unpacked[rows] * share[rows]).sum()),
            )
