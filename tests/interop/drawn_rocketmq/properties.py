"""Properties that no client writes: in headers, in batches, in odd letters; read byte for byte."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.compat.rocketmq.frames import framed
from tests.interop.drawn_rocketmq import marks, stored_bytes, topics
from tests.interop.drawn_rocketmq.pulls import SUBSCRIBES
from tests.interop.drawn_rocketmq.request import Request
from tests.interop.drawn_rocketmq.sends import header, learn, short, unique_key
from tests.interop.drawn_rocketmq.twin import SECONDS_MAX
from tests.interop.drawn_rocketmq.world import World

#: names that mean something to brokers or clients, but for times at which messages come
NAMES = (
    "KEYS", "TAGS", "WAIT", "RETRY_TOPIC", "ORIGIN_GROUP", "REAL_TOPIC", "REAL_QID", "PGROUP",
    "MIN_OFFSET", "MAX_OFFSET", "BUYER_ID", "ORIGIN_MESSAGE_ID", "TRANSFER_FLAG",
    "CORRECTION_FLAG", "MQ2_FLAG", "RECONSUME_TIME", "MSG_REGION", "TRACE_ON", "TRANS_OFFSET",
    "EXTEND_UNIQ_INFO", "MAX_RECONSUME_TIMES", "CONSUME_START_TIME", "_SYS_MSG_PRIORITY_",
    "INNER_NUM", "INNER_BASE", "DUP_INFO", "CHECK_IMMUNITY_TIME_IN_SECONDS",
    "TRAN_PREPARED_QUEUE_OFFSET", "__transactionId__", "TRANSACTION_CHECK_TIMES", "INSTANCE_ID",
    "CORRELATION_ID", "REPLY_TO_CLIENT", "TTL", "ARRIVE_TIME", "PUSH_REPLY_TIME", "CLUSTER",
    "MSG_TYPE", "POP_CK", "POP_CK_OFFSET", "1ST_POP_TIME", "__SHARDINGKEY",
    "PROPERTY_FORWARD_QUEUE_ID", "REDIRECT", "INNER_MULTI_QUEUE_OFFSET", "TRACE_CONTEXT",
    "__BORNHOST", "BORN_TIMESTAMP", "__RMQ.TRANSIENT.x", "TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS",
    "TIMER_ROLL_TIMES", "TIMER_ROLL_LABEL", "TIMER_DELAY_LEVEL", "__CRC32#", "DLQ_ORIGIN_TOPIC",
    "DLQ_ORIGIN_MESSAGE_ID", "UNIQ_KEY", "a", "", " ", "ü", "\U0001d11e", "#", "=",
)  # fmt: skip
VALUES = ("1", "0", "-1", "x", "true", " ", "", "ü", "\U0001d11e", "A", "k1 k2", "a=b",
          "2147483648", "null", "\n", "\0", "a,b", "v" * 300)  # fmt: skip
#: pieces of which texts are made that are no properties
PIECES = ("\x01", "\x02", "\x01", "\x02", "a", "b", "TAGS", "KEYS", "A", " ", "ü", "\0", "CLUSTER",
          "UNIQ_KEY", "\x01\x02", "ab\x01cd\x02", "a\x01b")  # fmt: skip
#: halves of a character, as Java's own encoding of texts has them
HALVES = (
    b"\xed\xa0\xb4\xed\xb4\x9e",
    b"\xed\xa0\x80",
    b"\xed\xb0\x80a",
    b"\xed\xb4\x9e\xed\xa0\xb4",
)
#: bytes that are no text: those of batches are stored as they are
NO_TEXTS = (b"\xff", b"\xc3", b"\xc3(", b"\xed\xa0\x80", b"\xf0\x9d\x84", b"\xc0\x80", b"\x80",
            b"\xf4\x90\x80\x80", b"a\xe2\x82", b"\xf8\x88\x80\x80\x80")  # fmt: skip
#: what the values of a header may be beside texts
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**31, 2**63, 1.5, 1e30, [], [1, "a"], {}, {"a": 1}, "", " ",
    "\ud800", "\udc00a", "null",
)  # fmt: skip
PLAIN = b"a body that is compressed, a body that is compressed, a body that is compressed"
BODIES = (
    b"plain", b"", b"\0", zlib.compress(PLAIN), zlib.compress(PLAIN)[:-5], b"\xff" * 40,
    b"\x04\x22\x4d\x18garbage", b"\x28\xb5\x2f\xfdgarbage", b"x" * 5_000,
)  # fmt: skip
SYS_FLAGS = (*[0] * 12, 1, 0x101, 0x201, 0x301, 0x401, 0x700, 8, 12, 0x40)
BORN = (1_700_000_000_000, -1, 0, -(2**63), 2**63 - 1)
LENGTHS = (1, 126, 127, 128, 129, 255, 256)


def first_topics(world: World) -> None:
    """Make a topic that filters by several tags."""
    topics.create(world, f"{world.prefix}-tagged", 1, is_plain=True, topicFilterType="MULTI_TAG")


def text_of(world: World) -> str:
    """Draw properties, or what looks like some."""
    kind = world.pick("names", "names", "names", "pieces", "pieces", "marks", "none")
    if kind == "names":
        text = "".join(
            f"{world.pick(*NAMES)}\x01{world.pick(*VALUES)}\x02"
            for _ in range(world.pick(1, 2, 3, 5))
        )
    elif kind == "pieces":
        text = "".join(world.pick(*PIECES) for _ in range(world.pick(1, 2, 3, 5, 9)))
    elif kind == "marks":
        text = marks.text_of(world, marks.without_times(marks.marked(world)))
    else:
        text = ""
    if world.likely(0.8):
        key = f"UNIQ_KEY\x01{unique_key(world)}\x02"
        text = world.pick(key + text, text + "\x02" + key, text + key)
    return text


def topic_of(world: World) -> str:
    """Draw a topic."""
    return f"{world.prefix}-{world.pick('a', 'b', 'tagged')}"


def odd_header(world: World, topic: str, text: str) -> dict[str, Any]:
    """Draw a header whose properties are odd, and little else."""
    return header(world, topic, text) | {
        "producerGroup": f"{world.prefix}-p", "defaultTopic": "TBW102", "queueId": 0,
        "sysFlag": world.pick(*SYS_FLAGS), "bornTimestamp": world.pick(*BORN), "batch": "false",
        "reconsumeTimes": world.pick(0, 0, 0, 1, None), "maxReconsumeTimes": None,
    }  # fmt: skip


def send(world: World) -> None:
    """Send one message."""
    topic = topic_of(world)
    text = text_of(world)
    fields = odd_header(world, topic, text)
    is_short = world.likely(0.6)
    code = Code.SEND_MESSAGE_V2 if is_short else Code.SEND_MESSAGE
    body = world.pick(*BODIES)
    told = world.ask(code, short(fields) if is_short else fields, body, is_plain=True)
    learn(world, told, topic, {})


def send_long(world: World) -> None:
    """Send to a topic whose name is as long as it may be, or longer."""
    name = f"{world.prefix}-{world.pick('x', '%', 'ü', '_')}"
    if world.likely(0.3):
        name = f"%RETRY%{name}"
    topic = name + "t" * (world.pick(*LENGTHS) - len(name))
    fields = odd_header(world, topic, text_of(world)) | {"reconsumeTimes": 0}
    world.ask(Code.SEND_MESSAGE_V2, short(fields), b"long", is_plain=True)


def send_oddly(world: World) -> None:
    """Send with fields that are no texts, that are there twice, or that nobody knows."""
    topic = topic_of(world)
    text = f"UNIQ_KEY\x01{unique_key(world)}\x02a\x01b\x02"
    fields = odd_header(world, topic, text) | {"sysFlag": 0, "reconsumeTimes": 0}
    is_short = world.likely(0.6)
    fields = short(fields) if is_short else fields
    names = ["properties", "unitMode", "batch", "maxReconsumeTimes", "own", "", "n", "bname"]
    if is_short:  # of its words Java takes a number that is none for null, and goes on
        names += ["flag", "reconsumeTimes", "bornTimestamp", "defaultTopicQueueNums"]
    for _ in range(world.pick(1, 1, 2)):
        name = world.pick(*names)
        name = short({name: 0}).popitem()[0] if is_short else name
        fields[name] = world.pick(*ODD_VALUES)
    code = Code.SEND_MESSAGE_V2 if is_short else Code.SEND_MESSAGE
    send_json(world, code, fields, b"odd")


def send_json(
    world: World,
    code: int,
    fields: dict[str, Any],
    body: bytes,
    mark: str = "HALVES",
    letters: bytes = b"",
) -> None:
    """Put a request to both as it is, on a connection of its own; letters stand for a mark."""
    content = {
        "code": int(code), "extFields": fields, "flag": 0, "language": "JAVA", "opaque": 77,
        "serializeTypeCurrentRPC": "JSON", "version": 513,
    }  # fmt: skip
    data = framed(json.dumps(content).encode().replace(mark.encode(), letters), body)
    asked = Request(int(code), fields, body, is_changed=True)
    world.twin.send_bytes(data, "odd", 77, asked, SECONDS_MAX)


def send_halves(world: World) -> None:
    """Send properties in which halves of a character are written one by one (CESU-8)."""
    mark = "HALVES"
    fields = odd_header(world, topic_of(world), f"KEYS\x01{mark}\x02UNIQ_KEY\x01{mark}\x02") | {
        "sysFlag": 0, "reconsumeTimes": 0, "flag": 0,
    }  # fmt: skip
    send_json(world, Code.SEND_MESSAGE_V2, short(fields), b"halves", mark, world.pick(*HALVES))


def frame(world: World) -> bytes:
    """
    Draw one message of a batch, with properties that may be no text.

    None says where a batch begins in a queue: not in numbers it has Java lose the message.
    """
    data: bytes = world.pick(*BODIES)
    text = text_of(world).replace("INNER_BASE", "BASE").encode("utf-8", "replace")
    if world.likely(0.2):
        text += b"k\x01" + world.pick(*NO_TEXTS) + world.pick(b"\x02", b"", b"\x02c\x01d\x02")
    text = text[:32_000]
    magic = world.pick(0, 0, 0, -626843481, -1, 7)
    head = struct.pack(">iiiii", 22 + len(data) + len(text), magic, world.pick(0, -1, 7),
                       world.pick(0, 1, -(2**31)), len(data))  # fmt: skip
    return head + data + struct.pack(">h", len(text)) + text


def send_batch(world: World) -> None:
    """Send several at once."""
    topic = topic_of(world)
    fields = odd_header(world, topic, world.pick("", text_of(world))) | {"batch": "true"}
    data = b"".join(frame(world) for _ in range(world.pick(1, 2, 3, 6)))
    code = world.pick(Code.SEND_BATCH_MESSAGE, Code.SEND_BATCH_MESSAGE, Code.SEND_MESSAGE_V2)
    world.ask(code, short(fields), data, is_plain=True)


def pull(world: World) -> None:
    """Read a queue, and compare every byte."""
    fields = {
        "consumerGroup": f"{world.prefix}-g0", "topic": topic_of(world), "queueId": 0,
        "queueOffset": world.pick(0, 0, 3, 8, 16), "maxMsgNums": world.pick(32, 32, 3),
        "sysFlag": SUBSCRIBES, "commitOffset": 0, "suspendTimeoutMillis": 0,
        "subscription": world.pick("*", "*", "*", "A", "A || ü"), "subVersion": world.now_ms(),
        "expressionType": "TAG",
    }  # fmt: skip
    if world.likely(0.15):
        fields |= {"expressionType": "SQL92", "subscription": world.pick(
            "a = 'b'", "a IS NOT NULL", "TAGS = 'A'", "ab = 'cd' OR a = '1'", "WAIT IS NULL",
            "KEYS = '#' OR REAL_QID = '0'", "CLUSTER = 'DefaultCluster'")}  # fmt: skip
    code = Code.LITE_PULL_MESSAGE if world.likely(0.2) else Code.PULL_MESSAGE
    stored_bytes.compare(world, world.ask(code, fields, is_plain=True), f"{code} {fields}")


def look(world: World) -> None:
    """Look for a message by its place or its keys, and compare every byte."""
    message = world.message()
    if message is None:
        return
    view = (Code.VIEW_MESSAGE_BY_ID, {"offset": message.physical_offset})
    asked = {"topic": message.topic, "key": world.pick("k1", "k2", "A", "1", "x", "#", "ü", "NO"),
             "maxNum": 32, "beginTimestamp": 0, "endTimestamp": 2**62,
             "indexType": world.pick(None, "K", "T")}  # fmt: skip
    code, fields = world.pick(view, (Code.QUERY_MESSAGE, asked))
    stored_bytes.compare(world, world.ask(code, fields, is_plain=True), f"{code} {fields}")
