"""Brokers that share static topics, on a network without sockets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson

from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.compat.waiting import Later
from logstore.segments.rocketmq.messages.message import Message
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import Peer, decoded
from tests.compat.rocketmq.frames import Answer
from tests.compat.rocketmq.replication.network import Network

TOPIC = "orders"
NAMES = "broker-a", "broker-b", "broker-c"


def item(
    gen: int, broker: str, logic_offset: int, end_offset: int = -1, queue_id: int = 0
) -> dict[str, object]:
    """Return a stretch of a logic queue as it stands in JSON."""
    return {
        "bname": broker,
        "endOffset": end_offset,
        "gen": gen,
        "logicOffset": logic_offset,
        "queueId": queue_id,
        "startOffset": 0,
        "timeOfEnd": -1,
        "timeOfStart": -1,
    }


def detail(
    broker: str, queues: Mapping[int, Sequence[dict[str, object]]], epoch: int = 1, total: int = 1
) -> dict[str, object]:
    """Return what a broker is told of a topic."""
    return {
        "bname": broker,
        "currIdMap": {},
        "dirty": False,
        "epoch": epoch,
        "hostedQueues": {str(queue_id): items for queue_id, items in queues.items()},
        "scope": "__global__",
        "topic": TOPIC,
        "totalQueues": total,
    }


class StaticStage:
    """Three brokers, and a client at each."""

    def __init__(self) -> None:
        self.network = Network()
        self.hosts = {name: SimulatedHost(clock=self.network.clock) for name in NAMES}
        self.brokers: dict[str, Broker] = {}
        self.peers: dict[str, Peer] = {}
        for name in NAMES:
            self.start(name)

    def start(self, name: str) -> None:
        """Start a broker over what is on its host."""
        settings = {"brokerName": name, "deleteWhen": ";".join(f"{hour:02}" for hour in range(24))}
        broker = self.network.broker(settings, self.hosts[name])
        broker.static_topics.calls.begin(self.network.reach, self._find_brokers)
        self.network.listening[_address(name)] = broker.connect
        self.brokers[name] = broker
        self.peers[name] = Peer(broker)

    def stop(self, name: str) -> None:
        """Stop a broker cleanly."""
        self.network.cut()
        broker = self.brokers.pop(name)
        self.network.brokers.remove(broker)
        del self.network.listening[_address(name)]
        broker.close()

    def _find_brokers(self) -> Later[dict[str, str]]:
        later: Later[dict[str, str]] = Later()
        later.answer({name: _address(name) for name in self.brokers})
        return later

    def ask(self, name: str, code: int, fields: Mapping[str, object], body: bytes = b"") -> Answer:
        """Ask a broker; it may ask others before it answers."""
        peer = self.peers[name]
        opaque = peer.send(code, fields, body)
        self.network.settle()
        answer = peer.answer_to(opaque)
        assert answer is not None, f"request {code} is not answered"
        return answer

    def map(self, name: str, told: Mapping[str, object], *, force: bool = False) -> Answer:
        """Tell a broker of the topic."""
        fields = {
            "topic": TOPIC,
            "defaultTopic": "TBW102",
            "readQueueNums": 4,
            "writeQueueNums": 4,
            "perm": 6,
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": 0,
            "order": "false",
            "force": str(force).lower(),
        }
        code = RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC
        return self.ask(name, code, fields, orjson.dumps(told))

    def map_everywhere(
        self, queues: Mapping[int, Sequence[dict[str, object]]], epoch: int = 1
    ) -> None:
        """Tell all brokers that have a part in the topic."""
        for name in self.brokers:
            hosted = {
                key: items
                for key, items in queues.items()
                if any(one["bname"] == name for one in items)
            }
            answer = self.map(name, detail(name, hosted, epoch, len(queues)))
            assert answer.code == 0, answer.remark

    def moved(self) -> None:
        """Have queue 0 with three messages on broker-a, and on broker-b with two."""
        self.map_everywhere({0: [item(0, "broker-a", 0)]})
        for text in (b"a0", b"a1", b"a2"):
            assert self.peers["broker-a"].produce(text).code == 0
        moved = [item(0, "broker-a", 0, 3), item(1, "broker-b", 1000, queue_id=2)]
        self.map_everywhere({0: moved}, epoch=2)
        for text in (b"b0", b"b1"):
            assert self.peers["broker-b"].produce(text).code == 0

    def number(self, name: str, code: int, field: str = "offset", **fields: object) -> int:
        """Ask for a number of the logic queue."""
        answer = self.ask(name, code, {"topic": TOPIC, "queueId": 0, **fields})
        assert answer.code == 0, answer.remark
        return int((answer.fields or {})[field])

    def pull(self, name: str, offset: int, **fields: object) -> Answer:
        """Pull from logic queue 0 without waiting."""
        asked = self.peers[name].pull_fields(TOPIC, 0, offset, "g", **{"sysFlag": 4, **fields})
        return self.ask(name, RequestCode.PULL_MESSAGE, asked)

    def read(self, name: str) -> list[tuple[int, bytes]]:
        """Read the logic queue from its beginning: offsets there, and bodies."""
        found: list[tuple[int, bytes]] = []
        offset = 0
        for _ in range(20):
            answer = self.pull(name, offset)
            fields = answer.fields or {}
            offset = int(fields["nextBeginOffset"])
            if answer.code == 0:
                delta = int(fields["offsetDelta"])
                found += [(_place(one) + delta, bytes(one.body)) for one in decoded(answer.body)]
            elif answer.code == 19:
                return found
        raise AssertionError("it never ends")


def _place(message: Message) -> int:
    return message.queue_offset


def _address(name: str) -> str:
    return f"127.0.0.1:{20000 + NAMES.index(name)}"
