"""Messages are looked for by keys, times and places, where index and commit log are small files."""

from __future__ import annotations

import time
from typing import Any

import attrs

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from logstore.java_hash import java_hash
from tests.compat.rocketmq.broker_peer import decoded
from tests.interop.drawn.pair import Pair
from tests.interop.drawn_rocketmq import sends
from tests.interop.drawn_rocketmq.excuses import differences
from tests.interop.drawn_rocketmq.index_files import entries_of, spans_of
from tests.interop.drawn_rocketmq.twin import COMING_SECONDS, Difference, Told
from tests.interop.drawn_rocketmq.world import World

LOG_FILE_BYTES = 16_384
#: more entries than one request makes: Java names files by the millisecond, and takes one of the
#: same name for new
ENTRIES_PER_FILE = 40
#: both brokers' files are so small that they roll in the middle of a session
SETTINGS: dict[str, object] = {
    "mappedFileSizeCommitLog": LOG_FILE_BYTES,
    "mappedFileSizeConsumeQueue": 200,
    "maxHashSlotNum": 7,
    "maxIndexNum": ENTRIES_PER_FILE,
    "maxMsgsNumBatch": 8,
    "defaultQueryMaxNum": 5,
}
#: of those in a row the hashes are the same; `T#A` is what tags are looked up by
MANY = "a b c d e f g h"
KEYS = (
    "Aa", "BB", "Aa", "AaAa", "BBBB", "AaBB", "BBAa", "k1", "k1", "k1 k2", "Aa BB", "k1 k1", "",
    " ", "  k2  ", "k#1", "#", "##", "T#A", "T#", "T", "U#k1", "K#k1", "k1\tk2", "ü", "ü ö",
    "\U0001d11e", "\u00a0", "k" * 300, MANY, "k1\u3000k2", "K1", "0", "-1", "null",
)  # fmt: skip
ASKED = (*dict.fromkeys(KEYS), "k2", "a", "h", "none", "A", "B", "Aa ", "T#B", "T#A B")
TAGS = ("A", "A", "B", "", " ", "A B", "Aa", "BB", "k1", "ü", "*", "A||B", "#")
UNIQUE = ("k1", "Aa", "BB", " ", "a b", "T#A", "ü")
#: the hash that has no absolute value in Java, and those beside it
EDGES = (-(2**31), -(2**31) + 1, 2**31 - 1, 0, -1)
HALVES, LATER = "RMQ_SYS_TRANS_HALF_TOPIC", "SCHEDULE_TOPIC_XXXX"
_DIGITS, _DIGIT_COUNT = 31, 8
#: longer than a second, to which times of the index are rounded, on either side of its middle
PAUSE_SECONDS = 2.4
#: between two looks at files that are not alike yet
_LOOK_SECONDS = 0.1
PAUSES_MAX = 2


def key_of_hash(topic: str, wanted: int) -> str:
    """Return a key that has, behind a topic's name, the hash that is wanted."""
    beginning = java_hash(topic + "#") * _DIGITS**_DIGIT_COUNT
    lowest = sum(ord("0") * _DIGITS**place for place in range(_DIGIT_COUNT))
    left = (wanted - beginning - lowest) % 2**32
    digits = [left // _DIGITS**place % _DIGITS for place in reversed(range(_DIGIT_COUNT))]
    return "".join(chr(ord("0") + digit) for digit in digits)


def marked(world: World, topic: str) -> dict[str, Any]:
    """Draw what a message can be found by; unique keys that brokers make differ in length."""
    is_made = world.likely(0.85)
    found = {"UNIQ_KEY": sends.unique_key(world) if is_made else world.pick(*UNIQUE)}
    if world.likely(0.8):
        found["KEYS"] = world.pick(*KEYS)
        if world.likely(0.1):
            found["KEYS"] = key_of_hash(topic, world.pick(*EDGES))
    if world.likely(0.5):
        found["TAGS"] = world.pick(*TAGS)
    return found


def topic_of(world: World) -> str:
    """Draw a topic."""
    return f"{world.prefix}-{world.pick('a', 'a', 'b')}"


def header(world: World, topic: str, text: str) -> dict[str, Any]:
    """Return the header of a send that nobody objects to."""
    return sends.header(world, topic, text) | {
        "producerGroup": f"{world.prefix}-p", "defaultTopic": "TBW102", "queueId": 0, "sysFlag": 0,
        "reconsumeTimes": 0, "batch": "false", "maxReconsumeTimes": None,
    }  # fmt: skip


def send(world: World) -> None:
    """Send a message, or half of one, or one for later."""
    topic = topic_of(world)
    drawn = marked(world, topic)
    kind = world.pick(*["plain"] * 8, "half", "later")
    text = sends.properties_text(drawn)
    if world.likely(0.1):  # of two of a name the last one is heeded
        text += f"KEYS\x01{world.pick(*KEYS)}\x02" if kind == "plain" else ""
    fields = header(world, topic, text)
    if kind == "half":
        fields["sysFlag"] = sends.TRANSACTION_PREPARED
        fields["properties"] += f"TRAN_MSG\x01true\x02PGROUP\x01{world.prefix}-p\x02"
    elif kind == "later":
        fields["properties"] += "DELAY\x0118\x02"
    else:
        fields["sysFlag"] = world.pick(*[0] * 10, 8, 12)
    body = world.pick(b"found", b"", b"x" * 400, b"x" * 3_000)
    told = world.ask(Code.SEND_MESSAGE_V2, sends.short(fields), body, is_plain=True)
    learn(world, told, topic, drawn)
    if kind == "half":
        end(world, told, topic, drawn)


def learn(world: World, told: Told, topic: str, drawn: dict[str, Any]) -> None:
    """Keep where a message is, and now and then when it was stored."""
    known = len(world.sent)
    sends.learn(world, told, topic, drawn)
    if len(world.sent) == known or world.likely(0.5):
        return
    asked = {"offset": world.sent[-1].physical_offset}
    seen = world.ask(Code.VIEW_MESSAGE_BY_ID, asked, is_plain=True, serializer=0)
    times = seen.pair(lambda answer: decoded(answer.body)[0].store_timestamp_ms)
    if times is not None:
        world.moments.append((topic, times))


def end(world: World, told: Told, topic: str, drawn: dict[str, Any]) -> None:
    """Decide about half a message."""
    ids = told.pair(lambda answer: (answer.fields or {})["msgId"])
    offsets = told.pair(lambda answer: int((answer.fields or {})["queueOffset"]))
    if ids is None or offsets is None or not told.is_success:
        return
    ended = {
        "topic": topic, "producerGroup": f"{world.prefix}-p", "tranStateTableOffset": offsets,
        "commitLogOffset": Pair(*(int(one[-16:], 16) for one in ids)),
        "commitOrRollback": world.pick(8, 8, 12), "fromTransactionCheck": "false",
        "msgId": drawn.get("UNIQ_KEY", "x"), "transactionId": drawn.get("UNIQ_KEY", "x"),
    }  # fmt: skip
    world.ask(Code.END_TRANSACTION, ended, is_plain=True)


def send_batch(world: World) -> None:
    """Send several at once, each with its own keys."""
    topic = topic_of(world)
    items = []
    for _ in range(world.pick(1, 2, 3, 4)):
        drawn = marked(world, topic)
        if drawn.get("KEYS") == MANY:
            drawn["KEYS"] = ""
        if world.likely(0.1):
            del drawn["UNIQ_KEY"]
        items.append(sends.framed(b"one", sends.properties_text(drawn)))
    fields = header(world, topic, "") | {"batch": "true"}
    world.ask(Code.SEND_BATCH_MESSAGE, sends.short(fields), b"".join(items), is_plain=True)


def times_of(world: World) -> list[Pair]:
    """
    Return times by which both find the same: pauses, and ends of full index files.

    Within a file times are those of its first message and whole seconds.
    """
    assert world.stage is not None
    found = [times for name, times in world.moments if name == ""]
    ours, real = (spans_of(one, ENTRIES_PER_FILE) for one in world.stage.data())
    for mine, other in zip(ours, real, strict=False):
        found += [Pair(mine[0] + shift, other[0] + shift) for shift in (-1, 0)]
        found.append(Pair(mine[0] - 1, other[0] - 1))
    return found


def query(world: World) -> None:
    """Look for messages by a key, within some time."""
    topic, key = topic_of(world), world.pick(*ASKED)
    message = world.message()
    is_unique, place = world.likely(0.3), world.chance.randrange(10**6)
    if world.likely(0.1):
        key = key_of_hash(topic, world.pick(*EDGES))
    elif is_unique and message is not None and world.likely(0.7):
        topic, key = message.topic, message.unique_key
    if world.likely(0.15):
        topic = world.pick(HALVES, LATER, "none", "TBW102", "", f"{topic}#{key}")
    begin, last = world.pick((0, 2**62), (0, 2**62), (0, 2**63 - 1), (-(2**63), 2**63 - 1),
                             (2**62, 0), (0, 0), (-1, -1), (1, 2**62))  # fmt: skip
    span: tuple[Any, Any] = (begin, last)
    if world.likely(0.4) and (known := times_of(world)):
        one, other = known[place % len(known)], known[place // 7 % len(known)]
        span = ((one, 2**62), (0, one), (one, one), (one, other))[place % 4]
    fields = {
        "topic": topic, "key": key, "maxNum": world.pick(32, 1, 2, 3, 8, 9, 0, 2**31 - 1),
        "beginTimestamp": span[0], "endTimestamp": span[1],
        "_UNIQUE_KEY_QUERY": world.pick("true", "TRUE", "false", "1", "") if is_unique else None,
        "indexType": world.pick(None, None, "K", "U", "T", "T", "t", "x", ""),
        "lastKey": world.pick(None, None, "x"),
    }  # fmt: skip
    world.ask(Code.QUERY_MESSAGE, fields, is_plain=True)


def view(world: World) -> None:
    """Look at what stands at a place: messages, what is behind the last of a file, the end."""
    assert world.stage is not None
    message = world.message()
    if message is not None and world.likely(0.4):
        shift = world.pick(0, 0, 4, 1, 84)
        places: Any = Pair(*(one + shift for one in message.physical_offset))
    else:
        base = world.pick(0, 1, 1, 2, 3, 10**6) * LOG_FILE_BYTES
        places = base + world.pick(0, -1, -4, -8, -20, -100, 1, 4, 8)
    if world.likely(0.15):
        places = world.pick(-1, -4, -(2**63), 2**63 - 1, 2**31, 0)
    told = world.ask(Code.VIEW_MESSAGE_BY_ID, {"offset": places}, is_plain=True)
    compare_bytes(world, told, f"VIEW_MESSAGE_BY_ID {places}")


def compare_bytes(world: World, told: Told, asked: str) -> None:
    """Compare how long the bodies of answers are."""
    sizes = [len(getattr(one, "body", b"")) for one in told]
    if len(set(sizes)) > 1:
        step, line = len(world.twin.steps), f"{sizes[0]} bytes instead of {sizes[1]}"
        world.twin.differences.append(Difference(step, asked, [line]))


def bounds(world: World) -> None:
    """Ask where a queue of several files begins and ends, and when its messages were stored."""
    topic, group = topic_of(world), f"{world.prefix}-g0"
    place = {"topic": topic, "queueId": 0}
    known = [times for name, times in world.moments if name in ("", topic)]
    moment: Any = world.pick(0, -1, 2**62, world.now_ms() + 60_000)
    if known and world.likely(0.8):
        shift = world.pick(-1, 0, 0, 1)
        moment = Pair(*(one + shift for one in world.chance.choice(known)))
    search = {**place, "timestamp": moment, "boundaryType": world.pick(None, "LOWER", "UPPER")}
    code, fields = world.pick(
        (Code.SEARCH_OFFSET_BY_TIMESTAMP, search), (Code.SEARCH_OFFSET_BY_TIMESTAMP, search),
        (Code.GET_MIN_OFFSET, place), (Code.GET_MAX_OFFSET, place),
        (Code.GET_EARLIEST_MSG_STORETIME, place),
        (Code.QUERY_CONSUME_TIME_SPAN, {"topic": topic, "group": group}),
        (Code.UPDATE_CONSUMER_OFFSET, {**place, "consumerGroup": group,
                                       "commitOffset": world.pick(0, 1, 5, 11, 1000)}),
        (Code.QUERY_CONSUME_QUEUE, {**place, "index": world.pick(0, 8, 9, 10), "count": 5}),
    )  # fmt: skip
    world.ask(code, fields, is_plain=True)


def pause(world: World) -> None:
    """Let a moment go by, so that what is before it and what is behind it are told apart."""
    if sum(name == "" for name, _ in world.moments) >= PAUSES_MAX:
        return
    now = world.now_ms()
    time.sleep(PAUSE_SECONDS)
    world.moments.append(("", Pair(now + 1_200, now + 1_200)))


def compare_files(world: World) -> None:
    """Compare all index files entry by entry, once each has had the time to write what it knows."""
    deadline = time.monotonic() + COMING_SECONDS
    found = file_differences(world)
    while found and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)
        found = file_differences(world)
    if found:
        world.twin.differences.append(Difference(len(world.twin.steps), "index files", found))


def file_differences(world: World) -> list[str]:
    """Return in which entries the index files differ as they are now."""
    assert world.stage is not None
    ours, real = (entries_of(one) for one in world.stage.data())
    found = [f"{len(ours)} files instead of {len(real)}"] if len(ours) != len(real) else []
    for number, (mine, other) in enumerate(zip(ours, real, strict=False)):
        lines = differences(attrs.asdict(mine), attrs.asdict(other), "")
        found += [f"file {number} {line}" for line in lines]
    return found
