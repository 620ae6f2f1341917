"""Logic queues stay as they are for clients, whatever broker their messages are on."""

from __future__ import annotations

import orjson
import pytest

from logstore.compat.rocketmq.registry import HANDLERS
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.segments.rocketmq.tables.java_json import parse_json
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import DIRECTORY, TOPIC, Peer, a_broker, decoded
from tests.compat.rocketmq.static_topics.static_stage import StaticStage, detail, item

A, B, C = "broker-a", "broker-b", "broker-c"
NOT_LEADER = ResponseCode.NOT_LEADER_FOR_QUEUE
FILE = f"{DIRECTORY}/config/topicQueueMapping.json"


def text_of(host: SimulatedHost, path: str) -> bytes:
    """Return what is in a file."""
    file = host.fs.open(path)
    try:
        return bytes(file.read(0, file.size()))
    finally:
        file.close()


def test_who_sends_is_told_of_the_logic_queue() -> None:
    """A message goes to the queue that leads, and is told as one of the logic queue."""
    stage = StaticStage()
    stage.moved()
    answer = stage.peers[B].produce(b"b2")
    assert (answer.fields or {})["queueId"] == "0"
    assert (answer.fields or {})["queueOffset"] == "1002"
    (message,) = decoded(stage.peers[B].pull(TOPIC, 2, 2, lo="false").body)
    assert (message.queue_id, message.queue_offset, message.body) == (2, 2, b"b2")


def test_a_sender_without_a_queue_gets_one() -> None:
    """Queue -1 is any of those that the broker has."""
    stage = StaticStage()
    stage.moved()
    answer = stage.peers[B].produce(b"b2", queue_id=-1)
    assert (answer.fields or {})["queueId"] == "0"


def test_who_asks_another_broker_is_sent_away() -> None:
    """The broker from which a queue has moved serves nobody who asks for it."""
    stage = StaticStage()
    stage.moved()
    sent = stage.peers[A].produce(b"late")
    assert (sent.code, sent.remark) == (
        NOT_LEADER,
        f"{TOPIC}-0 does not exit in request process of current broker {A}",
    )
    pulled = stage.pull(A, 0)
    assert (pulled.code, pulled.remark) == (
        NOT_LEADER,
        f"{TOPIC}-0 cannot find mapping item in request process of current broker {A}",
    )
    for code in (30, 31, 32, 29, 14, 15):
        fields = {"topic": TOPIC, "queueId": 0, "timestamp": 0, "consumerGroup": "g"}
        assert stage.ask(A, code, {**fields, "commitOffset": 1}).code == NOT_LEADER


def test_a_logic_queue_is_read_over_all_brokers() -> None:
    """The leader gives out what stands on other brokers, and goes on with its own."""
    stage = StaticStage()
    stage.moved()
    assert stage.read(B) == [(0, b"a0"), (1, b"a1"), (2, b"a2"), (1000, b"b0"), (1001, b"b1")]


def test_a_queue_that_came_back_is_read_in_order() -> None:
    """Two stretches on the same broker are two queues there."""
    stage = StaticStage()
    stage.moved()
    back = [
        item(0, A, 0, 3),
        item(1, B, 1000, 2, queue_id=2),
        item(2, A, 2000, queue_id=1),
    ]
    stage.map_everywhere({0: back}, epoch=3)
    assert stage.peers[A].produce(b"c0").code == 0
    wanted = [(0, b"a0"), (1, b"a1"), (2, b"a2"), (1000, b"b0"), (1001, b"b1"), (2000, b"c0")]
    assert stage.read(A) == wanted


def test_the_ends_of_a_logic_queue() -> None:
    """It begins in its oldest stretch and ends in its newest one."""
    stage = StaticStage()
    stage.moved()
    assert stage.number(B, RequestCode.GET_MIN_OFFSET) == 0
    assert stage.number(B, RequestCode.GET_MAX_OFFSET) == 1002
    stored_ms = stage.number(B, RequestCode.GET_EARLIEST_MSG_STORETIME, "timestamp")
    own = stage.ask(
        A, RequestCode.GET_EARLIEST_MSG_STORETIME, {"topic": TOPIC, "queueId": 0, "lo": "false"}
    )
    assert str(stored_ms) == (own.fields or {})["timestamp"]


def test_an_offset_for_a_time() -> None:
    """A time in the newest stretch is found there, and so is one before everything."""
    stage = StaticStage()
    stage.map_everywhere({0: [item(0, A, 0)]})
    stage.peers[A].produce(b"a0")
    stage.network.clock.advance(1000)
    stage.peers[A].produce(b"a1")
    now_ms = stage.hosts[A].clock.wall_ms()
    code = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
    assert stage.number(A, code, timestamp=now_ms) == 1
    assert stage.number(A, code, timestamp=0) == 0


def test_what_groups_commit_stands_where_the_messages_are() -> None:
    """An offset of an older stretch is kept on its broker; the newest that is known counts."""
    stage = StaticStage()
    stage.moved()
    stage.pull(B, 0)  # the group is known now, on both
    fields = {"consumerGroup": "g", "topic": TOPIC, "queueId": 0}
    query, update = RequestCode.QUERY_CONSUMER_OFFSET, RequestCode.UPDATE_CONSUMER_OFFSET
    assert stage.ask(B, query, fields).code == ResponseCode.QUERY_NOT_FOUND
    assert stage.ask(B, update, {**fields, "commitOffset": 2}).code == 0
    assert stage.brokers[A].store.consumer_offsets.query("g", TOPIC, 0) == 2
    assert stage.number(B, query, consumerGroup="g") == 2
    assert stage.ask(B, update, {**fields, "commitOffset": 1001}).code == 0
    assert stage.brokers[B].store.consumer_offsets.query("g", TOPIC, 2) == 1
    assert stage.number(B, query, consumerGroup="g") == 1001


def test_a_pull_commits_in_its_own_stretch() -> None:
    """What a pull commits in passing is the place in the queue that it reads."""
    stage = StaticStage()
    stage.moved()
    stage.pull(B, 1001, sysFlag=5, commitOffset=1001)
    assert stage.brokers[B].store.consumer_offsets.query("g", TOPIC, 2) == 1
    stage.pull(B, 1001, sysFlag=5, commitOffset=2)  # which stands on the other broker
    assert stage.brokers[B].store.consumer_offsets.query("g", TOPIC, 2) == 1


def test_a_pull_at_the_end_waits() -> None:
    """At the end of the newest stretch a pull waits until a message comes."""
    stage = StaticStage()
    stage.moved()
    peer = stage.peers[B]
    asked = peer.pull_fields(TOPIC, 0, 1002, "g")
    opaque = peer.send(RequestCode.PULL_MESSAGE, asked)
    stage.network.run(1000)
    assert peer.answer_to(opaque) is None
    peer.produce(b"b2")
    stage.network.settle()
    answer = peer.answer_to(opaque)
    assert answer is not None
    assert [bytes(one.body) for one in decoded(answer.body)] == [b"b2"]
    assert (answer.fields or {})["nextBeginOffset"] == "1003"


def test_a_pull_at_the_end_of_an_older_stretch_is_sent_on() -> None:
    """Nobody waits where nothing will come any more."""
    stage = StaticStage()
    stage.moved()
    answer = stage.pull(B, 3, sysFlag=6)
    assert answer.code == ResponseCode.PULL_RETRY_IMMEDIATELY
    assert (answer.fields or {})["nextBeginOffset"] == "1000"


def test_a_pull_far_behind_the_end_waits() -> None:
    """Where there is one stretch who asks for too much is told nothing, and waits, as in Java."""
    stage = StaticStage()
    stage.map_everywhere({0: [item(0, A, 0)]})
    stage.peers[A].produce(b"a0")
    peer = stage.peers[A]
    opaque = peer.send(RequestCode.PULL_MESSAGE, peer.pull_fields(TOPIC, 0, 50, "g"))
    assert peer.answer_to(opaque) is None
    stage.network.run(16_000)
    answer = peer.answer_to(opaque)
    assert answer is not None
    assert answer.code == ResponseCode.PULL_NOT_FOUND


def test_a_broker_that_is_gone_is_no_end() -> None:
    """Who asks for what stands on a broker that is gone is told so, and has it when it is back."""
    stage = StaticStage()
    stage.moved()
    stage.stop(A)
    answer = stage.pull(B, 0)
    assert (answer.code, answer.remark) == (1, f"cannot find addr for broker {A}")
    stage.start(A)
    stage.network.run(6_000)
    assert [body for _, body in stage.read(B)] == [b"a0", b"a1", b"a2", b"b0", b"b1"]


def test_mappings_are_there_after_a_restart() -> None:
    """The table stands in the file, as Java writes it, with the one before as its backup."""
    stage = StaticStage()
    stage.moved()
    stage.stop(B)
    host = stage.hosts[B]
    table = parse_json(text_of(host, FILE).decode())
    hosted = table["topicQueueMappingInfoMap"][TOPIC]["hostedQueues"]
    assert hosted == {0: [item(0, A, 0, 3), item(1, B, 1000, queue_id=2)]}
    assert b'"hostedQueues":{\n\t\t\t\t0:[\n' in text_of(host, FILE)
    assert b'"hostedQueues":{}' in text_of(host, f"{FILE}.bak")
    stage.start(B)
    stage.network.run(6_000)
    assert stage.peers[B].produce(b"b2").code == 0
    assert stage.number(B, RequestCode.GET_MAX_OFFSET) == 1003


def test_who_asks_for_a_topic_gets_its_mapping() -> None:
    """The mapping goes to whoever wants it; slaves get all of them."""
    stage = StaticStage()
    stage.moved()
    asked = stage.ask(B, RequestCode.GET_TOPIC_CONFIG, {"topic": TOPIC, "lo": "true"})
    content = parse_json(asked.body.decode())
    hosted = {0: [item(0, A, 0, 3), item(1, B, 1000, queue_id=2)]}
    told = {**detail(B, {}, 2), "hostedQueues": hosted}
    assert content["mappingDetail"] == told
    assert (
        b'"mappingDetail"' not in stage.ask(B, RequestCode.GET_TOPIC_CONFIG, {"topic": TOPIC}).body
    )
    everything = parse_json(stage.ask(B, RequestCode.GET_ALL_TOPIC_CONFIG, {}).body.decode())
    assert everything["topicQueueMappingDetailMap"] == {TOPIC: told}


def test_name_servers_are_told_what_a_broker_leads() -> None:
    """Of a topic's queues those that are the broker's now, and their numbers there."""
    stage = StaticStage()
    stage.moved()
    infos = {name: stage.brokers[name].static_topics.infos([TOPIC, "other"]) for name in (A, B)}
    for name, led in ((A, {}), (B, {"0": 2})):
        told = {**detail(name, {}, 2), "currIdMap": led}
        del told["hostedQueues"]
        assert infos[name] == {TOPIC: told}


@pytest.mark.parametrize(
    ("told", "remark"),
    [
        (detail(A, {0: [item(0, A, 0)]}, 0), "Can't accept data with small epoch 0 < 1"),
        (
            {**detail(A, {0: [item(0, A, 0)]}, 2), "scope": "x"},
            "Can't accept data with unmatched scope x != __global__",
        ),
        (detail(A, {}, 1), "Cannot accept equal epoch with null data"),
        (detail(A, {0: []}, 2), "The new item list is null or empty"),
        (
            detail(A, {0: [item(0, A, 0, queue_id=1)]}, 1),
            "The new leader is different but epoch equal",
        ),
        (
            detail(A, {0: [item(-1, A, 0)]}, 2),
            "The field is illegal, should not be negative",
        ),
        (
            detail(A, {0: [item(0, A, -1), item(1, B, 5)]}, 2),
            "The non-latest item has negative logic offset",
        ),
        (
            detail(A, {0: [item(1, A, 0), item(1, B, 5)]}, 2),
            "The gen does not increase monotonically",
        ),
        (
            detail(A, {0: [item(0, A, 0, -2)]}, 2),
            "The endOffset is smaller than the start offset",
        ),
        (
            detail(A, {0: [item(0, A, 5), item(1, B, 5)]}, 2),
            "The base logic offset does not increase monotonically",
        ),
        (
            detail(A, {0: [item(0, A, 0, 9), item(1, B, 5)]}, 2),
            "The max logic offset does not increase monotonically",
        ),
    ],
)
def test_a_mapping_that_contradicts_is_refused(told: dict[str, object], remark: str) -> None:
    """What is older, or says something else of what is settled, is refused and changes nothing."""
    stage = StaticStage()
    stage.map_everywhere({0: [item(0, A, 0)]})
    before = stage.brokers[A].static_topics.details[TOPIC]
    answer = stage.map(A, told)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, remark)
    assert stage.brokers[A].static_topics.details[TOPIC] is before


def test_a_mapping_may_be_forced() -> None:
    """By force an older one is taken; queues that it does not name stay."""
    stage = StaticStage()
    stage.map_everywhere({0: [item(0, A, 0)]}, epoch=9)
    assert stage.map(A, detail(A, {1: [item(0, A, 0, queue_id=1)]}, 3), force=True).code == 0
    known = stage.brokers[A].static_topics.details[TOPIC]
    assert (known.epoch, sorted(known.hosted_queues)) == (3, [0, 1])


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"hostedQueues":{"0":3}}', b"\xff"])
def test_a_mapping_that_cannot_be_read_is_refused(body: bytes) -> None:
    """A body that is no mapping is refused."""
    stage = StaticStage()
    fields = {
        "topic": TOPIC, "defaultTopic": "TBW102", "readQueueNums": 1, "writeQueueNums": 1,
        "perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false",
    }  # fmt: skip
    answer = stage.ask(A, RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC, fields, body)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert stage.brokers[A].topics.get(TOPIC) is None


def test_a_topic_that_is_deleted_takes_its_mapping_along() -> None:
    """A topic of the same name that is made later is a plain one."""
    stage = StaticStage()
    stage.map_everywhere({0: [item(0, A, 0, queue_id=3)]})
    assert stage.ask(A, RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": TOPIC}).code == 0
    assert stage.brokers[A].handlers is HANDLERS
    stage.peers[A].produce(b"plain", queue_id=1)
    assert [one.queue_id for one in stage.peers[A].messages(TOPIC, 1)] == [1]


def test_a_topic_becomes_static_while_it_is_sent_to() -> None:
    """Who sent the short way before is looked at from then on."""
    broker = a_broker()
    peer = Peer(broker)
    peer.produce(b"before")
    peer.produce(b"before")
    told = detail(A, {0: [item(0, A, 100, queue_id=2)]})
    fields = {
        "topic": TOPIC, "defaultTopic": "TBW102", "readQueueNums": 4, "writeQueueNums": 4,
        "perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false",
    }  # fmt: skip
    body = orjson.dumps(told)
    assert peer.ask(RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC, fields, body).code == 0
    for number in range(3):
        assert (peer.produce(b"after").fields or {})["queueOffset"] == str(100 + number)
    assert broker.store.max_queue_offset(TOPIC, 2) == 3


def test_stretches_without_messages_are_forgotten() -> None:
    """The oldest stretch goes when nothing of it is left, at the hours in which files go."""
    stage = StaticStage()
    stage.map_everywhere({0: [item(0, A, 0)]})
    moved = [item(0, A, 0, 3), item(1, B, 1000)]
    stage.map_everywhere({0: moved}, epoch=2)
    stage.brokers[B].static_topics.clean()
    stage.network.settle()
    (left,) = stage.brokers[B].static_topics.details[TOPIC].hosted_queues[0]
    assert left.broker_name == B
    assert len(stage.brokers[A].static_topics.details[TOPIC].hosted_queues[0]) == 2


def test_stretches_with_messages_stay() -> None:
    """As long as a message is left of the oldest stretch it is known."""
    stage = StaticStage()
    stage.moved()
    stage.brokers[B].static_topics.clean()
    stage.network.settle()
    assert len(stage.brokers[B].static_topics.details[TOPIC].hosted_queues[0]) == 2


def test_a_queue_that_has_moved_on_twice_is_forgotten() -> None:
    """Who had a queue before last knows nothing of it any more; who had it last still does."""
    stage = StaticStage()
    stage.moved()
    items = [item(0, A, 0, 3), item(1, B, 1000, 2, queue_id=2), item(2, C, 2000)]
    stage.map(A, detail(A, {}, 3))
    for name in (B, C):
        assert stage.map(name, detail(name, {0: items}, 3)).code == 0
    for name in (A, B, C):
        stage.brokers[name].static_topics.clean()
        stage.network.settle()
    known = {
        name: sorted(stage.brokers[name].static_topics.details[TOPIC].hosted_queues)
        for name in (A, B, C)
    }
    assert known == {A: [], B: [0], C: [0]}
