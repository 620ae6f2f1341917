"""Messages whose properties mean something, or look as if: sent, read, and looked for by them."""

from __future__ import annotations

import struct

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.interop.drawn.pair import Pair
from tests.interop.drawn_rocketmq.pulls import SUBSCRIBES
from tests.interop.drawn_rocketmq.sends import (
    BORN_MS,
    header,
    learn,
    properties_text,
    short,
    unique_key,
)
from tests.interop.drawn_rocketmq.world import World

KEYS = ("k1", "k2", "k1 k2", "  ", "k1  k2", "k1\tk2", "ключ", "k1#k2", " k1", "k1 k1", "#", "K1",
        "k" * 300, "\U0001d11e", "k1 ")  # fmt: skip
#: of two the hashes are the same
TAGS = ("A", "B", " A ", "A||B", "*", "ü", "\U0001d11e", "Aa", "BB", "A" * 300, "||", "a")
UNIQUE = ("short", "k1", "a b", "  ", "x" * 32, "7f00000100000000000000000000000f", "ü", "#")
#: properties with what they may say; none is due while a session lasts
MARKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("KEYS", KEYS),
    ("KEYS", KEYS),
    ("TAGS", TAGS),
    ("TAGS", TAGS),
    ("UNIQ_KEY", UNIQUE),
    ("WAIT", ("false", "TRUE", "x")),
    ("DELAY", ("-1", "0", "x", "+18", " 18", "018", "18", "19", "99999999999", "1.5")),
    ("_SYS_MSG_PRIORITY_", ("0", "1", "7", "-1", "x", "99999999999", "+1")),
    ("INNER_MULTI_DISPATCH", ("%LMQ%a", "%LMQ%a,%LMQ%b", "plain", "%LMQ%")),
    ("INNER_NUM", ("1", "2", "0", "-1", "x")),
    ("RECONSUME_TIME", ("3", "x", "-1")),
    ("MAX_RECONSUME_TIMES", ("16", "0", "x")),
    ("REAL_TOPIC", ("x", "TBW102")),
    ("REAL_QID", ("0", "3", "x")),
    ("RETRY_TOPIC", ("x",)),
    ("ORIGIN_MESSAGE_ID", ("x", "0" * 32)),
    ("PGROUP", ("p", "x")),
    ("CLUSTER", ("x",)),
    ("POP_CK", ("0 1 2 3", "x")),
    ("1ST_POP_TIME", ("1", "x")),
    ("MSG_TYPE", ("reply", "x")),
    ("TTL", ("1000", "x")),
    ("BORN_TIMESTAMP", ("1", "x")),
    ("__BORNHOST", ("1.2.3.4", "x")),
    ("INSTANCE_ID", ("x",)),
    ("TRAN_MSG", ("true", "TRUE", "false", "x", " true")),
    ("__STARTDELIVERTIME", ("1", "x")),
    ("TRANSACTION_CHECK_TIMES", ("3", "x")),
    ("CHECK_IMMUNITY_TIME_IN_SECONDS", ("60", "x", "-1")),
    ("TIMER_DELAY_SEC", ("3600", "+3600", "1.5", "x", "-1", "0x10", " 3600", "259201")),
    ("TIMER_DELAY_MS", ("3600000", "-1", "x", "9223372036854775807", "+3600000")),
    ("TIMER_DELIVER_MS", ("x", "9223372036854775808", "-1", "0")),
    ("TIMER_ROLL_TIMES", ("1", "x")),
    ("TIMER_ENQUEUE_MS", ("1", "x")),
    ("TIMER_OUT_MS", ("1", "1700000000000")),
    ("TIMER_DELAY_LEVEL", ("1", "x")),
    ("__SHARDINGKEY", ("s", "ü")),
    ("__RMQ.TRANSIENT.TOPIC_SYS_FLAG", ("1",)),
    ("own name", ("own value", "=", ",", "a" * 2_000)),
    ("größe", ("größer",)),
    ("a", ("1", "2", "-1", "1.5", "'1'", "true", "null", "9223372036854775808")),
)  # fmt: skip
EXPRESSIONS = (
    ("TAG", "*"), ("TAG", "*"), ("TAG", "*"), ("TAG", "A"), ("TAG", "Aa"), ("TAG", "BB"),
    ("TAG", "ü"), ("TAG", "A || Aa"), ("TAG", "*||A"), ("TAG", " * "), ("TAG", "\U0001d11e"),
    ("SQL92", "a = 1"), ("SQL92", "a <> 1"), ("SQL92", "a > 0"), ("SQL92", "a BETWEEN -1 AND 1.5"),
    ("SQL92", "a IS NULL"), ("SQL92", "a = 'true'"), ("SQL92", "a = TRUE"), ("SQL92", "TAGS = 'A'"),
    ("SQL92", "KEYS = 'k1'"), ("SQL92", "a = '''1'''"), ("SQL92", "TAGS IN ('A', 'Aa')"),
    ("SQL92", "a STARTSWITH '1'"), ("SQL92", "WAIT = 'false' OR a NOT IN ('1')"),
    ("SQL92", "UNIQ_KEY CONTAINS '0'"), ("SQL92", "a >= 1 AND a <= 2 OR TAGS IS NOT NULL"),
)  # fmt: skip
FLAGS = (1, 2, 3, 8, 64, 0x100, 0x200, 0x300, 0x80)
#: queues of no topic of a session: light ones, and those of what is not for now
WHERE_THEY_WAIT = (
    ("%LMQ%a", 0), ("%LMQ%b", 0), ("%LMQ%", 0), ("plain", 0), ("SCHEDULE_TOPIC_XXXX", 17),
    ("SCHEDULE_TOPIC_XXXX", 17), ("rmq_sys_wheel_timer", 0), ("RMQ_SYS_TRANS_HALF_TOPIC", 0),
)  # fmt: skip
PROPERTIES_BYTES_MAX = 32_767


def marked(world: World) -> dict[str, str]:
    """Draw a message's properties."""
    found = {"UNIQ_KEY": unique_key(world)} if world.likely(0.85) else {}
    for _ in range(world.pick(1, 1, 2, 3)):
        name, values = world.pick(*MARKS)
        found[name] = world.chance.choice(values)
    return found


def text_of(world: World, drawn: dict[str, str]) -> str:
    """Return properties as text, now and then as no client would write them."""
    text = properties_text(drawn)
    if world.likely(0.06):
        text += world.pick(
            "KEYS\x01k9\x02", "TAGS\x01B\x02", "a\x01", "\x02\x02", "a\x01\x02", "\x02a\x012"
        )  # fmt: skip
    if text and world.likely(0.05):
        text = text[: world.chance.randrange(len(text))]
    if world.likely(0.03):  # as long as they may be, or a little longer
        size = len(text.encode()) + len("long\x01\x02")
        room = PROPERTIES_BYTES_MAX - size - world.pick(0, 1, 2, 20, 23, 24, 25, 26, 60, -1)
        text += f"long\x01{'v' * room}\x02"
    return text


def send(world: World) -> None:
    """Send a message with such properties."""
    topic = world.topic() if world.likely(0.1) else world.chance.choice(list(world.topics))
    if world.likely(0.05):
        topic = world.retry_topic()
    drawn = marked(world)
    fields = header(world, topic, text_of(world, drawn)) | {
        "sysFlag": world.chance.choice(FLAGS) if world.likely(0.06) else 0,
        "queueId": world.pick(0, 0, 0, 1), "defaultTopic": "TBW102",
        "producerGroup": f"{world.prefix}-p",
    }  # fmt: skip
    is_short = world.likely(0.6)
    code = Code.SEND_MESSAGE_V2 if is_short else Code.SEND_MESSAGE
    body = world.pick(b"marked", b"", b"x\x9c")
    told = world.ask(code, short(fields) if is_short else fields, body, is_plain=True)
    learn(world, told, topic, drawn)


def batch_item(world: World) -> bytes:
    """Draw one message of a batch, with what its own header cannot say."""
    text = text_of(world, without_times(marked(world))).encode()
    data: bytes = world.pick(b"one", b"", b"x" * 300)
    size = 22 + len(data) + len(text)
    head = struct.pack(">iiiii", size, 0, 0, world.pick(0, 0, 3), len(data))
    return head + data + struct.pack(">H", len(text)) + text


def without_times(drawn: dict[str, str]) -> dict[str, str]:
    """Return properties without those of times: Java loses such messages (SKIPPED.md)."""
    return {name: one for name, one in drawn.items() if not name.startswith(("TIMER_", "DELAY"))}


def send_batch(world: World) -> None:
    """Send several at once, in either way."""
    topic = world.chance.choice(list(world.topics))
    data = b"".join(batch_item(world) for _ in range(world.pick(1, 2, 3, 5)))
    text = text_of(world, without_times(marked(world))) if world.likely(0.4) else ""
    fields = header(world, topic, text) | {"batch": "true", "defaultTopic": "TBW102"}
    if world.likely(0.06):
        fields["sysFlag"] = world.chance.choice(FLAGS)
    code = world.pick(Code.SEND_BATCH_MESSAGE, Code.SEND_BATCH_MESSAGE, Code.SEND_MESSAGE)
    is_short = code != Code.SEND_MESSAGE
    world.ask(code, short(fields) if is_short else fields, data, is_plain=True)


def repeat(world: World) -> None:
    """Send the like again and again, as most producers do: one message or a batch each time."""
    topic = world.chance.choice(list(world.topics))
    drawn = {"UNIQ_KEY": ""} | marked(world) if world.likely(0.6) else {"UNIQ_KEY": ""}
    if world.likely(0.8):
        drawn |= {"WAIT": "true", "KEYS": "k1"}
    is_batch = world.likely(0.35)
    if is_batch:
        drawn = without_times(drawn)
    fields = header(world, topic, "") | {
        "queueId": 0, "defaultTopic": "TBW102", "producerGroup": f"{world.prefix}-p",
        "sysFlag": world.chance.choice((*FLAGS, 4, 12)) if world.likely(0.15) else 0,
        "batch": "true" if is_batch else world.pick("false", None, "0", "1"),
    }  # fmt: skip
    code = Code.SEND_BATCH_MESSAGE if is_batch else Code.SEND_MESSAGE_V2
    for _ in range(world.pick(3, 4, 6)):
        key = drawn["UNIQ_KEY"] or unique_key(world)
        text = properties_text(drawn | {"UNIQ_KEY": key})
        body = batch_item(world) + batch_item(world) if is_batch else b"again"
        asked = short(fields | {"properties": text, "bornTimestamp": BORN_MS + world.next()})
        world.ask(code, asked, body, is_plain=True, version=513, serializer=0)


def send_half(world: World) -> None:
    """Send half of a transaction with such properties, and decide about it."""
    topic = world.chance.choice(list(world.topics))
    group = f"{world.prefix}-p"
    drawn = marked(world) | {"TRAN_MSG": "true", "PGROUP": group}
    fields = header(world, topic, properties_text(drawn)) | {
        "sysFlag": 4, "queueId": 0, "producerGroup": group, "defaultTopic": "TBW102",
        "batch": "false",
    }  # fmt: skip
    told = world.ask(Code.SEND_MESSAGE_V2, short(fields), b"half", is_plain=True)
    ids = told.pair(lambda answer: (answer.fields or {})["msgId"])
    offsets = told.pair(lambda answer: int((answer.fields or {})["queueOffset"]))
    if ids is None or not told.is_success or {len(ids.ours), len(ids.real)} != {32}:
        return
    ended = {
        "topic": topic, "producerGroup": group, "tranStateTableOffset": offsets,
        "commitLogOffset": Pair(*(int(one[-16:], 16) for one in ids)),
        "commitOrRollback": world.pick(8, 8, 8, 12), "fromTransactionCheck": "false",
        "msgId": drawn.get("UNIQ_KEY", "x"), "transactionId": drawn.get("UNIQ_KEY", "x"),
    }  # fmt: skip
    world.ask(Code.END_TRANSACTION, ended, is_plain=True)


def give_back(world: World) -> None:
    """Give a message back for much later."""
    message = world.message()
    if message is None:
        return
    fields = {
        "offset": message.physical_offset, "group": f"{world.prefix}-g0", "delayLevel": 18,
        "originMsgId": message.unique_key, "originTopic": message.topic, "unitMode": "false",
        "maxReconsumeTimes": 16,
    }  # fmt: skip
    world.ask(Code.CONSUMER_SEND_MSG_BACK, fields, is_plain=True)


def pull(world: World) -> None:
    """Read a queue from its start."""
    topic = world.chance.choice(list(world.topics))
    kind, expression = world.pick(*EXPRESSIONS)
    queue = world.pick(0, 0, 1)
    if world.likely(0.2):
        topic, queue = world.chance.choice(WHERE_THEY_WAIT)
    fields = {
        "consumerGroup": f"{world.prefix}-g0", "topic": topic, "queueId": queue,
        "queueOffset": world.pick(0, 0, 0, 1, 3), "maxMsgNums": world.pick(32, 32, 2),
        "sysFlag": SUBSCRIBES, "commitOffset": 0, "suspendTimeoutMillis": 0,
        "subscription": expression, "subVersion": world.now_ms(), "expressionType": kind,
    }  # fmt: skip
    world.ask(Code.PULL_MESSAGE, fields, is_plain=True)


def query(world: World) -> None:
    """Look for messages by what their keys may be."""
    topic = world.chance.choice(list(world.topics))
    is_unique = world.likely(0.3)
    key = world.pick(*UNIQUE) if is_unique else world.pick(*KEYS, "k9", "K1")
    message = world.message()
    if message is not None and world.likely(0.3):
        topic, key = message.topic, message.unique_key if is_unique else message.key
    fields = {
        "topic": topic, "key": key, "maxNum": world.pick(32, 32, 1, 64, 65),
        "beginTimestamp": 0, "endTimestamp": 2**62,
        "_UNIQUE_KEY_QUERY": world.pick("true", None) if is_unique else None,
        "indexType": world.pick(None, None, "K", "U", "T"),
    }  # fmt: skip
    world.ask(Code.QUERY_MESSAGE, fields, is_plain=True)
