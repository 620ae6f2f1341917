"""
Reads of partitions as messages, with the latest ones kept: pulls are small, batches are not.

Only what is committed is a message: aborted records and control batches leave holes among the
queue offsets, and nothing is read past the last stable offset.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from typing import TYPE_CHECKING

import attrs

from logstore.compat.bridge.rocketmq_over_kafka.record_messages import message_of
from logstore.segments.kafka.record import decode_records

if TYPE_CHECKING:
    from collections.abc import Callable

    from logstore.compat.bridge.late_loops import LateLoops
    from logstore.compat.bridge.rocketmq_over_kafka.partition_places import PartitionPlaces
    from logstore.segments.kafka.partition import KafkaPartition
    from logstore.segments.kafka.record_batch import RecordBatch
    from logstore.segments.rocketmq.messages.host_address import HostAddress

_CHUNK_BYTES = 256 * 1024
_KEPT_BYTES_MAX = 32 * 1024 * 1024
_CHUNKS_PER_PARTITION = 8


@attrs.define(slots=True, eq=False)
class Chunk:
    """The messages whose offsets are in ``[base_offset, next_offset)``."""

    base_offset: int
    next_offset: int
    #: the messages back to back
    data: bytes = b""
    offsets: list[int] = attrs.field(factory=list[int])
    #: where each ends in `data`
    ends: list[int] = attrs.field(factory=list[int])
    tags_codes: list[int] = attrs.field(factory=list[int])

    def index_of(self, offset: int) -> int:
        """Return the index of the first message at or behind `offset`."""
        return bisect_left(self.offsets, offset)

    def start_of(self, index: int) -> int:
        """Return where a message begins in `data`; where they end for the index behind them."""
        return self.ends[index - 1] if index else 0

    def message(self, index: int) -> bytes:
        """Return the stored form of a message."""
        return self.data[self.start_of(index) : self.ends[index]]


class PartitionReads:
    """Reads any partition of one store."""

    def __init__(
        self, places: PartitionPlaces, host: Callable[[], HostAddress], loops: LateLoops
    ) -> None:
        self._places = places
        self._host = host
        self._loops = loops
        self._kept: OrderedDict[KafkaPartition, list[Chunk]] = OrderedDict()
        self._kept_bytes = 0

    def chunk(self, partition: KafkaPartition, offset: int) -> Chunk:
        """
        Return messages from `offset` on, or from before it; none at the last stable offset.

        Raises:
            CorruptRecordError, CorruptEntryError: a batch cannot be read.

        """
        kept = self._kept.get(partition)
        if kept is not None:
            self._kept.move_to_end(partition)
            for chunk in reversed(kept):
                if chunk.base_offset <= offset < chunk.next_offset:
                    return chunk
        chunk = self._read(partition, offset)
        if chunk.offsets:  # what is committed does not change, also where more will follow
            self._keep(partition, chunk)
        return chunk

    def _read(self, partition: KafkaPartition, offset: int) -> Chunk:
        batches: list[RecordBatch] = []
        size_bytes, next_offset = 0, offset
        for batch in partition.committed_batches(offset):
            next_offset = max(offset, batch.next_offset)
            if not batch.is_control:
                batches.append(batch)
                size_bytes += batch.size_bytes
            if size_bytes >= _CHUNK_BYTES:
                break
        else:
            # Behind the last batch may be holes: what was aborted, or compacted away.
            next_offset = max(next_offset, partition.last_stable_offset)
        return self._chunk_of(partition, batches, Chunk(offset, next_offset))

    def _chunk_of(
        self, partition: KafkaPartition, batches: list[RecordBatch], chunk: Chunk
    ) -> Chunk:
        """Fill a chunk with the messages that the records of the batches are."""
        place = partition.topic, partition.index, self._places.first_place(partition)
        loops = self._loops.want(sum(batch.record_count for batch in batches))
        if loops is not None:
            found = loops.stored_messages(batches, chunk.base_offset, place, self._host())
            if found is not None:
                chunk.data, chunk.offsets, chunk.ends, chunk.tags_codes = found
                return chunk
        self._fill(chunk, batches, place)
        return chunk

    def _fill(self, chunk: Chunk, batches: list[RecordBatch], place: tuple[str, int, int]) -> None:
        """Fill a chunk record by record."""
        topic, index, first_place = place
        host = self._host()
        pieces: list[bytes] = []
        end = 0
        for batch in batches:
            for record in decode_records(batch.data):
                if record.offset < chunk.base_offset:
                    continue
                data, tags_code = message_of(
                    record, topic, index, first_place + record.offset, host
                )
                pieces.append(data)
                end += len(data)
                chunk.offsets.append(record.offset)
                chunk.ends.append(end)
                chunk.tags_codes.append(tags_code)
        chunk.data = b"".join(pieces)

    def _keep(self, partition: KafkaPartition, chunk: Chunk) -> None:
        kept = self._kept.setdefault(partition, [])
        kept.append(chunk)
        self._kept_bytes += len(chunk.data)
        if len(kept) > _CHUNKS_PER_PARTITION:
            self._kept_bytes -= len(kept.pop(0).data)
        while self._kept_bytes > _KEPT_BYTES_MAX and len(self._kept) > 1:
            self._drop(next(iter(self._kept)))

    def _drop(self, partition: KafkaPartition) -> None:
        self._kept_bytes -= sum(len(chunk.data) for chunk in self._kept.pop(partition, ()))

    def forget(self, partition: KafkaPartition) -> None:
        """Forget what was kept of a partition that is gone."""
        self._drop(partition)
