"""What clients and tools ask a name server, and the shapes of its answers."""

from __future__ import annotations

import pytest

from tests.compat.rocketmq.name_server.conversation import Conversation, topics_named

QUEUES = (
    b'"queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":4,"topicSysFlag":0,'
    b'"writeQueueNums":4}]'
)


class TestRoutes:
    """GET_ROUTEINFO_BY_TOPIC."""

    @pytest.mark.parametrize(
        ("version", "fields", "addresses"),
        [
            (63, {}, b'{0:"192.0.2.1:10911"}'),
            (400, {}, b'{0:"192.0.2.1:10911"}'),
            (400, {"acceptStandardJsonOnly": "true"}, b'{"0":"192.0.2.1:10911"}'),
            (401, {}, b'{"0":"192.0.2.1:10911"}'),
            (513, {}, b'{"0":"192.0.2.1:10911"}'),
        ],
    )
    def test_the_shape_that_the_client_reads(
        self, version: int, fields: dict[str, str], addresses: bytes
    ) -> None:
        """Bare numbers for old clients, quotes for new ones, 5.x's fields for everybody."""
        conversation = Conversation()
        conversation.register()
        assert conversation.route("t", version, **fields).body == (
            b'{"brokerDatas":[{"brokerAddrs":' + addresses + b',"brokerName":"a","cluster":"c",'
            b'"enableActingMaster":false}],"filterServerTable":{},' + QUEUES + b"}"
        )

    def test_a_topic_that_nobody_serves(self) -> None:
        """Is refused by name, with Java's pointer to the manual."""
        answer = Conversation().route("nowhere")
        assert answer.code == 17
        assert (answer.remark or "").splitlines() == [
            "No topic route info in name server for the topic: nowhere",
            "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.",
        ]

    def test_no_topic_at_all(self) -> None:
        """The field must be there; others that are not known are ignored."""
        answer = Conversation().ask(105, {"tpic": "t"})
        assert (answer.code, answer.remark) == (1, "the custom field <topic> is null")

    def test_brokers_come_in_the_order_of_java(self) -> None:
        """As its table of hashes yields them; who takes the first one takes the same."""
        conversation = Conversation()
        for name in ("broker-a", "broker-b", "broker-c"):
            conversation.register(name=name, address=f"192.0.2.1:{ord(name[-1])}")
        content = conversation.route("t").content
        for listed in (content["brokerDatas"], content["queueDatas"]):
            assert [one["brokerName"] for one in listed] == ["broker-b", "broker-c", "broker-a"]

    def test_names_that_are_not_ascii(self) -> None:
        """Standard form: escaped; the old one: as it is, in UTF-8."""
        conversation = Conversation()
        conversation.register(name="bröker🚀")
        new, old = conversation.route("t", 513).body, conversation.route("t", 63).body
        assert b'"brokerName":"br\\u00f6ker\\ud83d\\ude80"' in new
        assert '"brokerName":"bröker🚀"'.encode() in old

    def test_filter_servers(self) -> None:
        """Of 4.x: by the broker's address."""
        conversation = Conversation()
        conversation.register(filter_servers=("192.0.2.1:1234",))
        assert conversation.route("t").content["filterServerTable"] == {
            "192.0.2.1:10911": ["192.0.2.1:1234"]
        }

    def test_order_topics(self) -> None:
        """Their configuration is in the route if the setting says so."""
        for value, expected in (("true", "a:4"), ("false", None)):
            conversation = Conversation({"orderMessageEnable": value})
            conversation.register()
            fields = {"namespace": "ORDER_TOPIC_CONFIG", "key": "t", "value": "a:4"}
            conversation.ask(100, fields)
            assert conversation.route("t").content.get("orderTopicConf") == expected
            assert "orderTopicConf" not in conversation.route("u").content

    def test_zones(self) -> None:
        """In zone mode: the brokers of the zone, and those that have lost their master."""
        conversation = Conversation()
        conversation.register(name="a", fields={"__ZONE_NAME": "z1"})
        conversation.register(name="b", address="192.0.2.2:1", fields={"__ZONE_NAME": "z2"})
        conversation.register(
            name="s", address="192.0.2.3:1", broker_id=1,
            fields={"__ZONE_NAME": "z2", "enableActingMaster": "true"},
        )  # fmt: skip

        def names(**fields: str) -> list[str]:
            queues = conversation.ask(105, {"topic": "t", **fields}).content["queueDatas"]
            return sorted(queue["brokerName"] for queue in queues)

        assert names() == ["a", "b", "s"]
        assert names(__ZONE_NAME="z1", __ZONE_MODE="true") == ["a", "s"]
        assert names(__ZONE_NAME="z1") == ["a", "b", "s"]

    def test_a_young_name_server_may_wait(self) -> None:
        """If it is told to: so that no client sees half of the brokers."""
        conversation = Conversation({"needWaitForService": "true", "waitSecondsForService": "10"})
        conversation.register()
        assert conversation.route("t").remark == "name server not ready"
        conversation.clock.advance(10_000)
        assert conversation.route("t").code == 0


class TestTools:
    """What mqadmin asks."""

    def test_clusters(self) -> None:
        """Brokers by name and by cluster; broker ids are bare numbers for everybody."""
        conversation = Conversation()
        conversation.register()
        conversation.register(name="b", address="192.0.2.2:10911", cluster="d")
        assert conversation.ask(106, version=409).body == (
            b'{"brokerAddrTable":{'
            b'"a":{"brokerAddrs":{0:"192.0.2.1:10911"},"brokerName":"a","cluster":"c",'
            b'"enableActingMaster":false},'
            b'"b":{"brokerAddrs":{0:"192.0.2.2:10911"},"brokerName":"b","cluster":"d",'
            b'"enableActingMaster":false}},'
            b'"clusterAddrTable":{"c":["a"],"d":["b"]}}'
        )

    def test_topic_lists(self) -> None:
        """All topics; those of one cluster; those named after clusters and brokers."""
        conversation = Conversation()
        conversation.register(["t", "u"])
        conversation.register(["u", "v"], name="b", address="192.0.2.2:10911", cluster="d")
        assert conversation.topics() == ["t", "u", "v"]
        assert sorted(conversation.ask(224, {"cluster": "d"}).content["topicList"]) == ["u", "v"]
        assert conversation.ask(224, {"cluster": "x"}).content == {"topicList": []}
        assert conversation.ask(304).content == {
            "brokerAddr": "192.0.2.1:10911",
            "topicList": ["a", "b", "c", "d"],
        }

    def test_topics_are_listed_in_the_order_of_java(self) -> None:
        """As a real name server's table and set yield them; what clients print depends on it."""
        conversation = Conversation()
        topics = [
            "%RETRY%adm_stage_orderly", "BenchmarkTest", "DefaultCluster_REPLY_TOPIC", "TBW102",
            "adm_stage_delayed", "adm_stage_popped", "SELF_TEST_TOPIC",
        ]  # fmt: skip
        conversation.register(topics)
        assert conversation.ask(206).content["topicList"] == [
            "adm_stage_delayed", "DefaultCluster_REPLY_TOPIC", "BenchmarkTest", "TBW102",
            "adm_stage_popped", "%RETRY%adm_stage_orderly", "SELF_TEST_TOPIC",
        ]  # fmt: skip

    def test_lists_can_be_switched_off(self) -> None:
        """Each by its setting."""
        conversation = Conversation({"enableAllTopicList": "false", "enableTopicList": "false"})
        for code in (206, 224, 311, 312, 313):
            answer = conversation.ask(code, {"cluster": "c"})
            assert (answer.code, answer.remark) == (1, "disable")

    def test_unit_topics(self) -> None:
        """By the system flags of the topic: unit, unit subscription, the latter alone."""
        conversation = Conversation()
        body = (
            b'{"topicConfigSerializeWrapper":{"dataVersion":{"counter":1,"timestamp":1},'
            b'"topicConfigTable":{%s}}}'
            % b",".join(
                b'"%b":{"topicName":"%b","topicSysFlag":%d}' % (name, name, flags)
                for name, flags in ((b"n", 0), (b"u", 1), (b"s", 2), (b"us", 3))
            )
        )
        fields = {
            "brokerName": "a", "brokerAddr": "x:1", "clusterName": "c", "brokerId": "0",
            "haServerAddr": "x:2",
        }  # fmt: skip
        assert conversation.ask(103, fields, body).code == 0
        found = [sorted(conversation.ask(code).content["topicList"]) for code in (311, 312, 313)]
        assert found == [["u", "us"], ["s", "us"], ["s"]]

    def test_a_topic_that_is_a_unit_on_one_broker_alone(self) -> None:
        """Is one where the broker is that which comes first in Java's map, whoever came first."""
        for first, second in (("broker0", "broker1"), ("broker1", "broker0")):
            conversation = Conversation()
            for number, name in enumerate((first, second)):
                flags = 3 if name == "broker1" else 0
                body = b'{"queueDatas":[{"brokerName":"%b","topicSysFlag":%d}]}'
                conversation.register(name=name, address=f"192.0.2.{number}:10911")
                conversation.ask(217, {"topic": "new"}, body % (name.encode(), flags))
            found = [conversation.ask(code).content["topicList"] for code in (311, 312)]
            assert found == [["new"], ["new"]]

    def test_the_right_to_write(self) -> None:
        """Taken and given back broker by broker; the answer counts topics."""
        conversation = Conversation()
        conversation.register(topics_named("t", "u", perm=7))
        conversation.register(["t", "v"], name="b", address="192.0.2.2:10911")

        def perms() -> list[int]:
            return [queue["perm"] for queue in conversation.route("t").content["queueDatas"]]

        assert conversation.ask(205, {"brokerName": "a"}).fields == {"wipeTopicCount": "2"}
        assert perms() == [5, 6]
        assert conversation.ask(327, {"brokerName": "a"}).fields == {"addTopicCount": "2"}
        assert perms() == [6, 6]
        assert conversation.ask(205, {"brokerName": "x"}).fields == {"wipeTopicCount": "0"}

    def test_deleting_a_topic(self) -> None:
        """Everywhere, or where one cluster serves it."""
        conversation = Conversation()
        conversation.register(["t", "u"])
        conversation.register(["t", "u"], name="b", address="192.0.2.2:10911", cluster="d")
        assert conversation.ask(216, {"topic": "t", "clusterName": "d"}).code == 0
        assert [queue["brokerName"] for queue in conversation.route("t").content["queueDatas"]] == [
            "a"
        ]
        assert conversation.ask(216, {"topic": "t", "clusterName": "c"}).code == 0
        assert conversation.ask(216, {"topic": "u"}).code == 0
        assert conversation.topics() == []

    def test_adding_a_topic(self) -> None:
        """5.x: one topic of brokers that are known; of others nothing is entered."""
        conversation = Conversation()
        conversation.register()
        queues = (
            b'{"queueDatas":[{"brokerName":"%b","perm":6,"readQueueNums":2,"writeQueueNums":3}]}'
        )
        assert conversation.ask(217, {"topic": "new"}, queues % b"a").code == 0
        assert conversation.route("new").content["queueDatas"] == [
            {"brokerName": "a", "perm": 6, "readQueueNums": 2, "topicSysFlag": 0,
             "writeQueueNums": 3},
        ]  # fmt: skip
        assert conversation.ask(217, {"topic": "no"}, queues % b"x").code == 0
        assert conversation.ask(217, {"topic": "no"}).code == 0
        assert conversation.route("no").code == 17

    @pytest.mark.parametrize(
        "body",
        [
            b'{"queueDatas":[{"brokerName":"a"}],"filterServerTable":[]}',
            b'{"queueDatas":[{"brokerName":"a"}],"brokerDatas":5}',
            b'{"queueDatas":[{"brokerName":"a","perm":"x"}]}',
            b'{"queueDatas":[5]}',
        ],
    )
    def test_adding_a_topic_by_what_is_no_route(self, body: bytes) -> None:
        """Is refused, whichever part of it is not what it is called, and enters nothing."""
        conversation = Conversation()
        conversation.register()
        assert conversation.ask(217, {"topic": "new"}, body).code == 1
        assert conversation.route("new").code == 17

    def test_adding_a_topic_by_half_a_route(self) -> None:
        """Numbers that are missing are 0, queues of no broker nobody's, and one is a list."""
        conversation = Conversation()
        conversation.register()
        body = b'{"queueDatas":{"brokerName":"a","perm":null},"brokerDatas":{}}'
        assert conversation.ask(217, {"topic": "new"}, body).code == 0
        assert conversation.route("new").content["queueDatas"] == [
            {"brokerName": "a", "perm": 0, "readQueueNums": 0, "topicSysFlag": 0,
             "writeQueueNums": 0},
        ]  # fmt: skip
        for nothing in (b'{"queueDatas":[{"perm":6}]}', b"null", b"{}"):
            assert conversation.ask(217, {"topic": "no"}, nothing).code == 0
        assert conversation.route("no").code == 17

    def test_the_members_of_a_broker_group(self) -> None:
        """All addresses of a name; none for an unknown one."""
        conversation = Conversation()
        conversation.register()
        conversation.register(broker_id=1, address="192.0.2.2:10911")
        for name, addresses in (
            (b"a", b'{0:"192.0.2.1:10911",1:"192.0.2.2:10911"}'), (b"x", b"{}"),
        ):  # fmt: skip
            answer = conversation.ask(901, {"clusterName": "c", "brokerName": name.decode()})
            assert answer.body == (
                b'{"brokerMemberGroup":{"brokerAddrs":' + addresses + b',"brokerName":"' + name
                + b'","cluster":"c"}}'
            )  # fmt: skip

    def test_settings(self) -> None:
        """Can be read, and set but for those that say where things are."""
        conversation = Conversation({"orderMessageEnable": "true", "brokerName": "no such here"})
        lines = conversation.ask(319).body.decode().splitlines()
        assert "orderMessageEnable=true" in lines
        assert not any(line.startswith("brokerName") for line in lines)
        body = b"# comment\norderMessageEnable=false\nflux=1\n"
        assert conversation.ask(318, body=body).code == 0
        lines = conversation.ask(319).body.decode().splitlines()
        assert "orderMessageEnable=false" in lines
        assert "flux=1" not in lines
        answer = conversation.ask(318, body=b"kvConfigPath=/etc/passwd")
        assert (answer.code, answer.remark) == (16, "Can not update config in black list.")


def test_an_unknown_code() -> None:
    """Is answered as 5.x answers it."""
    answer = Conversation().ask(10)
    assert (answer.code, answer.remark) == (3, " request type 10 not supported")
