"""Static topics: logic queues of one broker are told of, written to, read and asked about."""

from __future__ import annotations

from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.interop.drawn_rocketmq import sends, topics
from tests.interop.drawn_rocketmq.pulls import pull_fields
from tests.interop.drawn_rocketmq.world import World

QUEUES = 4
READERS = "readers"


def first_topics(world: World) -> None:
    """
    Make the topics that are to have logic queues.

    A mapping that is refused leaves a topic as it was with ours, and with Java after its change:
    so there are all of them before, with as many queues as they are to have.
    """
    for name in ("s", "t"):
        topics.create(world, f"{world.prefix}-{name}", QUEUES, is_plain=True)


def static_topic(world: World) -> str:
    """Draw one of them, mostly."""
    if world.likely(0.95):
        return f"{world.prefix}-{world.pick('s', 's', 't')}"
    return f"{world.prefix}-{world.pick('a', 'unknown')}"


def stretches(world: World) -> list[dict[str, Any]]:
    """Draw the stretches of a logic queue, from the first one to the one that is written to."""
    found, gen, logic_offset = [], world.pick(0, 0, 0, 1), world.pick(0, 0, 0, 5)
    count = world.pick(1, 1, 1, 2, 2, 3, 0)
    for number in range(count):
        is_last = number == count - 1
        length = world.pick(1, 2, 3)
        start = world.pick(0, 0, 0, 1)
        found.append(
            {
                "bname": "broker-a", "gen": gen, "logicOffset": logic_offset,
                "queueId": world.chance.randrange(QUEUES), "startOffset": start,
                "endOffset": -1 if is_last else start + length,
                "timeOfStart": -1, "timeOfEnd": -1,
            }
        )  # fmt: skip
        gen, logic_offset = gen + 1, logic_offset + length + world.pick(0, 0, 100)
    if found and world.likely(0.15):
        name, value = world.pick(
            ("gen", -1), ("gen", 0), ("logicOffset", -1), ("logicOffset", 10**6), ("queueId", -1),
            ("startOffset", -1), ("endOffset", 0), ("endOffset", -2), ("gen", 5),
        )  # fmt: skip
        world.chance.choice(found)[name] = value
    return found


def define(world: World) -> None:
    """Tell the broker of the logic queues of a topic."""
    topic = f"{world.prefix}-{world.pick('s', 's', 't')}"
    queues = {str(number): stretches(world) for number in range(world.pick(1, 2, 2, 3))}
    body = {
        "topic": topic, "bname": "broker-a", "scope": world.pick(*["__global__"] * 9, "other"),
        "totalQueues": world.pick(2, 3, 0), "epoch": world.pick(1, 1, 2, 3, 4, 5, 6, 0, -1),
        "dirty": False, "currIdMap": {}, "hostedQueues": queues,
    }  # fmt: skip
    fields = {
        "topic": topic, "defaultTopic": "TBW102", "readQueueNums": QUEUES,
        "writeQueueNums": QUEUES, "perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0,
        "order": "false", "force": world.pick("true", "false", "false", None),
    }  # fmt: skip
    world.ask(Code.UPDATE_AND_CREATE_STATIC_TOPIC, fields, body, is_plain=True)


def send(world: World) -> None:
    """Send to a logic queue."""
    topic = static_topic(world)
    drawn = {"UNIQ_KEY": sends.unique_key(world), "TAGS": world.pick("A", "B"), "WAIT": "true"}
    fields = sends.header(world, topic, sends.properties_text(drawn)) | {
        "sysFlag": 0, "queueId": world.pick(0, 0, 0, 1, 1, 2, 9), "defaultTopic": "TBW102",
        "reconsumeTimes": 0, "producerGroup": f"{world.prefix}-p", "unitMode": "false",
    }  # fmt: skip
    more = {"lo": world.pick(None, None, None, "true", "false")}
    world.ask(Code.SEND_MESSAGE_V2, sends.short(fields) | more, b"logic", is_plain=True)


def queue(world: World) -> dict[str, Any]:
    """Draw a logic queue, or the queue that is called the same where `lo` denies it."""
    return {
        "topic": static_topic(world), "queueId": world.pick(0, 0, 0, 1, 1, 2, 3, -1, 9),
        "lo": world.pick(None, None, None, "true", "false"),
    }  # fmt: skip


def pull(world: World) -> None:
    """Pull from a logic queue of the topic that stays: Java remembers pulls from deleted ones."""
    fields = pull_fields(world) | queue(world) | {"topic": f"{world.prefix}-s"} | {
        "consumerGroup": f"{world.prefix}-{READERS}", "sysFlag": 4, "commitOffset": 0,
        "queueOffset": world.pick(0, 0, 1, 1, 2, 3, 4, 5, 6, 100, 101, 102, 1000, -1),
        "subscription": "*", "expressionType": None, "maxMsgNums": world.pick(32, 32, 1, 2),
    }  # fmt: skip
    world.ask(Code.PULL_MESSAGE, fields, is_plain=True)


def bounds(world: World) -> None:
    """Ask where a logic queue begins, ends, and where it was at some time."""
    code = world.pick(Code.GET_MAX_OFFSET, Code.GET_MIN_OFFSET, Code.GET_EARLIEST_MSG_STORETIME,
                      Code.SEARCH_OFFSET_BY_TIMESTAMP)  # fmt: skip
    fields = queue(world)
    if code == Code.SEARCH_OFFSET_BY_TIMESTAMP:
        fields["timestamp"] = world.pick(0, world.now_ms() + 60_000, -1)
    elif code == Code.GET_MAX_OFFSET:
        fields["committed"] = world.pick(None, "true", "false")
    world.ask(code, fields, is_plain=True)


def offsets(world: World) -> None:
    """Commit an offset of a logic queue, or ask for it."""
    fields = queue(world) | {"consumerGroup": f"{world.prefix}-{READERS}"}
    if world.likely(0.5):
        fields["commitOffset"] = world.pick(0, 1, 2, 5, 6, 100, 101, 1000)
        world.ask(Code.UPDATE_CONSUMER_OFFSET, fields, is_plain=True)
        return
    fields["setZeroIfNotFound"] = world.pick(None, "false")
    world.ask(Code.QUERY_CONSUMER_OFFSET, fields, is_plain=True)


def told(world: World) -> None:
    """Ask about a topic with logic queues."""
    topic = static_topic(world)
    code, fields = world.pick(
        (Code.GET_TOPIC_CONFIG, {"topic": topic, "lo": world.pick(None, "true", "false")}),
        (Code.GET_TOPIC_STATS_INFO, {"topic": topic, "lo": world.pick(None, "true", "false")}),
        (Code.GET_CONSUME_STATS, {"topic": topic, "consumerGroup": f"{world.prefix}-{READERS}"}),
        (Code.QUERY_CONSUME_TIME_SPAN, {"topic": topic, "group": f"{world.prefix}-{READERS}"}),
    )  # fmt: skip
    world.ask(code, fields, is_plain=True)


def route(world: World) -> None:
    """Ask the name server for what the broker has told it."""
    world.ask(
        Code.GET_ROUTEINFO_BY_TOPIC,
        {"topic": static_topic(world), "acceptStandardJsonOnly": world.pick(None, "true")},
        line="names", is_plain=True,
    )  # fmt: skip


def delete(world: World) -> None:
    """Delete a topic with its logic queues, and make it anew without."""
    topic = f"{world.prefix}-t"
    world.ask(Code.DELETE_TOPIC_IN_BROKER, {"topic": topic}, is_plain=True)
    topics.create(world, topic, QUEUES, is_plain=True)
