"""A connection over which members of groups speak that no library has the messages of."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Sequence
from typing import TypeVar

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.groups.modern.messages import HeartbeatResponse
from logstore.segments.kafka.internal_topics.codec import decode_message, encode_message
from logstore.segments.kafka.internal_topics.schema import Message
from tests.compat.kafka.conversation import joined
from tests.compat.kafka.groups.share.share_questions import ShareQuestions

MessageT = TypeVar("MessageT", bound=Message)
#: partitions by the id of their topic
Partitions = dict[bytes, list[int]]


class GroupPeer(ShareQuestions):
    """Asks one thing after the other; every answer must come at once."""

    def __init__(self, broker: Broker) -> None:
        self._connection = broker.connect("127.0.0.1")

    def hang_up(self) -> None:
        """Close the connection."""
        self._connection.lost()

    def ask_ours(self, key: int, version: int, request: Message, kind: type[MessageT]) -> MessageT:
        """Send a request of an API and return its answer."""
        payload = struct.pack(">hhih", key, version, 7, 4) + b"test\0"
        payload += encode_message(request, version)
        frame = joined(self._connection.feed(struct.pack(">i", len(payload)) + payload))
        frame += joined(self._connection.output)
        self._connection.output.clear()
        assert frame, f"no answer to {request}"
        return decode_message(kind, frame, version, 9)


def assigned(answer: HeartbeatResponse) -> Partitions | None:
    """Return what a member was told to read; None if that is what it was."""
    if answer.assignment is None:
        return None
    return {
        one.topic_id.bytes: sorted(one.partitions) for one in answer.assignment.topic_partitions
    }


def sorted_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return a subscription."""
    return tuple(sorted(names))


def as_uuid(topic_id: bytes) -> uuid.UUID:
    """Return a topic's id as messages have it."""
    return uuid.UUID(bytes=topic_id)
