"""A member of a share group with a connection of its own: ShareFetch and ShareAcknowledge."""

from __future__ import annotations

import struct
from typing import Any, TypeVar

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.share_reads.messages import (
    FetchedSharePartition,
    ShareAcknowledgeResponse,
    ShareFetchResponse,
)
from logstore.compat.kafka.share_reads.share_sessions import PartitionKey
from logstore.compat.kafka.share_state.persister import SharePartitionKey
from logstore.segments.kafka.internal_topics.codec import decode_message, encode_message
from logstore.segments.kafka.internal_topics.schema import Message
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.batches import batch
from tests.compat.kafka.conversation import joined
from tests.compat.kafka.peer import a_broker
from tests.compat.kafka.share_reads.share_requests import (
    ACKNOWLEDGE,
    FETCH,
    Partitions,
    SaidOf,
    acknowledge_request,
    fetch_request,
)

MessageT = TypeVar("MessageT", bound=Message)


class Member:
    """Speaks version 2 unless told otherwise; the topics are those that it is given by id."""

    def __init__(self, broker: Broker, member_id: str = "A", group_id: str | None = "g") -> None:
        self.broker = broker
        self.member_id = member_id
        self.group_id = group_id
        self.connection = broker.connect("127.0.0.1")
        self._unread = b""

    def fetch(
        self,
        epoch: int,
        topics: Partitions | None = None,
        *,
        version: int = 2,
        said: SaidOf | None = None,
        forgotten: Partitions | None = None,
        **fields: Any,
    ) -> ShareFetchResponse:
        """Fetch; the answer must come at once."""
        self.send_fetch(
            epoch, topics, version=version, said=said, forgotten=forgotten,
            **{"max_wait_ms": 0, **fields},
        )  # fmt: skip
        answer = self.answer(version)
        assert answer is not None, "the answer must not wait"
        return answer

    def send_fetch(
        self,
        epoch: int,
        topics: Partitions | None = None,
        *,
        version: int = 2,
        said: SaidOf | None = None,
        forgotten: Partitions | None = None,
        **fields: Any,
    ) -> None:
        """Send a fetch that may wait."""
        asker = self.group_id, self.member_id
        request = fetch_request(asker, epoch, topics, said=said, forgotten=forgotten, **fields)
        self._send(FETCH, version, request)

    def answer(self, version: int = 2) -> ShareFetchResponse | None:
        """Return the answer to a fetch, None if there is none yet."""
        return self._answer(version, ShareFetchResponse)

    def acknowledge(
        self,
        epoch: int,
        said: SaidOf,
        *,
        version: int = 2,
        **fields: Any,
    ) -> ShareAcknowledgeResponse:
        """Acknowledge."""
        asker = self.group_id, self.member_id
        request = acknowledge_request(asker, epoch, said, **fields)
        self._send(ACKNOWLEDGE, version, request)
        answer = self._answer(version, ShareAcknowledgeResponse)
        assert answer is not None, "this does not wait"
        return answer

    def _send(self, key: int, version: int, request: Message) -> None:
        payload = struct.pack(">hhih", key, version, 7, 4) + b"test\0"
        payload += encode_message(request, version)
        self._unread += joined(self.connection.feed(struct.pack(">i", len(payload)) + payload))

    def _answer(self, version: int, kind: type[MessageT]) -> MessageT | None:
        self._unread += joined(self.connection.output)
        self.connection.output.clear()
        frame, self._unread = self._unread, b""
        if not frame:
            return None
        assert frame[4:9] == b"\0\0\0\7\0", "the answer to something else"
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        message = decode_message(kind, frame, version, 9)
        assert encode_message(message, version) == frame[9:]
        return message


class ShareStage:
    """A broker with a topic "t", of which group "g" has a state of every partition."""

    def __init__(self, partitions: int = 1, **settings: object) -> None:
        self.host = SimulatedHost()
        self._settings = settings
        self.broker = a_broker(self.host, **settings)
        self.topic_id = self.create("t", partitions)
        self.wanted = {self.topic_id: list(range(partitions))}
        self.set({"share.auto.offset.reset": "earliest"})

    def set(self, settings: dict[str, str], group_id: str = "g") -> None:
        """Change settings of a group."""
        metadata = self.broker.store.metadata
        metadata.change_resource(32, group_id, settings)

    def create(self, name: str, partitions: int = 1, group_id: str = "g") -> bytes:
        """Create a topic, and states of it."""
        topic_id = self.broker.create_topic(name, partitions).topic_id
        for index in range(partitions):
            self.initialize(topic_id, index, group_id)
        return topic_id

    def initialize(self, topic_id: bytes, index: int, group_id: str = "g", epoch: int = 1) -> None:
        """Have the group coordinator begin a state."""
        key = SharePartitionKey(group_id, topic_id, index)
        assert self.broker.share_state.initialize(key, epoch, -1).error_code == 0

    def open(self, *partitions: int, group_id: str = "g") -> None:
        """Open share-partitions of "t", all without a number, as an earlier fetch would."""
        for index in partitions or self.wanted[self.topic_id]:
            self.broker.share_partitions.opened(group_id, PartitionKey(self.topic_id, index))

    def produce(self, count: int, index: int = 0, topic: str = "t") -> None:
        """Append a batch of so many records, as a request does."""
        now_ms = self.host.clock.wall_ms()
        data = bytearray(batch(*[b"value"] * count, timestamp_ms=now_ms))
        log = self.broker.topics[topic].partitions[index]
        log.append_produced(memoryview(data), now_ms)
        self.broker.readers.wake()

    def member(self, member_id: str = "A") -> Member:
        """Return a member with a connection of its own."""
        return Member(self.broker, member_id)

    def let_pass(self, delay_ms: float) -> None:
        """Turn the clock and run what is due."""
        self.host.clock.advance(delay_ms)
        self.broker.timers.run()

    def restart(self, *, loses_power: bool = False) -> None:
        """Stop the broker, cleanly or not, and start another one."""
        if loses_power:
            self.host.power_loss()
        else:
            self.broker.close()
        self.broker = a_broker(self.host, **self._settings)


def partition_of(answer: ShareFetchResponse) -> FetchedSharePartition:
    """Return the only partition in an answer."""
    assert answer.error_code == 0
    ((partition,),) = (topic.partitions for topic in answer.responses)
    return partition


def got(answer: ShareFetchResponse | None) -> str:
    """Return what was acquired of the only partition, ``0-4*2`` if for the second time."""
    assert answer is not None, "the answer waits"
    if not answer.responses:
        return "nothing"
    return " ".join(
        f"{some.first_offset}-{some.last_offset}*{some.delivery_count}".removesuffix("*1")
        for some in partition_of(answer).acquired_records
    )
