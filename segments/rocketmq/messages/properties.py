"""
The properties of a message: ``name U+0001 value U+0002``, repeated, in UTF-8.

Whether the last pair ends with U+0002 depends on the release that wrote it: 4.9.1 to 4.9.8 and
5.0.0 to 5.1.4 leave it out, older and newer ones write it. A reader takes both. The order is that
of Java's ``HashMap`` wherever a broker wrote the text anew.

Source: ``org.apache.rocketmq.common.message.MessageDecoder`` (``string2messageProperties``,
``messageProperties2String``), ``MessageConst``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from logstore.java_hash import java_hash
from logstore.segments.rocketmq.messages.java_strings import java_hash_map_order

NAME_VALUE_SEPARATOR = b"\x01"
PROPERTY_SEPARATOR = b"\x02"
#: more bytes of text than this do not fit the signed short in front of it
PROPERTIES_SIZE_BYTES_MAX = 0x7FFF

KEYS = "KEYS"
TAGS = "TAGS"
WAIT = "WAIT"
DELAY = "DELAY"
RETRY_TOPIC = "RETRY_TOPIC"
REAL_TOPIC = "REAL_TOPIC"
REAL_QUEUE_ID = "REAL_QID"
TRANSACTION_PREPARED = "TRAN_MSG"
PRODUCER_GROUP = "PGROUP"
MIN_QUEUE_OFFSET = "MIN_OFFSET"
MAX_QUEUE_OFFSET = "MAX_OFFSET"
ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
MESSAGE_REGION = "MSG_REGION"
TRACE_ON = "TRACE_ON"
UNIQUE_KEY = "UNIQ_KEY"
EXTEND_UNIQUE_INFO = "EXTEND_UNIQ_INFO"
MAX_RECONSUME_TIMES = "MAX_RECONSUME_TIMES"
INNER_NUMBER = "INNER_NUM"
INNER_BASE = "INNER_BASE"
DUP_INFO = "DUP_INFO"
CHECK_IMMUNITY_TIME = "CHECK_IMMUNITY_TIME_IN_SECONDS"
TRANSACTION_PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET"
TRANSACTION_ID = "__transactionId__"
TRANSACTION_CHECK_TIMES = "TRANSACTION_CHECK_TIMES"
CLUSTER = "CLUSTER"
POP_CHECK = "POP_CK"
FIRST_POP_TIME = "1ST_POP_TIME"
ORIGIN_GROUP = "ORIGIN_GROUP"
INNER_MULTI_DISPATCH = "INNER_MULTI_DISPATCH"
INNER_MULTI_QUEUE_OFFSET = "INNER_MULTI_QUEUE_OFFSET"
TIMER_DELAY_SECONDS = "TIMER_DELAY_SEC"
TIMER_DELIVER_MS = "TIMER_DELIVER_MS"
TIMER_DELAY_MS = "TIMER_DELAY_MS"
TIMER_OUT_MS = "TIMER_OUT_MS"
TIMER_DELETE_UNIQUE_KEY = "TIMER_DEL_UNIQKEY"
TIMER_ENQUEUE_MS = "TIMER_ENQUEUE_MS"
TIMER_DEQUEUE_MS = "TIMER_DEQUEUE_MS"
TIMER_ROLL_TIMES = "TIMER_ROLL_TIMES"
CRC32 = "__CRC32#"
PRIORITY = "_SYS_MSG_PRIORITY_"
SHARDING_KEY = "__SHARDINGKEY"
BORN_TIMESTAMP = "BORN_TIMESTAMP"
TRACE_CONTEXT = "TRACE_CONTEXT"
DLQ_ORIGIN_TOPIC = "DLQ_ORIGIN_TOPIC"
DLQ_ORIGIN_MESSAGE_ID = "DLQ_ORIGIN_MESSAGE_ID"

#: bytes that the property CRC takes at the end of a record
CRC32_BYTES = 20

#: how large Java makes the map that it reads properties into: this decides about their order
HASH_MAP_CAPACITY_4 = 16
HASH_MAP_CAPACITY_5 = 128


def parse_properties(text: bytes) -> dict[str, str]:
    """
    Return the properties in the order of the text; of a name that comes twice the last value.

    Pairs without a name, a value or a separator are left out, as Java leaves them out. Bytes that
    are no UTF-8 become U+FFFD.
    """
    found: dict[str, str] = {}
    for item in text.decode("utf-8", "replace").split("\x02"):
        name, _, value = item.partition("\x01")
        if name and value:
            found[name] = value
    return found


def encode_properties(
    properties: Mapping[str, str], *, ends_with_separator: bool = True, capacity: int | None = None
) -> bytes:
    """
    Return the text of `properties`.

    Args:
        properties: in the order in which they were put.
        ends_with_separator: False as 4.9.1 to 4.9.8 and 5.0.0 to 5.1.4 write it.
        capacity: of the Java map that they come out of (`HASH_MAP_CAPACITY_5`, ...); None keeps
            the order of the mapping.

    """
    if capacity is None:
        text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items())
    else:
        order = java_hash_map_order(tuple(properties), capacity)
        text = "".join([f"{name}\x01{properties[name]}\x02" for name in order])
    if text and not ends_with_separator:
        text = text[:-1]
    return text.encode("utf-8", "replace")


def property_needle(name: str) -> bytes:
    """Return what :func:`find_property` looks for: the name and the separator behind it."""
    return name.encode() + NAME_VALUE_SEPARATOR


def find_property(text: bytes, needle: bytes) -> bytes | None:
    """
    Return one property's value without parsing the others, None if it is not there.

    `needle` is what :func:`property_needle` returns. Finds what :func:`parse_properties` finds.
    """
    position = text.rfind(needle)
    while position >= 0:
        if position == 0 or text[position - 1] == 2:
            start = position + len(needle)
            end = text.find(b"\x02", start)
            if end < 0:
                end = len(text)
            if end > start:
                return text[start:end]
        position = text.rfind(needle, 0, position)
    return None


def without_property(text: bytes, needle: bytes) -> bytes:
    """
    Return the text without the property that :func:`property_needle` made the needle for.

    However often it stands there (Java: ``MessageUtils.deleteProperty``).
    """
    position = text.find(needle)
    while position >= 0:
        if position == 0 or text[position - 1] == 2:
            end = text.find(b"\x02", position + len(needle))
            text = text[:position] + (text[end + 1 :] if end >= 0 else b"")
        else:
            position += len(needle)
        position = text.find(needle, position)
    return text


@lru_cache(maxsize=4096)
def tags_code(tags: bytes) -> int:
    """Return the tags code of the value of ``TAGS``: Java's hash of it, 0 without tags."""
    return java_hash(tags.decode("utf-8", "replace"))


@lru_cache(maxsize=4096)
def key_items(keys: str) -> tuple[str, ...]:
    """Return the single keys of the value of ``KEYS``: they stand between spaces."""
    return tuple(key for key in keys.split(" ") if key)


def crc32_property(crc: int) -> bytes:
    """
    Return the 20 bytes that hold a record's CRC: name, ten decimal digits, separator.

    The digit of least value comes first.
    """
    return b"__CRC32#\x01%b\x02" % f"{crc:010d}"[::-1].encode()


def parse_crc32_property(value: str) -> int:
    """Return the CRC that the ten reversed digits of ``__CRC32#`` say, -1 if they are none."""
    digits = value[::-1]
    return int(digits) if digits.isascii() and digits.isdigit() else -1
