"""Offsets of groups: committed, asked for, reset, copied; and what follows from them."""

from __future__ import annotations

from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.interop.drawn_rocketmq.world import World


def place(world: World) -> dict[str, Any]:
    """Draw a group and a queue."""
    topic = world.topic()
    return {"consumerGroup": world.group(), "topic": topic, "queueId": world.queue(topic)}


def commit(world: World) -> None:
    """Commit an offset."""
    fields = place(world) | {"commitOffset": world.pick(0, 1, 2, 3, 7, 100, -1, 2**62)}
    world.ask(Code.UPDATE_CONSUMER_OFFSET, fields)


def commit_near(world: World) -> None:
    """
    Commit an offset that may be: to notices Java counts bytes of others, and goes round.

    Whoever has committed so much is told of messages that it has had.
    """
    world.ask(Code.UPDATE_CONSUMER_OFFSET, place(world) | {"commitOffset": world.pick(0, 1, 2, 7)})


def query(world: World) -> None:
    """Ask for a committed offset."""
    fields = place(world) | {"setZeroIfNotFound": world.pick(None, None, "true", "false")}
    world.ask(Code.QUERY_CONSUMER_OFFSET, fields)


def reset(world: World) -> None:
    """Set a group's offsets to others."""
    topic = world.topic()
    fields = {
        "topic": topic, "group": world.group(),
        "timestamp": world.pick(-1, 0, -2, world.now_ms() + 10**6, world.now_ms() - 10**8),
        "isForce": world.pick("true", "false"), "isC": world.pick(None, "true"),
        "queueId": world.pick(None, None, -1, 0, world.queue(topic)),
        "offset": world.pick(None, None, -1, 0, 1, 2, 100),
    }  # fmt: skip
    world.ask(Code.INVOKE_BROKER_TO_RESET_OFFSET, fields)


def clone(world: World) -> None:
    """Copy a group's offsets to another: a real broker copies nothing where no topic is named."""
    fields = {
        "srcGroup": world.group(), "destGroup": world.group(), "topic": world.topic() or "none",
        "offline": world.pick(None, "true", "false"),
    }  # fmt: skip
    world.ask(Code.CLONE_GROUP_OFFSET, fields)


def correction(world: World) -> None:
    """Ask which offsets other groups would have a group start from."""
    fields = {
        "filterGroups": world.pick(None, ""), "compareGroup": world.group(),
        "topic": world.topic(),
    }  # fmt: skip
    world.ask(Code.QUERY_CORRECTION_OFFSET, fields)


def consume_stats(world: World) -> None:
    """Ask how far a group is."""
    fields = {
        "consumerGroup": world.group(), "topic": world.pick(world.topic(), "", None),
        "topicList": world.pick(None, None, "", f"{world.topic()};{world.topic()}"),
    }  # fmt: skip
    world.ask(Code.GET_CONSUME_STATS, fields)


def broker_consume_stats(world: World) -> None:
    """Ask how far all groups are."""
    world.ask(Code.GET_BROKER_CONSUME_STATS, {"isOrder": world.pick("true", "false", None)})


def time_span(world: World) -> None:
    """Ask from when to when a group's queues reach."""
    world.ask(Code.QUERY_CONSUME_TIME_SPAN, {"topic": world.topic(), "group": world.group()})


def who_consumes(world: World) -> None:
    """Ask who reads what."""
    code = world.pick(Code.QUERY_TOPIC_CONSUME_BY_WHO, Code.QUERY_TOPICS_BY_CONSUMER,
                      Code.QUERY_SUBSCRIPTION_BY_CONSUMER)  # fmt: skip
    fields = {
        Code.QUERY_TOPIC_CONSUME_BY_WHO: {"topic": world.topic()},
        Code.QUERY_TOPICS_BY_CONSUMER: {"group": world.group()},
        Code.QUERY_SUBSCRIPTION_BY_CONSUMER: {
            "group": world.group(), "topic": world.pick(world.topic(), None)
        },
    }[code]  # fmt: skip
    world.ask(code, dict(fields))


def all_offsets(world: World) -> None:
    """Ask for everything."""
    world.ask(world.pick(Code.GET_ALL_CONSUMER_OFFSET, Code.GET_ALL_DELAY_OFFSET), {})
