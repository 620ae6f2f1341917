"""A client's side of one connection: requests go in, answers come out when they are given."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Self

import attrs

from logstore.compat.kafka.broker import Broker
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.conversation import (
    DIRECTORY,
    HOST,
    PORT,
    build,
    joined,
    message_class,
    plain,
)

#: topics and partitions of a produce request: (topic name or id, [(partition, record bytes)])
Topics = list[tuple[Any, list[tuple[int, bytes | None]]]]


def a_broker(host: SimulatedHost | None = None, **settings: object) -> Broker:
    """Return a broker on a simulated disk; dots of the settings' names are given as underscores."""
    given = {name.replace("_", "."): str(value) for name, value in settings.items()}
    broker = Broker.open(host or SimulatedHost(), DIRECTORY, given)
    broker.advertised_host, broker.advertised_port = HOST, PORT
    return broker


@attrs.frozen
class Answer:
    """One response: the frame without its length, and what the library reads in it."""

    api: str
    version: int
    correlation_id: int
    frame: bytes
    message: dict[str, Any]

    @property
    def partition(self) -> dict[str, Any]:
        """The result of the only partition of the only topic of a Produce or Fetch."""
        ((partition,),) = self.by_topic
        return {name: value for name, value in partition.items() if name != "current_leader"}

    @property
    def by_topic(self) -> list[list[dict[str, Any]]]:
        """The partitions' results, topic by topic, of a Produce or Fetch."""
        name = "partition_responses" if self.api == "Produce" else "partitions"
        return [topic[name] for topic in self.message["responses"]]


class Peer:
    """
    Speaks to `broker` over a connection of its own.

    Requests are written and answers are read by kafka-python.
    """

    def __init__(self, broker: Broker, client_id: str | None = "test") -> None:
        self.broker = broker
        self.connection = broker.connect("127.0.0.1")
        self.client_id = client_id
        self._asked: list[tuple[str, int, int]] = []
        self._correlation_id = 0
        self._unread = b""

    def send(self, api: str, version: int, fields: Mapping[str, Any]) -> Self:
        """Send a request; its answer, if there is to be one, is awaited by :meth:`answers`."""
        return self.send_frame(api, version, self.encoded(api, version, fields))

    def encoded(self, api: str, version: int, fields: Mapping[str, Any]) -> bytes:
        """Return the next request with its length in front."""
        self._correlation_id += 1
        request = build(message_class(f"{api}Request"), version, fields)
        request.with_header(correlation_id=self._correlation_id, client_id=self.client_id)
        return bytes(request.encode(version=version, header=True, framed=True))

    def send_frame(self, api: str, version: int, frame: bytes) -> Self:
        """Send what :meth:`encoded` returned."""
        self._asked.append((api, version, self._correlation_id))
        self._unread += joined(self.connection.feed(frame))
        return self

    def send_together(self, api: str, version: int, requests: Sequence[Mapping[str, Any]]) -> Self:
        """Send requests that arrive with one read of the connection."""
        frames: list[bytes] = []
        for fields in requests:
            frames.append(self.encoded(api, version, fields))
            self._asked.append((api, version, self._correlation_id))
        self._unread += joined(self.connection.feed(b"".join(frames)))
        return self

    def answers(self) -> list[Answer]:
        """Return the answers that came since the last call; they must be in the order asked."""
        self._unread += joined(self.connection.output)
        self.connection.output.clear()
        found: list[Answer] = []
        while self._unread:
            (size_bytes,) = struct.unpack_from(">i", self._unread)
            frame = self._unread[4 : 4 + size_bytes]
            assert len(frame) == size_bytes, "an answer is cut short"
            self._unread = self._unread[4 + size_bytes :]
            found.append(self._decoded(*self._asked.pop(0), frame))
        return found

    def answer(self) -> Answer:
        """Return the only answer that came since the last call."""
        (answer,) = self.answers()
        return answer

    def ask(self, api: str, version: int, fields: Mapping[str, Any]) -> Answer:
        """Send a request and return its answer, which must come at once."""
        return self.send(api, version, fields).answer()

    def produce(self, topics: Topics, *, version: int = 9, acks: int = 1) -> Answer:
        """Send record batches and return the answer, which must come at once."""
        return self.send_produce(topics, version=version, acks=acks).answer()

    def send_produce(self, topics: Topics, *, version: int = 9, acks: int = 1) -> Self:
        """Send record batches."""
        return self.send("Produce", version, produce_fields(topics, version, acks))

    def _decoded(self, api: str, version: int, correlation_id: int, frame: bytes) -> Answer:
        """Read an answer; the library must write the same bytes for what it has read."""
        response = message_class(f"{api}Response")
        message = response.decode(frame, version=version, header=True)
        assert frame[:4] == correlation_id.to_bytes(4, "big"), "the answer to something else"
        has_tags = api != "ApiVersions" and response.flexible_version_q(version)
        header_bytes = 5 if has_tags else 4
        assert frame[header_bytes:] == bytes(response.encode(message))
        return Answer(api, version, correlation_id, frame, plain(message))


def produce_fields(topics: Topics, version: int, acks: int) -> dict[str, Any]:
    """Return the fields of a Produce request; from version 13 on topics are named by their id."""
    name = "topic_id" if version >= 13 else "name"
    return {
        "transactional_id": None,
        "acks": acks,
        "timeout_ms": 30_000,
        "topic_data": [
            {
                name: topic,
                "partition_data": [
                    {"index": index, "records": records} for index, records in partitions
                ],
            }
            for topic, partitions in topics
        ],
    }


def fetch_fields(
    topics: Sequence[tuple[Any, Sequence[Mapping[str, Any]]]],
    version: int,
    *,
    forgotten: list[tuple[Any, list[int]]] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Return the fields of a Fetch request; partitions are mappings of what is not the default."""
    name = "topic_id" if version >= 13 else "topic"
    filled = [
        {name: topic, "partitions": [{"partition_max_bytes": 1 << 20, **p} for p in partitions]}
        for topic, partitions in topics
    ]
    found: dict[str, Any] = {
        "max_wait_ms": 0,
        "min_bytes": 1,
        "max_bytes": 1 << 25,
        "isolation_level": 0,
        "topics": filled,
        **fields,
    }
    if version >= 7:
        found["forgotten_topics_data"] = [
            {name: topic, "partitions": indexes} for topic, indexes in forgotten or []
        ]
    return found
