"""Half messages, and what becomes of them."""

from __future__ import annotations

from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.interop.drawn.pair import Pair
from tests.interop.drawn_rocketmq.sends import header, properties, properties_text, short
from tests.interop.drawn_rocketmq.twin import Told
from tests.interop.drawn_rocketmq.world import World

COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0


def send_half(world: World) -> None:
    """Send a half message."""
    topic = world.topic()
    group = f"{world.prefix}-p"
    drawn = properties(world) | {"TRAN_MSG": world.pick("true", "true", "TRUE", "x"),
                                 "PGROUP": world.pick(group, group, "x")}  # fmt: skip
    drawn.pop("DELAY", None)
    if world.likely(0.1):
        drawn["CHECK_IMMUNITY_TIME_IN_SECONDS"] = world.pick("100", "-1", "x")
    fields = header(world, topic, properties_text(drawn)) | {
        "sysFlag": world.pick(4, 4, 4, 0),
        "producerGroup": group,
    }
    told = world.ask(Code.SEND_MESSAGE_V2, short(fields), b"half")
    learn(world, told, topic, drawn.get("UNIQ_KEY", "x"))


def learn(world: World, told: Told, topic: str, key: str) -> None:
    """Keep a half message that both have."""
    ids = told.pair(lambda answer: (answer.fields or {})["msgId"])
    offsets = told.pair(lambda answer: int((answer.fields or {})["queueOffset"]))
    if ids is None or not told.is_success or len(ids.ours) != 32 or len(ids.real) != 32:
        return
    world.halves.append(
        {
            "topic": topic, "producerGroup": f"{world.prefix}-p",
            "tranStateTableOffset": offsets,
            "commitLogOffset": Pair(*(int(one[-16:], 16) for one in ids)),
            "msgId": key, "transactionId": key, "id": ids,
        }
    )  # fmt: skip


def end(world: World) -> None:
    """Decide about one."""
    if not world.halves:
        send_half(world)
        return
    one = world.chance.choice(world.halves)
    decision = world.pick(COMMIT, COMMIT, ROLLBACK, UNKNOWN, 4, 1)
    fields: dict[str, Any] = {name: value for name, value in one.items() if name != "id"} | {
        "commitOrRollback": decision, "fromTransactionCheck": world.pick("false", None, "true"),
    }  # fmt: skip
    if world.likely(0.15):
        name = world.pick("producerGroup", "tranStateTableOffset", "commitLogOffset", "topic")
        fields[name] = {
            "producerGroup": "x", "topic": world.topic(), "tranStateTableOffset": 1000,
            "commitLogOffset": world.pick(-1, 2**50),
        }[name]  # fmt: skip
    # The broker does not answer to what it is told in one way.
    world.ask(Code.END_TRANSACTION, fields)
    if decision in {COMMIT, ROLLBACK} and world.likely(0.9):
        world.halves.remove(one)


def resume(world: World) -> None:
    """Have a half message checked again."""
    one = world.chance.choice(world.halves) if world.halves else None
    name = world.pick(one["id"] if one is not None else "x", "x", None)
    world.ask(Code.RESUME_CHECK_HALF_MESSAGE, {"topic": world.pick(None, world.topic()),
                                               "msgId": name})  # fmt: skip
