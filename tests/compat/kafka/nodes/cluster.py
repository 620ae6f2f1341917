"""A client that talks to each of the nodes of a cluster in this process."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import partial
from typing import Any, TypeVar

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.connection import KafkaConnection
from logstore.compat.kafka.nodes.entrances import node_entrances
from logstore.segments.kafka.internal_topics.codec import decode_message, encode_message
from logstore.segments.kafka.internal_topics.schema import Message
from logstore.segments.kafka.record import Record, encode_batch
from tests.compat.kafka.conversation import DIRECTORY, Conversation, joined

MessageT = TypeVar("MessageT", bound=Message)

#: what nodes are told to listen on, which nobody does
PORT = 9100


class Cluster(Conversation):
    """A connection to each node of a fresh broker; requests go to the first unless said."""

    def __init__(self, node_count: int = 3, settings: Mapping[str, str] | None = None) -> None:
        self._node_count = node_count
        super().__init__(settings)
        self.connections = self._connect()

    def open(self, settings: Mapping[str, str] | None = None) -> Broker:
        """Return a broker of so many nodes over the simulated disk as it stands."""
        return Broker.open(self.host, DIRECTORY, dict(settings or {}), node_count=self._node_count)

    def restart(
        self, settings: Mapping[str, str] | None = None, node_count: int | None = None
    ) -> None:
        """Stop the broker cleanly, start another one and connect to its nodes."""
        self._node_count = node_count or self._node_count
        super().restart(settings)
        self.connections = self._connect()

    def reopen(self) -> None:
        """Start another broker on what a crash has left, and connect to its nodes."""
        self.broker = self.open()
        self.connections = self._connect()
        self.connection = self.connections[self.broker.node_id]

    def _connect(self) -> dict[int, KafkaConnection]:
        found: dict[int, KafkaConnection] = {}
        ports = [PORT + number for number in range(self._node_count)]
        entrances = node_entrances(self.broker, "node.test", ports)
        for node_id, entrance in zip(self.broker.nodes.by_id, entrances, strict=True):
            entrance.on_port(entrance.port)
            connection = entrance.connect("127.0.0.1", 0)
            assert isinstance(connection, KafkaConnection)
            found[node_id] = connection
        return found

    def ask_at(self, node_id: int, api: str, version: int, **fields: Any) -> dict[str, Any]:
        """Return a node's answer to a request."""
        self.connection = self.connections[node_id]
        return self.ask(api, version, **fields)

    def ask_ours_at(
        self, node_id: int, key: int, version: int, request: Message, kind: type[MessageT]
    ) -> MessageT:
        """Return a node's answer to a request whose message is our own."""
        payload = struct.pack(">hhih", key, version, 7, 4) + b"test\0"
        payload += encode_message(request, version)
        feed = self.connections[node_id].feed
        frame = joined(feed(struct.pack(">i", len(payload)) + payload))
        assert frame, f"no answer to {request}"
        return decode_message(kind, frame, version, 9)

    def lead(
        self,
        topic: str,
        leaders: Mapping[int, int],
        replicas: int = 2,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic whose partitions are led by these nodes, and held by those behind them."""
        ids = list(self.broker.nodes.by_id)
        after = partial(_after, ids, replicas)
        assignments = [
            {"partition_index": index, "broker_ids": after(node_id)}
            for index, node_id in leaders.items()
        ]
        wanted = {
            "name": topic, "num_partitions": -1, "replication_factor": -1,
            "assignments": assignments,
            "configs": [{"name": key, "value": value} for key, value in (configs or {}).items()],
        }  # fmt: skip
        answer = self.ask("CreateTopics", 7, topics=[wanted], timeout_ms=1000)
        assert answer["topics"][0]["error_code"] == 0, answer

    def produce_at(self, node_id: int, topic: str, *indexes: int, acks: int = -1) -> list[int]:
        """Produce a record to each partition at a node; return the codes."""
        record = Record(offset=0, timestamp_ms=1_700_000_000_000, key=b"k", value=b"v")
        records = encode_batch([record])
        answer = self.ask_at(
            node_id, "Produce", 9, acks=acks, timeout_ms=1000, transactional_id=None,
            topic_data=[{
                "name": topic,
                "partition_data": [{"index": index, "records": records} for index in indexes],
            }],
        )  # fmt: skip
        (told,) = answer["responses"]
        return [one["error_code"] for one in told["partition_responses"]]


def _after(ids: list[int], count: int, node_id: int) -> list[int]:
    start = ids.index(node_id)
    return [ids[(start + number) % len(ids)] for number in range(count)]
