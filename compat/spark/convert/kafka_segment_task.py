"""One task of a conversion to Kafka: a part of a consume queue to segments of a partition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.convert import batch_kernel
from logstore.compat.spark.convert.damage import FAILFAST, Damage, DamageWriter
from logstore.compat.spark.convert.message_fields import MessageFieldsWriter
from logstore.compat.spark.convert.offset_map import OffsetMapWriter
from logstore.compat.spark.convert.queue_units import QueueUnits, UnitArrays
from logstore.compat.spark.convert.record_packing import RecordBatches
from logstore.compat.spark.convert.restored_records import KeptRests
from logstore.compat.spark.convert.segment_writing import SegmentWriter
from logstore.compat.spark.convert.topic_names import kafka_name
from logstore.compat.spark.convert.unwrapping import unwrapped
from logstore.compat.spark.convert.work_folder import Attempt
from logstore.errors import CorruptEntryError, CorruptFileError
from logstore.os_host import system_host
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.config import LogConfig
from logstore.segments.rocketmq.columns import MessageColumns, decode_columns

_NAME_DIGITS = 20
_STEP_BYTES = 4 * 1024 * 1024
#: what is spread over at most so much more than it has is read together with what lies in between
_SPREAD_MAX = 2


@attrs.frozen
class KafkaSegmentTask:
    """Writes the messages of some units of one queue as segments of their own."""

    number: int
    commit_log: str
    commit_log_file_bytes: int
    units: QueueUnits
    partition_folder: str
    source_topic: str
    topic: str
    partition: int
    codec: Codec
    config: LogConfig
    size_bytes: int
    #: added to queue offsets, and what the batches say, where a way back goes on behind the old log
    offset_shift: int = 0
    leader_epoch: int = 0
    mode: str = FAILFAST

    def of_queue(self, topic: str, queue_id: int) -> KafkaSegmentTask:
        """Return the same for another queue."""
        name = kafka_name(topic)
        return attrs.evolve(
            self,
            partition_folder=f"{name}-{queue_id}",
            source_topic=topic,
            topic=name,
            partition=queue_id,
        )

    def run(self, attempt: Attempt) -> int:
        """Write them, and the map of what stands where; return how many records there are."""
        units = self.units.read(system_host().fs)
        directory = attempt.data / self.partition_folder
        directory.mkdir(parents=True, exist_ok=True)
        segments = SegmentWriter(directory, self.config)
        rests = KeptRests(str(Path(self.commit_log).parent), self.source_topic, self.partition)
        count = 0
        with (
            OffsetMapWriter(attempt.beside, self.number) as offset_map,
            MessageFieldsWriter(attempt.beside, self.number) as fields,
            DamageWriter(attempt.beside, self.number) as damage,
        ):
            for columns, queue_offsets in self.steps(units, damage):
                offsets = queue_offsets + self.offset_shift
                positions = np.empty(len(columns), dtype=np.int64)
                batches = RecordBatches(columns, self.codec, self.leader_epoch)
                for batch in batches.batches(offsets, rests.of(queue_offsets)):
                    positions[batch.first : batch.last] = segments.append(batch.data)
                offset_map.add(
                    self.topic,
                    self.partition,
                    queue_offsets,
                    columns.physical_offset,
                    offsets,
                    positions,
                    {},
                )
                fields.add(self.topic, self.partition, offsets, columns)
                count += len(columns)
        segments.close()
        return count

    def steps(
        self, units: UnitArrays, damage: DamageWriter | None = None
    ) -> Iterator[tuple[MessageColumns, NDArray[np.int64]]]:
        """
        Yield messages as columns with their offsets, some megabytes at a time.

        Raises:
            CorruptEntryError: a message is damaged, or not where its unit says, unless the mode
                is to pass over it and tell `damage`; it names file and position.

        """
        ends = np.cumsum(units.size_bytes)
        first = 0
        while first < len(units):
            before = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, before + _STEP_BYTES, side="right")))
            for columns, offsets in self._sound(units, first, last, damage):
                if self.units.is_batch:
                    yield from unwrapped(columns)
                else:
                    yield columns, offsets
            first = last

    def _sound(
        self, units: UnitArrays, first: int, last: int, damage: DamageWriter | None
    ) -> Iterator[tuple[MessageColumns, NDArray[np.int64]]]:
        """Yield what is sound of the messages of units ``[first, last)``."""
        while first < last:
            stop, error = last, None
            data = self._gathered(units, first, last).data
            try:
                columns = decode_columns(data, self.commit_log)
                stop = first + len(columns)
                if stop < last:
                    error = self._placed(units, stop, "no message stands there")
            except CorruptEntryError as found:
                ends = np.cumsum(units.size_bytes[first:last])
                stop = first + int(np.searchsorted(ends, found.position, side="right"))
                error = self._placed(units, stop, found.reason)
                sound_bytes = int(ends[stop - first - 1]) if stop > first else 0
                columns = decode_columns(data[:sound_bytes], self.commit_log)
            if error is not None and (damage is None or self.mode == FAILFAST):
                raise error
            if stop > first:
                yield columns, units.queue_offset[first:stop]
            if error is not None and damage is not None:
                size_bytes, offset = int(units.size_bytes[stop]), int(units.queue_offset[stop])
                known = () if self.units.is_batch else (offset, offset)
                damage.add(Damage(self.source_topic, self.partition, error, size_bytes, *known))
            first = stop if error is None else stop + 1

    def _placed(self, units: UnitArrays, row: int, reason: str) -> CorruptEntryError:
        """Return what is wrong with a unit's message, with its place in the commit log."""
        position = int(units.physical_offset[row]) % self.commit_log_file_bytes
        base = int(units.physical_offset[row]) - position
        path = f"{self.commit_log}/{base:0{_NAME_DIGITS}d}"
        return CorruptEntryError(path, position, reason)

    def _gathered(self, units: UnitArrays, first: int, last: int) -> NDArray[np.uint8]:
        """Return the records of units ``[first, last)`` back to back, from wherever they stand."""
        target = np.empty(int(units.size_bytes[first:last].sum()), dtype=np.uint8)
        at = 0
        while first < last:
            start = int(units.physical_offset[first])
            base = start - start % self.commit_log_file_bytes
            places = units.physical_offset[first:last] - base
            elsewhere = np.flatnonzero((places < 0) | (places >= self.commit_log_file_bytes))
            stop = first + int(elsewhere[0]) if len(elsewhere) else last
            at += self._read(base, units, first, stop, target[at:])
            first = stop
        return target

    def _read(
        self, base: int, units: UnitArrays, first: int, stop: int, target: NDArray[np.uint8]
    ) -> int:
        """Fill `target` with records of one file, back to back; return how many bytes they have."""
        path = f"{self.commit_log}/{base:0{_NAME_DIGITS}d}"
        starts, sizes = units.physical_offset[first:stop] - base, units.size_bytes[first:stop]
        size_bytes, start = int(sizes.sum()), int(starts[0])
        spread_bytes = int(starts[-1] + sizes[-1]) - start
        if not size_bytes <= spread_bytes <= _SPREAD_MAX * size_bytes:
            source = np.memmap(path, np.uint8, "r").view(np.ndarray)
        else:
            file = system_host().fs.open(path, writable=False)
            is_run = spread_bytes == size_bytes and bool((np.diff(starts) == sizes[:-1]).all())
            source = target[:size_bytes] if is_run else np.empty(spread_bytes, dtype=np.uint8)
            try:
                found_bytes = file.read_into(start, source.data)
            finally:
                file.close()
            if found_bytes < spread_bytes:
                raise CorruptFileError(path, f"ends at {start + found_bytes}")
            if is_run:
                return size_bytes
            starts = starts - start
        return int(
            batch_kernel.gather_records(source, starts, sizes, 0, len(sizes), target[:size_bytes])
        )
