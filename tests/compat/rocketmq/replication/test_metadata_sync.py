"""A slave takes over its master's tables."""

from __future__ import annotations

import pytest

from logstore.compat.rocketmq.auth.settings import LOCAL_PROVIDERS
from logstore.compat.rocketmq.connection import RemotingConnection
from logstore.compat.rocketmq.replication.slave_role import SlaveRole
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.segments.rocketmq.tables.subscription_groups import SubscriptionGroupConfig
from logstore.segments.rocketmq.tables.topics import TopicConfig
from tests.compat.rocketmq.broker_peer import Peer
from tests.compat.rocketmq.replication.network import MASTER, SLAVE, Pair
from tests.compat.rocketmq.scripted_remoting import ScriptedRemoting


def test_all_tables_come_over() -> None:
    """Topics, groups, committed offsets and delay offsets are the master's, versions included."""
    pair = Pair()
    store = pair.master.store
    store.topic_table.put(TopicConfig("made", 3, 2, attributes={"message.type": "FIFO"}))
    store.subscription_groups.put(SubscriptionGroupConfig("g", retry_times_max=3))
    store.subscription_groups.set_forbidden("g", "made", 2)
    store.consumer_offsets.commit("g", "made", 1, 17)
    store.delay_offsets.put(3, 5)
    pair.connect()
    slave = pair.slave.store
    assert slave.topic_table.topics == store.topic_table.topics
    assert slave.topic_table.data_version == store.topic_table.data_version
    assert slave.subscription_groups.groups == store.subscription_groups.groups
    assert slave.subscription_groups.forbidden == {"g": {"made": 2}}
    assert slave.consumer_offsets.query("g", "made", 1) == 17
    assert slave.delay_offsets.get(3) == 5
    assert pair.role.metadata.rounds == 1


def test_changes_come_over_every_ten_seconds() -> None:
    """What is new or gone at the master is so at the slave; what only the slave committed stays."""
    pair = Pair()
    pair.master.store.topic_table.put(TopicConfig("gone"))
    pair.connect()
    pair.slave.store.consumer_offsets.commit("local", "t", 0, 4)
    pair.master.store.topic_table.remove("gone")
    pair.master.store.topic_table.put(TopicConfig("new"))
    pair.master.store.consumer_offsets.commit("g", "new", 0, 9)
    pair.network.run(10_000)
    topics = pair.slave.store.topic_table
    assert topics.get("gone") is None
    assert topics.get("new") == TopicConfig("new")
    offsets = pair.slave.store.consumer_offsets
    assert (offsets.query("g", "new", 0), offsets.query("local", "t", 0)) == (9, 4)


def test_what_came_over_is_kept() -> None:
    """After a clean stop and another start the slave knows it without its master."""
    pair = Pair()
    pair.master.store.topic_table.put(TopicConfig("made", 3, 2))
    pair.master.store.consumer_offsets.commit("g", "made", 1, 17)
    pair.connect()
    pair.network.cut()
    pair.slave.close()
    pair.network.brokers.remove(pair.slave)
    again = pair.network.broker(SLAVE, pair.slave.host)  # type: ignore[arg-type]
    assert again.store.topic_table.get("made") == TopicConfig("made", 3, 2)
    assert again.store.consumer_offsets.query("g", "made", 1) == 17


def test_the_master_is_away() -> None:
    """It is asked every second until it has told all once, and after ten seconds from then on."""
    pair = Pair()
    pair.network.listening.clear()
    pair.connect()
    pair.network.run(2050)
    assert pair.network.reached.count(MASTER) == 3
    pair.network.listen(pair.master)
    pair.network.run(1000)
    assert pair.role.metadata.rounds == 1
    pair.network.cut()
    pair.master.store.topic_table.put(TopicConfig("new"))
    pair.network.run(10_000)
    assert pair.slave.store.topic_table.get("new") is not None


@pytest.mark.parametrize("answer_code", [0, 1])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"topicConfigTable":{"t":5}}',
        b'{"offsetTable":7}',
        b'{"dataVersion":3}',
    ],
)
def test_nonsense_changes_nothing(body: bytes, answer_code: int) -> None:
    """Whatever a master answers, a table that cannot be read leaves the slave's as it is."""
    pair = Pair()
    codes = (
        RequestCode.GET_ALL_TOPIC_CONFIG,
        RequestCode.GET_ALL_CONSUMER_OFFSET,
        RequestCode.GET_ALL_DELAY_OFFSET,
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    )

    def handle(service: object, channel: object, request: object) -> Response:
        return Response(answer_code, body=body)

    service = ScriptedRemoting(dict.fromkeys(codes, handle))

    def connect(host: str, port: int) -> RemotingConnection:
        return service.connect()

    pair.network.listening = {MASTER: connect}
    store = pair.slave.store
    before = [table.to_json() for table in store.tables.all()]
    pair.connect()
    assert service.reads, "it was asked"
    assert [table.to_json() for table in store.tables.all()] == before


def test_a_slave_stops() -> None:
    """A slave that stops asks nobody any more."""
    pair = Pair()
    pair.connect()
    pair.role.stop()
    reached = len(pair.network.reached)
    pair.network.run(30_000)
    assert len(pair.network.reached) == reached
    assert pair.network.lines == []


def test_a_slave_of_itself() -> None:
    """A name server that has no master tells of none: nothing is reached."""
    pair = Pair()
    role = SlaveRole(pair.slave, pair.network.reach)
    role.master_found("", "")
    pair.network.run(2000)
    assert pair.network.reached == []
    assert not role.knows_master


def test_consumers_go_on_at_a_slave() -> None:
    """A consumer that committed at the master finds its offset at the slave."""
    pair = Pair()
    pair.master.groups.require("g")
    committed = Peer(pair.master).ask(
        RequestCode.UPDATE_CONSUMER_OFFSET,
        {"consumerGroup": "g", "topic": "orders", "queueId": 0, "commitOffset": 3},
    )
    assert committed.code == 0, committed
    pair.connect()
    answer = Peer(pair.slave).ask(
        RequestCode.QUERY_CONSUMER_OFFSET,
        {"consumerGroup": "g", "topic": "orders", "queueId": 0},
    )
    assert (answer.fields or {})["offset"] == "3", answer


@pytest.mark.parametrize("password", ["inner-pw", "wrong"])
def test_a_master_that_asks_who_it_is(password: str) -> None:
    """A slave signs as the inner client; what it is not told it does not take for empty."""
    inner = {
        **LOCAL_PROVIDERS,
        "innerClientAuthenticationCredentials": '{"accessKey":"inner","secretKey":"inner-pw"}',
    }
    own = {
        key: value.replace("inner-pw", password) for key, value in inner.items() if "inner" in key
    }
    pair = Pair({**inner, "authenticationEnabled": "true", "authorizationEnabled": "true"}, own)
    pair.master.store.topic_table.put(TopicConfig("made", 3, 2))
    pair.connect()
    is_known = pair.slave.store.topic_table.get("made") == TopicConfig("made", 3, 2)
    assert is_known == (password == "inner-pw")  # noqa: S105 - it is no secret
    assert pair.slave.store.topic_table.topics
