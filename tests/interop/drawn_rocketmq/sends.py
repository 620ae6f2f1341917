"""Messages are sent: one by one, many at once, back, and as answers to others."""

from __future__ import annotations

import struct
from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.interop.drawn.pair import Pair
from tests.interop.drawn_rocketmq.request import ONEWAY, SHORT
from tests.interop.drawn_rocketmq.twin import Told
from tests.interop.drawn_rocketmq.world import Sent, World

BORN_MS = 1_700_000_000_000
COMPRESSED, TRANSACTION_PREPARED = 1, 4
LARGE = 4 * 1024 * 1024 + 1


def properties_text(properties: dict[str, Any]) -> str:
    """Return properties as a client writes them."""
    return "".join(f"{name}\x01{value}\x02" for name, value in properties.items())


def unique_key(world: World) -> str:
    """Return a key as a client makes it."""
    return f"7F0000010000{world.chance.randrange(16**8):08X}{world.next():012X}"


def properties(world: World) -> dict[str, Any]:
    """Draw a message's properties."""
    found: dict[str, Any] = {}
    if world.likely(0.8):
        found["UNIQ_KEY"] = unique_key(world)
    if world.likely(0.5):
        found["KEYS"] = world.pick("k1", "k2", "k1 k2", " k3 ", "", "k" * 100)
    if world.likely(0.4):
        found["TAGS"] = world.pick("A", "B", "C", "", "A B", "ü")
    found["WAIT"] = world.pick("true", "false")
    if world.likely(0.2):
        name = world.pick("own", "a", "color", "TRACE_ON", "MSG_REGION", "CLUSTER", "__SHARDINGKEY")
        found[name] = world.pick("1", "x", "", "true")
    if world.likely(0.06):
        # No delay is over while a session lasts: when it comes would be a matter of chance.
        found["DELAY"] = world.pick("4", "5", "18", "19", "0", "-1", "x", "100")
    if world.likely(0.06):
        name, value = world.pick(
            ("TIMER_DELAY_SEC", "3600"), ("TIMER_DELAY_MS", "3600000"),
            ("TIMER_DELIVER_MS", str(world.now_ms() + 7_200_000)), ("TIMER_DELAY_SEC", "x"),
            ("TIMER_DELAY_SEC", "99999999"), ("TIMER_DELIVER_MS", "1"), ("TIMER_DELAY_MS", "-5"),
            ("TIMER_DELAY_SEC", "0"), ("TIMER_DELIVER_MS", str(world.now_ms() + 10**9)),
        )  # fmt: skip
        found[name] = value
    if world.likely(0.05):
        found[world.pick("RETRY_TOPIC", "TRAN_MSG", "__PRI")] = world.pick("1", "true")  # fmt: skip
    return found


def odd_properties(world: World) -> str:
    """Draw properties that no client would write."""
    return str(
        world.pick(
            "", "x", "\x01", "\x02", "a\x01b", "a\x01b\x02c", "\x01\x02", "a\x02", "WAIT\x01",
            "TAGS\x01A\x02TAGS\x01B\x02", "a\x01" + "v" * 40_000,
        )
    )  # fmt: skip


def header(world: World, topic: str, text: str | None) -> dict[str, Any]:
    """Draw the long header of a send."""
    return {
        "producerGroup": f"{world.prefix}-p" if world.likely(0.97) else world.pick("", "bad name"),
        "topic": topic,
        "defaultTopic": world.pick("TBW102", "TBW102", "TBW102", "no-such", ""),
        "defaultTopicQueueNums": world.pick(4, 4, 1, 0, -1, 100),
        "queueId": max(0, world.queue(topic)),
        "sysFlag": world.pick(*[0] * 10, COMPRESSED, 8, 12, 64),
        "bornTimestamp": BORN_MS + world.next(),
        "flag": world.pick(0, 0, 5, -1),
        "properties": text,
        "reconsumeTimes": world.pick(0, 0, None, 3, 17),
        "unitMode": world.pick("false", "false", None, "true"),
        "batch": world.pick("false", "false", None),
        "maxReconsumeTimes": world.pick(None, None, None, 16, 0),
    }


def body(world: World) -> bytes:
    """Draw a message's body."""
    if world.likely(0.02):
        return b"x" * int(world.pick(LARGE, LARGE - 1, 100_000))
    return bytes(world.pick(b"hello", b"", b"\0\xff", b"x" * 500, "größer".encode()))


def short(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a header in its second form."""
    return {SHORT.get(name, name): value for name, value in fields.items()}


def send(world: World) -> None:
    """Send one message, in either form."""
    drawn = properties(world)
    text = properties_text(drawn) if world.likely(0.94) else odd_properties(world)
    topic = world.topic()
    fields = header(world, topic, text)
    is_short = world.likely(0.7)
    code = Code.SEND_MESSAGE_V2 if is_short else Code.SEND_MESSAGE
    told = world.ask(
        code, short(fields) if is_short else fields, body(world),
        flag=ONEWAY if world.likely(0.04) else 0,
    )  # fmt: skip
    learn(world, told, topic, drawn)


def send_plainly(world: World) -> None:
    """Send what nobody objects to, so that there is something to read."""
    topic = world.chance.choice(list(world.topics) or [f"{world.prefix}-a"])
    drawn = {
        "UNIQ_KEY": unique_key(world), "KEYS": world.pick("k1", "k2"),
        "TAGS": world.pick("A", "B"), "WAIT": "true", "a": world.pick("1", "2"),
    }  # fmt: skip
    fields = header(world, topic, properties_text(drawn)) | {
        "sysFlag": 0, "queueId": 0, "defaultTopic": "TBW102", "reconsumeTimes": 0,
        "producerGroup": f"{world.prefix}-p",
    }  # fmt: skip
    told = world.ask(Code.SEND_MESSAGE_V2, short(fields), b"plain", is_plain=True)
    learn(world, told, topic, drawn)


def give_up(world: World) -> None:
    """Send what was tried too often to the retry topic, as an older client does."""
    drawn = {"UNIQ_KEY": unique_key(world), "TAGS": world.pick("A", "B"), "WAIT": "true"}
    fields = header(world, world.retry_topic(), properties_text(drawn)) | {
        "sysFlag": 0, "queueId": 0, "reconsumeTimes": world.pick(0, 3, 17),
        "maxReconsumeTimes": world.pick(None, 2, 16),
    }  # fmt: skip
    world.ask(Code.SEND_MESSAGE_V2, short(fields), b"tried", is_plain=True)


def learn(world: World, told: Told, topic: str, drawn: dict[str, Any]) -> None:
    """Keep where a message is."""
    ids = told.pair(lambda answer: (answer.fields or {})["msgId"])
    offsets = told.pair(lambda answer: int((answer.fields or {})["queueOffset"]))
    queues = told.pair(lambda answer: int((answer.fields or {})["queueId"]))
    if ids is None or not told.is_success or offsets.ours != offsets.real:
        return
    if "," in ids.ours or len(ids.ours) != len(ids.real) or len(ids.ours) != 32:
        return
    places = Pair(*(int(one[-16:], 16) for one in ids))
    world.sent.append(
        Sent(topic, queues.real, offsets.real, places, ids, drawn.get("KEYS", ""),
             drawn.get("UNIQ_KEY", ""))
    )  # fmt: skip


def batch_item(world: World) -> bytes:
    """Draw one message of a batch."""
    text = properties_text(
        {"UNIQ_KEY": unique_key(world), "TAGS": "A"} if world.likely(0.9) else properties(world)
    ).encode()
    data = bytes(world.pick(b"one", b"", b"x" * 300))
    size = 22 + len(data) + len(text)
    head = struct.pack(">iiiii", size, 0, world.pick(0, 0, 7), world.pick(0, 0, 3), len(data))
    return head + data + struct.pack(">h", len(text)) + text


def framed(data: bytes, text: str) -> bytes:
    """Return one message of a batch."""
    properties = text.encode()
    head = struct.pack(">iiiii", 22 + len(data) + len(properties), 0, 0, 0, len(data))
    return head + data + struct.pack(">h", len(properties)) + properties


def damaged(world: World, data: bytes) -> bytes:
    """Return the messages of a batch with a few bytes that are wrong."""
    position = world.chance.randrange(world.pick(22, len(data)))
    by: bytes = world.pick(b"", b"\0", b"\1", b"\x7f", b"\xff", b"\xff" * 4, b"\0" * 4)
    return data[:position] + by + data[position + world.pick(0, 1, 1, len(by), 4) :]


def batch_properties(world: World) -> str:
    """
    Draw the properties that stand in the header of a batch.

    Java puts one with a delivery time where its messages get lost, and says that all is well.
    """
    if world.likely(0.5):
        return ""
    drawn = {name: one for name, one in properties(world).items() if not name.startswith("TIMER_")}
    return properties_text(drawn) if world.likely(0.9) else odd_properties(world)


def send_batch(world: World) -> None:
    """Send several at once."""
    topic = world.topic()
    data = b"".join(batch_item(world) for _ in range(world.pick(1, 2, 3, 5)))
    fields = header(world, topic, batch_properties(world)) | {
        "batch": world.pick(*["true"] * 8, "TRUE", "false", None, "1")
    }
    if world.likely(0.1):
        data = b""
    elif world.likely(0.08):
        data = data[: world.chance.randrange(1, len(data))]
    elif world.likely(0.15):
        data = damaged(world, data)
    world.ask(Code.SEND_BATCH_MESSAGE, short(fields), data, is_plain=True)


def send_batch_by(world: World) -> None:
    """Send several at once by the code of single messages."""
    topic = world.topic()
    data = b"".join(batch_item(world) for _ in range(world.pick(1, 2, 3)))
    fields = header(world, topic, batch_properties(world)) | {"batch": "true"}
    is_short = world.likely(0.5)
    code = Code.SEND_MESSAGE_V2 if is_short else Code.SEND_MESSAGE
    world.ask(code, short(fields) if is_short else fields, data, is_plain=True)


def send_back(world: World) -> None:
    """Give a message back."""
    message = world.message()
    offset: Any = message.physical_offset if message is not None else 0
    if world.likely(0.1):
        offset = world.pick(-1, 2**40, 0)
    fields = {
        "offset": offset, "group": world.group(),
        "delayLevel": world.pick(0, 0, 3, -1, 18, 19, 100),
        "originMsgId": message.unique_key if message is not None else "x",
        "originTopic": message.topic if message is not None else world.topic(),
        "unitMode": world.pick("false", None, "true"),
        "maxReconsumeTimes": world.pick(16, 16, None, 0, -1, 1),
    }  # fmt: skip
    world.ask(Code.CONSUMER_SEND_MSG_BACK, fields)


def reply(world: World) -> None:
    """Answer a message to a client that may not be there."""
    topic = world.pick(world.topic(), "DefaultCluster_REPLY_TOPIC")
    drawn = properties(world) | {
        "REPLY_TO_CLIENT": world.pick("client-a", "nobody", ""), "CORRELATION_ID": "c1",
        "MSG_TYPE": "reply",
    }  # fmt: skip
    if world.likely(0.2):
        drawn.pop("REPLY_TO_CLIENT")
    fields = header(world, topic, properties_text(drawn))
    is_short = world.likely(0.7)
    code = Code.SEND_REPLY_MESSAGE_V2 if is_short else Code.SEND_REPLY_MESSAGE
    world.ask(code, short(fields) if is_short else fields, b"answer")
