"""What real clients said to a real broker about groups, said to ours: the same bytes come back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from logstore.compat.kafka.broker import Broker
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.conversation import joined, message_class, plain

CLIENTS = ["aiokafka", "java", "kafka-python", "kafkajs", "librdkafka"]
#: of the recording's broker
NODE_ID, HOST, PORT = 1, "127.0.0.1", 19153
SETTINGS = {
    "node.id": str(NODE_ID),
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
}
CREATE_TOPICS, DELETE_TOPICS = 19, 20
#: between them the requests about members and offsets, whose answers are compared as bytes
COMPARED = {8, 9, 10, 11, 12, 13, 14}
DESCRIBE_GROUPS, LIST_GROUPS = 15, 16
REPLAYED = COMPARED | {CREATE_TOPICS, DELETE_TOPICS, DESCRIBE_GROUPS, LIST_GROUPS}


@attrs.frozen
class Exchange:
    """A recorded request with the answer of the real broker."""

    key: int
    api: str
    version: int
    request: bytes
    answer: bytes

    def asked(self) -> Any:
        """Return the request as the library reads it."""
        return message_class(f"{self.api}Request").decode(
            self.request, version=self.version, header=True
        )

    def told(self, answer: bytes) -> dict[str, Any]:
        """Return an answer to the request, as mappings."""
        kind = message_class(f"{self.api}Response")
        found: dict[str, Any] = plain(kind.decode(answer, version=self.version, header=True))
        return found


def exchanges(golden: Path, client: str) -> Iterator[Exchange]:
    """Yield the recorded exchanges that matter here, in the order of the requests."""
    frames = [
        json.loads(line) for line in (golden / "wire" / f"{client}.jsonl").read_text().splitlines()
    ]
    answers = {
        (frame["connection"], frame["correlation_id"], frame["api_key"]): frame["hex"]
        for frame in frames
        if frame["from"] == "broker"
    }
    for frame in frames:
        identity = (frame["connection"], frame["correlation_id"], frame["api_key"])
        if frame["from"] == "client" and frame["api_key"] in REPLAYED and identity in answers:
            yield Exchange(
                frame["api_key"],
                frame["api"],
                frame["version"],
                bytes.fromhex(frame["hex"]),
                bytes.fromhex(answers[identity]),
            )


class Replay:
    """Our broker in the place of the recorded one, with its topics and under its address."""

    def __init__(self) -> None:
        self.broker = Broker.open(SimulatedHost(), "/data", SETTINGS)
        self.broker.advertised_host, self.broker.advertised_port = HOST, PORT
        self.connection = self.broker.connect("127.0.0.1")
        #: member ids of the recording, and what ours are called; they have the same length
        self.renamed: list[tuple[bytes, bytes]] = []

    def answer(self, exchange: Exchange) -> bytes:
        """Return what our broker answers, with the member ids of the recording."""
        request = exchange.request
        for theirs, ours in self.renamed:
            request = request.replace(theirs, ours)
        frame = len(request).to_bytes(4, "big") + request
        answer = joined(self.connection.feed(frame))[4:]
        if exchange.api == "JoinGroup":
            theirs = exchange.told(exchange.answer)["member_id"].encode()
            ours = exchange.told(answer)["member_id"].encode()
            assert len(theirs) == len(ours)
            self.renamed.append((theirs, ours))
        for theirs, ours in self.renamed:
            answer = answer.replace(ours, theirs)
        return answer

    def keep_topics(self, exchange: Exchange) -> None:
        """Create and delete topics as the client did, past the protocol."""
        asked = plain(exchange.asked())
        if exchange.key == CREATE_TOPICS:
            for topic in asked["topics"]:
                self.broker.create_topic(topic["name"], max(topic["num_partitions"], 1))
        else:
            names = asked.get("topic_names") or [topic["name"] for topic in asked["topics"]]
            for name in names:
                self.broker.delete_topic(self.broker.topics[name])


def is_about_classic_groups(exchange: Exchange) -> bool:
    """Tell whether the request concerns what stands here: no KIP-848 group, no transaction."""
    asked = repr(plain(exchange.asked()))
    is_other = any(word in asked for word in ("kip848", "wire-java-consumer", "-txn"))
    return exchange.key in COMPARED and not is_other


@pytest.mark.parametrize("client", CLIENTS)
def test_real_clients_get_the_bytes_of_the_real_broker(golden: Path, client: str) -> None:
    """Every request about classic groups is answered byte for byte as Kafka 4.3 did."""
    replay = Replay()
    own = f"wire-{client}"
    compared: set[str] = set()
    for exchange in exchanges(golden, client):
        if exchange.key in (CREATE_TOPICS, DELETE_TOPICS):
            replay.keep_topics(exchange)
        elif is_about_classic_groups(exchange) and own in repr(exchange.asked()):
            assert replay.answer(exchange) == exchange.answer, exchange.asked()
            compared.add(exchange.api)
        elif exchange.key == DESCRIBE_GROUPS:
            groups = described(exchange, exchange.answer, own)
            assert described(exchange, replay.answer(exchange), own) == groups
            compared |= {exchange.api} if groups else set()
        elif exchange.key == LIST_GROUPS:
            groups = listed(exchange, exchange.answer, own)
            assert listed(exchange, replay.answer(exchange), own) == groups
            compared |= {exchange.api} if groups else set()
    assert compared >= {"FindCoordinator", "JoinGroup", "SyncGroup", "LeaveGroup"}
    assert compared >= {"OffsetCommit", "OffsetFetch"}


def described(exchange: Exchange, answer: bytes, own: str) -> list[dict[str, Any]]:
    """Return the description of the client's own groups; other clients had theirs there too."""
    return [one for one in exchange.told(answer)["groups"] if is_ours(one, own)]


def listed(exchange: Exchange, answer: bytes, own: str) -> list[dict[str, Any]]:
    """Return the list's lines of the client's own groups, sorted: Kafka's order is by hash."""
    groups = [one for one in exchange.told(answer)["groups"] if is_ours(one, own)]
    return sorted(groups, key=lambda one: one["group_id"])


def is_ours(group: dict[str, Any], own: str) -> bool:
    """Tell whether a group is a classic one of this client."""
    name: str = group["group_id"]
    return name.startswith(own) and "kip848" not in name and name != "wire-java-consumer"
