"""One task of a conversion to RocketMQ: units of Kafka segments to files of the commit log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.convert.commit_log_plan import FileSpan, Measured, PlacedUnit
from logstore.compat.spark.convert.damage import FAILFAST, Damage, DamageWriter
from logstore.compat.spark.convert.derived_parts import Derived, DerivedWriter
from logstore.compat.spark.convert.message_reader import MessageReader, Messages
from logstore.compat.spark.convert.offset_map import OffsetMapWriter
from logstore.compat.spark.convert.work_folder import Attempt
from logstore.compat.spark.work_unit import WorkUnit
from logstore.host import File
from logstore.segments.rocketmq.messages.message_layout import BLANK, BLANK_BYTES, BLANK_MAGIC
from logstore.segments.rocketmq.settings.store_config import StoreConfig
from logstore.segments.rocketmq.store_rules import delay_levels
from logstore.streamed_files import StreamedFileSystem

_NAME_DIGITS = 20


@attrs.frozen
class MeasureTask:
    """Finds out what units are as messages."""

    source: str
    units: tuple[WorkUnit, ...]
    mode: str = FAILFAST
    #: how much all tasks read
    scan_bytes: int = 0

    def run(self) -> list[Measured]:
        """Return the measure of every unit; nothing is written."""
        reader = MessageReader(self.source, self.scan_bytes)
        return [self._measured(unit, reader) for unit in self.units]

    def _measured(self, unit: WorkUnit, reader: MessageReader) -> Measured:
        count = size_bytes = longest = 0
        newest_ms = -1
        pass_over = None if self.mode == FAILFAST else _pass_over
        for batch in reader.messages(unit, is_measured=True, on_damage=pass_over):
            count += len(batch)
            size_bytes += int(batch.sizes.sum())
            longest = max(longest, int(batch.sizes.max()))
            newest_ms = max(newest_ms, int(batch.timestamps_ms.max()))
        return Measured(unit, count, size_bytes, longest, newest_ms)


@attrs.frozen
class CommitLogTask:
    """Writes the files of one span."""

    number: int
    source: str
    span: FileSpan
    settings: Mapping[str, str]
    mode: str = FAILFAST
    #: how much all tasks read
    scan_bytes: int = 0

    @property
    def file_bytes(self) -> int:
        """How long a file of the commit log is."""
        return StoreConfig(self.settings).commit_log_file_size_bytes

    @property
    def size_bytes(self) -> int:
        """How much of the source it reads."""
        return sum(placed.unit.size_bytes for placed in self.span.units)

    def run(self, attempt: Attempt) -> Derived | None:
        """Write the files, and the map of what stands where; return what is derived from them."""
        directory = attempt.data / "commitlog"
        directory.mkdir(parents=True, exist_ok=True)
        reader = MessageReader(self.source, self.scan_bytes)
        deliver_time = delay_levels(StoreConfig(self.settings)).deliver_time_ms
        with (
            OffsetMapWriter(attempt.beside, self.number) as offset_map,
            DerivedWriter(attempt.derived, self.number, deliver_time) as writer,
            DamageWriter(attempt.beside, self.number) as damage,
        ):
            files = _Files(directory, self.span.physical_offset, self.file_bytes, writer)
            for placed in self.span.units:
                self._write_unit(placed, files, offset_map, reader, damage)
            files.close(self.span.file_count, is_last=self.span.is_last)
        return writer.derived()

    def _write_unit(
        self,
        placed: PlacedUnit,
        files: _Files,
        offset_map: OffsetMapWriter,
        reader: MessageReader,
        damage: DamageWriter,
    ) -> None:
        unit = placed.unit
        queue_offset, floor_ms = placed.first_queue_offset, placed.store_timestamp_ms_min
        on_damage = None if self.mode == FAILFAST else damage.add
        for batch in reader.messages(unit, on_damage=on_damage):
            queue_offsets = np.arange(queue_offset, queue_offset + len(batch), dtype=np.int64)
            store_ms = np.maximum(np.maximum.accumulate(batch.timestamps_ms), floor_ms)
            physical_offsets = files.append(batch, queue_offsets, store_ms)
            offset_map.add(
                batch.topic,
                unit.partition,
                batch.offsets,
                batch.positions,
                queue_offsets,
                physical_offsets,
                batch.rests,
            )
            queue_offset += len(batch)
            floor_ms = int(store_ms[-1])


def _pass_over(damage: Damage) -> None:
    """Say nothing: whoever writes does."""


class _Files:
    """The files of a span, written one behind the other."""

    def __init__(
        self, directory: Path, physical_offset: int, file_bytes: int, derived: DerivedWriter
    ) -> None:
        self._derived = derived
        self._fs = StreamedFileSystem()
        self._directory = directory
        self._base = physical_offset
        self._file_bytes = file_bytes
        self._position = 0
        self._count = 1
        self._file = self._open()

    def _open(self) -> File:
        path = self._directory / f"{self._base:0{_NAME_DIGITS}d}"
        file = self._fs.open(str(path), create=True)
        file.truncate(0)  # what an earlier try left behind
        file.truncate(self._file_bytes)
        return file

    def append(
        self,
        batch: Messages,
        queue_offsets: NDArray[np.int64],
        store_timestamps_ms: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Write all messages of a batch; return where each of them stands."""
        physical_offsets = np.empty(len(batch), dtype=np.int64)
        for first, last in self._runs(batch.sizes):
            data = batch.pack(
                first,
                last,
                queue_offsets,
                store_timestamps_ms,
                self._base + self._position,
                physical_offsets,
            )
            self._file.write(self._position, data.data)
            self._derived.add(data)
            self._position += len(data)
        return physical_offsets

    def _runs(self, sizes: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
        """Yield runs of rows that fit into the file at hand, rolling in between."""
        ends = np.cumsum(sizes)
        first = 0
        while first < len(sizes):
            before = int(ends[first - 1]) if first else 0
            room = self._file_bytes - BLANK_BYTES - self._position
            last = int(np.searchsorted(ends, before + room, side="right"))
            if last > first:
                yield first, last
                first = last
            else:
                self._roll()

    def _roll(self) -> None:
        """End the file with a BLANK and begin the next one."""
        blank = BLANK.pack(self._file_bytes - self._position, BLANK_MAGIC)
        self._file.write(self._position, blank)
        self._seal()
        self._base += self._file_bytes
        self._position = 0
        self._count += 1
        self._file = self._open()

    def _seal(self) -> None:
        """Make the file at hand durable."""
        self._file.sync()
        self._file.close()

    def close(self, file_count: int, *, is_last: bool) -> None:
        """End the span; files that were not needed are a BLANK each, as none may be missing."""
        assert self._count <= file_count, "the layout leaves room for every message"
        if not is_last:
            while self._count < file_count:
                self._roll()
            blank = BLANK.pack(self._file_bytes - self._position, BLANK_MAGIC)
            self._file.write(self._position, blank)
        self._seal()
        self._fs.close()
        self._fs.sync_directory(str(self._directory))
