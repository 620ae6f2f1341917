"""Lite topics: sent to, subscribed to, popped, acknowledged and told of."""

from __future__ import annotations

from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.compat.rocketmq.broker_peer import decoded
from tests.interop.drawn.pair import Pair
from tests.interop.drawn_rocketmq import topics
from tests.interop.drawn_rocketmq.twin import Told
from tests.interop.drawn_rocketmq.world import World

INVISIBLE_MS = 3_600_000
LITE_TOPICS = ("l1", "l2", "l3")
#: of two clients that read the same a broker takes one by chance: each has a group of its own, but
#: where one puts the other out
CLIENTS = (("c0", "g0"), ("c1", "g1"), ("e0", "alone"), ("e1", "alone"), ("w0", "wild"))
OPTIONS: tuple[dict[str, Any] | None, ...] = (
    None, None, {"type": "POLICY", "value": 1}, {"type": "POLICY", "value": 2},
    {"type": "POLICY", "value": 0}, {"type": "OFFSET", "value": 1}, {"type": "TAIL_N", "value": 1},
    {"type": "TIMESTAMP", "value": 5},
)  # fmt: skip


def first_parents(world: World) -> None:
    """Make what every session has."""
    topics.create(
        world, parent(world), 1, is_plain=True,
        attributes="+message.type=LITE,+lite.topic.expiration=60",
    )  # fmt: skip
    for group, more in (
        ("g0", {}), ("g1", {"+lite.sub.reset.offset.unsubscribe": "true"}),
        ("alone", {"+lite.sub.model": "Exclusive", "+lite.sub.reset.offset.exclusive": "true"}),
        ("wild", {"+lite.sub.wildcard": "true"}),
    ):  # fmt: skip
        attributes = {"+lite.bind.topic": parent(world), **more}
        body = {"groupName": f"{world.prefix}-{group}", "attributes": attributes}
        world.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body, is_plain=True)


def parent(world: World) -> str:
    """Return the topic above the lite topics."""
    return f"{world.prefix}-lite"


def some_topic(world: World) -> str:
    """Draw the parent, mostly."""
    return parent(world) if world.likely(0.93) else world.topic()


def client(world: World) -> tuple[str, str]:
    """Draw a client and its group."""
    name, group = world.chance.choice(CLIENTS)
    return f"{world.prefix}-{name}", f"{world.prefix}-{group}"


def some_group(world: World, group: str) -> str:
    """Return the group, mostly."""
    return group if world.likely(0.95) else f"{world.prefix}-plain"


def send(world: World) -> None:
    """Send a message to a lite topic."""
    properties = f"__LITE_TOPIC\x01{world.pick(*LITE_TOPICS)}\x02"
    if world.likely(0.2):
        properties += f"INNER_MULTI_DISPATCH\x01%LMQ%{world.prefix}\x02"
    if world.likely(0.3):
        properties += "TAGS\x01A\x02"
    fields = {
        "a": "p", "b": parent(world), "c": "TBW102", "d": 4, "e": 0, "f": 0,
        "g": 1_700_000_000_000, "h": 0, "i": properties, "j": 0, "k": "false", "m": "false",
    }  # fmt: skip
    body = f"{world.next()}".encode()
    world.ask(Code.SEND_MESSAGE_V2, fields, body, is_plain=True)


def subscribe(world: World) -> None:
    """Say what a client reads: one at a time, as Java's sets have an order of their own."""
    name, group = client(world)
    entry: dict[str, Any] = {
        "action": world.pick("PARTIAL_ADD", "PARTIAL_ADD", "PARTIAL_ADD", "PARTIAL_REMOVE",
                             "COMPLETE_ADD", "COMPLETE_REMOVE"),
        "clientId": world.pick(name, name, name, name, name, name, ""),
        "group": group, "topic": parent(world),
        "liteTopicSet": world.pick(*([one] for one in LITE_TOPICS), ["new"], []),
        "version": 1,
    }  # fmt: skip
    option = world.pick(*OPTIONS)
    if option is not None:
        entry["offsetOption"] = option
    body = world.pick(*[{"subscriptionSet": [entry]}] * 12, {"subscriptionSet": []}, {}, b"")
    world.ask(Code.LITE_SUBSCRIPTION_CTL, {}, body, is_plain=True)


def pop(world: World) -> None:
    """Pop without waiting."""
    name, group = client(world)
    fields = {
        "clientId": name, "consumerGroup": some_group(world, group), "topic": some_topic(world),
        "maxMsgNum": world.pick(32, 32, 1, 2, 3, 33), "invisibleTime": INVISIBLE_MS,
        "pollTime": 0, "bornTime": world.now_ms(),
        "attemptId": world.pick(None, None, "a1", "a2"),
    }  # fmt: skip
    learn(world, world.ask(Code.POP_LITE_MESSAGE, fields, is_plain=True), fields)


def learn(world: World, told: Told, fields: dict[str, Any]) -> None:
    """Keep what was popped."""
    if not told.is_success:
        return
    made = told.pair(
        lambda answer: [
            ((answer.fields or {})["popTime"], one.properties["__LITE_TOPIC"],
             int(one.properties["INNER_MULTI_QUEUE_OFFSET"]))
            for one in decoded(answer.body)
        ]
    )  # fmt: skip
    if made is None or len(made.ours) != len(made.real):
        return
    for ours, real in zip(*made, strict=True):
        handle = Pair(*(
            f"0 {popped} {INVISIBLE_MS} 999 0 broker-a 0 {offset}"
            for popped, _, offset in (ours, real)
        ))  # fmt: skip
        world.popped.append(
            {
                "consumerGroup": fields["consumerGroup"], "topic": parent(world), "queueId": 0,
                "offset": real[2], "extraInfo": handle, "liteTopic": real[1],
            }
        )  # fmt: skip


def handle_fields(world: World) -> dict[str, Any]:
    """Draw what was popped, with something wrong now and then."""
    if not world.popped:
        return {
            "consumerGroup": client(world)[1], "topic": parent(world), "queueId": 0, "offset": 0,
            "extraInfo": "0 1 2 999 0 broker-a 0 0", "liteTopic": "l1",
        }  # fmt: skip
    fields = dict(world.chance.choice(world.popped[-8:]))
    if world.likely(0.15):
        fields |= world.pick(
            {"offset": 100}, {"offset": 0}, {"liteTopic": "none"}, {"topic": world.topic()},
            {"consumerGroup": f"{world.prefix}-plain"}, {"extraInfo": "0 1 2 3 0 broker-a 0 0"},
        )  # fmt: skip
    return fields


def ack(world: World) -> None:
    """Acknowledge."""
    world.ask(Code.ACK_MESSAGE, handle_fields(world), is_plain=True)


def change(world: World) -> None:
    """Put off, one message or all that came with it."""
    more = {"invisibleTime": INVISIBLE_MS, "suspend": world.pick(None, "true", "false")}
    world.ask(Code.CHANGE_MESSAGE_INVISIBLETIME, handle_fields(world) | more, is_plain=True)


def told_of_topic(world: World) -> None:
    """Ask about a parent, or a lite topic."""
    lite_topic = world.pick(*LITE_TOPICS, "new", "none")
    if world.likely(0.3):
        world.ask(Code.GET_PARENT_TOPIC_INFO, {"topic": some_topic(world)})
        return
    fields = {"parentTopic": some_topic(world), "liteTopic": lite_topic}
    world.ask(Code.GET_LITE_TOPIC_INFO, fields)


def told_of_readers(world: World) -> None:
    """Ask about a client, or a group."""
    name, group = client(world)
    if world.likely(0.5):
        fields = {"parentTopic": some_topic(world), "group": some_group(world, group)}
        world.ask(Code.GET_LITE_CLIENT_INFO, {**fields, "clientId": name})
        return
    asked: dict[str, Any] = {"group": some_group(world, group), "topK": 50}
    asked["liteTopic"] = world.pick(None, *LITE_TOPICS)
    world.ask(Code.GET_LITE_GROUP_INFO, asked, is_plain=True)


def look(world: World) -> None:
    """Have a broker look for what a client may have."""
    name, group = client(world)
    if group.endswith("wild"):
        return  # it looks at the lite topics in the order of a table of hashes
    fields = {"group": some_group(world, group), "clientId": name}
    world.ask(Code.TRIGGER_LITE_DISPATCH, fields, is_plain=True)


def bounds(world: World) -> None:
    """Ask for the end of a light queue, and where a group is."""
    queue = f"%LMQ%${parent(world)}${world.pick(*LITE_TOPICS)}"
    if world.likely(0.5):
        world.ask(Code.GET_MAX_OFFSET, {"topic": queue, "queueId": 0}, is_plain=True)
        return
    fields = {"consumerGroup": client(world)[1], "topic": queue, "queueId": 0}
    world.ask(Code.QUERY_CONSUMER_OFFSET, fields, is_plain=True)
