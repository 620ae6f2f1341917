"""
Reads of queues as record batches, with the latest ones kept: consumers read the same ranges.

A chunk is so many neighbouring messages as one batch takes. Only whole chunks are kept; the one at
the end of a queue still grows.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import attrs

from logstore.compat.bridge.kafka_over_rocketmq.message_rows import encode_messages
from logstore.segments.rocketmq.messages.message_layout import QUEUE_OFFSET_POSITION
from logstore.segments.rocketmq.queues.consume_queue import ConsumeQueue
from logstore.segments.rocketmq.reading.get_message import (
    GetMessageStatus,
    ReadableUnits,
    get_message,
)
from logstore.segments.rocketmq.reading.get_message_limits import GetMessageLimits

if TYPE_CHECKING:
    from logstore.compat.bridge.late_loops import LateLoops
    from logstore.segments.rocketmq.store import RocketMQStore

_OFFSET = QUEUE_OFFSET_POSITION
CHUNK_BYTES = 256 * 1024
_CHUNK_COUNT = 2048
#: fewer messages are put together sooner than the arrays for them are made
_MANY = 8
_KEPT_BYTES_MAX = 32 * 1024 * 1024
_LIMITS = GetMessageLimits(
    in_memory_bytes_max=CHUNK_BYTES,
    in_memory_count_max=_CHUNK_COUNT,
    on_disk_bytes_max=CHUNK_BYTES,
    on_disk_count_max=_CHUNK_COUNT,
)


@attrs.frozen
class Chunk:
    """One batch; the next one starts at `next_offset`."""

    data: bytes
    next_offset: int


class QueueReads:
    """Reads any queue of one store."""

    def __init__(self, store: RocketMQStore, loops: LateLoops) -> None:
        self._store = store
        self._loops = loops
        self._kept: OrderedDict[tuple[str, int, int], Chunk] = OrderedDict()
        self._kept_bytes = 0

    def few(self, topic: str, queue_id: int, queue_offset: int, bytes_max: int) -> Chunk | None:
        """Return a batch for whoever takes less than CHUNK_BYTES: of one message at least."""
        kept = self._kept.get((topic, queue_id, queue_offset))
        if kept is not None and len(kept.data) <= bytes_max:
            return kept
        queue = self._store.consume_queues.get(topic, queue_id)
        return self._read(queue, (topic, queue_id, queue_offset), bytes_max)

    def chunk(self, topic: str, queue_id: int, queue_offset: int) -> Chunk | None:
        """Return the batch that starts at `queue_offset`; None where there is no message."""
        key = topic, queue_id, queue_offset
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
            return kept
        store = self._store
        queue = store.consume_queues.get(topic, queue_id)
        loops = self._loops.loaded
        if (
            loops is not None
            and isinstance(queue, ConsumeQueue)
            and queue.max_queue_offset - queue_offset >= _MANY
        ):
            found = loops.read_chunk(queue, store.commit_log, queue_offset, _CHUNK_COUNT)
            if found is not None:
                data, count = found
                chunk = Chunk(data, queue_offset + count)
                if chunk.next_offset < queue.max_queue_offset:
                    self._keep(key, chunk)
                return chunk
        return self._read(queue, key)

    def _read(
        self, queue: ReadableUnits | None, key: tuple[str, int, int], bytes_max: int = CHUNK_BYTES
    ) -> Chunk | None:
        """Read a chunk message by message."""
        result = get_message(
            queue, self._store.commit_log, key[2], _CHUNK_COUNT, bytes_max, None, _LIMITS
        )
        if result.status is not GetMessageStatus.FOUND:
            return None
        self._loops.note(result.count)
        data = result.read()
        # Messages before it may have been removed just now: the first one says where it stands.
        base_offset = int.from_bytes(data[_OFFSET : _OFFSET + 8], "big")
        chunk = Chunk(encode_messages(data, base_offset), base_offset + result.count)
        if result.count == _CHUNK_COUNT or result.size_bytes > CHUNK_BYTES // 2:
            self._keep(key, chunk)
        return chunk

    def _keep(self, key: tuple[str, int, int], chunk: Chunk) -> None:
        self._kept[key] = chunk
        self._kept_bytes += len(chunk.data)
        while self._kept_bytes > _KEPT_BYTES_MAX:
            self._kept_bytes -= len(self._kept.popitem(last=False)[1].data)

    def forget(self, topic: str) -> None:
        """Forget what was kept of a topic that is gone."""
        for key in [key for key in self._kept if key[0] == topic]:
            self._kept_bytes -= len(self._kept.pop(key).data)
