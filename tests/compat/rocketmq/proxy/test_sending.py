"""What gRPC clients send: stored as any client's message would be, or refused with a code."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from logstore.compat.rocketmq.lite.shards import bucket_of
from logstore.compat.rocketmq.proxy.codes import Code, MessageType
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.segments.rocketmq.messages.message import Message
from tests.compat.rocketmq.broker_peer import Peer as RemotingPeer
from tests.compat.rocketmq.proxy.proxy_stage import Peer, Stage


@pytest.fixture
def peer() -> Peer:
    """Return a producer."""
    peer = Peer(Stage())
    peer.produce_to("normal")
    return peer


def stored(peer: Peer, topic: str) -> list[Message]:
    """Return what a remoting client finds in all queues of a topic."""
    reader = RemotingPeer(peer.stage.broker)
    return [message for queue in range(4) for message in reader.messages(topic, queue)]


def test_a_message_is_stored_with_all_that_it_has(peer: Peer) -> None:
    """Tag, keys, properties, the client's id and host; and its type among the properties."""
    told = peer.send(
        peer.message("normal", b"v", {"x": "y"}, tag="A", keys=["k1", "k2"], trace_context="tc")
    )
    (entry,) = told["entries"]
    assert (told["status"]["code"], entry["status"]["code"]) == (Code.OK, Code.OK)
    (message,) = stored(peer, "normal")
    assert entry["message_id"] == message.unique_key
    assert (message.body, message.tags, message.keys) == (b"v", "A", ("k1", "k2"))
    known = message.properties
    assert (known["x"], known["TRACE_CONTEXT"], known["__BORNHOST"]) == ("y", "tc", "client.test")
    assert message.born_timestamp_ms == 1_700_000_000_000
    assert known["PGROUP"] == "normal"


def test_queues_take_turns(peer: Peer) -> None:
    """As a topic's messages without a group do."""
    for _ in range(8):
        peer.send(peer.message("normal"))
    assert [message.queue_id for message in stored(peer, "normal")] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_priority_decides_about_the_queue(peer: Peer) -> None:
    """And is stored with the message."""
    told = peer.send(peer.message("priority", kind=MessageType.PRIORITY, priority=2))
    assert told["status"]["code"] == Code.OK
    (message,) = stored(peer, "priority")
    assert (message.queue_id, message.properties["_SYS_MSG_PRIORITY_"]) == (2, "2")
    assert peer.send(peer.message("normal", priority=2))["status"]["code"] == (
        Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE
    )


def test_several_at_a_time(peer: Peer) -> None:
    """Go to one queue, and are answered as one."""
    told = peer.send(peer.message("normal", b"a"), peer.message("normal", b"b"))
    (entry,) = told["entries"]
    first, second = stored(peer, "normal")
    assert (first.body, second.body) == (b"a", b"b")
    assert first.queue_id == second.queue_id
    assert entry["message_id"] == f"{first.unique_key},{second.unique_key}"


def test_a_group_keeps_to_its_queue(peer: Peer) -> None:
    """That of the hash that Java's proxy uses."""
    for _ in range(3):
        peer.send(peer.message("fifo", kind=MessageType.FIFO, message_group="user-17"))
    found = stored(peer, "fifo")
    assert {message.queue_id for message in found} == {bucket_of("user-17", 4)}
    assert {message.properties["__SHARDINGKEY"] for message in found} == {"user-17"}


@pytest.mark.parametrize(
    ("group", "count", "queue"),
    [("a", 1, 0), ("a", 64, 29), ("a", 1000, 346), ("b", 8, 5), ("b", 64, 57), ("user-17", 64, 12),
     ("\u00c4", 4, 2), ("\u00c4", 1000, 874), ("message-group-0815", 1000, 253)],
)  # fmt: skip
def test_the_hash_of_groups(group: str, count: int, queue: int) -> None:
    """As Guava's, which Java's proxy asks."""
    assert bucket_of(group, count) == queue


def test_a_message_for_later() -> None:
    """Comes when it is due, and not before; until then its handle takes it back."""
    peer = Peer(Stage(has_wheel=True, recallMessageEnable="true"))
    peer.stage.let_pass(250)
    due_ms = peer.stage.proxy.now_ms() + 3_000
    due = {"seconds": due_ms // 1000}
    delayed = peer.message("delay", kind=MessageType.DELAY, delivery_timestamp=due)
    told = peer.send(delayed)
    recalled = peer.send(peer.message("delay", kind=MessageType.DELAY, delivery_timestamp=due))
    handle = recalled["entries"][0]["recall_handle"]
    answer = peer.ask("RecallMessage", topic={"name": "delay"}, recall_handle=handle)
    assert answer["status"]["code"] == Code.OK
    assert stored(peer, "delay") == []
    peer.stage.let_pass(6_000)
    (message,) = stored(peer, "delay")
    assert message.unique_key == told["entries"][0]["message_id"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("V1 delay nobody 1 k", "recall handle is invalid"),
        ("v1 delay nobody 1", "recall handle is invalid"),
        ("v1 delay nobody 1 ", "recall handle is invalid"),
        ("", "recall handle is invalid"),
        ("v1 delay broker-a 1 k", "recall failed, operation is forbidden"),
        ("v1 delay broker-a 1 k more", "recall failed, operation is forbidden"),
    ],
)
def test_what_nothing_is_taken_back_by(words: str, text: str) -> None:
    """A handle of another version or with less in it; any other its broker is asked about."""
    handle = base64.urlsafe_b64encode(words.encode()).decode()
    asked = {"topic": {"name": "delay"}, "recall_handle": handle}
    assert Peer(Stage()).ask("RecallMessage", **asked)["status"]["message"] == text


@pytest.mark.parametrize(("seconds", "after_ms"), [(3, 5000), (8, 10_000), (-5, 1000)])
def test_a_message_for_later_by_levels(seconds: int, after_ms: int) -> None:
    """With ``useDelayLevel`` it waits as long as the next longer level says, and at least 1 s."""
    peer = Peer(Stage(useDelayLevel="true"))
    due_s = peer.stage.proxy.now_ms() // 1000 + seconds
    due = {"seconds": due_s, "nanos": 0}
    sent = peer.send(peer.message("delay", kind=MessageType.DELAY, delivery_timestamp=due))
    assert sent["status"]["code"] == Code.OK
    peer.stage.let_pass(after_ms - 500)
    assert stored(peer, "delay") == []
    peer.stage.let_pass(1500)
    (message,) = stored(peer, "delay")
    assert message.unique_key == sent["entries"][0]["message_id"]


@pytest.mark.parametrize(
    ("changes", "code", "text"),
    [
        ({"body": b""}, Code.MESSAGE_BODY_EMPTY, "message body cannot be empty"),
        ({"body": b"x" * (4 * 1024 * 1024 + 1)}, Code.MESSAGE_BODY_TOO_LARGE, "the max 4194304"),
        ({"topic": "a b"}, Code.ILLEGAL_TOPIC, "contains illegal characters"),
        ({"topic": ""}, Code.ILLEGAL_TOPIC, "The specified topic is blank"),
        ({"topic": "t" * 128}, Code.ILLEGAL_TOPIC, "is longer than topic max length 127."),
        ({"topic": "TBW102"}, Code.ILLEGAL_TOPIC, "cannot access system topic"),
        ({"topic": "none"}, Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, "type is UNSPECIFIED"),
        ({"topic": "fifo"}, Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, "expected type is FIFO"),
        ({"tag": "a|b"}, Code.ILLEGAL_MESSAGE_TAG, "tag cannot contain '|'"),
        ({"tag": " "}, Code.ILLEGAL_MESSAGE_TAG, "sequence of whitespace"),
        ({"tag": "a\x01"}, Code.ILLEGAL_MESSAGE_TAG, "control character"),
        ({"keys": [" "]}, Code.ILLEGAL_MESSAGE_KEY, "sequence of whitespace"),
        ({"keys": ["a\x02"]}, Code.ILLEGAL_MESSAGE_KEY, "control character"),
        ({"properties": {"KEYS": "1"}}, Code.ILLEGAL_MESSAGE_PROPERTY_KEY, "used by system: KEYS"),
        ({"properties": {"a\x01": "1"}}, Code.ILLEGAL_MESSAGE_PROPERTY_KEY, "the key of property"),
        ({"properties": {"a": "\x01"}}, Code.ILLEGAL_MESSAGE_PROPERTY_KEY, "the value of"),
        ({"properties": {str(n): "" for n in range(129)}}, Code.MESSAGE_PROPERTIES_TOO_LARGE,
         "too many user properties, max is 128"),
        ({"properties": {"a": "x" * 20_000}}, Code.MESSAGE_PROPERTIES_TOO_LARGE, "16384"),
        ({"message_id": " "}, Code.ILLEGAL_MESSAGE_ID, "message id cannot be empty"),
        ({"topic": "mixed", "message_group": "g" * 64}, Code.ILLEGAL_MESSAGE_GROUP, "size 64"),
        ({"topic": "mixed", "delivery_timestamp": {"seconds": 1_800_000_000}},
         Code.ILLEGAL_DELIVERY_TIME, "max is 86400000"),
        ({"topic": "mixed", "kind": MessageType.TRANSACTION,
          "orphaned_transaction_recovery_duration": {"seconds": 3601}}, Code.BAD_REQUEST,
         "max transaction recovery time"),
        ({"tag": "\u3000"}, Code.ILLEGAL_MESSAGE_TAG, "sequence of whitespace"),
        ({"topic": "priority", "kind": MessageType.PRIORITY, "priority": -1},
         Code.INTERNAL_SERVER_ERROR, "The priority must be greater than or equal to 0"),
        ({"topic": "mixed", "delivery_timestamp": {"seconds": 1, "nanos": -1}},
         Code.INTERNAL_SERVER_ERROR, "Timestamp is not valid"),
        ({"topic": "mixed", "kind": MessageType.TRANSACTION,
          "orphaned_transaction_recovery_duration": {"seconds": 1, "nanos": -1}},
         Code.INTERNAL_SERVER_ERROR, "Nanos must have the same sign as seconds"),
    ],
)  # fmt: skip
def test_what_is_not_sent(peer: Peer, changes: dict[str, Any], code: Code, text: str) -> None:
    """Is refused with the code of Java's proxy, and nothing is stored."""
    fields: dict[str, Any] = {"topic": "normal", **changes}
    message = peer.message(**fields)
    told = peer.send(message)["status"]
    assert (told["code"], text in told["message"]) == (code, True), told
    assert stored(peer, "normal") == []


def test_what_no_message_is(peer: Peer) -> None:
    """Nothing, or messages of several topics."""
    assert peer.send()["status"]["code"] == Code.MESSAGE_CORRUPTED
    told = peer.send(peer.message("normal"), peer.message("mixed"))
    assert told["status"]["message"] == "topic in message is not same"
    told = peer.send(peer.message("normal", b""), peer.message("mixed"))
    assert told["status"]["message"] == "message body cannot be empty"  # one after the other


def test_messages_for_later_are_sent_one_by_one(peer: Peer) -> None:
    """Together they are refused, as by Java's client, whichever of them it is."""
    later = peer.message("mixed", delivery_timestamp={"seconds": 1})
    for messages in ([later, later], [peer.message("mixed"), later]):
        told = peer.send(*messages)["status"]
        assert told["code"] == Code.INTERNAL_SERVER_ERROR
        assert told["message"] == "Delayed messages are not supported for batching"
    assert stored(peer, "mixed") == []


@pytest.mark.parametrize(
    "born", [{"nanos": -1}, {"nanos": 1_000_000_000}, {"seconds": 253_402_300_800}]
)
def test_a_message_born_at_no_time_is_born_now(peer: Peer, born: dict[str, int]) -> None:
    """It is stored, and does not say when it was."""
    told = peer.send(peer.message("normal", born_timestamp=born))
    assert told["status"]["code"] == Code.OK, told
    (message,) = stored(peer, "normal")
    assert message.born_timestamp_ms == peer.stage.broker.host.clock.wall_ms()
    assert "BORN_TIMESTAMP" not in message.properties


def test_a_space_that_does_not_break_is_a_word(peer: Peer) -> None:
    """For Java it is no whitespace."""
    told = peer.send(peer.message("mixed", tag="\u00a0", keys=["\u202f"], message_id="\u2007"))
    assert told["status"]["code"] == Code.OK, told


def test_nobody_asks_without_a_name() -> None:
    """A client id is needed for everything."""
    told = Peer(Stage(), "").send()
    assert told["status"]["code"] == Code.CLIENT_ID_REQUIRED
    found: list[Any] = []
    Peer(Stage(), "").begin("ReceiveMessage").then(found.extend)
    assert [one.status.code for one in found] == [Code.CLIENT_ID_REQUIRED]


def test_what_the_broker_says_is_told(peer: Peer) -> None:
    """A topic that nobody may write to, a disk that is not quick enough."""
    broker = peer.stage.broker
    RemotingPeer(broker).ask(
        RequestCode.UPDATE_AND_CREATE_TOPIC,
        {"topic": "readable", "readQueueNums": 1, "writeQueueNums": 1, "perm": 4,
         "topicFilterType": "SINGLE_TAG", "order": "false"},
    )  # fmt: skip
    told = peer.send(peer.message("readable"))["status"]
    assert (told["code"], told["message"]) == (Code.FORBIDDEN, "no writable queue")
