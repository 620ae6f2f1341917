"""Lite topics at the proxy: producers of them, and consumers that say what they read."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.rocketmq.groups.group_changes import read_group
from logstore.compat.rocketmq.proxy.codes import ClientType, Code, MessageType
from logstore.compat.rocketmq.proxy.failures import ProxyError
from logstore.segments.rocketmq.tables.topics import TopicConfig
from tests.compat.rocketmq.proxy.proxy_stage import GROUP, Peer, Stage
from tests.compat.rocketmq.proxy.test_all_brokers import ClusterStage, FarPeer

PARENT, BIND = "parent", "lite.bind.topic"
ADD, REMOVE, ALL = 0, 1, 2
ODD = "can only contain alphanumeric characters, hyphens(-), and underscores(_)"


def a_stage(**attributes: str) -> Stage:
    """Return a stage with a parent and a group that is bound to it."""
    stage = Stage(enableLmq="true", enableMultiDispatch="true")
    stage.broker.topics.put(TopicConfig(PARENT, 4, 4, attributes={"message.type": "LITE"}))
    put_group(stage, GROUP, {"lite.bind.topic": PARENT, **attributes})
    return stage


def put_group(stage: Stage, group: str, attributes: dict[str, str]) -> None:
    """Make a group."""
    stage.broker.groups.put(read_group({"groupName": group, "attributes": attributes}))


def a_consumer(stage: Stage) -> Peer:
    """Return a client that reads lite topics."""
    peer = Peer(stage)
    told = peer.consume(PARENT, ClientType.LITE_PUSH_CONSUMER)
    assert told["status"]["code"] == Code.OK
    return peer


def lite_message(peer: Peer, lite_topic: str, body: bytes = b"body", **about: Any) -> Any:
    """Return a message to a lite topic."""
    kind = MessageType.LITE
    return peer.message(PARENT, body, kind=kind, lite_topic=lite_topic, **about)


def sync(peer: Peer, action: int, *lite_topics: str, **more: Any) -> tuple[int, str]:
    """Say what a client reads; return code and text."""
    fields = {
        "action": action, "topic": {"name": PARENT}, "group": {"name": GROUP},
        "lite_topic_set": lite_topics, **more,
    }  # fmt: skip
    status = peer.ask("SyncLiteSubscription", **fields)["status"]
    return status["code"], status["message"]


def sent_to(peer: Peer, *lite_topics: str) -> None:
    """Send a message to each lite topic."""
    for lite_topic in lite_topics:
        told = peer.send(lite_message(peer, lite_topic, lite_topic.encode()))
        assert told["status"]["code"] == Code.OK, told


def test_a_consumer_receives_what_it_reads() -> None:
    """With the lite topic, its place there, and a handle that acknowledges it."""
    stage = a_stage()
    producer, consumer = Peer(stage), a_consumer(stage)
    sent_to(producer, "other", "chat")
    assert sync(consumer, ADD, "chat", offset_option={"policy": 1})[0] == Code.OK
    (message,) = consumer.receive(PARENT)
    about = message["system_properties"]
    assert (about["lite_topic"], about["queue_offset"]) == ("chat", "0")
    assert about["message_type"] == MessageType.LITE
    entry = {
        "message_id": "m", "receipt_handle": about["receipt_handle"], "lite_topic": "chat",
    }  # fmt: skip
    fields = {"group": {"name": GROUP}, "topic": {"name": PARENT}, "entries": [entry]}
    told = consumer.ask("AckMessage", **fields)
    assert told["status"]["code"] == Code.OK
    assert stage.broker.store.consumer_offsets.query(GROUP, "%LMQ%$parent$chat", 0) == 1


def test_a_consumer_reads_something_no_longer() -> None:
    """It unsubscribes, or says anew what it reads."""
    stage = a_stage()
    consumer = a_consumer(stage)
    sync(consumer, ADD, "a", "b")
    sync(consumer, REMOVE, "b")
    subscriptions = stage.broker.lite.subscriptions
    found = subscriptions.of_client(consumer.client_id)
    assert found is not None
    assert list(found.queues) == ["%LMQ%$parent$a"]
    sync(consumer, ALL, "c")
    assert list(found.queues) == ["%LMQ%$parent$c"]


@pytest.mark.parametrize("leaves", ["says so", "hangs up"])
def test_a_consumer_that_leaves_reads_nothing(leaves: str) -> None:
    """Others have at once what it was to look at."""
    stage = a_stage()
    consumer = a_consumer(stage)
    sync(consumer, ADD, "chat")
    if leaves == "says so":
        consumer.ask("NotifyClientTermination", group={"name": GROUP})
    else:
        consumer.stop_listening()
    assert stage.broker.lite.subscriptions.count == 0


def test_a_consumer_is_told_that_it_is_put_out() -> None:
    """By another one of a group in which each lite topic has one."""
    stage = a_stage(**{"lite.sub.model": "Exclusive"})
    first, second = a_consumer(stage), a_consumer(stage)
    sync(first, ADD, "chat")
    sync(second, ADD, "chat")
    assert first.heard == [{"notify_unsubscribe_lite_command": {"lite_topic": "chat"}}]
    assert second.heard == []


def test_a_message_that_takes_long_is_prolonged() -> None:
    """Its lite topic is said again, so that it stays where it is."""
    stage = a_stage()
    producer, consumer = Peer(stage), a_consumer(stage)
    sync(consumer, ADD, "chat")
    sent_to(producer, "chat")
    (message,) = consumer.receive(PARENT, auto_renew=True)
    stage.let_pass(100_000)
    assert consumer.receive(PARENT) == []
    assert message["body"]


def test_a_message_is_put_off() -> None:
    """Suspended, it is not counted as tried once more, as far as it was before."""
    stage = a_stage()
    producer, consumer = Peer(stage), a_consumer(stage)
    sync(consumer, ADD, "chat")
    sent_to(producer, "chat")
    (message,) = consumer.receive(PARENT)
    for suspend, attempt in ((False, 2), (True, 2), (False, 3)):
        fields = {
            "group": {"name": GROUP}, "topic": {"name": PARENT}, "lite_topic": "chat",
            "receipt_handle": message["system_properties"]["receipt_handle"],
            "invisible_duration": {"seconds": 1}, "suspend": suspend,
        }  # fmt: skip
        told = consumer.ask("ChangeInvisibleDuration", **fields)
        assert told["status"]["code"] == Code.OK
        stage.let_pass(1_000)
        (message,) = consumer.receive(PARENT)
        assert message["system_properties"]["delivery_attempt"] == attempt


def test_a_consumer_with_too_much_work_gets_no_more() -> None:
    """As many as it may have are prolonged for it already."""
    stage = a_stage()
    stage.proxy.settings.lite_renewed_max = 1
    producer, consumer = Peer(stage), a_consumer(stage)
    sync(consumer, ADD, "a", "b")
    sent_to(producer, "a", "b")
    assert len(consumer.receive(PARENT, auto_renew=True)) == 2
    code, text = consumer.refusal(PARENT, auto_renew=True)
    assert code == Code.FORBIDDEN
    assert text.endswith("has too many unacked messages. Unacked count: 2")


@pytest.mark.parametrize(
    ("lite_topic", "text"),
    [
        (" ", "lite topic cannot be the char sequence of whitespace"),
        ("x" * 65, "lite topic exceed the max size 64"),
        ("a$b", f"lite topic {ODD}"),
    ],
)  # fmt: skip
def test_names_that_are_refused(lite_topic: str, text: str) -> None:
    """Of those who send and of those who read."""
    stage = a_stage()
    consumer = a_consumer(stage)
    told = consumer.send(lite_message(consumer, lite_topic))["status"]
    assert (told["code"], told["message"]) == (Code.ILLEGAL_LITE_TOPIC, text)
    assert sync(consumer, ADD, lite_topic) == (Code.ILLEGAL_LITE_TOPIC, text)


@pytest.mark.parametrize("action", [-1, 4, 99])
def test_what_nobody_can_do_with_lite_topics(action: int) -> None:
    """Is told of as Java calls what it does not know."""
    told = sync(a_consumer(a_stage()), action, "a")
    text = "unknown LiteSubscriptionAction: UNRECOGNIZED"
    assert told == (Code.INTERNAL_SERVER_ERROR, text)


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ({}, "Unknown OffsetOption type: OFFSETTYPE_NOT_SET"),
        ({"policy": 3}, "Unknown OffsetOption.Policy value: UNRECOGNIZED"),
        ({"policy": -1}, "Unknown OffsetOption.Policy value: UNRECOGNIZED"),
    ],
)
def test_no_place_to_begin_at(option: dict[str, int], text: str) -> None:
    """Is refused where something is added; whoever takes something out need not say one."""
    consumer = a_consumer(a_stage())
    refused = sync(consumer, ADD, "a", offset_option=option)
    assert refused == (Code.INTERNAL_SERVER_ERROR, text)
    assert sync(consumer, ALL, "a", offset_option=option)[0] == Code.OK
    assert sync(consumer, ADD, "a", offset_option={"policy": 2})[0] == Code.OK


def test_what_a_group_may_not_read() -> None:
    """Lite topics of another topic, or more than its quota and a bit."""
    stage = a_stage(**{"lite.sub.client.quota": "1"})
    put_group(stage, "others", {})
    consumer = a_consumer(stage)
    code, text = sync(consumer, ADD, "a", topic={"name": "normal"})
    assert (code, text) == (
        Code.ILLEGAL_TOPIC,
        "lite group readers is expected to bind topic parent, but actual is normal",
    )
    assert sync(consumer, ADD, "a", group={"name": "others"})[0] == Code.ILLEGAL_TOPIC
    many = [f"m{number}" for number in range(302)]
    assert sync(consumer, ALL, *many[:301])[0] == Code.OK
    code, text = sync(consumer, ALL, *many)
    assert code == Code.LITE_SUBSCRIPTION_QUOTA_EXCEEDED
    assert text == "lite subscription quota exceeded: 1"


def test_each_group_is_for_one_kind_of_consumer() -> None:
    """Others are refused when they say what they are."""
    stage = a_stage()
    peer = Peer(stage)
    with pytest.raises(ProxyError, match="lite group must use LITE mode: readers"):
        peer.consume(PARENT, ClientType.PUSH_CONSUMER)
    told = peer.ask("Heartbeat", client_type=2, group={"name": GROUP})  # it is nothing yet
    assert told["status"]["code"] == Code.UNRECOGNIZED_CLIENT_TYPE
    with pytest.raises(ProxyError, match="is expected to bind topic parent"):
        Peer(stage).consume("normal", ClientType.LITE_PUSH_CONSUMER)
    put_group(stage, GROUP, {})
    with pytest.raises(ProxyError, match="regular group cannot use LITE mode: readers"):
        Peer(stage).consume(PARENT, ClientType.LITE_PUSH_CONSUMER)


def test_a_heart_beat_is_for_the_group_that_it_names() -> None:
    """Which must be one for such consumers, whatever the settings have said."""
    stage = a_stage()
    put_group(stage, "others", {})
    consumer = a_consumer(stage)
    told = consumer.ask("Heartbeat", client_type=5, group={"name": "others"})["status"]
    assert told == {
        "code": Code.ILLEGAL_CONSUMER_GROUP,
        "message": "regular group cannot use LITE mode: others",
    }
    told = consumer.ask("Heartbeat", client_type=5, group={"name": GROUP})
    assert told["status"]["code"] == Code.OK


def test_a_consumer_is_told_its_quota() -> None:
    """That of its group, and how long a name may be."""
    stage = a_stage(**{"lite.sub.client.quota": "7"})
    told = Peer(stage).consume(PARENT, ClientType.LITE_PUSH_CONSUMER)
    subscription = told["settings"]["subscription"]
    assert subscription["lite_subscription_quota"] == 7
    assert subscription["max_lite_topic_size"] == 64


def test_all_brokers_are_told_what_a_consumer_reads() -> None:
    """Each has its share of the lite topics; messages go to the broker that has theirs."""
    stage = ClusterStage(enableLmq="true", enableMultiDispatch="true")
    for broker in stage.brokers.values():
        broker.groups.put(read_group({"groupName": GROUP, "attributes": {BIND: PARENT}}))
        broker.topics.put(TopicConfig(PARENT, 2, 2, attributes={"message.type": "LITE"}))
        broker.topics.cluster = stage.broker.topics.cluster
    stage.put("far", "broker-b")  # and with it the name server learns of the parents
    peer = FarPeer(stage)
    peer.consume(PARENT, ClientType.LITE_PUSH_CONSUMER)
    owners = {"a": "broker-a", "chat": "broker-b"}
    assert sync(peer, ADD, *owners)[0] == Code.OK
    for lite_topic, name in owners.items():
        found = stage.brokers[name].lite.subscriptions.of_client(peer.client_id)
        assert found is not None
        assert list(found.queues) == [f"%LMQ%${PARENT}${lite_topic}"]
        told = peer.send(lite_message(peer, lite_topic))
        assert told["status"]["code"] == Code.OK
        stage.brokers[name].catch_up()
        assert stage.brokers[name].lite.queues.end(f"%LMQ%${PARENT}${lite_topic}") == 1
    peer.ask("NotifyClientTermination", group={"name": GROUP})
    assert [broker.lite.subscriptions.count for broker in stage.brokers.values()] == [0, 0]
