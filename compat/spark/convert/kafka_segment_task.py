"""One task of a conversion to Kafka: a part of a consume queue to segments of a partition."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.convert.damage import FAILFAST, Damage, DamageWriter
from logstore.compat.spark.convert.gathered_records import RecordGatherer
from logstore.compat.spark.convert.message_fields import MessageFieldsWriter
from logstore.compat.spark.convert.offset_map import OffsetMapWriter
from logstore.compat.spark.convert.queue_units import QueueUnits, UnitArrays
from logstore.compat.spark.convert.record_packing import RecordBatches
from logstore.compat.spark.convert.restored_records import KeptRests, rests_kept_in
from logstore.compat.spark.convert.segment_writing import SegmentWriter
from logstore.compat.spark.convert.topic_names import kafka_name
from logstore.compat.spark.convert.unwrapping import unwrapped
from logstore.compat.spark.convert.work_folder import Attempt
from logstore.deferred_sync import DeferredFileSystem
from logstore.errors import CorruptEntryError
from logstore.os_host import system_host
from logstore.segments.compiled.reused_memory import ReusedMemory
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.config import LogConfig
from logstore.segments.rocketmq.columns import MessageColumns, decode_columns

_STEP_BYTES = 4 * 1024 * 1024


class WritersBeside(ExitStack):
    """
    What a task writes of its messages beside the segments; durable when it is closed.

    And what it reads beside the source, which looks through many files.
    """

    def __init__(self, attempt: Attempt, number: int, source: Path) -> None:
        super().__init__()
        self.rests = rests_kept_in(str(source))
        self.offset_map = self.enter_context(OffsetMapWriter(attempt.beside, number))
        self.fields = self.enter_context(MessageFieldsWriter(attempt.beside, number))
        self.damage = self.enter_context(DamageWriter(attempt.beside, number))


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

    @property
    def source(self) -> Path:
        """Where the store is."""
        return Path(self.commit_log).parent

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
        with WritersBeside(attempt, self.number, self.source) as beside:
            return self.write(attempt, beside)

    def write(
        self, attempt: Attempt, beside: WritersBeside, fs: DeferredFileSystem | None = None
    ) -> int:
        """Do what :meth:`run` does with writers that others may share, and syncs put off."""
        units = self.units.read(system_host().fs)
        directory = attempt.data / self.partition_folder
        directory.mkdir(parents=True, exist_ok=True)
        segments = SegmentWriter(directory, self.config, fs)
        rests = KeptRests(str(self.source), self.source_topic, self.partition, beside.rests)
        count, memory = 0, ReusedMemory()
        for columns, queue_offsets in self.steps(units, beside.damage):
            offsets = queue_offsets + self.offset_shift
            positions = np.empty(len(columns), dtype=np.int64)
            batches = RecordBatches(columns, self.codec, self.leader_epoch, memory)
            for batch in batches.batches(offsets, rests.of(queue_offsets)):
                positions[batch.first : batch.last] = segments.append(batch.data)
            beside.offset_map.add(
                self.topic,
                self.partition,
                queue_offsets,
                columns.physical_offset,
                offsets,
                positions,
                {},
            )
            beside.fields.add(self.topic, self.partition, offsets, columns)
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
        with closing(self._gatherer()) as records:
            while first < len(units):
                before = int(ends[first - 1]) if first else 0
                last = int(np.searchsorted(ends, before + _STEP_BYTES, side="right"))
                last = max(first + 1, last)
                for columns, offsets in self._sound(records, units, first, last, damage):
                    if self.units.is_batch:
                        yield from unwrapped(columns)
                    else:
                        yield columns, offsets
                first = last

    def _sound(
        self,
        records: RecordGatherer,
        units: UnitArrays,
        first: int,
        last: int,
        damage: DamageWriter | None,
    ) -> Iterator[tuple[MessageColumns, NDArray[np.int64]]]:
        """Yield what is sound of the messages of units ``[first, last)``."""
        while first < last:
            stop, error = last, None
            data = records.gather(units, first, last).data
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
        path, position = self._gatherer().path_of(int(units.physical_offset[row]))
        return CorruptEntryError(path, position, reason)

    def _gatherer(self) -> RecordGatherer:
        return RecordGatherer(self.commit_log, self.commit_log_file_bytes)
