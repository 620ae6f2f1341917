"""Clients of the proxy that come and go leave nothing behind in it, or in its broker."""

from __future__ import annotations

import pytest

from logstore.compat.rocketmq.proxy.codes import ClientType, Code
from logstore.segments.rocketmq.tables.topics import TopicConfig
from tests.compat.rocketmq.proxy.proxy_stage import GROUP, Peer, Stage, handle_of
from tests.compat.rocketmq.proxy.test_lite_topics import (
    ADD,
    PARENT,
    REMOVE,
    a_consumer,
    a_stage,
    sent_to,
    sync,
)
from tests.compat.rocketmq.test_nothing_is_left import KEPT
from tests.leftovers import left_behind

_SETTLED_MS = 600_000
#: what stays: a cache with a most that it holds, beside those of the broker
_KEPT = KEPT | {"compat.rocketmq.proxy.turns.Turns._next"}


def _visit(stage: Stage, number: int, *, is_polite: bool) -> None:
    """Two clients send and receive what is acknowledged, put off or forgotten."""
    topic = f"t{number}"
    stage.broker.topics.put(TopicConfig(topic, 4, 4, attributes={"message.type": "NORMAL"}))
    producer, consumer = Peer(stage), Peer(stage)
    producer.produce_to(topic, "transaction")
    consumer.consume(topic, ClientType.PUSH_CONSUMER if number % 3 == 0 else
                     ClientType.SIMPLE_CONSUMER)  # fmt: skip
    for peer in (producer, consumer):
        peer.ask("QueryRoute", topic={"name": topic})
    consumer.ask("Heartbeat", group={"name": GROUP}, client_type=int(ClientType.SIMPLE_CONSUMER))
    producer.send(*(producer.message(topic, b"%d" % index) for index in range(4)))
    one, two, *_ = consumer.receive(topic, auto_renew=number % 2 == 0)
    consumer.acknowledge(topic, handle_of(one))
    changed = {"receipt_handle": handle_of(two), "invisible_duration": {"seconds": 20}}
    consumer.ask("ChangeInvisibleDuration", group={"name": GROUP}, topic={"name": topic}, **changed)
    consumer.begin("ReceiveMessage", **consumer.receive_fields(topic))
    for peer in (producer, consumer):
        if is_polite:
            peer.ask("NotifyClientTermination", group={"name": GROUP})
        peer.stop_listening()
    stage.let_pass(60_000)
    assert stage.broker.store.topics().get(topic)
    for name in (topic, f"%RETRY%{GROUP}_{topic}"):
        stage.delete_topic(name)


@pytest.mark.parametrize("is_polite", [True, False])
def test_who_is_gone_is_forgotten(*, is_polite: bool) -> None:
    """Who says goodbye, and who only hangs up."""
    left = left_behind(
        lambda: Stage(has_wheel=True),
        lambda stage, number: _visit(stage, number, is_polite=is_polite),
        lambda stage: stage.let_pass(_SETTLED_MS),
    )
    assert {name: count for name, count in left.items() if name not in _KEPT} == {}


def _read_lite_topics(stage: Stage, number: int) -> None:
    """A consumer reads lite topics of its own, and leaves, reads them no longer, or is silent."""
    producer, consumer = Peer(stage), a_consumer(stage)
    chats = f"a{number}", f"b{number}"
    sent_to(producer, *chats)
    assert sync(consumer, ADD, *chats, offset_option={"policy": 1})[0] == Code.OK
    for message in consumer.receive(PARENT):
        about = message["system_properties"]
        entry = {"message_id": "m", "receipt_handle": about["receipt_handle"],
                 "lite_topic": about["lite_topic"]}  # fmt: skip
        fields = {"group": {"name": GROUP}, "topic": {"name": PARENT}, "entries": [entry]}
        assert consumer.ask("AckMessage", **fields)["status"]["code"] == Code.OK
    if number % 3 == 0:
        consumer.ask("NotifyClientTermination", group={"name": GROUP})
    elif number % 3 == 1:
        sync(consumer, REMOVE, *chats)
    for peer in (producer, consumer):
        peer.stop_listening()
    stage.let_pass(60_000)


def test_lite_topics_that_nobody_writes_to_are_forgotten() -> None:
    """Once they have expired, with what their readers were told."""

    def settle(stage: Stage) -> None:
        for _ in range(4):
            stage.let_pass(_SETTLED_MS)

    def world() -> Stage:
        stage = a_stage()
        attributes = {"message.type": "LITE", "lite.topic.expiration": "30"}
        stage.broker.topics.put(TopicConfig(PARENT, 4, 4, attributes=attributes))
        return stage

    left = left_behind(world, _read_lite_topics, settle)
    assert {name: count for name, count in left.items() if name not in _KEPT} == {}
