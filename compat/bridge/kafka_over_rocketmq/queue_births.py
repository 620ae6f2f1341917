"""
Which message of each queue was born last.

RocketMQ has no index of births, and producers may say any time: so a queue is looked through when
somebody asks, and later only what came since.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.record_batch import NO_TIMESTAMP, RecordBatch

if TYPE_CHECKING:
    from logstore.compat.bridge.kafka_over_rocketmq.queue_reads import QueueReads


@attrs.define
class _Seen:
    """What was seen of a queue below `end`: the first message with the latest birth."""

    end: int
    timestamp_ms: int = NO_TIMESTAMP
    offset: int = -1


class QueueBirths:
    """The latest births of all queues of one store."""

    def __init__(self, reads: QueueReads) -> None:
        self._reads = reads
        self._seen: dict[tuple[str, int], _Seen] = {}

    def latest(self, topic: str, queue_id: int, start_offset: int) -> tuple[int, int] | None:
        """Return (born timestamp, queue offset), the first of the latest; None of no messages."""
        seen = self._seen.get((topic, queue_id))
        if seen is None or seen.offset < start_offset:  # what was the latest has gone
            seen = self._seen[topic, queue_id] = _Seen(start_offset)
        while True:
            chunk = self._reads.chunk(topic, queue_id, seen.end)
            if chunk is None:
                break
            batch = RecordBatch(chunk.data, len(chunk.data))
            if batch.max_timestamp_ms > seen.timestamp_ms:
                seen.timestamp_ms = batch.max_timestamp_ms
                seen.offset = next(
                    record.offset
                    for record in decode_records(chunk.data)
                    if record.timestamp_ms == seen.timestamp_ms
                )
            seen.end = chunk.next_offset
        return None if seen.offset < 0 else (seen.timestamp_ms, seen.offset)

    def forget(self, topic: str) -> None:
        """Forget a topic that is gone."""
        for key in [key for key in self._seen if key[0] == topic]:
            del self._seen[key]
