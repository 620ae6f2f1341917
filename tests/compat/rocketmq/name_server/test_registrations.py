"""Brokers come, change and go; the name server knows."""

from __future__ import annotations

from functools import partial

import pytest

from logstore.compat.rocketmq.name_server.registration import Registration, write_registration
from logstore.segments.rocketmq.tables.data_version import DataVersion
from tests.compat.rocketmq.name_server.conversation import (
    CLUSTER,
    VERSION,
    Conversation,
    topics_named,
)

NEWER = DataVersion(1_700_000_000_001, 4)


def addresses(conversation: Conversation, topic: str = "t") -> dict[str, dict[str, str]]:
    """Return the addresses of a topic's brokers by name and id."""
    brokers = conversation.route(topic).content["brokerDatas"]
    return {broker["brokerName"]: broker["brokerAddrs"] for broker in brokers}


def perms(conversation: Conversation, topic: str = "t") -> dict[str, int]:
    """Return what may be done with a topic by broker."""
    queues = conversation.route(topic).content["queueDatas"]
    return {queue["brokerName"]: queue["perm"] for queue in queues}


class TestRegister:
    """REGISTER_BROKER."""

    @pytest.mark.parametrize("is_compressed", [False, True])
    @pytest.mark.parametrize("release", [409, 513])
    def test_topics_become_known(self, is_compressed: bool, release: int) -> None:
        """From a body of either form, of a broker of either line."""
        conversation = Conversation()
        answer = conversation.register(is_compressed=is_compressed, release=release)
        assert (answer.code, answer.remark, answer.fields) == (0, None, {})
        assert conversation.topics() == ["t", "u"]
        assert addresses(conversation) == {"a": {"0": "192.0.2.1:10911"}}

    def test_queues_and_rights(self) -> None:
        """Are those of the topic."""
        conversation = Conversation()
        conversation.register(topics_named("x", "y", perm=4, queue_count=7))
        assert conversation.route("x").content["queueDatas"] == [
            {"brokerName": "a", "perm": 4, "readQueueNums": 7, "topicSysFlag": 0,
             "writeQueueNums": 7},
        ]  # fmt: skip

    def test_a_body_that_was_damaged(self) -> None:
        """Is refused by its checksum, and nothing changes."""
        conversation = Conversation()
        answer = conversation.register(fields={"bodyCrc32": "12345"})
        assert (answer.code, answer.remark) == (1, "crc32 not match")
        assert conversation.topics() == []

    @pytest.mark.parametrize("checksum", [{}, {"bodyCrc32": "0"}])
    def test_a_body_without_checksum(self, checksum: dict[str, str]) -> None:
        """Is taken as it is."""
        conversation = Conversation()
        fields = {
            "brokerName": "a", "brokerAddr": "x:1", "clusterName": "c", "brokerId": "0",
            "haServerAddr": "x:2",
        }  # fmt: skip
        assert conversation.ask(103, fields | checksum).code == 0

    @pytest.mark.parametrize("body", [b"{", b"[]", b'{"topicConfigSerializeWrapper":[1]}', b"\x80"])
    @pytest.mark.parametrize("compressed", ["true", "false"])
    def test_a_body_that_is_none(self, body: bytes, compressed: str) -> None:
        """Is refused with what is wrong; the next one is taken."""
        conversation = Conversation()
        fields = {
            "brokerName": "a", "brokerAddr": "x:1", "clusterName": "c", "brokerId": "0",
            "haServerAddr": "x:2", "compressed": compressed,
        }  # fmt: skip
        answer = conversation.ask(103, fields, body)
        assert answer.code == 1
        assert "the registration cannot be read" in (answer.remark or "")
        assert conversation.register().code == 0

    def test_one_topic_before_all(self) -> None:
        """A broker that nobody knows must say all that it serves first."""
        conversation = Conversation()
        answer = conversation.register(["t"])
        assert (answer.code, answer.remark) == (1, "register broker failed")
        conversation.register(["t", "u"])
        assert conversation.register(["v"], version=NEWER).code == 0
        assert conversation.topics() == ["t", "u", "v"]

    def test_one_topic_before_all_leaves_a_trace(self) -> None:
        """The name is known from then on, and an address has no other id any more."""
        conversation = Conversation()
        conversation.register(["t"], name="b", cluster="d", address="192.0.2.2:10911")
        found = conversation.ask(304).content
        assert sorted(found["topicList"]) == ["b", "d"]
        conversation.register(["t", "u"], broker_id=2)
        conversation.register(["t", "u"], broker_id=1, address="192.0.2.3:10911")
        assert conversation.register(["t"], broker_id=0).code == 1
        group = conversation.ask(901, {"clusterName": CLUSTER, "brokerName": "a"})
        assert b'{1:"192.0.2.3:10911"}' in group.body

    def test_topics_stay_until_the_broker_goes(self) -> None:
        """A registration adds and changes; what it does not name stays."""
        conversation = Conversation()
        conversation.register(["t", "u"])
        conversation.register(topics_named("u", "w", perm=4), version=NEWER)
        assert conversation.topics() == ["t", "u", "w"]
        assert (perms(conversation, "t"), perms(conversation, "u")) == ({"a": 6}, {"a": 4})

    def test_topics_go_that_are_not_registered_any_more(self) -> None:
        """With deleteTopicWithBrokerRegistration: of this broker alone."""
        conversation = Conversation({"deleteTopicWithBrokerRegistration": "true"})
        register_other = partial(conversation.register, name="b", address="192.0.2.2:10911")
        conversation.register(("t", "u"))
        register_other(("t", "u"))
        conversation.register(("t", "v"))
        assert perms(conversation, "u") == {"b": 6}
        register_other(("t", "v"))
        assert conversation.route("u").code == 17
        assert conversation.ask(318, {}, b"deleteTopicWithBrokerRegistration=false").code == 0
        conversation.register(("t",))
        assert perms(conversation, "v") == {"a": 6, "b": 6}

    def test_topics_stay_beside_static_ones(self) -> None:
        """As in Java, which does not know better of them."""
        conversation = Conversation({"deleteTopicWithBrokerRegistration": "true"})
        conversation.register(("t", "u"))
        static = Registration(topics_named("t"), VERSION, mappings={"t": {"topic": "t"}})
        body = write_registration(static, is_compressed=False)
        fields = {
            "brokerName": "a", "brokerAddr": "192.0.2.1:10911", "clusterName": CLUSTER,
            "brokerId": "0", "compressed": "false",
        }  # fmt: skip
        assert conversation.ask(103, fields, body).code == 0
        assert conversation.route("u").code == 0

    def test_the_same_version_changes_nothing(self) -> None:
        """A topic that is known is looked at only if the version is another one."""
        conversation = Conversation()
        conversation.register()
        conversation.register(topics_named("t", "v", perm=4))
        assert (perms(conversation, "t"), perms(conversation, "v")) == ({"a": 6}, {"a": 4})

    def test_a_slave_is_told_of_its_master(self) -> None:
        """Where it is, and where it sends its commit log; the master is told nothing."""
        conversation = Conversation()
        assert conversation.register().fields == {}
        answer = conversation.register(broker_id=1, address="192.0.2.2:10911")
        assert answer.fields == {
            "haServerAddr": "192.0.2.1:109111",
            "masterAddr": "192.0.2.1:10911",
        }
        assert addresses(conversation) == {"a": {"0": "192.0.2.1:10911", "1": "192.0.2.2:10911"}}

    @pytest.mark.parametrize(
        ("fields", "expected"),
        [({}, {}), ({"enableActingMaster": "false"}, {"a": 6}),
         ({"enableActingMaster": "true"}, {"a": 4})],
    )  # fmt: skip
    def test_a_slave_alone(self, fields: dict[str, str], expected: dict[str, int]) -> None:
        """4.x: its topics are not served; 5.x: they are, by an acting master to be read only."""
        conversation = Conversation()
        conversation.register(broker_id=1, fields=fields)
        assert (perms(conversation) if conversation.topics() else {}) == expected

    @pytest.mark.parametrize(("body", "is_now"), [
        (b"", False), (b"{}", True), (b'{"topicConfigSerializeWrapper":{"dataVersion":{}}}', True),
        (b'{"topicConfigSerializeWrapper":{"dataVersion":{"timestamp":0}}}', False),
    ])  # fmt: skip
    def test_a_body_that_says_no_time(self, body: bytes, is_now: bool) -> None:
        """Has topics as of now; no body at all has them since ever."""
        conversation = Conversation()
        fields = {"brokerName": "a", "brokerAddr": "x:1", "clusterName": "c", "brokerId": "0"}
        assert conversation.ask(103, fields, body).code == 0
        answer = conversation.ask(322, fields, b'{"counter":0,"stateVersion":0,"timestamp":5}')
        assert answer.content["timestamp"] == (conversation.clock.wall_ms() if is_now else 0)

    @pytest.mark.parametrize("ha_address", ["", None])
    def test_a_slave_of_a_master_that_does_not_replicate(self, ha_address: str | None) -> None:
        """Is told of no address where the master told none, of an empty one where it told that."""
        conversation = Conversation()
        fields = {
            "brokerName": "a", "brokerAddr": "x:1", "clusterName": CLUSTER, "brokerId": "0",
        }  # fmt: skip
        told = {} if ha_address is None else {"haServerAddr": ha_address}
        conversation.ask(103, fields | told)
        answer = conversation.register(broker_id=1)
        assert answer.fields == told | {"masterAddr": "x:1"}

    def test_a_slave_that_became_master(self) -> None:
        """One address has one id: the old one goes."""
        conversation = Conversation()
        conversation.register(broker_id=1)
        conversation.register(broker_id=0, version=NEWER)
        assert addresses(conversation) == {"a": {"0": "192.0.2.1:10911"}}

    def test_an_outdated_master(self) -> None:
        """Another address may take an id over, unless the one that has it is ahead in state."""
        conversation = Conversation()
        conversation.register(version=DataVersion(1, 1, 5))
        conversation.register(address="192.0.2.9:10911", version=DataVersion(2, 2, 4))
        assert addresses(conversation) == {"a": {"0": "192.0.2.1:10911"}}
        conversation.register(address="192.0.2.9:10911", version=DataVersion(3, 3, 5))
        assert addresses(conversation) == {"a": {"0": "192.0.2.9:10911"}}

    def test_order_topics_come_with_the_answer(self) -> None:
        """The table, if anybody ever put one and the setting does not forbid it."""
        conversation = Conversation()
        assert conversation.register().body == b""
        fields = {"namespace": "ORDER_TOPIC_CONFIG", "key": "t", "value": "a:4"}
        conversation.ask(100, fields)
        assert conversation.register().content == {"table": {"t": "a:4"}}
        conversation.ask(318, body=b"returnOrderTopicConfigToBroker=false")
        assert conversation.register().body == b""


class TestLeaving:
    """Brokers go, one way or another."""

    def test_goodbye(self) -> None:
        """What only this broker served goes with it."""
        conversation = Conversation()
        conversation.register(["t", "u"])
        conversation.register(["u", "v"], name="b", address="192.0.2.2:10911")
        fields = {
            "brokerName": "a", "brokerAddr": "192.0.2.1:10911", "clusterName": CLUSTER,
            "brokerId": "0",
        }  # fmt: skip
        assert conversation.ask(104, fields).code == 0
        assert conversation.topics() == ["u", "v"]
        assert addresses(conversation, "u") == {"b": {"0": "192.0.2.2:10911"}}
        assert conversation.ask(106).body.endswith(b'"clusterAddrTable":{"c":["b"]}}')

    def test_goodbye_of_the_last(self) -> None:
        """Cluster and topics are gone; a second goodbye is fine."""
        conversation = Conversation()
        conversation.register()
        fields = {
            "brokerName": "a", "brokerAddr": "192.0.2.1:10911", "clusterName": CLUSTER,
            "brokerId": "0",
        }  # fmt: skip
        assert [conversation.ask(104, fields).code for _ in range(2)] == [0, 0]
        assert conversation.ask(106).content == {"brokerAddrTable": {}, "clusterAddrTable": {}}

    def test_a_slave_leaves_a_master_behind(self) -> None:
        """The name stays, with one address less."""
        conversation = Conversation()
        conversation.register()
        slave = conversation.connect()
        conversation.register(broker_id=1, address="192.0.2.2:10911", connection=slave)
        slave.lost()
        assert addresses(conversation) == {"a": {"0": "192.0.2.1:10911"}}

    def test_an_acting_master_leaves_nobody_to_write(self) -> None:
        """Without a master a group with an acting one can be read, not written."""
        conversation = Conversation()
        master = conversation.connect()
        acting = {"enableActingMaster": "true"}
        conversation.register(connection=master, fields=acting)
        conversation.register(broker_id=1, address="192.0.2.2:10911", fields=acting)
        master.lost()
        assert perms(conversation) == {"a": 4}

    def test_a_connection_that_closes(self) -> None:
        """Takes the broker with it at once."""
        conversation = Conversation()
        connection = conversation.connect()
        conversation.register(connection=connection)
        conversation.connect().lost()
        assert conversation.topics() == ["t", "u"]
        connection.lost()
        assert conversation.topics() == []

    @pytest.mark.parametrize(("fields", "silence_ms"), [
        ({}, 120_000), ({"heartbeatTimeoutMillis": "3000"}, 3_000),
    ])  # fmt: skip
    def test_silence(self, fields: dict[str, str], silence_ms: int) -> None:
        """After two minutes, or what the broker said, it is gone and hung up on."""
        conversation = Conversation()
        conversation.server.start_housekeeping()
        connection = conversation.connect()
        conversation.register(connection=connection, fields=fields)
        conversation.clock.advance(silence_ms)
        conversation.server.timers.run()
        assert conversation.topics() == ["t", "u"]
        conversation.clock.advance(5_001)
        conversation.server.timers.run()
        assert conversation.topics() == []
        assert connection.is_closing

    @pytest.mark.parametrize("code", [103, 322, 904])
    def test_whoever_speaks_lives(self, code: int) -> None:
        """A registration, a question about the version or a heart beat counts."""
        conversation = Conversation()
        conversation.register()
        fields = {
            "brokerName": "a", "brokerAddr": "192.0.2.1:10911", "clusterName": CLUSTER,
            "brokerId": "0",
        }  # fmt: skip
        conversation.clock.advance(100_000)
        if code == 103:
            conversation.register()
        else:
            assert conversation.ask(code, fields, b"{}" if code == 322 else b"").code == 0
        conversation.clock.advance(100_000)
        conversation.server.expire_brokers()
        assert conversation.topics() == ["t", "u"]


class TestVersions:
    """QUERY_DATA_VERSION: whether a broker must register anew."""

    def test_by_the_version(self) -> None:
        """Unknown brokers and other versions must; the answer has the known version."""
        conversation = Conversation()
        fields = {
            "brokerName": "a", "brokerAddr": "192.0.2.1:10911", "clusterName": CLUSTER,
            "brokerId": "0",
        }  # fmt: skip
        same = b'{"counter":3,"stateVersion":0,"timestamp":1700000000000}'
        answer = conversation.ask(322, fields, same)
        assert (answer.fields, answer.body) == ({"changed": "true"}, b"")
        conversation.register()
        answer = conversation.ask(322, fields, same)
        assert (answer.fields, answer.body) == ({"changed": "false"}, same)
        other = same.replace(b"3", b"4")
        for changed in (other, b"null", b""):
            assert conversation.ask(322, fields, changed).fields == {"changed": "true"}
