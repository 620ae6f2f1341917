"""Times and places: searches and resets by when messages were stored, views of their insides."""

from __future__ import annotations

import struct
from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.compat.rocketmq.broker_peer import decoded
from tests.interop.drawn.pair import Pair
from tests.interop.drawn_rocketmq import sends, topics
from tests.interop.drawn_rocketmq.pulls import SUBSCRIBES
from tests.interop.drawn_rocketmq.twin import Told
from tests.interop.drawn_rocketmq.world import Sent, World

#: What may be read as lengths, where a body stands.
NUMBERS = (0, 1, 4, 24, -1, 2**31 - 1, -(2**31), 1_000_000, 40, 0)
BODY = struct.pack(f">{len(NUMBERS)}i", *NUMBERS)
#: from the start of a message: magic code, queue, flag, halves of the queue offset, the first one
#: of the place, flags, times of tries, place of a half message, length of the body, and the body
INSIDE = (4, 12, 16, 20, 28, 36, 72, 76, 80, 84, *range(88, 88 + len(BODY), 4))
TIMES = (0, 1, -1, -2, 2**62, 2**63 - 1, -(2**63))


def first_topics(world: World) -> None:
    """Make topics of batches: one where nothing ever comes."""
    for name in (whole(world), f"{world.prefix}-empty"):
        topics.create(world, name, 1, is_plain=True, attributes="+queue.type=BatchCQ")
    send_to(world, whole(world))


def whole(world: World) -> str:
    """Return the topic that keeps batches as they come."""
    return f"{world.prefix}-whole"


def send(world: World) -> None:
    """Send one message, or several at once, and learn when they were stored."""
    send_to(world, world.pick(f"{world.prefix}-a", f"{world.prefix}-b", whole(world), whole(world)))


def send_to(world: World, topic: str) -> None:
    """Send to a topic."""
    fields = sends.header(world, topic, f"UNIQ_KEY\x01{sends.unique_key(world)}\x02") | {
        "queueId": 0, "sysFlag": 0, "producerGroup": f"{world.prefix}-p", "reconsumeTimes": 0,
        "defaultTopic": "TBW102", "flag": world.pick(0, 0, 3),
    }  # fmt: skip
    if world.likely(0.3):
        data = b"".join(sends.batch_item(world) for _ in range(world.pick(1, 2, 3)))
        code, fields = Code.SEND_BATCH_MESSAGE, fields | {"batch": "true"}
    else:
        code, data = Code.SEND_MESSAGE_V2, BODY
    learn(world, world.ask(code, sends.short(fields), data, is_plain=True), topic)


def learn(world: World, told: Told, topic: str) -> None:
    """Keep where the first message is, and look when it was stored."""
    ids = told.pair(lambda answer: (answer.fields or {})["msgId"].split(",")[0])
    offsets = told.pair(lambda answer: int((answer.fields or {})["queueOffset"]))
    if ids is None or not told.is_success:
        return
    places = Pair(*(int(one[-16:], 16) for one in ids))
    world.sent.append(Sent(topic, 0, offsets.real, places, ids, "", ""))
    seen = world.ask(Code.VIEW_MESSAGE_BY_ID, {"offset": places}, is_plain=True, serializer=0)
    times = seen.pair(lambda answer: decoded(answer.body)[0].store_timestamp_ms)
    if times is not None:
        world.moments.append((topic, times))


def moment(world: World, topic: str) -> Any:
    """Draw a time: most often about when something was stored in a topic."""
    known = [times for name, times in world.moments if name == topic]
    if not known or world.likely(0.1):
        return world.pick(*TIMES, world.now_ms() + 60_000)
    shift = world.pick(-1, 0, 0, 0, 1)
    return Pair(*(one + shift for one in world.chance.choice(known)))


def topic_of(world: World) -> str:
    """Draw a topic, now and then one where nobody sends."""
    return str(
        world.pick(f"{world.prefix}-a", f"{world.prefix}-b", whole(world), whole(world))
        if world.likely(0.8)
        else world.pick(f"{world.prefix}-empty", "none", world.retry_topic(), "TBW102")
    )


def search(world: World) -> None:
    """Ask for a place by time."""
    topic = topic_of(world)
    fields = {
        "topic": topic, "queueId": world.pick(0, 0, 0, 0, 1, -1), "timestamp": moment(world, topic),
        "boundaryType": world.pick(None, "LOWER", "UPPER", "UPPER", "upper", "x", ""),
    }  # fmt: skip
    world.ask(Code.SEARCH_OFFSET_BY_TIMESTAMP, fields, is_plain=True)


def reset(world: World) -> None:
    """Have a group go on somewhere else, ask where it is, and pull as if it had not heard."""
    topic, group = topic_of(world), f"{world.prefix}-g{world.chance.randrange(3)}"
    queue = world.pick(None, -1, 0, 0, 0, 1, 7)
    fields = {
        "topic": topic, "group": group, "timestamp": moment(world, topic), "queueId": queue,
        "isForce": world.pick("true", "false"),
        "offset": world.pick(None, None, -1, -2, -5, 0, 1, 2, 3, 5, 100),
    }  # fmt: skip
    if topic in (whole(world), f"{world.prefix}-empty"):
        # Where batches are looked for by time before there is one Java breaks down.
        fields |= {"queueId": 0, "offset": world.pick(-2, -5, 0, 1, 2, 3, 100)}
        if topic == whole(world) and world.likely(0.5):
            fields["offset"] = None
        elif world.likely(0.3):
            fields["queueId"] = 7
        queue = fields["queueId"]
    world.ask(Code.INVOKE_BROKER_TO_RESET_OFFSET, fields, is_plain=True)
    place = {"consumerGroup": group, "topic": topic, "queueId": max(queue or 0, 0)}
    world.ask(Code.QUERY_CONSUMER_OFFSET, place, is_plain=True)
    if world.likely(0.5):
        asked = place | {
            "queueOffset": world.pick(0, 1, 3), "maxMsgNums": 32, "sysFlag": SUBSCRIBES,
            "commitOffset": 0, "suspendTimeoutMillis": 0, "subscription": "*", "subVersion": 1,
            "expressionType": "TAG",
        }  # fmt: skip
        world.ask(Code.PULL_MESSAGE, asked, is_plain=True)


def figures(world: World) -> None:
    """Ask about topics and groups as administrators do."""
    topic, group = topic_of(world), f"{world.prefix}-g{world.chance.randrange(3)}"
    code, fields = world.pick(
        (Code.GET_TOPIC_STATS_INFO, {"topic": topic}),
        (Code.GET_CONSUME_STATS, {"consumerGroup": group, "topic": topic}),
        (Code.GET_CONSUME_STATS, {"consumerGroup": group}),
        (Code.QUERY_CONSUME_TIME_SPAN, {"topic": topic, "group": group}),
        (Code.GET_EARLIEST_MSG_STORETIME, {"topic": topic, "queueId": world.pick(0, 0, 1, -1)}),
        (Code.GET_MIN_OFFSET, {"topic": topic, "queueId": 0}),
        (Code.GET_MAX_OFFSET, {"topic": topic, "queueId": 0}),
        (Code.QUERY_CORRECTION_OFFSET, {"topic": topic, "compareGroup": group}),
        (Code.QUERY_CONSUME_QUEUE, {"topic": topic, "queueId": 0, "index": world.pick(0, 1, 3),
                                    "count": 5}),
    )  # fmt: skip
    world.ask(code, fields, is_plain=True)


def look_inside(world: World) -> None:
    """Ask for a message where none starts."""
    message = world.message()
    if message is None:
        return
    inside = world.pick(*INSIDE)
    places = Pair(*(one + inside for one in message.physical_offset))
    ids = Pair(*(f"{one[:16]}{place:016X}"
                 for one, place in zip(message.message_id, places, strict=True)))  # fmt: skip
    group = f"{world.prefix}-g0"
    code, fields = world.pick(
        (Code.VIEW_MESSAGE_BY_ID, {"offset": places}),
        (Code.VIEW_MESSAGE_BY_ID, {"offset": places}),
        (Code.CONSUMER_SEND_MSG_BACK, {"offset": places, "group": group, "delayLevel": 18,
                                       "originTopic": message.topic, "unitMode": "false"}),
        (Code.RESUME_CHECK_HALF_MESSAGE, {"topic": message.topic, "msgId": ids}),
        (Code.CONSUME_MESSAGE_DIRECTLY, {"consumerGroup": group, "clientId": "nobody",
                                         "msgId": ids, "topic": message.topic}),
    )  # fmt: skip
    world.ask(code, fields, is_plain=True)
