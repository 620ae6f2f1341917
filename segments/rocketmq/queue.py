"""
One queue of a topic: its own consume queue and the commit log that all queues share.

Implements :class:`logstore.partition.PartitionLog`; what it calls an offset is a queue offset.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from logstore.partition import AppendResult, Record

if TYPE_CHECKING:
    from logstore.segments.rocketmq.message import Message
    from logstore.segments.rocketmq.store import RocketMQStore


class RocketMQQueue:
    """A queue as servers, tools and Spark see it. It keeps nothing: the store does."""

    __slots__ = ("index", "store", "topic")

    def __init__(self, store: RocketMQStore, topic: str, queue_id: int) -> None:
        self.store = store
        self.topic = topic
        self.index = queue_id

    @property
    def start_offset(self) -> int:
        """Return the first queue offset that may be read."""
        raise NotImplementedError

    @property
    def end_offset(self) -> int:
        """Return the queue offset that the next message gets."""
        raise NotImplementedError

    def append_records(self, records: Iterable[Record]) -> AppendResult:
        """Put each record as a message: value = body, key = KEYS, headers = properties."""
        raise NotImplementedError

    def read_records(self, offset: int, count_max: int) -> list[Record]:
        """Return up to `count_max` records from queue offset `offset` on."""
        raise NotImplementedError

    def messages(self, queue_offset: int, count_max: int) -> list[Message]:
        """Return up to `count_max` messages from `queue_offset` on, decoded."""
        raise NotImplementedError

    def offset_for_timestamp(self, timestamp_ms: int) -> int | None:
        """Return the first queue offset stored at or after `timestamp_ms`, or None."""
        raise NotImplementedError
