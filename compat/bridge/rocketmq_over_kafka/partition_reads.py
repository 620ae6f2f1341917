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

    from logstore.compat.bridge.rocketmq_over_kafka.partition_places import PartitionPlaces
    from logstore.segments.kafka.partition import KafkaPartition
    from logstore.segments.rocketmq.messages.host_address import HostAddress

_CHUNK_BYTES = 256 * 1024
_KEPT_BYTES_MAX = 32 * 1024 * 1024
_CHUNKS_PER_PARTITION = 8


@attrs.define(slots=True, eq=False)
class Chunk:
    """The messages whose offsets are in ``[base_offset, next_offset)``."""

    base_offset: int
    next_offset: int
    offsets: list[int] = attrs.field(factory=list[int])
    #: stored form and tags code of each
    messages: list[tuple[bytes, int]] = attrs.field(factory=list[tuple[bytes, int]])
    size_bytes: int = 0

    def index_of(self, offset: int) -> int:
        """Return the index of the first message at or behind `offset`."""
        return bisect_left(self.offsets, offset)


class PartitionReads:
    """Reads any partition of one store."""

    def __init__(self, places: PartitionPlaces, host: Callable[[], HostAddress]) -> None:
        self._places = places
        self._host = host
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
        if chunk.messages:  # what is committed does not change, also where more will follow
            self._keep(partition, chunk)
        return chunk

    def _read(self, partition: KafkaPartition, offset: int) -> Chunk:
        first_place, host = self._places.first_place(partition), self._host()
        topic, index = partition.topic, partition.index
        chunk = Chunk(offset, offset)
        for batch in partition.committed_batches(offset):
            chunk.next_offset = max(offset, batch.next_offset)
            if batch.is_control:
                continue
            for record in decode_records(batch.data):
                if record.offset < offset:
                    continue
                place = first_place + record.offset
                message = message_of(record, topic, index, place, host)
                chunk.offsets.append(record.offset)
                chunk.messages.append(message)
                chunk.size_bytes += len(message[0])
            if chunk.size_bytes >= _CHUNK_BYTES:
                return chunk
        # Behind the last batch there may be holes: what was aborted, or compacted away.
        chunk.next_offset = max(chunk.next_offset, partition.last_stable_offset)
        return chunk

    def _keep(self, partition: KafkaPartition, chunk: Chunk) -> None:
        kept = self._kept.setdefault(partition, [])
        kept.append(chunk)
        self._kept_bytes += chunk.size_bytes
        if len(kept) > _CHUNKS_PER_PARTITION:
            self._kept_bytes -= kept.pop(0).size_bytes
        while self._kept_bytes > _KEPT_BYTES_MAX and len(self._kept) > 1:
            self._drop(next(iter(self._kept)))

    def _drop(self, partition: KafkaPartition) -> None:
        self._kept_bytes -= sum(chunk.size_bytes for chunk in self._kept.pop(partition, ()))

    def forget(self, partition: KafkaPartition) -> None:
        """Forget what was kept of a partition that is gone."""
        self._drop(partition)
