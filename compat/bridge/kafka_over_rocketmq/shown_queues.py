"""A RocketMQ store that may hold Kafka's records: their rests are not shown to its clients."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import attrs

from logstore.compat.bridge.kafka_over_rocketmq.queue_starts import QueueStarts
from logstore.compat.bridge.memory_file import MemoryFile, extent_of
from logstore.compat.bridge.noted_topics import NotedTopics
from logstore.compat.bridge.reserved_names import RECORD_REST_NEEDLE, RECORD_REST_PROPERTY
from logstore.compat.rocketmq.broker import Broker
from logstore.host import Host
from logstore.segment import Extent
from logstore.segments.rocketmq.messages.message import (
    CorruptMessageError,
    Message,
    decode_message,
    encode_message,
)
from logstore.segments.rocketmq.messages.properties import CRC32, encode_properties
from logstore.segments.rocketmq.reading.get_message import (
    MAX_PULL_BYTES,
    GetMessageResult,
    GetMessageStatus,
)
from logstore.segments.rocketmq.reading.message_filter import MessageFilter
from logstore.segments.rocketmq.reading.message_query import QueryMessageResult
from logstore.segments.rocketmq.reading.time_lookup import BoundaryType
from logstore.segments.rocketmq.settings.broker_config import BrokerSettings
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions


class ShownQueues(RocketMQStore):
    """
    Reads leave out what stands in messages for Kafka's sake.

    Only topics in `noted` are looked at; all others leave as the commit log has them. Queues begin
    where `starts` says, if it does.
    """

    def __init__(
        self,
        host: Host,
        directory: str,
        options: StoreOptions,
        noted: NotedTopics,
        starts: QueueStarts,
    ) -> None:
        self.noted = noted
        self.starts = starts
        super().__init__(host, directory, options)

    def get_message(
        self,
        group: str,
        topic: str,
        queue_id: int,
        queue_offset: int,
        count_max: int,
        size_bytes_max: int = MAX_PULL_BYTES,
        message_filter: MessageFilter | None = None,
    ) -> GetMessageResult | None:
        """Return what a pull gets, without rests."""
        start = self.starts.start_of(topic, queue_id)
        if queue_offset < start and self.is_open:
            high = self.max_queue_offset(topic, queue_id)
            return GetMessageResult(GetMessageStatus.OFFSET_TOO_SMALL, start, start, high)
        result = super().get_message(
            group, topic, queue_id, queue_offset, count_max, size_bytes_max, message_filter
        )
        if start and result is not None:
            result.min_queue_offset = max(result.min_queue_offset, start)
        if topic in self.noted and result is not None and result.runs:
            data = result.read()
            if RECORD_REST_NEEDLE in data:
                shown = without_rests(data)
                result.runs = [(MemoryFile(shown), 0, len(shown))]
                result.size_bytes = len(shown)
        return result

    def min_queue_offset(self, topic: str, queue_id: int) -> int:
        """Return the first queue offset that can be read."""
        queue = self.consume_queues.by_key.get((topic, queue_id))  # every answer to a send asks
        first = 0 if queue is None else queue.min_queue_offset
        start = self.starts.start_of(topic, queue_id)
        return start if start > first else first

    def queue_offset_for_time(
        self,
        topic: str,
        queue_id: int,
        timestamp_ms: int,
        boundary: BoundaryType = BoundaryType.LOWER,
    ) -> int:
        """Return the queue offset for a time, none that was deleted."""
        found = super().queue_offset_for_time(topic, queue_id, timestamp_ms, boundary)
        return max(found, self.starts.start_of(topic, queue_id))

    def query_message(
        self, topic: str, key: str, count_max: int, begin_ms: int, end_ms: int
    ) -> QueryMessageResult:
        """Find messages by key; return them without rests."""
        result = super().query_message(topic, key, count_max, begin_ms, end_ms)
        if topic in self.noted:
            result.pieces = [extent_of(without_rests(piece.read())) for piece in result.pieces]
        return result

    def message_extent(self, physical_offset: int) -> Extent | None:
        """Return the message at a place, without a rest."""
        found = super().message_extent(physical_offset)
        if found is None:
            return None
        data = found.read()
        return extent_of(without_rests(data)) if RECORD_REST_NEEDLE in data else found

    def message_at(self, physical_offset: int) -> Message | None:
        """Return the message at a place, without a rest; None if there is none."""
        found = super().message_at(physical_offset)
        return None if found is None else _without_rest(found)


def without_rests(data: bytes) -> bytes:
    """Return whole messages, one after the other, without rests; what is none stays as it is."""
    pieces: list[bytes] = []
    position = 0
    while position < len(data):
        size_bytes = int.from_bytes(data[position : position + 4], "big")
        piece = data[position : position + max(size_bytes, 4)]
        if RECORD_REST_NEEDLE in piece:
            with contextlib.suppress(CorruptMessageError):  # the client sees what is wrong with it
                piece = encode_message(_without_rest(decode_message(piece)))
        pieces.append(piece)
        position += max(size_bytes, 4)
    return b"".join(pieces)


def _without_rest(message: Message) -> Message:
    if RECORD_REST_PROPERTY not in message.properties:
        return message
    # The CRC in the properties is one of all that is stored.
    left_out = RECORD_REST_PROPERTY, CRC32
    kept = {k: v for k, v in message.properties.items() if k not in left_out}
    text = encode_properties(kept)
    shorter_bytes = len(message.properties_text) - len(text)
    size_bytes = message.size_bytes - shorter_bytes
    return attrs.evolve(message, properties_text=text, size_bytes=size_bytes)


def open_shown(
    host: Host,
    directory: str,
    settings: Mapping[str, str],
    noted: NotedTopics,
    starts: QueueStarts,
) -> Broker:
    """
    Open the store in `directory` as ``Broker.open`` does.

    Raises:
        ConfigError: a setting has a value that is not allowed.
        StorageError: the directory cannot be served; the text says why and what to do.

    """
    given = {**settings, "storePathRootDir": directory}
    config = BrokerSettings(given)
    noted.load()
    starts.load()
    store = ShownQueues(host, directory, StoreOptions(settings=given), noted, starts)
    try:
        return Broker(host, store, config)
    except BaseException:
        store.abandon()
        raise
