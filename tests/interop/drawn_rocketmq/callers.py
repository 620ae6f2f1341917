"""Clients of all releases and languages, and what administrators ask of them and about them."""

from __future__ import annotations

import random
import time
from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.interop.drawn_rocketmq.groups import REPLIES as PLAIN_REPLIES
from tests.interop.drawn_rocketmq.request import Request
from tests.interop.drawn_rocketmq.twin import COMING_SECONDS
from tests.interop.drawn_rocketmq.world import World

#: releases by their numbers: the first, those before and from which clients can reset themselves,
#: and can be asked (3.0.7, 3.1.8), some later ones, and two that are yet to come
VERSIONS = (0, 15, 27, 28, 61, 62, 115, 401, 513, 600, 32_767)
LANGUAGES = ("JAVA", "JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP",
             "GO", "PHP", "OMS", "RUST", "NODE_JS")  # fmt: skip
#: in the place of a name out of few
ODD: tuple[Any, ...] = (
    None,
    9,
    -1,
    "1",
    "x",
    "",
    "consume_passively",
    "Clustering",
    True,
    1.5,
    [],
    {},
)
TABLE = (
    b'{{"brokerName":"broker-a","queueId":1,"topic":"t"}:7,'
    b'{"brokerName":"broker-a","queueId":0,"topic":"t"}:3}'
)
#: how a client answers here: it tells of places
REPLIES = PLAIN_REPLIES | {
    int(Code.GET_CONSUMER_STATUS_FROM_CLIENT): b'{"messageQueueTable":' + TABLE + b"}"
}
ON_SERVER = "useServerSideResetOffset"


def version(world: World) -> int:
    """Draw a release, of three that a session has."""
    return int(world.pick(*random.Random(world.prefix).sample(VERSIONS, 3)))


def group(world: World, number: int) -> str:
    """Return the group of the clients of a release."""
    return f"{world.prefix}-r{number}"


def name(world: World, number: int, place: int) -> str:
    """Return a client's name."""
    return f"{world.prefix}-r{number}-{place}"


def consumer(world: World, number: int) -> dict[str, Any]:
    """Draw a consumer as it says itself, in words of any language's client."""
    found: dict[str, Any] = {
        "groupName": group(world, number),
        "consumeType": world.pick("CONSUME_PASSIVELY", "CONSUME_ACTIVELY", "CONSUME_POP", 0, 1, 2),
        "messageModel": world.pick("CLUSTERING", "BROADCASTING", 0, 1),
        "consumeFromWhere": world.pick(
            "CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_TIMESTAMP", "CONSUME_FROM_MIN_OFFSET",
            "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST", 0, 1, 2, 3, 4, 5),
        "subscriptionDataSet": [
            {"topic": one, "subString": world.pick("*", "A", "A || B"), "subVersion": 1,
             "expressionType": "TAG", "tagsSet": [], "codeSet": [], "classFilterMode": False}
            for one in (f"{world.prefix}-a", f"{world.prefix}-b")[: world.pick(0, 1, 2)]
        ],
        "unitMode": world.pick(False, False, True),
    }  # fmt: skip
    if world.likely(0.15):
        found[world.pick("consumeType", "messageModel", "consumeFromWhere")] = world.pick(*ODD)
    if world.likely(0.05):
        del found[world.pick(*found)]
    return found


def beat(world: World) -> None:
    """Say who is there."""
    number, place = version(world), world.pick(1, 1, 2)
    body = {
        "clientID": name(world, number, place if world.likely(0.9) else 3),
        "producerDataSet": [{"groupName": f"{group(world, number)}-p"}]
        if world.likely(0.6) else [],
        "consumerDataSet": [consumer(world, number)] if world.likely(0.85) else [],
    }  # fmt: skip
    world.ask(
        Code.HEART_BEAT, {}, body, line=f"r{number}-{place}", version=number,
        language=world.pick(*LANGUAGES), is_plain=True,
    )  # fmt: skip


def leave(world: World) -> None:
    """Say who goes, or go without a word."""
    number, place = version(world), world.pick(1, 2)
    line = f"r{number}-{place}"
    if world.likely(0.4):
        hang_up(world, line, group(world, number))
        return
    fields = {
        "clientID": name(world, number, place),
        "producerGroup": world.pick(None, f"{group(world, number)}-p"),
        "consumerGroup": world.pick(None, group(world, number)),
    }  # fmt: skip
    world.ask(Code.UNREGISTER_CLIENT, fields, line=line, is_plain=True)


def hang_up(world: World, line: str, wanted: str) -> None:
    """Close a connection to both, and go on when both have heard of it."""
    ends = [side.line(line).socket.getsockname()[1] for side in world.twin.sides]
    world.twin.hang_up(line)
    request = Request(int(Code.GET_CONSUMER_CONNECTION_LIST), {"consumerGroup": wanted})
    deadline = time.monotonic() + COMING_SECONDS
    while time.monotonic() < deadline:
        told = [getattr(one, "body", b"") for one in world.twin.exchange(request)]
        if not any(b":%d" % end in body for end, body in zip(ends, told, strict=True)):
            return


def lists(world: World) -> None:
    """Ask who is there."""
    wanted = group(world, version(world))
    code, fields = world.pick(
        (Code.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": wanted}),
        (Code.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": wanted}),
        (Code.GET_PRODUCER_CONNECTION_LIST, {"producerGroup": f"{wanted}-p"}),
        (Code.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": wanted}),
        (Code.QUERY_TOPIC_CONSUME_BY_WHO, {"topic": f"{world.prefix}-a"}),
        (Code.QUERY_SUBSCRIPTION_BY_CONSUMER, {"group": wanted, "topic": f"{world.prefix}-a"}),
        (Code.GET_CONSUME_STATS, {"consumerGroup": wanted}),
        (Code.GET_ALL_PRODUCER_INFO, {}),
    )  # fmt: skip
    world.ask(code, fields, is_plain=True)


def ask_one(world: World) -> None:
    """Have the broker ask a client for what it knows, or to consume a message."""
    number = version(world)
    client = world.pick(name(world, number, 1), name(world, number, 2), "nobody")
    fields = {"consumerGroup": group(world, number), "clientId": client}
    message = world.message()
    if message is None or world.likely(0.5):
        asked = fields | {"jstackEnable": world.pick(None, "false", "true")}
        world.ask(Code.GET_CONSUMER_RUNNING_INFO, asked, is_plain=True)
        return
    fields |= {"msgId": message.message_id, "topic": world.pick(None, message.topic)}
    world.ask(Code.CONSUME_MESSAGE_DIRECTLY, fields, is_plain=True)


def ask_all(world: World) -> None:
    """Ask where the clients of a group are."""
    number = version(world)
    fields = {
        "topic": f"{world.prefix}-a", "group": group(world, number),
        "clientAddr": world.pick(None, None, " ", name(world, number, 1), name(world, number, 2),
                                 "nobody"),
    }  # fmt: skip
    world.ask(Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, fields, is_plain=True)


def commit(world: World) -> None:
    """Commit in all queues of a topic: of one where it has not nobody is told to go elsewhere."""
    wanted, topic = group(world, version(world)), f"{world.prefix}-{world.pick('a', 'b')}"
    for queue in range(world.topics[topic]):
        fields = {
            "consumerGroup": wanted, "topic": topic, "queueId": queue,
            "commitOffset": world.pick(0, 1, 2, 100),
        }  # fmt: skip
        world.ask(Code.UPDATE_CONSUMER_OFFSET, fields, is_plain=True)


def reset(world: World) -> None:
    """Have clients go elsewhere: told by the broker, as before 5.x, or when they pull next."""
    fields = {
        "topic": world.pick(f"{world.prefix}-a", f"{world.prefix}-b", "none"),
        "group": group(world, version(world)), "isForce": world.pick("true", "false"),
        "timestamp": world.pick(-1, 0, -2, world.now_ms() + 10**6),
    }  # fmt: skip
    is_by_clients = world.likely(0.8)
    if is_by_clients:
        change_settings(world, f"{ON_SERVER}=false")
    world.ask(
        Code.INVOKE_BROKER_TO_RESET_OFFSET, fields, language=world.pick("JAVA", "CPP", "GO"),
        is_plain=True,
    )  # fmt: skip
    if is_by_clients:
        change_settings(world, f"{ON_SERVER}=true")


def change_settings(world: World, line: str) -> None:
    """Have both brokers go by another setting."""
    world.ask(Code.UPDATE_BROKER_CONFIG, {}, line.encode(), is_plain=True)
