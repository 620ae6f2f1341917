"""The answer to a ShareFetch, with the stored bytes left in their files."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.framing import I32, uvarint
from logstore.compat.kafka.node_endpoint import write_node_endpoints
from logstore.compat.kafka.share_reads.acquisition import AcquiredRecords
from logstore.compat.kafka.share_reads.share_sessions import PartitionKey
from logstore.compat.kafka.writer import Writer
from logstore.segment import Extent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.security.listener import Listener

_ACQUIRED = struct.Struct(">qqhx")  # and no tagged fields
_LEADER = struct.Struct(">iix")
#: with these a client is told who leads the partition
MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


@attrs.define(eq=False)
class FetchedPartition:
    """What one partition gave, and what came of what was said of its records."""

    key: PartitionKey
    error_code: int = 0
    extent: Extent | None = None
    acquired: Sequence[AcquiredRecords] = ()
    acknowledge_code: int = 0
    acknowledge_message: str | None = None


def encode(
    broker: Broker,
    listener: Listener,
    correlation_id: int,
    found: Iterable[FetchedPartition] = (),
    *,
    error_code: int = 0,
    lock_timeout_ms: int = 0,
) -> list[Chunk]:
    """Return the whole frame: bytes, with runs of files between them. Both versions are alike."""
    topics: dict[bytes, list[FetchedPartition]] = {}
    for partition in found:
        topics.setdefault(partition.key.topic_id, []).append(partition)
    chunks: list[Chunk] = []
    writer = Writer(is_flexible=True)
    writer.raw(I32.pack(correlation_id) + b"\x00")
    writer.i32(0)
    writer.i16(error_code)
    writer.string(None)
    writer.i32(lock_timeout_ms)
    writer.count(len(topics))
    has_moved = False
    for topic_id, partitions in topics.items():
        writer.raw(topic_id)
        writer.count(len(partitions))
        for partition in partitions:
            has_moved = has_moved or partition.error_code in MOVED
            _write_partition(broker, partition, writer, chunks)
        writer.tags()
    if has_moved:
        write_node_endpoints(broker, listener, writer)
    else:
        writer.count(0)
    writer.tags()
    chunks.append(writer.body())
    size_bytes = sum(c.size_bytes if isinstance(c, Extent) else len(c) for c in chunks)
    first = chunks[0]
    assert isinstance(first, bytes), "the header comes before any file run"
    return [I32.pack(size_bytes) + first, *chunks[1:]]


def _write_partition(
    broker: Broker, partition: FetchedPartition, writer: Writer, chunks: list[Chunk]
) -> None:
    """Write one partition's answer; where file bytes follow, close off what comes before."""
    topic_id, index = partition.key
    writer.i32(index)
    writer.i16(partition.error_code)
    writer.string(None)  # Kafka has a place for the reason, and leaves it empty
    writer.i16(partition.acknowledge_code)
    message = partition.acknowledge_message
    writer.string(None if message is None else message.encode())
    writer.raw(_LEADER.pack(*leader_of(broker, topic_id, index, partition.error_code)))
    extent = partition.extent
    if extent is None:
        writer.raw(b"\x01")
    else:
        writer.raw(uvarint(extent.size_bytes + 1))
        chunks.append(writer.body())
        chunks.append(extent)
        writer.pieces.clear()
    writer.count(len(partition.acquired))
    for some in partition.acquired:
        writer.raw(_ACQUIRED.pack(*some))
    writer.tags()


def leader_of(broker: Broker, topic_id: bytes, index: int, error_code: int) -> tuple[int, int]:
    """Return what a client is told of a partition's leader and epoch: nothing unless it asks."""
    partition = broker.by_id.get(topic_id, {}).get(index)
    if error_code not in MOVED or partition is None:
        return 0, 0
    return broker.placements.of(partition).leader, partition.leader_epoch
