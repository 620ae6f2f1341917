"""Messages are popped, acknowledged, put off and looked at."""

from __future__ import annotations

from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.compat.rocketmq.broker_peer import decoded
from tests.interop.drawn.pair import Pair
from tests.interop.drawn_rocketmq.pulls import EXPRESSIONS
from tests.interop.drawn_rocketmq.twin import Told
from tests.interop.drawn_rocketmq.world import World

#: nothing comes again while a session lasts
INVISIBLE_MS = 3_600_000
#: by so much a busy machine may be late: what was asked half a second ago is refused
LATE_MS = 5_000


def pop_fields(world: World) -> dict[str, Any]:
    """Draw the header of a pop."""
    topic = world.topic()
    kind, expression = world.pick(("TAG", "*"), ("TAG", "*"), ("TAG", "A"), (None, None))
    return {
        "consumerGroup": world.group(), "topic": topic,
        "queueId": world.pick(-1, -1, 0, 0, 0, world.queue(topic)),
        "maxMsgNums": world.pick(32, 1, 1, 2, 3, 33, 0, -1), "invisibleTime": INVISIBLE_MS,
        "pollTime": 0, "bornTime": world.now_ms() + LATE_MS,
        "initMode": world.pick(0, 0, 1, 1, 2, -1),
        "expType": kind, "exp": expression, "order": world.pick(None, "false"),
        "attemptId": world.pick(None, None, "a1", "a2"),
    }  # fmt: skip


def pop(world: World) -> None:
    """Pop without waiting, from one queue mostly: of several, each broker chooses its own."""
    fields = pop_fields(world)
    if fields["queueId"] == -1 and world.topics.get(fields["topic"], 1) > 1:
        fields["queueId"] = 0
    told = world.ask(Code.POP_MESSAGE, fields)
    learn(world, told, fields)


def pop_and_wait(world: World) -> None:
    """
    Pop, and wait for what is not there yet: what comes is not acknowledged.

    All messages are wanted: ours wakes whoever waits by any, and so somebody who does not want that
    one goes past it a little earlier.
    """
    fields: dict[str, Any] = pop_fields(world) | {
        "expType": None, "exp": None,
        "pollTime": 60_000, "maxMsgNums": 1, "invisibleTime": INVISIBLE_MS,
        "consumerGroup": f"{world.prefix}-waits",
    }  # fmt: skip
    if fields["queueId"] == -1 and world.topics.get(fields["topic"], 1) > 1:
        fields["queueId"] = 0
    request = world.request(Code.POP_MESSAGE, fields, is_plain=True)
    world.twin.begin(request, f"pop{world.chance.randrange(3)}")


def pop_in_order(world: World) -> None:
    """Pop from a queue that nobody else may have until all is acknowledged."""
    fields = pop_fields(world) | {
        "order": "true", "consumerGroup": f"{world.prefix}-ordered",
        "attemptId": world.pick(None, "a1", "a1", "a2"),
    }  # fmt: skip
    if fields["queueId"] == -1:
        fields["queueId"] = 0
    told = world.ask(Code.POP_MESSAGE, fields)
    learn(world, told, fields)


def learn(world: World, told: Told, fields: dict[str, Any]) -> None:
    """Keep what was popped, as a client puts its handles together."""
    if not told.is_success:
        return
    made = told.pair(
        lambda answer: [
            (one.topic, one.queue_id, one.queue_offset, (answer.fields or {})["popTime"],
             (answer.fields or {})["reviveQid"], (answer.fields or {})["invisibleTime"],
             starts(answer.fields or {}).get(f"{_retry(one.topic)} {one.queue_id}", 0))
            for one in decoded(answer.body)
        ]
    )  # fmt: skip
    if made is None or len(made.ours) != len(made.real):
        return
    for ours, real in zip(*made, strict=True):
        handle = Pair(*(
            f"{start} {popped} {invisible} {revive} {_retry(topic)} broker-a {queue} {offset}"
            for topic, queue, offset, popped, revive, invisible, start in (ours, real)
        ))  # fmt: skip
        world.popped.append(
            {
                "consumerGroup": fields["consumerGroup"], "topic": real[0], "queueId": real[1],
                "offset": real[2], "extraInfo": handle, "times": Pair(ours[3], real[3]),
                "revive": Pair(ours[4], real[4]), "start": real[6],
            }
        )  # fmt: skip


def starts(fields: dict[str, str]) -> dict[str, int]:
    """Return the first offset of each queue that was popped from."""
    found = {}
    for item in filter(None, fields.get("startOffsetInfo", "").split(";")):
        kind, queue, offset = item.split(" ")
        found[f"{kind} {queue}"] = int(offset)
    return found


def _retry(topic: str) -> int:
    if not topic.startswith("%RETRY%"):
        return 0
    return 2 if "+" in topic else 1


def handle_fields(world: World) -> dict[str, Any]:
    """Draw what was popped, or what was not."""
    if world.popped and world.likely(0.85):
        one = world.chance.choice(world.popped)
        fields = {name: one[name] for name in
                  ("consumerGroup", "topic", "queueId", "offset", "extraInfo")}  # fmt: skip
        if world.likely(0.1):
            fields["offset"] = world.pick(-1, 1000, 0)
        return fields
    topic = world.topic()
    return {
        "consumerGroup": world.group(), "topic": topic, "queueId": world.queue(topic),
        "offset": world.pick(0, 1, -1),
        "extraInfo": world.pick("", "x", "0 1 2 3 0 broker-a 0 0", "0 1 2 3 0 broker-a 0",
                                "0 1 2 999 0 broker-a 0 0", "a b c d e f g h", "0 1 2 0 9 x 0 0"),
    }  # fmt: skip


def ack(world: World) -> None:
    """Acknowledge."""
    world.ask(Code.ACK_MESSAGE, handle_fields(world))


def ack_batch(world: World) -> None:
    """Acknowledge several at once."""
    chosen = world.chance.sample(world.popped, min(len(world.popped), world.pick(1, 2)))
    acks = [
        {
            "c": one["consumerGroup"], "t": one["topic"], "r": str(_retry(one["topic"])),
            "so": one["start"], "q": one["queueId"], "it": INVISIBLE_MS,
            "rq": Pair(*map(int, one["revive"])), "pt": Pair(*map(int, one["times"])),
            # Over one that acknowledges nothing Java stumbles, and does not look at the next one.
            "b": world.pick("AQ==", "Aw==", "" if len(chosen) == 1 else "AQ==", "BQ=="),
        }
        for one in chosen
    ]  # fmt: skip
    body = {"brokerName": "broker-a", "acks": acks}
    world.ask(Code.BATCH_ACK_MESSAGE, world.pick(None, {}), body, is_plain=True)


def change(world: World) -> None:
    """Put a popped message off."""
    fields = handle_fields(world) | {"invisibleTime": world.pick(INVISIBLE_MS, 7_200_000, 0)}
    if fields["invisibleTime"] == 0:
        fields["extraInfo"] = world.pick("x", "0 1 2 999 0 broker-a 0 0")
    told = world.ask(Code.CHANGE_MESSAGE_INVISIBLETIME, fields)
    if told.is_success:
        world.popped = [one for one in world.popped if one["extraInfo"] != fields["extraInfo"]]


def peek(world: World) -> None:
    """Look at what would be popped."""
    topic = world.topic()
    queue = world.queue(topic)
    if queue < 0 and world.topics.get(topic, 1) > 1:
        queue = 0
    world.ask(
        Code.PEEK_MESSAGE,
        {"topic": topic, "queueId": queue, "consumerGroup": world.group(),
         "maxMsgNums": world.pick(32, 1, 2, 0, 33)},
    )  # fmt: skip


def notification_fields(world: World) -> dict[str, Any]:
    """Draw the header of a question for messages to pop."""
    topic = world.topic()
    kind, expression = world.pick((None, None), (None, None), *EXPRESSIONS)
    return {
        "consumerGroup": world.group(), "topic": topic,
        "queueId": world.pick(-1, 0, world.queue(topic)), "pollTime": 0,
        "bornTime": world.now_ms(), "order": world.pick(None, "true", "false"),
        "attemptId": world.pick(None, "a1"), "expType": kind, "exp": expression,
    }  # fmt: skip


def notification(world: World) -> None:
    """Ask whether there is something to pop."""
    world.ask(Code.NOTIFICATION, notification_fields(world))


def notification_waited_for(world: World) -> None:
    """Ask to be told when there is something to pop."""
    fields = notification_fields(world) | {"pollTime": 60_000}
    request = world.request(Code.NOTIFICATION, fields, is_plain=True)
    world.twin.begin(request, f"notice{world.chance.randrange(3)}")


def polling(world: World) -> None:
    """Ask how many wait."""
    topic = world.topic()
    world.ask(
        Code.POLLING_INFO,
        {"consumerGroup": world.group(), "topic": topic, "queueId": world.queue(topic)},
    )
