"""Queues are read: pulled, looked for by place, time, key and id."""

from __future__ import annotations

from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.interop.drawn_rocketmq.world import World

SUSPENDS, SUBSCRIBES, CLASS_FILTERS, LITE = 2, 4, 8, 16
EXPRESSIONS = (
    ("TAG", "*"), ("TAG", "*"), ("TAG", "*"), ("TAG", "A"), ("TAG", "A || B"), ("TAG", "A|| B ||"),
    ("TAG", "||"), ("TAG", ""), (None, "*"), (None, None), ("SQL92", "a = '1'"),
    ("SQL92", "TAGS = 'A' OR a IS NOT NULL"), ("SQL92", "a > 1"), ("SQL92", "a >"), ("SQL92", ""),
    ("SQL92", "color BETWEEN 1 AND 2"), ("SQL92", "a = '1' AND"), ("OWN", "x"), ("SQL92", "*"),
    ("SQL92", "TRUE"), ("SQL92", "a IN ('1', '2')"), ("SQL92", "NOT (a = '1')"),
    ("SQL92", "a CONTAINS '1'"), ("SQL92", "a"), ("SQL92", "1 = 1"),
)  # fmt: skip


def pull_fields(world: World) -> dict[str, Any]:
    """Draw the header of a pull."""
    topic = world.topic()
    kind, expression = world.pick(*EXPRESSIONS)
    return {
        "consumerGroup": world.group(), "topic": topic, "queueId": world.queue(topic),
        "queueOffset": world.offset(), "maxMsgNums": world.pick(32, 32, 1, 2, 0, -1, 100),
        "sysFlag": world.pick(SUBSCRIBES, SUBSCRIBES, SUBSCRIBES, 5, 0, 1, 12, 20, 36),
        "commitOffset": world.pick(0, 0, 1, 2, -1), "suspendTimeoutMillis": 0,
        "subscription": expression, "subVersion": world.pick(0, 1, 1, 5, world.now_ms()),
        "expressionType": kind, "maxMsgBytes": world.pick(None, None, None, 100, 0, 10_000, -1),
    }  # fmt: skip


def pull_plainly(world: World) -> None:
    """Pull with all that belongs to it: Java remembers what even half a pull subscribes to."""
    world.ask(Code.PULL_MESSAGE, pull_fields(world), is_plain=True)


def pull(world: World) -> None:
    """Pull without waiting."""
    code = Code.LITE_PULL_MESSAGE if world.likely(0.15) else Code.PULL_MESSAGE
    world.ask(code, pull_fields(world))


def pull_and_wait(world: World) -> None:
    """Pull, and wait for what is not there yet."""
    fields = pull_fields(world) | {
        "sysFlag": world.pick(6, 6, 2), "suspendTimeoutMillis": world.pick(60_000, 60_000, 600_000),
        "queueOffset": world.pick(0, 1, 2, 3, 4), "maxMsgNums": 32,
    }  # fmt: skip
    request = world.request(Code.PULL_MESSAGE, fields, is_plain=True)
    world.twin.begin(request, f"pull{world.chance.randrange(3)}")


def queue_fields(world: World) -> dict[str, Any]:
    """Draw a queue."""
    topic = world.topic()
    return {"topic": topic, "queueId": world.queue(topic)}


def bounds(world: World) -> None:
    """Ask where a queue begins or ends."""
    code = world.pick(Code.GET_MAX_OFFSET, Code.GET_MAX_OFFSET, Code.GET_MIN_OFFSET)
    more = {"committed": world.pick(None, "true", "false")} if code == Code.GET_MAX_OFFSET else {}
    world.ask(code, queue_fields(world) | more)


def earliest(world: World) -> None:
    """Ask since when a queue has messages."""
    world.ask(Code.GET_EARLIEST_MSG_STORETIME, queue_fields(world))


def search_by_time(world: World) -> None:
    """Ask for a place by time."""
    fields = queue_fields(world) | {
        "timestamp": world.pick(0, 1, -1, world.now_ms() + 60_000, world.now_ms() - 86_400_000,
                                2**62),
        "boundaryType": world.pick(None, None, "LOWER", "UPPER", "lower", "upper", "x", ""),
    }  # fmt: skip
    world.ask(Code.SEARCH_OFFSET_BY_TIMESTAMP, fields)


def query_by_key(world: World) -> None:
    """Look for messages by a key."""
    message = world.message()
    topic = message.topic if message is not None and world.likely(0.85) else world.topic()
    is_unique = world.likely(0.4)
    key: Any = world.pick("k1", "k2", "k3", "none", "")
    if message is not None and is_unique:
        key = message.unique_key or "x"
    world.ask(
        Code.QUERY_MESSAGE,
        {
            "topic": topic, "key": key, "maxNum": world.pick(32, 32, 1, 0, -1, 100),
            "beginTimestamp": world.pick(0, 0, -1, world.now_ms() + 10**7),
            "endTimestamp": world.pick(2**62, world.now_ms() + 10**8, 0),
            "_UNIQUE_KEY_QUERY": world.pick("true", "false", None) if is_unique else None,
            "indexType": world.pick(None, None, "K", "U", "T", "x"),
            "lastKey": world.pick(None, None, "x"),
        },
    )  # fmt: skip


def view(world: World) -> None:
    """Look at a message by its place."""
    message = world.message()
    offset: Any = message.physical_offset if message is not None and world.likely(0.85) else None
    if offset is None:
        offset = world.pick(-1, 2**50, 2**31)
    topic = world.pick(None, message.topic if message is not None else "x")
    world.ask(Code.VIEW_MESSAGE_BY_ID, {"offset": offset, "topic": topic})


def consume_queue(world: World) -> None:
    """Look at the units of a queue."""
    fields = queue_fields(world) | {
        "index": world.pick(0, 0, 1, 2, -1, 100), "count": world.pick(1, 5, 0, -1, 20),
        "consumerGroup": world.pick(None, "", world.group()),
    }  # fmt: skip
    world.ask(Code.QUERY_CONSUME_QUEUE, fields)
