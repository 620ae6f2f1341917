"""Brokers stay known to name servers, here and elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pytest

from logstore.compat.connection import Connection
from logstore.compat.rocketmq.connection import RemotingConnection
from logstore.compat.rocketmq.name_server.routes import BrokerIdentity, QueueData
from logstore.compat.rocketmq.registrar import LocalLink, Registrar, RegistrarOptions, RemoteLink
from logstore.compat.waiting import Timers
from logstore.segments.rocketmq.tables.data_version import DataVersion
from logstore.segments.rocketmq.tables.topics import TopicConfig
from tests.compat.rocketmq.frames import joined
from tests.compat.rocketmq.name_server.conversation import Conversation, topics_named


class FakeBroker:
    """What is said of a broker, for a test to change."""

    def __init__(self) -> None:
        self.topics: Mapping[str, TopicConfig] = topics_named("t", "u")
        self.version = DataVersion(1, 1)
        self.rights = 6
        self.mappings: dict[str, object] = {}
        self.is_said_alone = False

    def identity(self) -> BrokerIdentity:
        """Return who the broker is."""
        return BrokerIdentity("c", "a", "192.0.2.1:10911", 0)

    def ha_address(self) -> str:
        """Return where slaves connect."""
        return "192.0.2.1:10912"

    def registered_topics(self) -> tuple[Mapping[str, TopicConfig], DataVersion]:
        """Return all topics, and the version of their table."""
        return self.topics, self.version

    def registered_mappings(self, topics: Iterable[str]) -> Mapping[str, object]:
        """Return the mappings of topics that are static."""
        return {topic: self.mappings[topic] for topic in topics if topic in self.mappings}

    def permission(self) -> int:
        """Return what may be done with the broker."""
        return self.rights

    def registers_topics_alone(self) -> bool:
        """Tell whether a topic that has changed is said alone."""
        return self.is_said_alone

    def add(self, name: str) -> TopicConfig:
        """Add a topic."""
        self.topics = {**self.topics, **topics_named(name)}
        self.version = DataVersion(self.version.timestamp_ms + 1, self.version.counter + 1)
        return self.topics[name]


class Network:
    """Connects to a name server without sockets; may be down."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.is_up = True
        self.reached: list[tuple[str, int]] = []
        self.codes: list[int] = []
        self.pairs: list[tuple[RemotingConnection, RemotingConnection]] = []

    def reach(
        self,
        host: str,
        port: int,
        connect: Callable[[str, int], Connection],
        failed: Callable[[Exception], None],
    ) -> None:
        """Make both ends of a connection."""
        self.reached.append((host, port))
        if not self.is_up:
            failed(ConnectionRefusedError("nobody listens"))
            return
        client, server = connect(host, port), self.conversation.connect()
        assert isinstance(client, RemotingConnection)
        self.pairs.append((client, server))
        client.on_output = lambda: self._carry(client, server)
        server.on_output = lambda: self._carry(server, client)

    def _carry(self, source: RemotingConnection, target: RemotingConnection) -> None:
        data, source.output = joined(source.output), []
        if data:
            answer = target.feed(data)
            if answer:
                source.feed(joined(answer))

    def cut(self) -> None:
        """Close all connections."""
        pairs, self.pairs = self.pairs, []
        for client, server in pairs:
            client.lost()
            server.lost()


class Setting:
    """A broker, a name server elsewhere, and what lies between."""

    def __init__(self, options: RegistrarOptions | None = None) -> None:
        self.conversation = Conversation()
        self.clock = self.conversation.clock
        self.broker = FakeBroker()
        self.network = Network(self.conversation)
        self.timers = Timers(self.clock)
        options = options or RegistrarOptions()
        self.registrar = Registrar(self.broker, self.timers, options)
        link = RemoteLink(
            ("ns.example", 9876), self.broker, self.timers, self.network.reach, options
        )
        self.registrar.links = [link]

    def run(self, ms: float = 0) -> None:
        """Let time pass."""
        self.clock.advance(ms)
        while self.timers.run():
            pass


@pytest.mark.parametrize("is_compressed", [False, True])
def test_a_broker_registers_at_its_start(is_compressed: bool) -> None:
    """All its topics, with both forms of the body."""
    setting = Setting(RegistrarOptions(is_compressed=is_compressed))
    setting.registrar.start()
    setting.run()
    assert setting.registrar.is_registered
    assert setting.network.reached == [("ns.example", 9876)]
    assert setting.conversation.topics() == ["t", "u"]
    live = setting.conversation.server.routes.live["c", "192.0.2.1:10911"]
    assert (live.ha_address, live.data_version) == ("192.0.2.1:10912", DataVersion(1, 1))


def test_a_new_topic_is_told_at_once() -> None:
    """Over the connection that is there, alone."""
    setting = Setting()
    setting.registrar.start()
    setting.run()
    setting.registrar.topic_changed(setting.broker.add("new"))
    assert setting.conversation.topics() == ["new", "t", "u"]
    assert len(setting.network.reached) == 1


@pytest.mark.parametrize("is_forced", [True, False])
def test_it_registers_again_and_again(is_forced: bool) -> None:
    """So that it does not expire; unforced it asks first whether it must."""
    setting = Setting(RegistrarOptions(is_forced=is_forced))
    setting.registrar.start()
    setting.run()
    for _ in range(20):
        setting.run(30_000)
        setting.conversation.server.expire_brokers()
    assert setting.conversation.topics() == ["t", "u"]
    setting.broker.add("new")
    setting.run(30_000)
    assert setting.conversation.topics() == ["new", "t", "u"]


def test_a_name_server_that_is_not_there_yet() -> None:
    """Is tried every second until the broker is listed; then at leisure."""
    setting = Setting()
    setting.network.is_up = False
    setting.registrar.start()
    for _ in range(3):
        setting.run(1000)
    assert len(setting.network.reached) == 4
    assert not setting.registrar.is_registered
    setting.network.is_up = True
    setting.run(1000)
    assert setting.registrar.is_registered
    assert setting.conversation.topics() == ["t", "u"]


def test_a_connection_that_breaks() -> None:
    """Is made anew; a name server that forgot everything learns it again."""
    setting = Setting()
    setting.registrar.start()
    setting.run(1000)
    setting.network.cut()
    assert setting.conversation.topics() == []
    assert not setting.registrar.is_registered
    setting.run(30_000)
    setting.run(1000)
    assert setting.conversation.topics() == ["t", "u"]
    assert setting.registrar.is_registered


def test_what_the_broker_may_not_do() -> None:
    """Its own permission limits that of its topics."""
    setting = Setting()
    setting.broker.rights = 4
    setting.registrar.start()
    setting.run()
    (queue,) = setting.conversation.route("t").content["queueDatas"]
    assert queue["perm"] == 4


def test_goodbye() -> None:
    """A broker that stops says so, and does not come again."""
    setting = Setting()
    setting.registrar.start()
    setting.run()
    setting.registrar.stop()
    assert setting.conversation.topics() == []
    setting.run(120_000)
    assert setting.conversation.topics() == []


def test_a_name_server_in_the_same_process() -> None:
    """Is told by a call: the broker is listed when start returns."""
    conversation = Conversation()
    broker, timers = FakeBroker(), Timers(conversation.clock)
    registrar = Registrar(broker, timers, RegistrarOptions())
    registrar.links = [LocalLink(conversation.server.routes, broker, conversation.clock)]
    registrar.start()
    assert registrar.is_registered
    assert conversation.topics() == ["t", "u"]
    registrar.topic_changed(broker.add("new"))
    assert conversation.topics() == ["new", "t", "u"]
    for _ in range(20):
        conversation.clock.advance(30_000)
        timers.run()
        conversation.server.expire_brokers()
    assert conversation.topics() == ["new", "t", "u"]
    registrar.stop()
    assert conversation.topics() == []


@pytest.mark.parametrize(("is_alone", "left"), [(True, ["new", "t", "u"]), (False, ["new"])])
@pytest.mark.parametrize("is_local", [True, False])
def test_a_topic_that_is_said_alone(is_alone: bool, left: list[str], is_local: bool) -> None:
    """By enableSingleTopicRegister: who forgets what is not said keeps the others."""
    setting = Setting()
    routes, broker = setting.conversation.server.routes, setting.broker
    if is_local:
        setting.registrar.links = [LocalLink(routes, broker, setting.clock)]
    setting.registrar.start()
    setting.run()
    setting.conversation.server.config.update("deleteTopicWithBrokerRegistration=true")
    broker.is_said_alone = is_alone
    setting.registrar.topic_changed(broker.add("new"))
    setting.run()
    assert setting.conversation.topics() == left
    assert routes.topics["new"]["a"] == QueueData.of("a", broker.topics["new"])


def test_a_slave_is_told_of_its_master() -> None:
    """Asked every second until a name server knows one, by its addresses from then on."""
    setting = Setting()
    told: list[tuple[str, str]] = []
    link = RemoteLink(
        ("ns.example", 9876),
        FakeSlave(),
        setting.timers,
        setting.network.reach,
        RegistrarOptions(),
        lambda address, ha_address: told.append((address, ha_address)),
    )
    slave = Registrar(FakeSlave(), setting.timers, RegistrarOptions())
    slave.links = [link]
    slave.is_searching = lambda: not any(address for address, _ in told)
    slave.start()
    setting.run(1000)
    setting.run(1000)
    assert told == [("", "")] * 3
    setting.registrar.start()
    setting.run(1000)
    assert told[3:] == [("192.0.2.1:10911", "192.0.2.1:10912")]
    setting.run(20_000)
    assert len(told) == 4


def test_a_slave_beside_its_name_server() -> None:
    """The name server in its own process tells it, too."""
    setting = Setting()
    routes = setting.conversation.server.routes
    setting.registrar.start()
    setting.run()
    told: list[tuple[str, str]] = []
    link = LocalLink(
        routes,
        FakeSlave(),
        setting.clock,
        lambda address, ha_address: told.append((address, ha_address)),
    )
    slave = Registrar(FakeSlave(), setting.timers, RegistrarOptions())
    slave.links = [link]
    slave.start()
    assert told == [("192.0.2.1:10911", "192.0.2.1:10912")]


class FakeSlave(FakeBroker):
    """The slave of the fake broker."""

    def identity(self) -> BrokerIdentity:
        """Return who the slave is."""
        return BrokerIdentity("c", "a", "192.0.2.2:10911", 1)

    def ha_address(self) -> str:
        """Return where slaves connect."""
        return "192.0.2.2:10912"


def test_what_a_broker_says_is_signed() -> None:
    """Where it has credentials, every request to a name server bears them."""
    setting = Setting()
    signed: list[str] = []

    def sign(fields: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        signed.append(f"{fields['brokerName']} {bool(body)}")
        return {**fields, "AccessKey": "inner", "Signature": "x"}

    link = RemoteLink(
        *(("ns.example", 9876), setting.broker, setting.timers),
        *(setting.network.reach, RegistrarOptions()),
        sign=sign,
    )
    setting.registrar.links = [link]
    setting.registrar.start()
    setting.run()
    assert link.is_registered
    setting.registrar.stop()
    assert signed == ["a True", "a False"]


@pytest.mark.parametrize("is_compressed", [False, True])
def test_mappings_of_static_topics_are_registered(is_compressed: bool) -> None:
    """With all topics at the start, and with one that is new."""
    setting = Setting(RegistrarOptions(is_compressed=is_compressed))
    infos = {name: {"topic": name, "currIdMap": {"0": 3}} for name in ("t", "new")}
    setting.broker.mappings.update(infos)
    setting.registrar.start()
    setting.run()
    routes = setting.conversation.server.routes
    assert getattr(routes.route("t"), "mappings", None) == {"a": infos["t"]}
    assert getattr(routes.route("u"), "mappings", None) is None
    setting.registrar.topic_changed(setting.broker.add("new"))
    setting.run()
    assert getattr(routes.route("new"), "mappings", None) == {"a": infos["new"]}


def test_name_servers_tell_where_brokers_are() -> None:
    """One elsewhere is asked, one in this process is looked into; without any that fails."""
    setting = Setting()
    failures: list[Exception] = []
    found: list[dict[str, str]] = []
    setting.registrar.find_brokers().then(found.append, failures.append)
    assert [str(error) for error in failures] == ["no name server can be reached"]
    setting.registrar.start()
    setting.run()
    setting.conversation.register(name="b", address="192.0.2.2:10911")
    setting.conversation.register(name="b", address="192.0.2.3:10911", broker_id=1)
    setting.registrar.find_brokers().then(found.append, failures.append)
    local = LocalLink(setting.conversation.server.routes, setting.broker, setting.clock)
    at_home = local.find_brokers()
    assert at_home is not None
    at_home.then(found.append, failures.append)
    assert found == [{"a": "192.0.2.1:10911", "b": "192.0.2.2:10911"}] * 2
