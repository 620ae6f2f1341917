"""Timed messages: sent, taken back, and what is told of those that wait."""

from __future__ import annotations

import base64
from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.interop.drawn.pair import Pair
from tests.interop.drawn_rocketmq.sends import header, properties_text, short, unique_key
from tests.interop.drawn_rocketmq.twin import Told
from tests.interop.drawn_rocketmq.world import World

#: Nothing is due while a session lasts.
DELAYS = (
    ("TIMER_DELAY_SEC", "3600"), ("TIMER_DELAY_SEC", "7200"), ("TIMER_DELAY_MS", "3600500"),
    ("DELAY", "18"), ("DELAY", "17"), ("TIMER_DELAY_SEC", "x"), ("TIMER_DELAY_SEC", "99999999"),
)  # fmt: skip
HOUR_MS = 3_600_000
TABLES = ("topics", "subscriptionGroups", "consumerOffsets", "topics;consumerOffsets", "x",
          "topics;;", "TOPICS ", ";", "", None, "topics;x", " ")  # fmt: skip


def send_timed(world: World) -> None:
    """Send a message that is to come later, and keep the handle by which it is taken back."""
    topic = world.topic()
    drawn: dict[str, Any] = {"UNIQ_KEY": unique_key(world)} if world.likely(0.9) else {}
    name, value = world.pick(*DELAYS)
    drawn |= {"TAGS": world.pick("A", "B"), "WAIT": "true", name: value}
    if world.likely(0.25):
        del drawn[name]
        drawn["TIMER_DELIVER_MS"] = str(world.now_ms() + world.pick(1, 2) * HOUR_MS)
    fields = header(world, topic, properties_text(drawn)) | {
        "sysFlag": 0, "queueId": 0, "defaultTopic": "TBW102", "reconsumeTimes": 0,
        "producerGroup": f"{world.prefix}-p",
    }  # fmt: skip
    learn(world, world.ask(Code.SEND_MESSAGE_V2, short(fields), b"later", is_plain=True), topic)


def learn(world: World, told: Told, topic: str) -> None:
    """Keep a handle, and the topic that it is of."""
    handles = told.pair(lambda answer: (answer.fields or {})["recallHandle"])
    if handles is not None and told.is_success and None not in handles:
        world.handles.append((topic, handles))


def handle_of(*parts: Any) -> str:
    """Return a handle that says this."""
    return base64.urlsafe_b64encode(" ".join(map(str, parts)).encode()).decode()


def odd_handle(world: World, topic: str) -> str:
    """Draw a handle that no broker has given."""
    due, key = world.now_ms() + HOUR_MS, unique_key(world)
    whole = handle_of("v1", topic, "broker-a", due, key)
    return str(
        world.pick(
            "x", "", "djE=", "djE", "####", whole.rstrip("="), whole + "=", whole + "\n",
            whole[:-3], "+" + whole, whole.replace("d", "d d", 1),
            handle_of("v1", topic, "broker-a", due, key, "more"),
            handle_of("v1", topic, "broker-a", due), handle_of("v1", topic, "broker-a", due, ""),
            handle_of("v2", topic, "broker-a", due, key), handle_of("v1", topic, "x", due, key),
            handle_of("v1", "x", "broker-a", due, key), handle_of("v1", topic, "broker-a", 1, key),
            handle_of("v1", topic, "broker-a", f"+{due}", key),
            handle_of("v1", topic, "broker-a", due + 10**12, key),
            handle_of("v1", topic, "broker-a", "x", key), handle_of("", "", "", "", "x"),
            handle_of("v1", topic, "broker-a", due, "größer"), handle_of(" v1", topic, "x", due, 1),
            base64.urlsafe_b64encode(b"v1 \xff broker-a 1 k").decode(),
        )
    )  # fmt: skip


def recall(world: World) -> None:
    """Take a timed message back."""
    topic = world.topic()
    handle: Any = ""
    if world.handles and world.likely(0.6):
        known, handle = world.chance.choice(world.handles)
        topic = known if world.likely(0.9) else topic
        if world.likely(0.2):
            handle = Pair(*(one.rstrip("=") for one in handle))
    else:
        handle = odd_handle(world, topic)
    fields = {
        "producerGroup": world.pick(f"{world.prefix}-p", f"{world.prefix}-p", "", None),
        "topic": topic, "recallHandle": handle,
        "bname": world.pick(None, None, "broker-a"),
    }  # fmt: skip
    world.ask(Code.RECALL_MESSAGE, fields)


def metrics(world: World) -> None:
    """Ask how many messages of each topic wait."""
    world.ask(Code.GET_TIMER_METRICS, world.pick(None, {}))


def tables(world: World) -> None:
    """Ask a broker that has no RocksDB about what it keeps there."""
    if world.likely(0.6):
        asked = {"configType": world.pick(*TABLES)}
        world.ask(Code.EXPORT_ROCKSDB_CONFIG_TO_JSON, asked)
        return
    fields = {
        "topic": world.pick(None, world.topic()),
        "checkStoreTime": world.pick(None, 0, world.now_ms(), "x", -1),
    }  # fmt: skip
    world.ask(Code.CHECK_ROCKSDB_CQ_WRITE_PROGRESS, fields)
