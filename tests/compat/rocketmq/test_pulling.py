"""Pulls: what they get, how long they wait, what they are refused."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import TOPIC, Peer, a_broker, decoded, sent_fields
from tests.compat.rocketmq.frames import answers, joined, request

PULL = RequestCode.PULL_MESSAGE


def heartbeat(*topics: str, group: str = "g", client_id: str = "c1", **changes: Any) -> bytes:
    """Return the body of a heart beat of one consumer."""
    subscriptions: list[dict[str, Any]] = [
        {"topic": topic, "subString": "*", "subVersion": 1, "tagsSet": [], "codeSet": [], **changes}
        for topic in topics
    ]
    consumer: dict[str, Any] = {
        "groupName": group,
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
        "subscriptionDataSet": subscriptions,
    }
    beat: dict[str, Any] = {
        "clientID": client_id,
        "consumerDataSet": [consumer],
        "producerDataSet": [],
    }
    return orjson.dumps(beat)


def test_a_pull_gets_messages_in_order() -> None:
    """The answer holds the messages as they stand in the log, and says where to go on."""
    peer = Peer(a_broker())
    for number in range(40):
        peer.produce(b"%d" % number)
    answer = peer.pull(queue_offset=3)
    assert (answer.code, answer.remark) == (0, "FOUND")
    assert answer.fields == {
        "suggestWhichBrokerId": "0",
        "nextBeginOffset": "35",
        "minOffset": "0",
        "maxOffset": "40",
        "topicSysFlag": "0",
        "groupSysFlag": "0",
    }
    assert [message.body for message in decoded(answer.body)] == [
        b"%d" % number for number in range(3, 35)
    ]


@pytest.mark.parametrize("size_bytes", [10, 3000, 30_000])
def test_long_and_short_messages_come_whole(size_bytes: int) -> None:
    """Whether an answer is copied or leaves as a run of a file, it is the same."""
    peer = Peer(a_broker())
    bodies = [bytes([number]) * size_bytes for number in range(6)]
    for body in bodies:
        peer.produce(body)
        peer.produce(b"other queue", queue_id=1)
    assert [message.body for message in peer.messages()] == bodies


NOT_FOUND = [
    (0, "fresh", 0, 19, "NO_MESSAGE_IN_QUEUE", "0"),
    (0, "fresh", 5, 21, "NO_MESSAGE_IN_QUEUE", "0"),
    (0, TOPIC, 2, 19, "OFFSET_OVERFLOW_ONE", "2"),
    (0, TOPIC, 9, 21, "OFFSET_OVERFLOW_BADLY", "2"),
]


@pytest.mark.parametrize(("queue_id", "topic", "start", "code", "remark", "begin"), NOT_FOUND)
def test_where_there_is_nothing(
    queue_id: int, topic: str, start: int, code: int, remark: str, begin: str
) -> None:
    """The answer says why there is nothing, and where to go on."""
    broker = a_broker()
    peer = Peer(broker)
    peer.produce()
    peer.produce()
    broker.topics.ensure("fresh", 4)
    broker.store.consume_queues.find_or_create("fresh", 0)
    answer = peer.pull(topic, queue_id, start)
    assert (answer.code, answer.remark) == (code, remark)
    assert (answer.fields or {})["nextBeginOffset"] == begin


def test_a_pull_waits_for_a_message() -> None:
    """A pull behind the last message is answered when the next one comes, at once."""
    broker = a_broker()
    consumer, producer = Peer(broker), Peer(broker, 40002)
    producer.produce(b"first")
    opaque = consumer.send(PULL, consumer.pull_fields(TOPIC, 0, 1, "g"))
    assert consumer.answer_to(opaque) is None
    producer.produce(b"elsewhere", queue_id=1)
    assert consumer.answer_to(opaque) is None
    producer.produce(b"second")
    answer = consumer.answer_to(opaque)
    assert answer is not None
    assert [message.body for message in decoded(answer.body)] == [b"second"]


@pytest.mark.parametrize("is_known_kind", [False, True])
def test_who_waits_is_answered_before_the_sender(is_known_kind: bool) -> None:
    """The answer to a pull that a send ends leaves with the same read, in front of the sender's."""
    broker = a_broker()
    sender, reader, other = Peer(broker), Peer(broker, 40002), Peer(broker, 40003)
    for number in range(3 if is_known_kind else 1):  # the like of a third is put in a run
        sender.produce(b"early", properties=f"UNIQ_KEY\x01{number:032X}\x02")
    position = len(sender.messages())
    broker.defers_work = True
    waiting = reader.send(PULL, reader.pull_fields(TOPIC, 0, position, "readers"))
    elsewhere = other.send(PULL, other.pull_fields(TOPIC, 1, 0, "readers"))
    fields = sent_fields(TOPIC, 0, f"UNIQ_KEY\x01{9:032X}\x02")
    data = request(RequestCode.SEND_MESSAGE_V2, fields, b"late", opaque=99)
    reader.connection.on_output = lambda: order.append("reader")
    order: list[str] = []
    assert [one.opaque for one in answers(joined(sender.connection.feed(data)))] == [99]
    assert order == ["reader"]
    answered = answers(joined(reader.connection.output))
    assert [(one.opaque, one.code) for one in answered] == [(waiting, ResponseCode.SUCCESS)]
    assert [message.body for message in decoded(answered[0].body)] == [b"late"]
    assert other.answer_to(elsewhere) is None


def test_a_message_that_was_awaited_is_found_by_its_key() -> None:
    """Whoever asks finds it, although its keys come into the index after the answers."""
    broker = a_broker()
    sender, reader = Peer(broker), Peer(broker, 40002)
    for number in range(3):
        sender.produce(b"early", properties=f"UNIQ_KEY\x01{number:032X}\x02")
    position = len(sender.messages())
    broker.defers_work = True
    reader.send(PULL, reader.pull_fields(TOPIC, 0, position, "readers"))
    broker.timers.run()
    sender.produce(b"late", properties=f"UNIQ_KEY\x01{9:032X}\x02")
    known = broker.store.index.end_physical_offset
    assert known < broker.store.dispatching.reput_from - 200
    span = {"beginTimestamp": "0", "endTimestamp": str(2**62), "maxNum": "9", "topic": TOPIC}
    found = sender.ask(RequestCode.QUERY_MESSAGE, {**span, "key": f"{9:032X}"})
    assert [message.body for message in decoded(found.body)] == [b"late"]
    assert broker.store.index.end_physical_offset > known


def test_what_nobody_waits_for_is_dispatched_after_the_answer() -> None:
    """A send into a queue that no pull waits for is answered first, and can be pulled then."""
    broker = a_broker()
    sender, reader = Peer(broker), Peer(broker, 40002)
    sender.produce(b"early")
    sender.messages()
    broker.defers_work = True
    reader.send(PULL, reader.pull_fields(TOPIC, 1, 0, "readers"))
    sender.produce(b"late")
    assert broker.store.dispatching.behind_bytes > 0
    broker.timers.run()
    assert broker.store.dispatching.behind_bytes == 0


def test_a_pull_is_given_up_in_time() -> None:
    """After the client's time without a message the answer is 19, and it is the only one."""
    clock = ManualClock()
    broker = a_broker(SimulatedHost(clock=clock))
    peer = Peer(broker)
    peer.produce()
    fields = peer.pull_fields(TOPIC, 0, 1, "g", suspendTimeoutMillis=7000)
    opaque = peer.send(PULL, fields)
    clock.advance(6999)
    broker.timers.run()
    assert peer.answer_to(opaque) is None
    clock.advance(1)
    broker.timers.run()
    answer = peer.answer_to(opaque)
    assert answer is not None
    assert (answer.code, answer.remark) == (19, "OFFSET_OVERFLOW_ONE")
    peer.produce()
    assert peer.answer_to(opaque) is None


def test_without_long_polling_a_pull_waits_for_a_second() -> None:
    """longPollingEnable=false makes the client's time shortPollingTimeMills."""
    clock = ManualClock()
    broker = a_broker(SimulatedHost(clock=clock), {"longPollingEnable": "false"})
    peer = Peer(broker)
    peer.produce()
    opaque = peer.send(PULL, peer.pull_fields(TOPIC, 0, 1, "g"))
    clock.advance(1000)
    broker.timers.run()
    assert peer.answer_to(opaque) is not None


def test_a_pull_of_other_tags_goes_on_waiting() -> None:
    """Messages with other tags wake nobody; the scan lets the consumer pass them over."""
    clock = ManualClock()
    broker = a_broker(SimulatedHost(clock=clock))
    broker.start_housekeeping()
    consumer, producer = Peer(broker), Peer(broker, 40002)
    producer.produce()
    fields = consumer.pull_fields(TOPIC, 0, 1, "g", subscription="a || b")
    opaque = consumer.send(PULL, fields)
    producer.produce(properties="TAGS\x01c\x02")
    assert consumer.answer_to(opaque) is None
    for _ in range(51):
        clock.advance(100)
        broker.timers.run()
    answer = consumer.answer_to(opaque)
    assert answer is not None
    assert (answer.code, answer.remark) == (20, "NO_MATCHED_MESSAGE")
    assert (answer.fields or {})["nextBeginOffset"] == "2"


def test_only_wanted_tags_are_pulled() -> None:
    """Tags that the subscription names, and no others, are handed out."""
    peer = Peer(a_broker())
    for tag in ("a", "b", "c"):
        peer.produce(tag.encode(), properties=f"TAGS\x01{tag}\x02")
    answer = peer.pull(subscription="a||c")
    assert [message.body for message in decoded(answer.body)] == [b"a", b"c"]
    assert (answer.fields or {})["nextBeginOffset"] == "3"


def test_a_pull_commits_in_passing() -> None:
    """With bit 1 the offset that the client names is committed, once, and not by the wake."""
    broker = a_broker()
    peer = Peer(broker)
    peer.produce()
    peer.send(PULL, peer.pull_fields(TOPIC, 0, 1, "g", sysFlag=7, commitOffset=1))
    offsets = broker.store.consumer_offsets
    assert offsets.query("g", TOPIC, 0) == 1
    offsets.commit("g", TOPIC, 0, 0)
    peer.produce()
    assert offsets.query("g", TOPIC, 0) == 0


@pytest.mark.parametrize("name", ["queueId", "commitOffset", "maxMsgBytes", "requestSource"])
@pytest.mark.parametrize("value", [" 0", "0_1", "9" * 19])
def test_a_number_that_java_cannot_read_is_refused_first(name: str, value: str) -> None:
    """Before its group comes to be."""
    peer = Peer(a_broker())
    peer.produce()
    fields = peer.pull_fields(TOPIC, 0, 0, "g", **{name: value})
    answer = peer.ask(PULL, fields)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert name in (answer.remark or "")
    assert peer.broker.store.subscription_groups.get("g") is None


@pytest.mark.parametrize(("wanted", "code"), [("", 23), ("TagA", 20), ("*", 0)])
def test_an_expression_of_an_empty_type(wanted: str, code: int) -> None:
    """It is not read as tags, so that nothing matches but a star; no expression is an error."""
    peer = Peer(a_broker())
    peer.produce()
    fields = peer.pull_fields(
        TOPIC, 0, 0, "g", sysFlag=4, subscription=wanted, expressionType="", suspendTimeoutMillis=0
    )
    assert peer.ask(PULL, fields).code == code


def test_a_lost_connection_pulls_no_more() -> None:
    """The pull of a client that has hung up is forgotten."""
    broker = a_broker()
    consumer, producer = Peer(broker), Peer(broker, 40002)
    producer.produce()
    consumer.send(PULL, consumer.pull_fields(TOPIC, 0, 1, "g"))
    consumer.hang_up()
    producer.produce()
    assert (len(broker.held_pulls), consumer.heard) == (0, [])


def test_a_pull_without_subscription_needs_a_heart_beat() -> None:
    """What a group said of itself decides: unknown group, unknown topic, too old a version."""
    broker = a_broker()
    peer = Peer(broker)
    peer.produce()
    assert _bare(peer).code == ResponseCode.SUBSCRIPTION_NOT_EXIST
    peer.ask(RequestCode.HEART_BEAT, {}, heartbeat("other"))
    assert _bare(peer).remark.startswith("the consumer's subscription not exist")
    peer.ask(RequestCode.HEART_BEAT, {}, heartbeat("other", TOPIC))
    assert _bare(peer).code == 0
    assert _bare(peer, subVersion=2).code == ResponseCode.SUBSCRIPTION_NOT_LATEST


def _bare(peer: Peer, **fields: object) -> Any:
    asked = peer.pull_fields(TOPIC, 0, 0, "g", sysFlag=0, **fields)
    del asked["subscription"]
    return peer.ask(PULL, asked)


def test_what_may_not_be_pulled() -> None:
    """Unknown topics, queues that are none, groups that are off: code and remark say so."""
    broker = a_broker(settings={"autoCreateSubscriptionGroup": "false"})
    peer = Peer(broker)
    peer.produce()
    answer = peer.pull()
    assert answer.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    broker.update_settings({"autoCreateSubscriptionGroup": "true"})
    assert peer.pull("nowhere").code == ResponseCode.TOPIC_NOT_EXIST
    answer = peer.pull(queue_id=4)
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert answer.remark == (
        "queueId[4] is illegal, topic:[orders] topicConfig.readQueueNums:[4] "
        "consumer:[/127.0.0.1:40001]"
    )
    answer = peer.pull(subscription="||")
    assert answer.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
    answer = peer.pull(subscription="a > 1", expressionType="SQL92")
    assert (answer.code, answer.remark) == (
        1,
        "The broker does not support consumer to filter message by SQL92",
    )
    broker.groups.forbid("g", TOPIC, is_forbidden=True)
    peer.ask(RequestCode.HEART_BEAT, {}, heartbeat(TOPIC))
    answer = _bare(peer)
    assert (answer.code, answer.fields) == (ResponseCode.NO_PERMISSION, {"forbiddenType": "5"})


def test_an_expression_filters_messages() -> None:
    """With enablePropertyFilter a pull gets what its expression is true of."""
    peer = Peer(a_broker(settings={"enablePropertyFilter": "true"}))
    for number in range(4):
        peer.produce(b"%d" % number, properties=f"n\x01{number}\x02")
    answer = peer.pull(subscription="n > 1", expressionType="SQL92")
    assert [message.body for message in decoded(answer.body)] == [b"2", b"3"]


def test_an_expression_of_a_heart_beat_filters_messages() -> None:
    """Registered by a heart beat it counts for pulls that bring none; of old ones it does not."""
    peer = Peer(a_broker(settings={"enablePropertyFilter": "true"}))
    for number in range(4):
        peer.produce(b"%d" % number, properties=f"n\x01{number}\x02")
    body = heartbeat(TOPIC, expressionType="SQL92", subString="n BETWEEN 1 AND 2")
    peer.ask(RequestCode.HEART_BEAT, {}, body)
    answer = _bare(peer)
    assert [message.body for message in decoded(answer.body)] == [b"1", b"2"]


def test_a_reset_is_told_to_the_next_pull() -> None:
    """After a reset on the server the next pull is sent elsewhere, and commits do not count."""
    peer = Peer(a_broker())
    for _ in range(3):
        peer.produce()
    commit = {"consumerGroup": "g", "topic": TOPIC, "queueId": 0, "commitOffset": 3}
    peer.pull()
    peer.ask(RequestCode.UPDATE_CONSUMER_OFFSET, commit)
    reset = {
        "topic": TOPIC,
        "group": "g",
        "timestamp": 0,
        "isForce": "true",
        "queueId": 0,
        "offset": 1,
    }
    assert peer.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, reset).code == 0
    answer = peer.ask(RequestCode.UPDATE_CONSUMER_OFFSET, commit)
    assert answer.remark == "Offset has been previously reset"
    answer = peer.pull(queue_offset=3)
    assert (answer.code, answer.remark) == (21, "OFFSET_RESET")
    assert (answer.fields or {})["nextBeginOffset"] == "1"
    assert peer.pull(queue_offset=1).code == 0
    assert peer.ask(RequestCode.UPDATE_CONSUMER_OFFSET, commit).remark is None


def test_a_group_that_reads_slowly_may_read_no_more() -> None:
    """Where that is set, every three minutes it is looked who was too far behind at last."""
    clock = ManualClock()
    broker = a_broker(SimulatedHost(clock=clock), {"disableConsumeIfConsumerReadSlowly": "true"})
    broker.start_housekeeping()
    peer = Peer(broker)

    def codes_after(minutes: int) -> list[int]:
        for _ in range(minutes * 60):
            clock.advance(1000)
            broker.timers.run()
        return [read_one(group, place) for place, group in enumerate(("slow", "quick", "gone"))]

    def read_one(group: str, queue_offset: int = 0) -> int:
        return peer.pull(queue_offset=queue_offset, group=group, maxMsgNums=1).code

    for _ in range(3):
        peer.produce(bytes(1000))
    assert codes_after(3) == [0, 0, 0]
    assert codes_after(3) == [0, 0, 0]
    broker.update_settings({"consumerFallbehindThreshold": "2500"})
    assert read_one("gone") == 0
    peer.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, {"groupName": "gone"})
    refused: int = ResponseCode.NO_PERMISSION
    assert codes_after(3) == [refused, 0, 0]
    answer = peer.pull(group="slow")
    assert (answer.remark, answer.fields) == (
        "subscription group no permission, slow",
        {"forbiddenType": "2"},
    )
    broker.update_settings({"disableConsumeIfConsumerReadSlowly": "false"})
    assert read_one("quick") == 0
    assert codes_after(3) == [refused, 0, 0]


def test_only_what_is_noted_makes_a_group_slow() -> None:
    """Without notes of how far groups are behind none is switched off; pops are noted, too."""
    settings = {"disableConsumeIfConsumerReadSlowly": "true", "consumerFallbehindThreshold": "0"}
    settings |= {"diskFallRecorded": "false", "timerWheelEnable": "true"}
    broker = a_broker(settings=settings)
    peer = Peer(broker)
    peer.produce()
    fields = {
        "consumerGroup": "g", "topic": TOPIC, "queueId": -1, "maxMsgNums": 1, "pollTime": 0,
        "invisibleTime": 10_000, "bornTime": broker.host.clock.wall_ms(), "initMode": 0,
    }  # fmt: skip
    assert peer.ask(RequestCode.POP_MESSAGE, fields).code == 0
    assert broker.stats.behind_bytes == {}
    broker.update_settings({"diskFallRecorded": "true"})
    peer.produce()
    assert peer.ask(RequestCode.POP_MESSAGE, fields).code == 0
    assert broker.stats.behind_bytes[TOPIC, "g", 0] > 0
