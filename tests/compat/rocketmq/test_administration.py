"""Topics, groups, offsets and settings as administrators see and change them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.segments.rocketmq.tables.topics import TopicConfig
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import TOPIC, Peer, a_broker, decoded
from tests.compat.rocketmq.frames import Answer, answers
from tests.compat.rocketmq.test_pulling import heartbeat
from tests.segments.rocketmq.golden_case import golden_cases

TOPIC_FIELDS: dict[str, object] = {
    "topic": "made", "defaultTopic": "TBW102", "readQueueNums": 2, "writeQueueNums": 3, "perm": 6,
    "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false", "attributes": "",
}  # fmt: skip


@pytest.fixture
def peer() -> Peer:
    """Return a client of a fresh broker with one topic of four messages."""
    peer = Peer(a_broker())
    for number in range(4):
        peer.produce(b"%d" % number)
    return peer


def create(peer: Peer, **changes: object) -> Answer:
    """Make or change a topic."""
    return peer.ask(Code.UPDATE_AND_CREATE_TOPIC, {**TOPIC_FIELDS, **changes})


def test_a_topic_is_made_and_changed(peer: Peer) -> None:
    """What was asked for is what there is, now and after a restart."""
    changed: list[str] = []
    peer.broker.topics.on_change = lambda config: changed.append(config.topic_name)
    assert create(peer, attributes="+cleanup.policy=DELETE").code == 0
    assert create(peer, perm=4).code == 0
    assert create(peer, perm=4).code == 0
    assert changed == ["made", "made"]
    peer.broker.abandon()
    again = Peer(a_broker(peer.broker.host))  # type: ignore[arg-type]
    config = again.ask(Code.GET_TOPIC_CONFIG, {"topic": "made"}).content
    assert config == {
        "attributes": {"cleanup.policy": "DELETE"}, "order": False, "perm": 4,
        "readQueueNums": 2, "topicFilterType": "SINGLE_TAG", "topicName": "made",
        "topicSysFlag": 0, "writeQueueNums": 3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "code", "remark"),
    [
        ({"topic": "a b"}, 29, "contains illegal characters"),
        ({"topic": "TBW102"}, 29, "The topic[TBW102] is conflict with system topic."),
        ({"topic": "rmq_sys_x"}, 29, "is conflict with system topic."),
        ({"attributes": "x"}, 1, "delete attribute format is wrong: x"),
        ({"attributes": "+a=b"}, 1, "unsupported key: a"),
        ({"attributes": "+queue.type=Odd"}, 1, "value is not in set"),
        ({"attributes": "+message.type=MIXED"}, 29, "MIXED message type is not supported."),
        ({"readQueueNums": "many"}, 1, "readQueueNums"),
    ],
)
def test_a_topic_that_cannot_be(
    peer: Peer, changes: dict[str, object], code: int, remark: str
) -> None:
    """The refusal says what is wrong, and no topic is made."""
    before = dict(peer.broker.topics.table.topics)
    answer = create(peer, **changes)
    assert answer.code == code
    assert remark in (answer.remark or "")
    assert dict(peer.broker.topics.table.topics) == before


@pytest.mark.parametrize(
    ("setting", "changes"),
    [
        ("validateSystemTopicWhenUpdateTopic=false", {"topic": "TBW102"}),
        ("enableMixedMessageType=true", {"attributes": "+message.type=MIXED"}),
    ],
)
def test_a_topic_that_a_setting_allows(setting: str, changes: dict[str, object]) -> None:
    """What is refused at default settings."""
    name, _, value = setting.partition("=")
    assert create(Peer(a_broker()), **changes).code == 29
    assert create(Peer(a_broker(settings={name: value})), **changes).code == 0


@pytest.mark.parametrize("is_cleared", [True, False])
def test_retry_topics_of_pops_go_with_their_topic(*, is_cleared: bool) -> None:
    """Unless ``clearRetryTopicWhenDeleteTopic`` is off; those of other groups stay."""
    peer = Peer(a_broker(settings={"clearRetryTopicWhenDeleteTopic": str(is_cleared).lower()}))
    for topic in (TOPIC, f"%RETRY%g_{TOPIC}", f"%RETRY%g+{TOPIC}", f"%RETRY%other+{TOPIC}"):
        peer.broker.topics.put(TopicConfig(topic, 1, 1))
    peer.broker.store.consumer_offsets.commit("g", TOPIC, 0, 1)
    assert peer.ask(Code.DELETE_TOPIC_IN_BROKER, {"topic": TOPIC}).code == 0
    left = [topic for topic in peer.broker.topics.table.topics if TOPIC in topic]
    gone = {f"%RETRY%g_{TOPIC}", f"%RETRY%g+{TOPIC}"} if is_cleared else set[str]()
    expected = {f"%RETRY%g_{TOPIC}", f"%RETRY%g+{TOPIC}", f"%RETRY%other+{TOPIC}"} - gone
    assert set(left) == expected


def test_the_kind_of_a_topics_queues_is_settled_once(peer: Peer) -> None:
    """queue.type can be said when a topic is made, not later."""
    assert create(peer, attributes="+queue.type=BatchCQ").code == 0
    answer = create(peer, attributes="+queue.type=SimpleCQ")
    assert "unchangeable" in (answer.remark or "")


def test_a_deleted_topic_is_gone(peer: Peer) -> None:
    """Its messages, its settings and what groups committed go; who waits for it is answered."""
    commit = {"consumerGroup": "g", "topic": TOPIC, "queueId": 0, "commitOffset": 2}
    other = Peer(peer.broker, 40002)
    opaque = other.send(Code.PULL_MESSAGE, other.pull_fields(TOPIC, 0, 4, "g"))
    peer.ask(Code.UPDATE_CONSUMER_OFFSET, commit)
    assert peer.ask(Code.DELETE_TOPIC_IN_BROKER, {"topic": TOPIC}).code == 0
    woken = other.answer_to(opaque)
    assert woken is not None
    assert woken.code == ResponseCode.TOPIC_NOT_EXIST
    assert peer.ask(Code.GET_TOPIC_CONFIG, {"topic": TOPIC}).code == ResponseCode.TOPIC_NOT_EXIST
    assert peer.broker.store.consumer_offsets.query("g", TOPIC, 0) == -1
    peer.produce(b"anew")
    assert [message.body for message in peer.messages()] == [b"anew"]


def test_a_broker_keeps_its_own_topics(peer: Peer) -> None:
    """System topics are listed, and cannot be deleted."""
    listed = peer.ask(Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER).content["topicList"]
    assert {"TBW102", "DefaultCluster", "broker-a", "SCHEDULE_TOPIC_XXXX"} <= set(listed)
    answer = peer.ask(Code.DELETE_TOPIC_IN_BROKER, {"topic": "TBW102"})
    assert answer.code == ResponseCode.INVALID_PARAMETER


def test_groups_are_made_changed_and_deleted(peer: Peer) -> None:
    """A group has the settings it was given, and none when it is deleted."""
    wanted = {"groupName": "g", "retryMaxTimes": 2, "consumeEnable": False}
    body = json.dumps(wanted).encode()
    assert peer.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body).code == 0
    found = peer.ask(Code.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": "g"}).content
    assert (found["retryMaxTimes"], found["consumeEnable"]) == (2, False)
    assert peer.pull().code == ResponseCode.NO_PERMISSION
    table = peer.ask(Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG).content["subscriptionGroupTable"]
    assert table["g"] == found
    assert peer.ask(Code.DELETE_SUBSCRIPTIONGROUP, {"groupName": "g"}).code == 0
    assert not peer.broker.groups.contains("g")


@pytest.mark.parametrize(
    ("group", "creates", "is_made"),
    [
        ("CID_RMQ_SYS_mine", "true", True),
        ("CID_RMQ_SYS_mine", "false", False),
        ("DEFAULT_CONSUMER", "true", False),
        ("TOOLS_CONSUMER", "true", False),
    ],
)
def test_groups_of_the_broker_are_made_where_others_are_not(
    group: str, creates: str, *, is_made: bool
) -> None:
    """Those that are called so, as long as that is allowed; none that have other names."""
    broker = a_broker(settings={"autoCreateSubscriptionGroup": "false"})
    peer = Peer(broker)
    peer.produce()
    broker.update_settings({"enableCreateSysGroup": creates})
    broker.groups.remove(group)
    code = ResponseCode.SUCCESS if is_made else ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    assert peer.pull(group=group).code == code
    assert broker.groups.contains(group) is is_made


def test_what_is_closed_to_a_group_that_is_not_there(peer: Peer) -> None:
    """Is told with all groups, and of a page with those that stand on it."""
    asked = {"group": "nobody", "topic": TOPIC, "readable": "false"}
    assert peer.ask(Code.UPDATE_AND_GET_GROUP_FORBIDDEN, asked).code == 0
    told = peer.ask(Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG).content
    assert "nobody" not in told["subscriptionGroupTable"]
    assert told["forbiddenTable"] == {"nobody": {TOPIC: 4}}
    page = {"groupSeq": 0, "maxGroupNum": 100}
    assert peer.ask(Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, page).content["forbiddenTable"] == {}


def test_a_group_that_cannot_be(peer: Peer) -> None:
    """Names and bodies that are none are refused."""
    body = b'{"groupName":"a b"}'
    answer = peer.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body)
    assert answer.code == ResponseCode.INVALID_PARAMETER
    answer = peer.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, b"[]")
    assert answer.code == ResponseCode.SYSTEM_ERROR


def test_offsets_of_a_group(peer: Peer) -> None:
    """What is committed is found; what never was is 0 where all messages are still there."""
    asked = {"consumerGroup": "g", "topic": TOPIC, "queueId": 0}
    assert peer.ask(Code.QUERY_CONSUMER_OFFSET, asked).fields == {"offset": "0"}
    strict = {**asked, "setZeroIfNotFound": "false"}
    assert peer.ask(Code.QUERY_CONSUMER_OFFSET, strict).code == ResponseCode.QUERY_NOT_FOUND
    elsewhere = {**asked, "queueId": 3}
    assert peer.ask(Code.QUERY_CONSUMER_OFFSET, elsewhere).code == ResponseCode.QUERY_NOT_FOUND
    unknown = peer.ask(Code.UPDATE_CONSUMER_OFFSET, {**asked, "commitOffset": 3})
    assert unknown.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    peer.pull()
    assert peer.ask(Code.UPDATE_CONSUMER_OFFSET, {**asked, "commitOffset": 3}).code == 0
    assert peer.ask(Code.QUERY_CONSUMER_OFFSET, asked).fields == {"offset": "3"}
    missing = peer.ask(Code.UPDATE_CONSUMER_OFFSET, asked)
    assert missing.remark == f"Offset is null, topic is {TOPIC}"


def test_how_far_a_group_is_behind(peer: Peer) -> None:
    """The numbers are those of queue and commits; the keys of the table are objects."""
    peer.pull()
    commit = {"consumerGroup": "g", "topic": TOPIC, "queueId": 0, "commitOffset": 1}
    peer.ask(Code.UPDATE_CONSUMER_OFFSET, commit)
    body = peer.ask(Code.GET_CONSUME_STATS, {"consumerGroup": "g"}).body.decode()
    assert (
        '{"brokerName":"broker-a","queueId":0,"topic":"orders"}:{"brokerOffset":4,'
        '"consumerOffset":1,"lastTimestamp":1700000000000,"pullOffset":4}'
    ) in body
    total = peer.ask(Code.GET_BROKER_CONSUME_STATS, {}).body.decode()
    # Of all groups it is not told how far they have pulled.
    assert '"totalDiff":3,"totalInflightDiff":-1' in total


def test_all_groups_are_told_of_the_queues_to_write_to(peer: Peer) -> None:
    """A single one is told of those to read, as by a real broker."""
    queues = {"readQueueNums": 1, "writeQueueNums": 3, "perm": 6, "topicFilterType": "SINGLE_TAG"}
    more = {"topic": "uneven", "defaultTopic": "TBW102", "order": "false", "topicSysFlag": 0}
    assert peer.ask(Code.UPDATE_AND_CREATE_TOPIC, queues | more).code == 0
    commit = {"consumerGroup": "apart", "topic": "uneven", "queueId": 0, "commitOffset": 0}
    made = json.dumps({"groupName": "apart"}).encode()
    assert peer.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, made).code == 0
    assert peer.ask(Code.UPDATE_CONSUMER_OFFSET, commit).code == 0
    for code, fields, count in (
        (Code.GET_CONSUME_STATS, {"consumerGroup": "apart"}, 1),
        (Code.GET_BROKER_CONSUME_STATS, {}, 3),
    ):
        body = peer.ask(code, fields).body.decode()
        assert body.count('"topic":"uneven"') == count


def test_groups_come_in_the_order_of_java(peer: Peer) -> None:
    """As a real broker's table yields them; what mqadmin prints of all groups depends on it."""
    for group in ("left", "failing", "online", "poppers"):
        made = json.dumps({"groupName": f"adm_stage_{group}"}).encode()
        assert peer.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, made).code == 0
    body = peer.ask(Code.GET_BROKER_CONSUME_STATS, {}).body.decode()
    assert re.findall('"adm_stage_([a-z]+)"', body) == ["online", "left", "failing", "poppers"]


def test_offsets_are_cloned(peer: Peer) -> None:
    """Another group goes on where the first one is."""
    peer.pull()
    commit = {"consumerGroup": "g", "topic": TOPIC, "queueId": 0, "commitOffset": 2}
    peer.ask(Code.UPDATE_CONSUMER_OFFSET, commit)
    assert peer.ask(Code.CLONE_GROUP_OFFSET, {"srcGroup": "g", "destGroup": "h"}).code == 0
    assert peer.broker.store.consumer_offsets.query("h", TOPIC, 0) == 2


@pytest.mark.parametrize(("offline", "expected"), [("true", 2), ("false", -1)])
@pytest.mark.parametrize("topic", [TOPIC, None])
def test_offsets_of_a_group_that_reads_elsewhere(
    peer: Peer, offline: str, expected: int, topic: str | None
) -> None:
    """Are cloned if nobody wants to know what the group subscribes to now."""
    peer.ask(Code.HEART_BEAT, {}, heartbeat("elsewhere"))
    commit = {"consumerGroup": "g", "topic": TOPIC, "queueId": 0, "commitOffset": 2}
    peer.ask(Code.UPDATE_CONSUMER_OFFSET, commit)
    asked = {"srcGroup": "g", "destGroup": "h", "offline": offline}
    asked |= {} if topic is None else {"topic": topic}
    assert peer.ask(Code.CLONE_GROUP_OFFSET, asked).code == 0
    assert peer.broker.store.consumer_offsets.query("h", TOPIC, 0) == expected


def test_a_reset_by_clients(peer: Peer) -> None:
    """Without useServerSideResetOffset every client of the group is told where to go on."""
    peer.broker.update_settings({"useServerSideResetOffset": "false"})
    reset = {"topic": TOPIC, "group": "g", "timestamp": -1, "isForce": "true"}
    assert peer.ask(Code.INVOKE_BROKER_TO_RESET_OFFSET, reset).code == ResponseCode.SYSTEM_ERROR
    for queue_id in range(4):
        peer.broker.store.consumer_offsets.commit("g", TOPIC, queue_id, 0)
    answer = peer.ask(Code.INVOKE_BROKER_TO_RESET_OFFSET, reset)
    assert answer.code == ResponseCode.CONSUMER_NOT_ONLINE
    peer.ask(Code.HEART_BEAT, {}, heartbeat(TOPIC))
    answer = peer.ask(Code.INVOKE_BROKER_TO_RESET_OFFSET, reset)
    (told,) = peer.told(Code.RESET_CONSUMER_CLIENT_OFFSET)
    assert answer.code == 0
    assert told.body == answer.body
    assert b'{"brokerName":"broker-a","queueId":0,"topic":"orders"}:4' in told.body


def test_messages_are_found_by_key_and_by_place(peer: Peer) -> None:
    """A key, a unique key and a place lead to the message; another key leads to none."""
    peer.produce(b"keyed", properties="KEYS\x01k1 k2\x02UNIQ_KEY\x01U1\x02")
    span = {"topic": TOPIC, "maxNum": 32, "beginTimestamp": 0, "endTimestamp": 1 << 60}
    by_key = peer.ask(Code.QUERY_MESSAGE, {**span, "key": "k2"})
    unique = {**span, "key": "U1", "_UNIQUE_KEY_QUERY": "true"}
    assert by_key.body == peer.ask(Code.QUERY_MESSAGE, unique).body != b""
    none = peer.ask(Code.QUERY_MESSAGE, {**span, "key": "k3"})
    assert (none.code, none.remark) == (
        ResponseCode.QUERY_NOT_FOUND,
        "can not find message, maybe time range not correct",
    )
    place = int((by_key.fields or {})["indexLastUpdatePhyoffset"])
    assert peer.ask(Code.VIEW_MESSAGE_BY_ID, {"offset": place}).body == by_key.body


def test_messages_are_found_by_their_tag(peer: Peer) -> None:
    """``indexType=T`` asks for a tag (5.x); the same word is no key."""
    peer.produce(b"tagged", properties="TAGS\x01a\x02UNIQ_KEY\x01U1\x02")
    span = {"topic": TOPIC, "maxNum": 32, "beginTimestamp": 0, "endTimestamp": 1 << 60, "key": "a"}
    by_tag = peer.ask(Code.QUERY_MESSAGE, {**span, "indexType": "T"})
    assert [message.body for message in decoded(by_tag.body)] == [b"tagged"]
    for kind in ({}, {"indexType": "K"}, {"indexType": "T", "_UNIQUE_KEY_QUERY": "true"}):
        assert peer.ask(Code.QUERY_MESSAGE, {**span, **kind}).code == ResponseCode.QUERY_NOT_FOUND


def test_one_query_finds_no_more_than_the_store_allows(peer: Peer) -> None:
    """64 (``maxMsgsNumBatch``), whatever is asked; 32 by unique key (``defaultQueryMaxNum``)."""
    for number in range(70):
        peer.produce(b"%d" % number, properties="KEYS\x01k\x02UNIQ_KEY\x01U1\x02")
    span = {"topic": TOPIC, "maxNum": 500, "beginTimestamp": 0, "endTimestamp": 1 << 60}
    by_key = peer.ask(Code.QUERY_MESSAGE, {**span, "key": "k"})
    assert [message.body for message in decoded(by_key.body)] == [
        b"%d" % number for number in range(6, 70)
    ]
    unique = {**span, "key": "U1", "_UNIQUE_KEY_QUERY": "true"}
    assert len(decoded(peer.ask(Code.QUERY_MESSAGE, unique).body)) == 32


def test_an_empty_batch_queue_does_not_know_its_start(peer: Peer) -> None:
    """It starts at -1 and ends at 0, as Java's does; any other starts and ends at 0."""
    assert create(peer, topic="batches", attributes="+queue.type=BatchCQ").code == 0
    for topic, start in (("batches", "-1"), ("none", "0")):
        queue = {"topic": topic, "queueId": 0}
        assert peer.ask(Code.GET_MIN_OFFSET, queue).fields == {"offset": start}
        assert peer.ask(Code.GET_MAX_OFFSET, queue).fields == {"offset": "0"}
    answer = peer.ask(Code.VIEW_MESSAGE_BY_ID, {"offset": 1 << 30})
    assert answer.remark == f"can not find message by the offset, {1 << 30}"


def test_settings_are_told_and_changed(peer: Peer) -> None:
    """A change counts at once and is told; one that is wrong or forbidden changes nothing."""
    told = peer.ask(Code.GET_BROKER_CONFIG).body.decode().splitlines()
    assert "brokerName=broker-a" in told
    assert "maxMessageSize=4194304" in told
    assert "bitMapLengthConsumeQueueExt=112" in told  # which follows from other settings
    change = b"maxMessageSize=1024\nbrokerPermission=6\n"
    assert peer.ask(Code.UPDATE_BROKER_CONFIG, {}, change).code == 0
    assert "maxMessageSize=1024" in peer.ask(Code.GET_BROKER_CONFIG).body.decode().splitlines()
    assert peer.produce(bytes(2000)).code == ResponseCode.MESSAGE_ILLEGAL
    answer = peer.ask(Code.UPDATE_BROKER_CONFIG, {}, b"maxMessageSize=much")
    assert (answer.code, "maxMessageSize" in (answer.remark or "")) == (1, True)
    answer = peer.ask(Code.UPDATE_BROKER_CONFIG, {}, b"configBlackList=")
    assert answer.code == ResponseCode.NO_PERMISSION


def test_the_runtime_table_has_javas_keys(peer: Peer, golden_keys: set[str]) -> None:
    """Every key that 5.5.0 was seen to print is there, all values are text."""
    table: dict[str, Any] = peer.ask(Code.GET_BROKER_RUNTIME_INFO).content["table"]
    assert golden_keys - {_without_directory(key) for key in table} == set()
    assert all(isinstance(value, str) for value in table.values())
    assert table["msgPutTotalTodayNow"] == "4"


def _without_directory(key: str) -> str:
    return key.partition("/")[0]


@pytest.fixture
def golden_keys() -> set[str]:
    """Return the keys that a real 5.5.0 printed, but for those of levels that were used there."""
    (case,) = golden_cases("wire", version="5.5.0")
    frames = case.transcripts["mqadmin-brokerStatus"]
    bodies = [
        answer.content["table"]
        for frame in frames
        if frame["from"] == "server" and "hex" in frame
        for answer in answers(bytes.fromhex(frame["hex"]))
        if answer.body.startswith(b'{"table"')
    ]
    assert bodies, "the recording has a runtime table"
    return {
        _without_directory(key)
        for table in bodies
        for key in table
        if not key.startswith("scheduleMessageOffset_")
    }


def test_counters_over_a_minute(peer: Peer) -> None:
    """What was put and pulled within the last minute is counted by topic and group."""
    clock = ManualClock()
    peer = Peer(a_broker(SimulatedHost(clock=clock)))
    peer.broker.stats.sample()
    for _ in range(6):
        peer.produce()
    peer.pull()
    clock.advance(10_000)
    peer.broker.stats.sample()
    clock.advance(10_000)
    peer.produce()
    peer.broker.stats.sample()
    key = {"statsName": "TOPIC_PUT_NUMS", "statsKey": TOPIC}
    minute = peer.ask(Code.VIEW_BROKER_STATS_DATA, key).content["statsMinute"]
    assert minute["sum"] == 7
    pulled = {"statsName": "GROUP_GET_NUMS", "statsKey": f"{TOPIC}@g"}
    assert peer.ask(Code.VIEW_BROKER_STATS_DATA, pulled).content["statsMinute"]["sum"] == 6
    missing = peer.ask(Code.VIEW_BROKER_STATS_DATA, {"statsName": "a", "statsKey": "b"})
    assert missing.remark == "The stats <a> <b> not exist"


def test_what_is_noted_first_took_ten_seconds() -> None:
    """As in Java: nothing was counted when the last note would have been taken."""
    clock = ManualClock()
    peer = Peer(a_broker(SimulatedHost(clock=clock)))
    for _ in range(4):
        peer.produce()
    peer.pull()
    peer.broker.stats.sample()
    key = {"statsName": "TOPIC_PUT_NUMS", "statsKey": TOPIC}
    assert peer.ask(Code.VIEW_BROKER_STATS_DATA, key).content["statsMinute"]["tps"] == 0.4
    assert peer.broker.stats.rate("GROUP_GET_NUMS", f"{TOPIC}@g") == 0.4
    clock.advance(10_000)
    peer.broker.stats.sample()
    assert peer.broker.stats.rate("GROUP_GET_NUMS", f"{TOPIC}@g") == 0.2


def test_a_request_that_nobody_knows(peer: Peer) -> None:
    """Codes that are not served get Java's answer."""
    answer = peer.ask(200072, {})
    assert (answer.code, answer.remark) == (3, " request type 200072 not supported")


def test_a_counter_is_there_as_soon_as_something_was_counted() -> None:
    """Not only after the next ten seconds; nothing is there of what nobody has done."""
    peer = Peer(a_broker())

    def there() -> list[str]:
        cluster = "DefaultCluster"
        keys = {
            "TOPIC_PUT_NUMS": TOPIC, "GROUP_GET_SIZE": f"{TOPIC}@g",
            "BROKER_PUT_NUMS": cluster, "BROKER_GET_NUMS": cluster,
        }  # fmt: skip
        return [
            name
            for name, key in keys.items()
            if peer.ask(Code.VIEW_BROKER_STATS_DATA, {"statsName": name, "statsKey": key}).code == 0
        ]

    peer.broker.stats.sample()
    assert there() == []
    peer.produce()
    assert there() == ["TOPIC_PUT_NUMS", "BROKER_PUT_NUMS"]
    peer.pull()
    assert len(there()) == 4


def test_an_expression_is_checked_before_it_is_used() -> None:
    """CHECK_CLIENT_CONFIG tells a client that its expression is none."""
    plain, filtering = a_broker(), a_broker(settings={"enablePropertyFilter": "true"})

    def check(broker: Broker, kind: str, text: str) -> int:
        data = {"clientId": "c", "subscriptionData": {"expressionType": kind, "subString": text}}
        return Peer(broker).ask(Code.CHECK_CLIENT_CONFIG, {}, json.dumps(data).encode()).code

    for nothing in (b"", b"null", b"{}"):
        assert Peer(plain).ask(Code.CHECK_CLIENT_CONFIG, {}, nothing).code == 0
    assert check(plain, "TAG", "a||b") == 0
    assert check(plain, "SQL92", "a > 1") == ResponseCode.SYSTEM_ERROR
    assert check(filtering, "SQL92", "a > 1") == 0
    assert check(filtering, "SQL92", "a >") == ResponseCode.SUBSCRIPTION_PARSE_FAILED
    assert check(filtering, "CLASS", "x") == ResponseCode.SUBSCRIPTION_PARSE_FAILED
