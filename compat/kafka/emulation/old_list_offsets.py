"""
ListOffsets (2), version 0: so many offsets of segments that are older than a time, newest first.

A segment counts as as old as its file; the log end stands behind them as the youngest. -1 asks for
the log end and what comes before, -2 for the log start alone.

Source: ``Log.legacyFetchOffsetsBefore`` of Kafka 3.9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.framing import Reader
from logstore.compat.kafka.registry import RawRequest
from logstore.compat.kafka.writer import Writer

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.segments.kafka.partition import KafkaPartition

_LATEST, _EARLIEST = -1, -2


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Look every asked time up."""
    del client
    reader = Reader(request.data, request.position, is_flexible=False)
    writer = Writer(is_flexible=False)
    reader.i32()  # replica
    topic_count = reader.count()
    writer.count(topic_count)
    for _ in range(topic_count):
        topic = reader.text()
        writer.string(topic)
        partition_count = reader.count()
        writer.count(partition_count)
        for _ in range(partition_count):
            index, time_ms, count_max = reader.i32(), reader.i64(), reader.i32()
            partition = broker.by_name.get(topic, {}).get(index)
            is_here = partition is not None
            offsets = [] if partition is None else offsets_before(partition, time_ms, count_max)
            writer.i32(index)
            writer.i16(ErrorCode.NONE if is_here else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            writer.count(len(offsets))
            for offset in offsets:
                writer.i64(offset)
    return [writer.frame(request.correlation_id)]


def offsets_before(partition: KafkaPartition, time_ms: int, count_max: int) -> list[int]:
    """Return at most so many offsets, the highest first."""
    starts = [
        (max(segment.base_offset, partition.start_offset), segment.fs.modified_ms(segment.path))
        for segment in partition.log.segments.values()
    ]
    if partition.end_offset > starts[-1][0]:
        starts.append((partition.end_offset, partition.host.clock.wall_ms()))
    first = -1
    if time_ms == _LATEST:
        first = len(starts) - 1
    elif time_ms == _EARLIEST:
        first = 0
    else:
        young = [at for at, (_, modified_ms) in enumerate(starts) if modified_ms <= time_ms]
        first = young[-1] if young else -1
    found = [offset for offset, _ in starts[first::-1]] if first >= 0 else []
    return found[: max(count_max, 0)]
