"""What gRPC clients receive, acknowledge, put off and give up."""

from __future__ import annotations

import zlib
from typing import Any

import attrs
import pytest

from logstore.compat.rocketmq.proxy.codes import ClientType, Code, MessageType
from logstore.compat.rocketmq.proxy.schema import MESSAGES
from logstore.segments.rocketmq.messages.properties import UNIQUE_KEY
from tests.compat.rocketmq.broker_peer import Peer as RemotingPeer
from tests.compat.rocketmq.proxy.proxy_stage import GROUP, Peer, Stage, handle_of


@pytest.fixture
def stage() -> Stage:
    """Return a proxy before a broker."""
    return Stage(has_wheel=True)


@pytest.fixture
def consumer(stage: Stage) -> Peer:
    """Return a consumer that has asked once: a group begins at the end of its topic."""
    consumer = Peer(stage)
    consumer.consume("normal")
    for topic in ("normal", "fifo"):
        assert consumer.receive(topic) == []
    return consumer


@pytest.fixture
def producer(stage: Stage) -> Peer:
    """Return a producer."""
    producer = Peer(stage)
    producer.produce_to("normal")
    return producer


def bodies(messages: list[dict[str, Any]]) -> list[str]:
    """Return the bodies, in base64."""
    return [message["body"] for message in messages]


def test_a_priority_is_told(consumer: Peer, producer: Peer) -> None:
    """It is no property of the user's."""
    assert consumer.receive("priority") == []
    producer.send(producer.message("priority", kind=MessageType.PRIORITY, priority=3))
    (message,) = consumer.receive("priority")
    about = message["system_properties"]
    assert (about["priority"], about["message_type"]) == (3, MessageType.PRIORITY)
    assert message.get("user_properties", {}) == {}


def test_a_message_is_received_as_it_was_sent(consumer: Peer, producer: Peer) -> None:
    """With digest, times, hosts, its queue, and what acknowledges it."""
    told = producer.send(
        producer.message("normal", b"v", {"x": "y"}, tag="A", keys=["k1", "k2"], trace_context="tc")
    )
    (message,) = consumer.receive("normal")
    about = message.pop("system_properties")
    properties = {"x": "y", "TRACE_CONTEXT": "tc"}
    assert message == {"topic": {"name": "normal"}, "user_properties": properties, "body": "dg=="}
    handle, physical_offset = about.pop("receipt_handle").rsplit(" ", 1)
    assert len(handle.split(" ")) == 8
    assert physical_offset == "0"
    assert about == {
        "tag": "A",
        "keys": ["k1", "k2"],
        "message_id": told["entries"][0]["message_id"],
        "body_digest": {"type": 2, "checksum": "9E3669D19B675BD57058FD4664205D2A"},
        "body_encoding": 1,
        "message_type": 1,
        "born_timestamp": "2023-11-14T22:13:20Z",
        "born_host": "client.test",
        "store_timestamp": about["store_timestamp"],
        "store_host": "127.0.0.1:10911",
        "queue_offset": "0",
        "delivery_attempt": 1,
        "trace_context": "tc",
    }


def test_a_consumer_waits_for_messages(consumer: Peer, producer: Peer) -> None:
    """And is answered when one comes, or when its time is up."""
    found: list[Any] = []
    consumer.begin("ReceiveMessage", **consumer.receive_fields("normal")).then(found.append)
    consumer.stage.let_pass(2_000)
    assert found == []
    producer.send(producer.message("normal"))
    assert [one.WhichOneof("content") for one in found[0]] == [
        "status",
        "message",
        "delivery_timestamp",
    ]
    found.clear()
    began_ms = consumer.stage.proxy.now_ms()
    consumer.begin("ReceiveMessage", **consumer.receive_fields("normal")).then(found.append)
    consumer.stage.let_pass(4_000)
    assert found == []
    consumer.stage.let_pass(2_000)
    status, end = found[0]
    assert (status.status.code, status.status.message) == (Code.MESSAGE_NOT_FOUND, "no new message")
    assert end.delivery_timestamp.ToMilliseconds() - began_ms >= 4_900


def test_what_is_acknowledged_does_not_come_again(consumer: Peer, producer: Peer) -> None:
    """What is not, does, as the next attempt; the old handle is worth nothing then."""
    producer.send(producer.message("normal", b"done"))
    producer.send(producer.message("normal", b"again"))
    handles = {message["body"]: handle_of(message) for message in consumer.receive("normal")}
    assert consumer.acknowledge("normal", handles["ZG9uZQ=="])[0] == Code.OK
    consumer.stage.let_pass(20_000)
    (message,) = consumer.receive("normal")
    assert message["body"] == "YWdhaW4="
    assert message["topic"] == {"name": "normal"}
    assert message["system_properties"]["delivery_attempt"] == 2
    assert consumer.acknowledge("normal", handles["YWdhaW4="]) == (
        Code.INVALID_RECEIPT_HANDLE,
        "receipt handle is expired",
    )
    assert consumer.acknowledge("normal", handle_of(message))[0] == Code.OK
    consumer.stage.let_pass(60_000)
    assert consumer.receive("normal") == []


def test_a_message_is_put_off(consumer: Peer, producer: Peer) -> None:
    """It comes when that time is over; the new handle acknowledges it."""
    producer.send(producer.message("normal"))
    (message,) = consumer.receive("normal")
    told = consumer.ask(
        "ChangeInvisibleDuration", group={"name": GROUP}, topic={"name": "normal"},
        receipt_handle=handle_of(message), invisible_duration={"seconds": 60}, message_id="m",
    )  # fmt: skip
    assert told["status"]["code"] == Code.OK
    consumer.stage.let_pass(30_000)
    assert consumer.receive("normal") == []
    assert consumer.acknowledge("normal", told["receipt_handle"])[0] == Code.OK
    consumer.stage.let_pass(60_000)
    assert consumer.receive("normal") == []


def test_tags_choose(consumer: Peer, producer: Peer) -> None:
    """What the consumer does not want is not seen again."""
    for tag in ("A", "B", "C"):
        producer.send(producer.message("normal", tag.encode(), tag=tag))
    wanted = {"filter_expression": {"type": 1, "expression": "A||C"}}
    assert sorted(bodies(consumer.receive("normal", **wanted))) == ["QQ==", "Qw=="]
    sql = {"filter_expression": {"type": 2, "expression": "TAGS = 'Z'"}}
    assert consumer.receive("normal", **sql) == []


def test_one_at_a_time_of_a_group_in_order(stage: Stage, producer: Peer) -> None:
    """A consumer of a group in order gets the next ones when it is through with those before."""
    config = stage.broker.groups.require(GROUP)
    stage.broker.groups.put(attrs.evolve(config, is_consume_message_orderly=True))
    consumer = Peer(stage)
    settings = consumer.consume("fifo", ClientType.PUSH_CONSUMER)
    assert settings["settings"]["subscription"]["fifo"] is True
    assert consumer.receive("fifo") == []
    for body in (b"1", b"2"):
        producer.send(producer.message("fifo", body, kind=MessageType.FIFO, message_group="g"))
    first = consumer.receive("fifo", batch_size=1)
    assert bodies(first) == ["MQ=="]
    assert first[0]["system_properties"]["message_group"] == "g"
    assert consumer.receive("fifo", batch_size=1) == []
    stage.let_pass(15_000)
    (again,) = consumer.receive("fifo", batch_size=1)
    assert (again["body"], again["system_properties"]["delivery_attempt"]) == ("MQ==", 2)
    assert consumer.acknowledge("fifo", handle_of(again))[0] == Code.OK
    assert bodies(consumer.receive("fifo", batch_size=1)) == ["Mg=="]
    told = consumer.ask("QueryAssignment", topic={"name": "fifo"}, group={"name": GROUP})
    ids = [one["message_queue"].get("id", 0) for one in told["assignments"]]
    assert ids == [0, 1, 2, 3]


def test_a_message_is_given_up(consumer: Peer, producer: Peer) -> None:
    """It goes to the group's dead letters, and does not come again."""
    producer.send(producer.message("normal", b"dead"))
    (message,) = consumer.receive("normal")
    told = consumer.ask(
        "ForwardMessageToDeadLetterQueue", group={"name": GROUP}, topic={"name": "normal"},
        receipt_handle=handle_of(message), message_id=message["system_properties"]["message_id"],
        delivery_attempt=1, max_delivery_attempts=1,
    )  # fmt: skip
    assert told["status"]["code"] == Code.OK
    (dead,) = RemotingPeer(consumer.stage.broker).messages(f"%DLQ%{GROUP}")
    assert dead.body == b"dead"
    consumer.stage.let_pass(60_000)
    assert consumer.receive("normal") == []


def test_what_fails_too_often_is_given_up(stage: Stage, producer: Peer) -> None:
    """As often as the group says, by the proxy itself."""
    config = stage.broker.groups.require(GROUP)
    stage.broker.groups.put(attrs.evolve(config, retry_times_max=1))
    consumer = Peer(stage)
    assert consumer.consume("normal")["settings"]["backoff_policy"]["max_attempts"] == 2
    assert consumer.receive("normal") == []
    producer.send(producer.message("normal", b"bad"))
    for attempt in (1, 2):
        (message,) = consumer.receive("normal", invisible_duration={"seconds": 10})
        assert message["system_properties"]["delivery_attempt"] == attempt
        stage.let_pass(12_000)
    assert consumer.receive("normal") == []
    (dead,) = RemotingPeer(stage.broker).messages(f"%DLQ%{GROUP}")
    assert dead.body == b"bad"


def test_the_time_of_a_slow_consumer_is_prolonged(stage: Stage, producer: Peer) -> None:
    """While it lives; its first handle still acknowledges the message."""
    consumer = Peer(stage)
    consumer.consume("normal", ClientType.PUSH_CONSUMER)
    assert consumer.receive("normal", auto_renew=True) == []
    producer.send(producer.message("normal", b"slow"))
    (message,) = consumer.receive("normal", auto_renew=True)
    other = Peer(stage)
    other.consume("normal")
    for _ in range(4):
        stage.let_pass(55_000)
        consumer.ask("Heartbeat", client_type=2, group={"name": GROUP})
        assert other.receive("normal") == []
    assert consumer.acknowledge("normal", handle_of(message))[0] == Code.OK
    stage.let_pass(400_000)
    assert other.receive("normal") == []


def test_the_messages_of_who_leaves_are_others_soon(stage: Stage, producer: Peer) -> None:
    """A second later, and not after the minute that they were invisible for."""
    consumer, other = Peer(stage), Peer(stage)
    consumer.consume("normal", ClientType.PUSH_CONSUMER)
    other.consume("normal")
    assert consumer.receive("normal", auto_renew=True) == []
    producer.send(producer.message("normal", b"left"))
    assert len(consumer.receive("normal", auto_renew=True)) == 1
    told = consumer.ask("NotifyClientTermination", group={"name": GROUP})
    assert told["status"]["code"] == Code.OK
    stage.let_pass(3_000)
    assert bodies(other.receive("normal")) == ["bGVmdA=="]


@pytest.mark.parametrize("is_in_order", [False, True])
def test_what_a_client_gets_that_has_hung_up(
    stage: Stage, producer: Peer, *, is_in_order: bool
) -> None:
    """Is others' soon (they wait 20 s), not after the minute, in its place, not prolonged."""
    config = stage.broker.groups.require(GROUP)
    stage.broker.groups.put(attrs.evolve(config, is_consume_message_orderly=is_in_order))
    consumer, other = Peer(stage), Peer(stage)
    consumer.consume("fifo", ClientType.PUSH_CONSUMER)
    other.consume("fifo")
    assert consumer.receive("fifo", auto_renew=True) == []
    for body in (b"1", b"2"):
        producer.send(producer.message("fifo", body, kind=MessageType.FIFO, message_group="g"))
    request = MESSAGES["ReceiveMessageRequest"](
        **consumer.receive_fields("fifo", auto_renew=True, batch_size=1)
    )
    answers: list[Any] = []
    stage.proxy.serve("ReceiveMessage", consumer.caller, request).then(answers.extend)
    stage.proxy.give_back("ReceiveMessage", consumer.caller, request, answers)
    assert stage.proxy.clients[consumer.client_id].renewed == {}
    if not is_in_order:
        assert bodies(other.receive("fifo")) == ["Mg=="]
    again = other.receive("fifo")
    assert bodies(again) == (["MQ==", "Mg=="] if is_in_order else ["MQ=="])
    assert again[0]["system_properties"]["delivery_attempt"] == 2


@pytest.mark.parametrize("is_listening", [False, True])
def test_the_messages_of_who_is_gone(stage: Stage, producer: Peer, *, is_listening: bool) -> None:
    """Are others' once it has not been heard of for two minutes, not prolonged for hours."""
    consumer, other = Peer(stage), Peer(stage)
    consumer.consume("normal", ClientType.PUSH_CONSUMER)
    other.consume("normal")
    assert consumer.receive("normal", auto_renew=True) == []
    producer.send(producer.message("normal", b"left"))
    assert len(consumer.receive("normal", auto_renew=True)) == 1
    if not is_listening:  # else it hangs, or its machine has gone without a word
        consumer.stop_listening()
    for _ in range(14):
        stage.let_pass(10_000)
        other.ask("Heartbeat", client_type=3, group={"name": GROUP})
    assert bodies(other.receive("normal")) == ["bGVmdA=="]


def test_compressed_bodies_stay_so(consumer: Peer, producer: Peer) -> None:
    """The client knows by the encoding."""
    producer.send(producer.message("normal", zlib.compress(b"v" * 100), body_encoding=2))
    (message,) = consumer.receive("normal")
    assert message["system_properties"]["body_encoding"] == 2


def test_messages_of_other_clients(consumer: Peer) -> None:
    """Without a unique key the id is that of the store."""
    sender = RemotingPeer(consumer.stage.broker)
    answer = sender.produce(b"old", "normal", 1)
    (message,) = consumer.receive("normal")
    assert message["body"] == "b2xk"
    known = {UNIQUE_KEY, *message.get("user_properties", {})}
    assert UNIQUE_KEY in known
    assert message["system_properties"]["message_id"]
    assert answer.code == 0


@pytest.mark.parametrize(
    ("changes", "code", "text"),
    [
        ({"invisible_duration": {"seconds": 5}}, Code.ILLEGAL_INVISIBLE_TIME, "min is 10000"),
        ({"invisible_duration": {"seconds": 50_000}}, Code.ILLEGAL_INVISIBLE_TIME, "43200000"),
        ({"message_queue": {"topic": {"name": "none"}}}, Code.TOPIC_NOT_FOUND, "CODE: 17"),
        ({"message_queue": {"topic": {"name": ""}}}, Code.ILLEGAL_TOPIC, "is blank"),
        ({"group": {"name": "a b"}}, Code.ILLEGAL_CONSUMER_GROUP, "the specified group[a b]"),
        ({"group": {"name": "g" * 121}}, Code.ILLEGAL_CONSUMER_GROUP,
         f"the specified group[{'g' * 121}] is longer than group max length: 120."),
        ({"invisible_duration": {"seconds": 2**62}}, Code.INTERNAL_SERVER_ERROR,
         f"Duration is not valid. See proto definition for valid values. Seconds ({2**62}) must"),
        ({"group": {"name": "CID_RMQ_SYS_X"}}, Code.ILLEGAL_CONSUMER_GROUP, "system consumer"),
    ],
)  # fmt: skip
def test_what_is_not_received(
    consumer: Peer, changes: dict[str, Any], code: Code, text: str
) -> None:
    """Is refused with the code of Java's proxy."""
    found, told = consumer.refusal("normal", **changes)
    assert (found, text in told) == (code, True), told


def test_a_client_that_does_not_wait_long_enough(consumer: Peer) -> None:
    """Is told so, and not left with an answer that it does not hear."""
    consumer.remaining_ms = 1_000
    assert consumer.refusal("normal")[0] == Code.ILLEGAL_POLLING_TIME
    for older in ("5.0.2", "4.9.8", ""):  # which do not know that code
        consumer.version = older
        assert consumer.refusal("normal")[0] == Code.BAD_REQUEST


def test_handles_that_are_none(consumer: Peer) -> None:
    """Are refused one by one."""
    for handle, code in (
        ("x", Code.INTERNAL_SERVER_ERROR),
        ("1 2 3 4 0 broker-a 6 7 eight", Code.INTERNAL_SERVER_ERROR),
        ("1 2 3 4 0 broker-a 6 7 8_0", Code.INTERNAL_SERVER_ERROR),
        ("1 2 3 2147483648 0 broker-a 6 7", Code.INTERNAL_SERVER_ERROR),
        ("9223372036854775808 2 3 4 0 broker-a 6 7", Code.INTERNAL_SERVER_ERROR),
        ("1 2 3 4 5 6 7 8", Code.INVALID_RECEIPT_HANDLE),
        ("1 2 3 4 0 broker-a 6 7   ", Code.INVALID_RECEIPT_HANDLE),
    ):
        assert consumer.acknowledge("normal", handle)[0] == code
    told = consumer.ask("AckMessage", group={"name": GROUP}, topic={"name": "normal"}, entries=[])
    assert told["status"]["code"] == Code.INTERNAL_SERVER_ERROR
