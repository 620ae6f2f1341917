"""
Records that were held back until their commit, as messages on their way into a queue.

Each says in its prepared transaction offset, as RocketMQ's own committed messages do, where it
stood before: bit 62, and its offset among what is held. So whoever has to finish a commit after a
crash sees which of its messages are in the queue already.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from logstore.compat.bridge.kafka_over_rocketmq.record_drafts import RecordRunDraft
from logstore.segments.rocketmq.messages.message_draft import MessageEntry
from logstore.segments.rocketmq.messages.message_layout import (
    FIXED_BYTES,
    FIXED_FIELDS,
    SYS_FLAG_POSITION,
)
from logstore.segments.rocketmq.queues.consume_queue import ConsumeQueue
from logstore.segments.rocketmq.reading.get_message import GetMessageStatus, get_message

if TYPE_CHECKING:
    from logstore.segments.kafka.record_run import Row
    from logstore.segments.rocketmq.messages.host_address import HostAddress
    from logstore.segments.rocketmq.store import RocketMQStore

#: no physical offset of a prepared message is that large
HELD_BIT = 1 << 62
_PREPARED = struct.Struct(">q")
#: so far before the end of the fixed fields: itself, and the length of the body
_PREPARED_BEFORE_END = _PREPARED.size + 4
_COUNT = 1024
_PREPARED_FIELD = 13


class HeldRunDraft(RecordRunDraft):
    """The messages of records that stood at `held_offsets` until now."""

    __slots__ = ("held_offsets",)

    def __init__(self, topic: str, queue_id: int, host: HostAddress) -> None:
        super().__init__(topic, queue_id, host)
        self.held_offsets: Sequence[int] = ()

    def stamped(self, base_offset: int) -> MessageEntry:
        """Return all messages as they stand in the commit log from `base_offset` on."""
        entry = super().stamped(base_offset)
        data = bytearray(entry.data)
        at = FIXED_BYTES[self.model.sys_flag >> 4 & 3] - _PREPARED_BEFORE_END
        for size_bytes, held_offset in zip(self.columns[0], self.held_offsets, strict=True):
            _PREPARED.pack_into(data, at, HELD_BIT | held_offset)
            at += size_bytes
        return MessageEntry(base_offset, self.size_bytes, bytes(data))


def draft_held(
    topic: str, queue_id: int, rows: Sequence[Row], held_offsets: Sequence[int], host: HostAddress
) -> HeldRunDraft:
    """
    Return the messages that the records in `rows` become; `held_offsets` is where they stand now.

    Raises:
        RejectedAppendError: key and headers of one take more than properties can.

    """
    draft = HeldRunDraft(topic, queue_id, host)
    draft.take(rows)
    draft.held_offsets = held_offsets
    return draft


def held_offsets_in(
    store: RocketMQStore, topic: str, queue_id: int, queue_offset: int
) -> Iterator[int]:
    """Yield where the messages of a queue from `queue_offset` on stood that were held back."""
    queue = store.consume_queues.get(topic, queue_id)
    if not isinstance(queue, ConsumeQueue):
        return
    position = max(queue_offset, queue.min_queue_offset)
    while True:
        result = get_message(queue, store.commit_log, position, _COUNT)
        if result.status is GetMessageStatus.FOUND:
            yield from _held_offsets(result.read())
        if result.next_begin_offset <= position:
            return
        position = result.next_begin_offset


def _held_offsets(data: bytes) -> Iterator[int]:
    position = 0
    while position < len(data):
        fields = FIXED_FIELDS[data[position + SYS_FLAG_POSITION + 3] >> 4 & 3]
        found = fields.unpack_from(data, position)
        if found[_PREPARED_FIELD] & HELD_BIT:
            yield found[_PREPARED_FIELD] & ~HELD_BIT
        position += found[0]
