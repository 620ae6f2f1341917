"""
A partition that may hold RocketMQ's messages: their rests are not shown to Kafka's clients.

Only topics that messages were put to are looked at; all others leave as the file has them. A
message stands in an uncompressed batch without a producer, or in one that the broker compressed
for its topic: so most batches of such a topic are told by their header, too.
"""

from __future__ import annotations

from logstore.compat.bridge.memory_file import extent_of
from logstore.compat.bridge.reserved_names import MESSAGE_REST_NEEDLE
from logstore.compat.bridge.rocketmq_over_kafka.record_messages import rest_of, without_rest
from logstore.segment import Extent
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.readable_partition import CommittedRead
from logstore.segments.kafka.record import TimestampType, decode_records, encode_batch
from logstore.segments.kafka.record_batch import HEADER_BYTES, MAGIC, PREFIX_BYTES, RecordBatch

_NO_PRODUCER = -1


class ShownPartition(KafkaPartition):
    """Reads leave out what stands in records for RocketMQ's sake, once `has_rests` is set."""

    has_rests = False

    def read(
        self,
        offset: int,
        size_bytes_max: int,
        *,
        end_offset: int | None = None,
        is_first_whole: bool = True,
    ) -> Extent | None:
        """Return stored batches as :meth:`ReadablePartition.read` does, without rests."""
        found = super().read(
            offset, size_bytes_max, end_offset=end_offset, is_first_whole=is_first_whole
        )
        return _shown(found) if self.has_rests and found is not None else found

    def read_committed(
        self, offset: int, size_bytes_max: int, *, is_first_whole: bool = True
    ) -> CommittedRead:
        """Return stored batches as :meth:`ReadablePartition.read_committed`, without rests."""
        found = super().read_committed(offset, size_bytes_max, is_first_whole=is_first_whole)
        if not self.has_rests or found.extent is None:
            return found
        return found._replace(extent=_shown(found.extent))


def _shown(extent: Extent) -> Extent:
    """Return the same batches without rests; a last one that is cut short stays as it is."""
    data = extent.read()
    view = memoryview(data)
    pieces: list[memoryview | bytes] = []
    position, end = 0, len(data)
    kept_from = 0
    while end - position >= HEADER_BYTES:
        size_bytes = PREFIX_BYTES + int.from_bytes(view[position + 8 : position + 12], "big")
        if size_bytes > end - position:
            break
        batch = RecordBatch(view[position : position + size_bytes], size_bytes)
        without = _without_rests(batch)
        if without is not None:
            pieces += (view[kept_from:position], without)
            kept_from = position + size_bytes
        position += size_bytes
    if not pieces:
        return extent
    return extent_of(b"".join((*pieces, view[kept_from:])))


def _without_rests(batch: RecordBatch) -> bytes | None:
    """Return the batch without rests; None if there are none."""
    if batch.magic != MAGIC or batch.producer_id != _NO_PRODUCER or batch.is_control:
        return None
    if not batch.codec and MESSAGE_REST_NEEDLE not in bytes(batch.data):
        return None
    records = decode_records(batch.data)
    if all(rest_of(record) is None for record in records):
        return None
    is_log_time = batch.is_log_append_time
    return bytes(
        encode_batch(
            [without_rest(record) for record in records],
            base_offset=batch.base_offset,
            leader_epoch=batch.leader_epoch,
            timestamp_type=TimestampType(int(is_log_time)),
            max_timestamp_ms=batch.max_timestamp_ms,
            last_offset=batch.last_offset,
            delete_horizon_ms=batch.delete_horizon_ms,
        )
    )
