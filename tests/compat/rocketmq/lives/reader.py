"""What a consumer gets to see of a queue, from its first message to its last."""

from __future__ import annotations

import random

import attrs

from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.segments.rocketmq.messages.message import Message
from tests.compat.rocketmq.broker_peer import Peer, decoded

_ALL_TIMES = (0, 1 << 62)


def short(body: bytes) -> str:
    """Return what a body begins with, for texts."""
    return repr(body[:8])


@attrs.frozen
class Seen:
    """One message as a consumer has it."""

    queue_offset: int
    physical_offset: int
    stored_ms: int
    body: bytes = attrs.field(repr=short)
    properties: dict[str, str] = attrs.field(repr=False)
    #: how many queue offsets it takes
    count: int = 1

    @classmethod
    def of(cls, message: Message) -> Seen:
        """Take it from a message."""
        return cls(
            message.queue_offset,
            message.physical_offset,
            message.store_timestamp_ms,
            bytes(message.body),
            dict(message.properties),
            int(message.properties.get("INNER_NUM", "1")),
        )


class Reader:
    """Reads queues of one broker, in pieces of drawn sizes."""

    def __init__(self, broker: Broker, dice: random.Random) -> None:
        self._peer = Peer(broker, 39_000)
        self._dice = dice

    def offset(self, code: RequestCode, topic: str, queue_id: int, **fields: object) -> int:
        """Return what the broker says of a queue's offsets: first, last, at a time."""
        answer = self._peer.ask(code, {"topic": topic, "queueId": queue_id, **fields})
        assert answer.code == ResponseCode.SUCCESS, f"{code} of {topic}-{queue_id}: {answer}"
        return int((answer.fields or {})["offset"])

    def bounds(self, topic: str, queue_id: int) -> tuple[int, int]:
        """Return the first queue offset and the one behind the last."""
        low = self.offset(RequestCode.GET_MIN_OFFSET, topic, queue_id)
        return max(low, 0), self.offset(RequestCode.GET_MAX_OFFSET, topic, queue_id)

    def read(self, topic: str, queue_id: int) -> list[Seen]:
        """Return every message of a queue, in order; there are no gaps."""
        low, high = self.bounds(topic, queue_id)
        assert low <= high, f"{topic}-{queue_id}: from {low} to {high}"
        found: list[Seen] = []
        position = low
        while position < high:
            count = self._dice.choice((1, 3, 32))
            answer = self._peer.pull(topic, queue_id, position, "reader", maxMsgNums=count)
            text = f"{topic}-{queue_id} at {position} of {low}..{high}: {answer}"
            assert answer.code == ResponseCode.SUCCESS, text
            for message in decoded(answer.body):
                one = Seen.of(message)
                assert (message.topic, message.queue_id) == (topic, queue_id), text
                assert one.queue_offset == position, f"{one} stands at {position}; {text}"
                position += one.count
                found.append(one)
            said = int((answer.fields or {})["nextBeginOffset"])
            assert said == position, f"goes on at {said}, not {position}; {text}"
        return found

    def at(self, physical_offset: int) -> Seen | None:
        """Return what VIEW_MESSAGE_BY_ID has at a place of the log."""
        answer = self._peer.ask(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": physical_offset})
        if answer.code:
            return None
        (message,) = decoded(answer.body)
        return Seen.of(message)

    def by_key(self, topic: str, key: str) -> list[Seen]:
        """Return what the index knows of a key."""
        begin, end = _ALL_TIMES
        answer = self._peer.ask(
            RequestCode.QUERY_MESSAGE,
            {"topic": topic, "key": key, "maxNum": 64, "beginTimestamp": begin,
             "endTimestamp": end},
        )  # fmt: skip
        return [Seen.of(message) for message in decoded(answer.body)]

    def committed(self, group: str, topic: str, queue_id: int) -> int:
        """Return what a group has committed; -1 for nothing."""
        fields = {"consumerGroup": group, "topic": topic, "queueId": queue_id,
                  "setZeroIfNotFound": "false"}  # fmt: skip
        answer = self._peer.ask(RequestCode.QUERY_CONSUMER_OFFSET, fields)
        return -1 if answer.code else int((answer.fields or {})["offset"])
