"""One task of a conversion to Kafka: a part of a consume queue to segments of a partition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.convert import batch_kernel
from logstore.compat.spark.convert.kept_parts import kept_rests
from logstore.compat.spark.convert.message_fields import MessageFieldsWriter
from logstore.compat.spark.convert.offset_map import OffsetMapWriter
from logstore.compat.spark.convert.queue_units import QueueUnits, UnitArrays
from logstore.compat.spark.convert.record_packing import PackedBatch, RecordBatches
from logstore.compat.spark.convert.restored_records import restored_batches
from logstore.compat.spark.convert.topic_names import kafka_name
from logstore.compat.spark.convert.unwrapping import unwrapped
from logstore.compat.spark.convert.work_folder import Attempt
from logstore.host import File, FileSystem
from logstore.os_host import system_host
from logstore.segments.kafka.compression import Codec
from logstore.segments.rocketmq.columns import MessageColumns, decode_columns

_NAME_DIGITS = 20
_STEP_BYTES = 4 * 1024 * 1024


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
    segment_bytes: int
    size_bytes: int
    #: added to queue offsets, and what the batches say, where a way back goes on behind the old log
    offset_shift: int = 0
    leader_epoch: int = 0

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
        segments = _Segments(directory, self.segment_bytes)
        count = 0
        with (
            OffsetMapWriter(attempt.beside, self.number) as offset_map,
            MessageFieldsWriter(attempt.beside, self.number) as fields,
        ):
            rests = kept_rests(str(Path(self.commit_log).parent)).of_partition(
                self.source_topic, self.partition
            )
            if self.offset_shift:
                rests = {offset + self.offset_shift: rest for offset, rest in rests.items()}
            for columns, queue_offsets in self.steps(units):
                offsets = queue_offsets + self.offset_shift
                positions = np.empty(len(columns), dtype=np.int64)
                for batch in self._batches(columns, offsets, rests):
                    data = batch.data
                    if self.leader_epoch > 0:
                        data = data[:12] + self.leader_epoch.to_bytes(4, "big") + data[16:]
                    position = segments.append(int(offsets[batch.first]), data)
                    positions[batch.first : batch.last] = position
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

    def _batches(
        self, columns: MessageColumns, offsets: NDArray[np.int64], rests: dict[int, dict[str, Any]]
    ) -> Iterator[PackedBatch]:
        """Yield batches of the messages; those that were records once become them again."""
        if rests and any(offset in rests for offset in offsets.tolist()):
            return restored_batches(columns, offsets, rests, self.codec)
        return RecordBatches(columns, self.codec).batches(offsets)

    def steps(self, units: UnitArrays) -> Iterator[tuple[MessageColumns, NDArray[np.int64]]]:
        """Yield messages as columns with their offsets, some megabytes at a time."""
        ends = np.cumsum(units.size_bytes)
        first = 0
        while first < len(units):
            before = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, before + _STEP_BYTES, side="right")))
            data = self._gathered(units, first, last)
            columns = decode_columns(data, self.commit_log)
            if self.units.is_batch:
                yield from unwrapped(columns)
            else:
                yield columns, units.queue_offset[first:last]
            first = last

    def _gathered(self, units: UnitArrays, first: int, last: int) -> bytes:
        """Return the records of units ``[first, last)`` back to back, from wherever they stand."""
        target = np.empty(int(units.size_bytes[first:last].sum()), dtype=np.uint8)
        bases = units.physical_offset - units.physical_offset % self.commit_log_file_bytes
        at = 0
        while first < last:
            base = int(bases[first])
            differ = np.flatnonzero(bases[first:last] != base)
            stop = first + int(differ[0]) if len(differ) else last
            source = np.memmap(f"{self.commit_log}/{base:0{_NAME_DIGITS}d}", np.uint8, "r")
            starts = units.physical_offset - base
            at += int(
                batch_kernel.gather_records(
                    source.view(np.ndarray), starts, units.size_bytes, first, stop, target[at:]
                )
            )
            first = stop
        return target.tobytes()


class _Segments:
    """Segments of one partition, written one behind the other."""

    def __init__(self, directory: Path, segment_bytes: int) -> None:
        self._fs: FileSystem = system_host().fs
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._file: File | None = None
        self._position = 0

    def append(self, base_offset: int, data: bytes) -> int:
        """Write a batch; return its position in its segment."""
        if self._file is None or self._position + len(data) > self._segment_bytes:
            self.close()
            path = self._directory / f"{base_offset:0{_NAME_DIGITS}d}.log"
            self._file = self._fs.open(str(path), create=True)
            self._file.truncate(0)  # what an earlier try left behind
            self._position = 0
        position = self._position
        self._file.write(position, data)
        self._position += len(data)
        return position

    def close(self) -> None:
        """Make the segment at hand durable."""
        if self._file is not None:
            self._file.sync()
            self._file.close()
            self._file = None
            self._fs.sync_directory(str(self._directory))
