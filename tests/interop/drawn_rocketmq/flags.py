"""Messages whose flags, bodies and ids fit nothing: sent in all ways, read back, asked for."""

from __future__ import annotations

import struct
import zlib
from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.interop.drawn_rocketmq import topics
from tests.interop.drawn_rocketmq.pulls import SUBSCRIBES
from tests.interop.drawn_rocketmq.sends import (
    BORN_MS,
    TRANSACTION_PREPARED,
    header,
    learn,
    short,
    unique_key,
)
from tests.interop.drawn_rocketmq.world import World

#: A client that says that a host is IPv6, which is not, has Java store what nobody can read, and
#: lose what follows it; ours says what the hosts are.
OF_HOSTS = 0x30
SYS_FLAGS = (0, 1, 2, 3, 8, 0x40, 0x80, 0xC0, 0x100, 0x101, 0x201, 0x301, 0x401, 0x501, 0x601,
             0x701, 0x702, 0x800, 0x1000, 0x40000000, 2**31 - 1 - OF_HOSTS - 0x80, -(2**31),
             -(2**31) + 1, ~(OF_HOSTS | 0x8C), 0xFFF & ~(OF_HOSTS | 0x8C), 4, 12,
             5, 13)  # fmt: skip
FLAGS = (0, 1, -1, 2**31 - 1, -(2**31), 2**31, -(2**31) - 1, "x", "", "+1", " 1", "1.0", "0x1")
TIMES = (BORN_MS, 0, -1, 2**63 - 1, -(2**63), 1, 2**31)
PLAIN = b"a body that is compressed, a body that is compressed, a body that is compressed"
ZLIB = zlib.compress(PLAIN)
BODIES = (
    b"plain", b"", b"\0", ZLIB, ZLIB[:-4], ZLIB[:5], b"x\x9c", b"x\x9cgarbage", b"\xff" * 40,
    b"\x04\x22\x4d\x18garbage", b"\x28\xb5\x2f\xfdgarbage", ZLIB + b"more", PLAIN,
    b"\x04\x22\x4d\x18@@\xc0" + b"\0" * 8,
)  # fmt: skip
TEXTS = (
    "", "\x01", "\x02", "\x01\x02", "\x02\x01", "a", "a\x01", "a\x01\x02", "\x01a\x02", "a\x01b",
    "a\x01b\x02c", "a\x01b\x02c\x01", "a\x01b\x02\x02c\x01d", "a\x01b\x01c\x02", "a\x01\x01b\x02",
    "\x02\x02\x02", "TAGS\x01\x02", "TAGS\x01A", "TAGS\x01\x01A\x02", "KEYS\x01\x02",
    "KEYS\x01 \x02",
    "a\x01b\x02a\x01c\x02", "\x00\x01\x00\x02", "a\x01\ud7ff\x02", "a\x01\U0001f600\x02",
    "WAIT\x01false\x02WAIT\x01true\x02", "UNIQ_KEY\x01\x02", "UNIQ_KEY\x01", " TAGS\x01A\x02",
    "TAGS \x01A\x02", "a\x01b\x02" * 500, "\x01\x01\x02", "KEYS\x01k1\x01k2\x02", "\n\x01\r\x02",
)  # fmt: skip
#: made-up ids: of either length, of other lengths, and with what is no digit
IDS = ("", "x", "0" * 32, "0" * 56, "F" * 32, "f" * 56, "0" * 31, "0" * 33, "0" * 55, "0" * 57,
       "7F000001000000000000000000000000", "G" * 32, "0" * 24 + "7FFFFFFF", "é" * 32,
       "0" * 40 + "FFFFFFFFFFFFFFFF", "0" * 16 + "FFFFFFFFFFFFFFFF", "7f000001" + "0" * 24,
       " " * 32)  # fmt: skip


def first_topics(world: World) -> None:
    """Make what every session has: topics of several tags, and of batches."""
    topics.create(world, tagged(world), 1, is_plain=True, topicFilterType="MULTI_TAG")
    more = {"attributes": "+queue.type=BatchCQ,+message.type=NORMAL"}
    topics.create(world, batched(world), 1, is_plain=True, **more)


def tagged(world: World) -> str:
    """Return the topic that filters by several tags."""
    return f"{world.prefix}-tagged"


def batched(world: World) -> str:
    """Return the topic of whole batches."""
    return f"{world.prefix}-batched"


def text_of(world: World) -> str:
    """Draw properties, with the key of a client or without."""
    text = (
        world.pick(*TEXTS) if world.likely(0.6) else world.pick("TAGS\x01A\x02KEYS\x01k1\x02", "")
    )
    if world.likely(0.7):
        key = f"UNIQ_KEY\x01{unique_key(world)}\x02"
        text = key + text if world.likely(0.7) else text + key
    if world.likely(0.1):
        text += world.pick("DELAY\x0118\x02", "TIMER_DELAY_SEC\x013600\x02", "DELAY\x01x\x02")
    return str(text)


def odd_header(world: World, topic: str) -> dict[str, Any]:
    """Draw the header of a send."""
    return header(world, topic, text_of(world)) | {
        "sysFlag": world.pick(*SYS_FLAGS), "flag": world.pick(*FLAGS) if world.likely(0.2) else 0,
        "bornTimestamp": world.pick(*TIMES), "queueId": 0, "defaultTopic": "TBW102",
        "producerGroup": f"{world.prefix}-p", "batch": "false",
        "reconsumeTimes": world.pick(0, 0, 0, 1, -1, 2**31 - 1, None),
        "unitMode": world.pick("false", "true", None),
    }  # fmt: skip


def send(world: World) -> None:
    """Send one message."""
    topic = world.chance.choice(list(world.topics))
    fields = odd_header(world, topic)
    if world.likely(0.15):
        group = f"{world.prefix}-p"
        fields["properties"] += f"TRAN_MSG\x01true\x02PGROUP\x01{group}\x02"
    if world.likely(0.15) and not fields["sysFlag"] & TRANSACTION_PREPARED:
        # Of what is in no queue Java counts places in light queues all the same.
        fields["properties"] += f"INNER_MULTI_DISPATCH\x01%LMQ%{world.prefix}\x02"
    if fields["sysFlag"] & 0x80 and topic == batched(world):
        fields["sysFlag"] &= ~0x80  # Java believes it, and counts what is not there
    is_short = world.likely(0.6)
    code = Code.SEND_MESSAGE_V2 if is_short else Code.SEND_MESSAGE
    body = world.pick(*BODIES)
    told = world.ask(code, short(fields) if is_short else fields, body, is_plain=True)
    if "INNER_MULTI" not in fields["properties"]:
        # Given up, it would take one more place in its light queue in Java.
        learn(world, told, topic, {})


def frame(world: World) -> bytes:
    """Draw one message of a batch, whose lengths may not fit."""
    data: bytes = world.pick(*BODIES)
    text = text_of(world).encode("utf-8", "replace")[:32_000]
    text = b"" if b"DELAY" in text else text
    size = 22 + len(data) + len(text)
    head = [size, 0, 0, world.pick(0, 1, -1, 2**31 - 1, -(2**31)), len(data)]
    if world.likely(0.1):
        number = world.pick(0, 1, 2, 4)
        head[number] = world.pick(0, -1, 1, 2**31 - 1, -(2**31), head[number] + 1, head[number] - 1)
    length = world.pick(len(text), len(text), len(text), len(text), len(text) - 1, len(text) + 1, 0,
                        0xFFFF, 0x7FFF) if world.likely(0.15) else len(text)  # fmt: skip
    return struct.pack(">iiiii", *head) + data + struct.pack(">H", length & 0xFFFF) + text


def send_batch(world: World) -> None:
    """Send several at once: one behind the other, or to a queue that keeps them together."""
    topic = world.pick(f"{world.prefix}-a", f"{world.prefix}-b", batched(world), tagged(world))
    fields = odd_header(world, topic) | {
        "batch": "true", "properties": f"UNIQ_KEY\x01{unique_key(world)}\x02",
    }  # fmt: skip
    if world.likely(0.4):
        text = text_of(world)
        fields["properties"] = "" if "DELAY" in text else text
    frames = [frame(world) for _ in range(world.pick(1, 1, 2, 3))]
    data = b"".join(frames)
    if topic == batched(world):
        # Java counts what is in there by sizes alone, and never ends where one is 0 or less.
        data = b"".join(struct.pack(">i", len(one)) + one[4:] for one in frames)
    elif world.likely(0.1):
        data += world.pick(b"\0", b"\0\0\0\0", b"\xff" * 4, b"\0" * 22, b"\0" * 30)
    code = world.pick(Code.SEND_BATCH_MESSAGE, Code.SEND_BATCH_MESSAGE, Code.SEND_MESSAGE)
    is_short = code != Code.SEND_MESSAGE
    world.ask(code, short(fields) if is_short else fields, data, is_plain=True)


def send_reply(world: World) -> None:
    """Answer a message, to nobody."""
    fields = odd_header(world, "DefaultCluster_REPLY_TOPIC")
    fields["properties"] += (
        "REPLY_TO_CLIENT\x01nobody\x02CORRELATION_ID\x01c1\x02MSG_TYPE\x01reply\x02"
    )
    world.ask(Code.SEND_REPLY_MESSAGE_V2, short(fields), world.pick(*BODIES), is_plain=True)


def give_back(world: World) -> None:
    """Give a message back, whatever it is."""
    message = world.message()
    if message is None:
        return
    fields = {
        "offset": message.physical_offset, "group": f"{world.prefix}-g{world.chance.randrange(3)}",
        "delayLevel": world.pick(18, 17, -1, 2**31 - 1, -(2**31)),
        "originMsgId": world.pick(message.unique_key, *IDS), "originTopic": message.topic,
        "unitMode": "false", "maxReconsumeTimes": world.pick(16, 2**31 - 1, -(2**31)),
    }  # fmt: skip
    world.ask(Code.CONSUMER_SEND_MSG_BACK, fields, is_plain=True)


def pull(world: World) -> None:
    """Read a queue."""
    topic = world.pick(*world.topics, f"%LMQ%{world.prefix}", "SCHEDULE_TOPIC_XXXX")
    fields = {
        "consumerGroup": f"{world.prefix}-g0", "topic": topic,
        "queueId": 17 if topic == "SCHEDULE_TOPIC_XXXX" else 0,
        "queueOffset": world.pick(0, 0, 1, 3, 8), "maxMsgNums": world.pick(32, 2),
        "sysFlag": SUBSCRIBES, "commitOffset": 0, "suspendTimeoutMillis": 0,
        "subscription": world.pick("*", "*", "A"), "subVersion": world.now_ms(),
        "expressionType": "TAG",
    }  # fmt: skip
    world.ask(Code.PULL_MESSAGE, fields, is_plain=True)


def pop(world: World) -> None:
    """Pop what is there: Java writes what is compressed anew where several are merged."""
    topic = world.pick(*world.topics)
    fields = {
        "consumerGroup": f"{world.prefix}-pops", "topic": topic, "queueId": 0,
        "maxMsgNums": world.pick(1, 3, 32), "invisibleTime": 3_600_000, "pollTime": 0,
        "bornTime": world.now_ms() + 5_000, "initMode": 0, "expType": "TAG", "exp": "*",
    }  # fmt: skip
    world.ask(Code.POP_MESSAGE, fields, is_plain=True)


def ask_by_id(world: World) -> None:
    """Ask about a message by an id that may be none."""
    message = world.message()
    name: Any = world.pick(*IDS)
    if message is not None and world.likely(0.3):
        name = message.message_id
    kind = world.pick("resume", "direct", "query", "recall")
    topic = message.topic if message is not None else f"{world.prefix}-a"
    if kind == "resume":
        world.ask(Code.RESUME_CHECK_HALF_MESSAGE, {"topic": topic, "msgId": name}, is_plain=True)
    elif kind == "direct":
        fields = {"consumerGroup": f"{world.prefix}-g0", "clientId": "nobody", "msgId": name,
                  "brokerName": "broker-a", "topic": topic}  # fmt: skip
        world.ask(Code.CONSUME_MESSAGE_DIRECTLY, fields, is_plain=True)
    else:
        asked = {
            "topic": topic, "key": name, "maxNum": 32, "beginTimestamp": world.pick(0, -(2**63)),
            "endTimestamp": world.pick(2**63 - 1, 2**62), "_UNIQUE_KEY_QUERY": "true",
        }  # fmt: skip
        world.ask(Code.QUERY_MESSAGE, asked, is_plain=True)
