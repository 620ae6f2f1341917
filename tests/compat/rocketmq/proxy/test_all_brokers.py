"""A proxy beside one broker tells of all of them, and hands requests on to the right one."""

from __future__ import annotations

import base64
import json
from typing import Any

import attrs
import pytest

from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.found_routes import Cluster, FoundRoute, route_in_table
from logstore.compat.rocketmq.name_server.registration import Registration
from logstore.compat.rocketmq.name_server.routes import BrokerIdentity, RouteTable
from logstore.compat.rocketmq.proxy.codes import ClientType, Code, MessageType
from logstore.compat.rocketmq.proxy.proxy import Proxy
from logstore.compat.waiting import Later
from logstore.errors import LogStoreError
from logstore.segments.rocketmq.messages.message import decode_message
from logstore.segments.rocketmq.tables.topics import TopicConfig
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.proxy.proxy_stage import GROUP, Peer, Stage, handle_of, plain
from tests.compat.rocketmq.replication.network import Network

NAMES = "broker-a", "broker-b"


class ClusterStage(Stage):
    """Two brokers, both with the same topics; the proxy stands beside the first one."""

    def __init__(self, *, has_wheel: bool = False, **settings: str) -> None:
        wheel = {"timerWheelEnable": "true", "mappedFileSizeTimerLog": "52000"}
        self.network = Network()
        self.brokers: dict[str, Broker] = {}
        self.routes = RouteTable()
        for number, name in enumerate(NAMES):
            host = SimulatedHost(clock=self.network.clock)
            own = {"brokerName": name, "autoCreateTopicEnable": "false", **settings}
            if has_wheel:
                own |= wheel
            broker = self.network.broker(own, host)
            broker.advertised_port = 20000 + number
            broker.start_housekeeping()
            self.network.listening[_address(name)] = broker.connect
            self.brokers[name] = broker
        self.broker = self.brokers["broker-a"]
        self.broker.topics.cluster = Cluster(
            lambda topic: route_in_table(self.routes, topic), self.network.reach
        )
        self.proxy = Proxy(self.broker)
        self.put("both", *NAMES)
        self.put("far", "broker-b")
        self.put("transaction", "broker-b")

    def put(self, topic: str, *names: str) -> None:
        """Make a topic on some brokers; it takes what it is called after, or all messages."""
        kind = "TRANSACTION" if topic == "transaction" else "MIXED"
        for name in names:
            config = TopicConfig(topic, 2, 2, attributes={"message.type": kind})
            self.brokers[name].topics.put(config)
        for name, broker in self.brokers.items():
            table = broker.topics.table
            identity = BrokerIdentity("DefaultCluster", name, _address(name), 0)
            self.routes.register(identity, Registration(table.topics, table.data_version), 0)

    def stored(self, name: str) -> list[bytes]:
        """Return the bodies of all messages in the queues of the topics on a broker."""
        broker = self.brokers[name]
        broker.catch_up()
        found: list[bytes] = []
        for topic in ("both", "far"):
            for queue_id in range(2):
                result = broker.store.get_message("g", topic, queue_id, 0, 32)
                assert result is not None
                data, position = memoryview(result.read() if result.count else b""), 0
                while position < len(data):
                    message = decode_message(data, position)
                    found.append(bytes(message.body))
                    position += message.size_bytes
        return found


class FarPeer(Peer):
    """A client whose requests may go over the network before they are answered."""

    stage: ClusterStage

    def begin(self, name: str, **fields: Any) -> Later[Any]:
        """Return the answer to come, which is there if it needs no time."""
        later = super().begin(name, **fields)
        self.stage.network.settle()
        return later

    def listen(self, **settings: Any) -> dict[str, Any]:
        """Open the telemetry stream; return what the client is told to do."""
        told = super().listen(**settings)
        self.stage.network.settle()
        return told


def _address(name: str) -> str:
    return f"127.0.0.1:{20000 + NAMES.index(name)}"


@pytest.fixture
def stage() -> ClusterStage:
    """Return two brokers and the proxy."""
    return ClusterStage()


@pytest.fixture
def peer(stage: ClusterStage) -> FarPeer:
    """Return a client."""
    return FarPeer(stage)


def _queues(told: dict[str, Any]) -> list[tuple[str, int]]:
    return [(one["broker"]["name"], one.get("id", 0)) for one in told["message_queues"]]


def test_a_route_has_the_queues_of_all_brokers(peer: FarPeer) -> None:
    """Clients find all of them where they have found the proxy."""
    endpoints = {"scheme": 1, "addresses": [{"host": "198.51.100.1", "port": 8081}]}
    told = peer.ask("QueryRoute", topic={"name": "both"}, endpoints=endpoints)
    expected = [(name, queue_id) for name in NAMES for queue_id in range(2)]
    assert sorted(_queues(told)) == expected
    assert {str(one["broker"]["endpoints"]["addresses"]) for one in told["message_queues"]} == {
        "[{'host': '198.51.100.1', 'port': 8081}]"
    }


def test_a_topic_that_only_others_have_is_known_with_its_type(peer: FarPeer) -> None:
    """The broker that has it is asked which messages it takes."""
    told = peer.ask("QueryRoute", topic={"name": "transaction"})
    assert _queues(told) == [("broker-b", 0), ("broker-b", 1)]
    assert told["message_queues"][0]["accept_message_types"] == [int(MessageType.TRANSACTION)]


def test_a_topic_that_nobody_has_is_refused(peer: FarPeer) -> None:
    """It is not found."""
    told = peer.ask("QueryRoute", topic={"name": "nowhere"})
    assert told["status"]["code"] == Code.TOPIC_NOT_FOUND


def test_a_topic_of_the_broker_here_is_known_before_any_name_server_knows(
    stage: ClusterStage, peer: FarPeer
) -> None:
    """It registers a moment later, and a change of it counts at once."""
    stage.broker.topics.put(TopicConfig("new", 1, 1))
    assert _queues(peer.ask("QueryRoute", topic={"name": "new"})) == [("broker-a", 0)]
    stage.put("new", "broker-a")
    assert len(_queues(peer.ask("QueryRoute", topic={"name": "new"}))) == 2
    stage.broker.topics.remove("new")
    stage.routes.delete_topic("new", None)
    told = peer.ask("QueryRoute", topic={"name": "new"})
    assert told["status"]["code"] == Code.TOPIC_NOT_FOUND


def test_without_a_name_server_routes_stay_as_they_were(stage: ClusterStage, peer: FarPeer) -> None:
    """What was never asked for is looked for here alone."""
    assert len(_queues(peer.ask("QueryRoute", topic={"name": "both"}))) == 4
    stage.broker.topics.cluster = Cluster(lambda _: _failed(), stage.network.reach)
    stage.network.run(6_000)
    assert len(_queues(peer.ask("QueryRoute", topic={"name": "both"}))) == 4
    stage.broker.topics.put(TopicConfig("new", 1, 1))
    assert _queues(peer.ask("QueryRoute", topic={"name": "new"})) == [("broker-a", 0)]
    told = peer.ask("QueryRoute", topic={"name": "far"})
    assert told["status"]["code"] == Code.INTERNAL_SERVER_ERROR
    assert "no name server can be reached" in told["status"]["message"]


def _failed() -> Later[FoundRoute]:
    later: Later[FoundRoute] = Later()
    later.fail(LogStoreError("no name server can be reached"))
    return later


def test_each_broker_is_assigned(peer: FarPeer) -> None:
    """A push consumer gets one assignment of each broker, and in order one of each queue."""
    asked = {"topic": {"name": "both"}, "group": {"name": GROUP}}
    told = peer.ask("QueryAssignment", **asked)
    queues = [one["message_queue"] for one in told["assignments"]]
    assert sorted((one["broker"]["name"], one["id"]) for one in queues) == [
        ("broker-a", -1), ("broker-b", -1),
    ]  # fmt: skip


def test_messages_go_round_all_queues_of_all_brokers(stage: ClusterStage, peer: FarPeer) -> None:
    """One after the other."""
    for number in range(4):
        told = peer.send(peer.message("both", b"%d" % number))
        assert told["status"]["code"] == Code.OK, told
    stored = [stage.stored(name) for name in NAMES]
    assert [len(bodies) for bodies in stored] == [2, 2]
    assert sorted(stored[0] + stored[1]) == [b"0", b"1", b"2", b"3"]


def test_the_messages_of_a_group_stay_together(stage: ClusterStage, peer: FarPeer) -> None:
    """All go to one queue of one broker."""
    for _ in range(3):
        fifo = peer.message("both", kind=MessageType.FIFO, message_group="orders-of-7")
        assert peer.send(fifo)["status"]["code"] == Code.OK
    assert sorted(len(stage.stored(name)) for name in NAMES) == [0, 3]


def _at(name: str, topic: str = "far") -> dict[str, Any]:
    return {"message_queue": {"topic": {"name": topic}, "id": -1, "broker": {"name": name}}}


def _received(stage: ClusterStage, peer: FarPeer, topic: str, **more: Any) -> list[dict[str, Any]]:
    found: list[Any] = []
    peer.begin("ReceiveMessage", **peer.receive_fields(topic, **more)).then(found.append)
    if not found:
        stage.network.run(21_000)
    assert found, "nothing came of it"
    return [plain(one)["message"] for one in found[0] if one.HasField("message")]


def _consumer() -> tuple[ClusterStage, FarPeer]:
    """Return brokers that can be popped from, which need their wheels, and a client."""
    stage = ClusterStage(has_wheel=True)
    return stage, FarPeer(stage)


def test_a_message_of_another_broker_is_received_and_acknowledged() -> None:
    """It comes, and does not come again once it is acknowledged."""
    stage, peer = _consumer()
    peer.consume("far", ClientType.SIMPLE_CONSUMER)
    assert _received(stage, peer, "far", **_at("broker-b")) == []
    peer.send(peer.message("far", b"one"))
    (message,) = _received(stage, peer, "far", **_at("broker-b"))
    assert peer.acknowledge("far", handle_of(message)) == (Code.OK, "OK")
    stage.network.run(30_000)
    assert _received(stage, peer, "far", **_at("broker-b")) == []


def test_the_time_of_a_message_of_another_broker_is_changed() -> None:
    """The handle that is told then is the one that acknowledges."""
    stage, peer = _consumer()
    peer.consume("far")
    _received(stage, peer, "far")
    peer.send(peer.message("far", b"one"))
    (message,) = _received(stage, peer, "far")
    told = peer.ask(
        "ChangeInvisibleDuration", group={"name": GROUP}, topic={"name": "far"},
        receipt_handle=handle_of(message), invisible_duration={"seconds": 20}, message_id="m",
    )  # fmt: skip
    assert told["status"]["code"] == Code.OK, told
    assert peer.acknowledge("far", told["receipt_handle"]) == (Code.OK, "OK")


def test_a_handle_serves_whoever_shows_it() -> None:
    """Who has never had to do with a broker finds it, too."""
    stage, peer = _consumer()
    peer.consume("far")
    _received(stage, peer, "far")
    peer.send(peer.message("far", b"one"))
    (message,) = _received(stage, peer, "far")
    other = FarPeer(stage)
    stage.proxy.routes.addresses.clear()
    assert other.acknowledge("far", handle_of(message)) == (Code.OK, "OK")


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("AckMessage", {"entries": [{"receipt_handle": "{handle}"}]}),
        ("ChangeInvisibleDuration",
         {"receipt_handle": "{handle}", "invisible_duration": {"seconds": 20}}),
        ("ForwardMessageToDeadLetterQueue", {"receipt_handle": "{handle}"}),
    ],
)  # fmt: skip
def test_a_handle_that_names_no_broker_is_none(
    stage: ClusterStage, peer: FarPeer, name: str, fields: dict[str, Any]
) -> None:
    """Whatever is asked for with it, it is called invalid."""
    handle = f"0 {stage.proxy.now_ms()} 60000 0 0 nobody 0 0 0"
    asked = json.loads(json.dumps(fields).replace("{handle}", handle))
    told = peer.ask(name, group={"name": GROUP}, topic={"name": "far"}, **asked)
    for one in (told, *told.get("entries", [])):
        assert one["status"]["code"] == Code.INVALID_RECEIPT_HANDLE
    (one,) = told.get("entries", [told])
    assert one["status"]["message"] == "cannot find broker nobody"


def test_what_cannot_be_taken_back(peer: FarPeer) -> None:
    """A message of a broker that nobody knows, or to a topic that is nowhere."""
    handle = base64.urlsafe_b64encode(b"v1 delay nobody 1 k").decode()
    told = peer.ask("RecallMessage", topic={"name": "nowhere"}, recall_handle=handle)["status"]
    assert told["code"] == Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE
    assert "the expected type is UNSPECIFIED" in told["message"]
    peer.stage.proxy.settings = attrs.evolve(peer.stage.proxy.settings, checks_message_types=False)
    told = peer.ask("RecallMessage", topic={"name": "far"}, recall_handle=handle)["status"]
    assert (told["code"], told["message"]) == (Code.BAD_REQUEST, "cannot find broker nobody")


def test_a_broker_that_cannot_be_reached_is_told_of(stage: ClusterStage, peer: FarPeer) -> None:
    """Whoever sends there is told at once, and is served again when it is back."""
    listening = stage.network.listening.pop(_address("broker-b"))
    told = peer.send(peer.message("far", b"one"))
    assert told["status"]["code"] == Code.INTERNAL_SERVER_ERROR
    assert "20001 cannot be reached" in told["status"]["message"]
    stage.network.listening[_address("broker-b")] = listening
    assert peer.send(peer.message("far", b"one"))["status"]["code"] == Code.OK
    stage.network.cut()
    assert peer.send(peer.message("far", b"two"))["status"]["code"] == Code.OK
    assert stage.stored("broker-b") == [b"one", b"two"]


def test_a_transaction_ends_where_it_began(stage: ClusterStage, peer: FarPeer) -> None:
    """Its half message is on the other broker, which is told of the end."""
    peer.produce_to("transaction")
    told = peer.send(peer.message("transaction", b"half", kind=MessageType.TRANSACTION))
    (entry,) = told["entries"]
    ended = peer.ask(
        "EndTransaction", topic={"name": "transaction"}, message_id=entry["message_id"],
        transaction_id=entry["transaction_id"], resolution=1, source=1,
    )  # fmt: skip
    assert ended["status"]["code"] == Code.OK
    stage.network.settle()
    broker = stage.brokers["broker-b"]
    broker.catch_up()
    assert sum(broker.store.max_queue_offset("transaction", queue) for queue in range(2)) == 1


def test_another_broker_asks_about_a_transaction(stage: ClusterStage, peer: FarPeer) -> None:
    """It knows the producer, whose word is taken there."""
    peer.produce_to("transaction")
    peer.send(peer.message("transaction", b"half", kind=MessageType.TRANSACTION))
    stage.network.run(70_000)
    (asked,) = [one for one in peer.heard if "recover_orphaned_transaction_command" in one][:1]
    command = asked["recover_orphaned_transaction_command"]
    peer.ask(
        "EndTransaction", topic={"name": "transaction"}, resolution=1, source=2,
        message_id=command["message"]["system_properties"]["message_id"],
        transaction_id=command["transaction_id"],
    )  # fmt: skip
    broker = stage.brokers["broker-b"]
    broker.catch_up()
    assert sum(broker.store.max_queue_offset("transaction", queue) for queue in range(2)) == 1


def test_all_brokers_of_its_topics_know_a_client_and_forget_it(
    stage: ClusterStage, peer: FarPeer
) -> None:
    """Its heart beats go to all of them, and so does its farewell."""
    peer.consume("both")
    known = [broker.consumers.group(GROUP) for broker in stage.brokers.values()]
    assert all(group is not None and len(group.members) == 1 for group in known)
    peer.ask("NotifyClientTermination", group={"name": GROUP})
    stage.network.settle()
    left = [broker.consumers.group(GROUP) for broker in stage.brokers.values()]
    assert not any(group is not None and group.members for group in left)
    assert not stage.network.lines


def test_beside_one_broker_alone_if_it_is_so_wanted() -> None:
    """With ``proxyMode=LOCAL`` nobody else matters."""
    stage = ClusterStage(proxyMode="Local")
    peer = FarPeer(stage)
    assert _queues(peer.ask("QueryRoute", topic={"name": "both"})) == [
        ("broker-a", 0), ("broker-a", 1),
    ]  # fmt: skip
    assert peer.ask("QueryRoute", topic={"name": "far"})["status"]["code"] == Code.TOPIC_NOT_FOUND
