"""
What the commit log tells those who derive something from it: one request a message.

Source: ``org.apache.rocketmq.store.DispatchRequest``, ``CommitLog.checkMessageAndReturnSize``.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.message_layout import (
    BLANK_MAGIC,
    DISPATCHED_FIELDS,
    FIXED_BYTES,
    PREFIX,
    PROPERTIES_SIZE,
    SYS_FLAG_POSITION,
    VERSIONS,
    MessageVersion,
)
from logstore.segments.rocketmq.messages.properties import (
    CRC32,
    CRC32_BYTES,
    DELAY,
    DUP_INFO,
    INNER_BASE,
    INNER_NUMBER,
    KEYS,
    TAGS,
    UNIQUE_KEY,
    find_property,
    parse_crc32_property,
    parse_properties,
    property_needle,
    tags_code,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from logstore.segments.rocketmq.messages.message_draft import MessageDraft

#: messages that wait for their delay level; their tags code is when they are due
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"

#: (delay level, store time in ms) -> when the message is due, in ms; clips levels too high
DeliverTime = Callable[[int, int], int]

_TAGS = property_needle(TAGS)
_KEYS = property_needle(KEYS)
_UNIQUE_KEY = property_needle(UNIQUE_KEY)
_DELAY = property_needle(DELAY)
_INNER_BASE = property_needle(INNER_BASE)
_INNER_NUMBER = property_needle(INNER_NUMBER)
_CRC32 = property_needle(CRC32)
_DUP_INFO = property_needle(DUP_INFO)
_crc32 = zlib.crc32
_topics: dict[bytes, str] = {}
_TOPICS_MAX = 4096


@attrs.frozen
class Blank:
    """The end of a commit log file: the next message stands in the next file."""

    size_bytes: int


class DispatchRequest:
    """
    One message that consume queue, index and others are to take note of.

    `tags_code` is the time at which it is due for a message of the schedule topic. `keys`,
    `unique_key` and `properties` are read out of `properties_text` when they are asked for.
    """

    __slots__ = (
        "_properties",
        "physical_offset",
        "prepared_transaction_offset",
        "properties_text",
        "queue_id",
        "queue_offset",
        "size_bytes",
        "store_timestamp_ms",
        "sys_flag",
        "tags_code",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        queue_id: int,
        physical_offset: int,
        size_bytes: int,
        tags_code: int,
        store_timestamp_ms: int,
        queue_offset: int,
        sys_flag: int,
        prepared_transaction_offset: int,
        properties_text: bytes,
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.physical_offset = physical_offset
        self.size_bytes = size_bytes
        self.tags_code = tags_code
        self.store_timestamp_ms = store_timestamp_ms
        self.queue_offset = queue_offset
        self.sys_flag = sys_flag
        self.prepared_transaction_offset = prepared_transaction_offset
        self.properties_text = properties_text
        self._properties: dict[str, str] | None = None

    @property
    def next_physical_offset(self) -> int:
        """Where the commit log goes on behind the message."""
        return self.physical_offset + self.size_bytes

    @property
    def properties(self) -> dict[str, str]:
        """All properties by name."""
        if self._properties is None:
            self._properties = parse_properties(self.properties_text)
        return self._properties

    @property
    def tags(self) -> str | None:
        """The value of ``TAGS``."""
        return _text(self.properties_text, _TAGS)

    @property
    def keys(self) -> str:
        """The value of ``KEYS``: keys with spaces between them; empty without."""
        return _text(self.properties_text, _KEYS) or ""

    @property
    def unique_key(self) -> str | None:
        """The id that the client gave the message."""
        return _text(self.properties_text, _UNIQUE_KEY)

    @property
    def message_base_offset(self) -> int:
        """The first queue offset of an inner batch, -1 for what is none."""
        return self._batch()[0]

    @property
    def batch_size(self) -> int:
        """How many messages an inner batch holds, -1 for what is none."""
        return self._batch()[1]

    def _batch(self) -> tuple[int, int]:
        """Both count only if both are there, and numbers."""
        base = find_property(self.properties_text, _INNER_BASE)
        count = find_property(self.properties_text, _INNER_NUMBER) if base is not None else None
        if base is None or count is None:
            return -1, -1
        return _number(base, 64), _number(count, 16)

    def __repr__(self) -> str:
        where = f"{self.topic}-{self.queue_id}@{self.queue_offset}"
        return f"DispatchRequest({where}, physical {self.physical_offset}+{self.size_bytes})"


def request_of(draft: MessageDraft, deliver_time: DeliverTime | None = None) -> DispatchRequest:
    """Return the request for a message that was just stamped, without reading it again."""
    text = draft.properties_text
    return DispatchRequest(
        draft.topic,
        draft.queue_id,
        draft.physical_offset,
        draft.size_bytes,
        dispatched_tags_code(draft.topic, text, draft.store_timestamp_ms, deliver_time),
        draft.store_timestamp_ms,
        draft.queue_offset,
        draft.sys_flag,
        draft.prepared_transaction_offset,
        text,
    )


def dispatched_tags_code(
    topic: str, properties_text: bytes, store_timestamp_ms: int, deliver_time: DeliverTime | None
) -> int:
    """Return the tags code of a consume queue unit: a hash, or when a delayed message is due."""
    if topic == SCHEDULE_TOPIC and deliver_time is not None:
        level = delay_level(properties_text)
        if level > 0:
            return deliver_time(level, store_timestamp_ms)
    if _TAGS not in properties_text:
        return 0
    tags = find_property(properties_text, _TAGS)
    return 0 if tags is None else tags_code(tags)


def delay_level(properties_text: bytes) -> int:
    """Return the delay level that properties tell, 0 or less for none."""
    level = find_property(properties_text, _DELAY)
    return 0 if level is None else _number(level, 32)


def read_dispatch_request(
    data: Buffer,
    position: int = 0,
    *,
    verify_crc: bool = False,
    verify_property_crc: bool = False,
    verify_dup_info: bool = False,
    deliver_time: DeliverTime | None = None,
) -> DispatchRequest | Blank:
    """
    Return what stands at `position` of `data`, which goes on to the end of what was written.

    `verify_crc` checks the CRC of the body; `verify_property_crc` that in the properties instead,
    and a message without one fails (``forceVerifyPropCRC``); `verify_dup_info` demands a
    ``DUP_INFO`` of two parts (``duplicationEnable``). `deliver_time` says when one is due.

    Raises:
        CorruptMessageError: neither a message nor a BLANK. What Java's check accepts is accepted,
            and where Java can tell how much to skip, `skip_bytes` is that.

    """
    view = memoryview(data).cast("B")
    available = len(view) - position
    size_bytes, version = _prefix(view, position, available)
    if version is None:
        return Blank(size_bytes)
    fields = DISPATCHED_FIELDS[view[position + SYS_FLAG_POSITION + 3] >> 4 & 3]
    if available < fields.size:
        raise CorruptMessageError(position, "the record is cut short")
    found = fields.unpack_from(view, position)
    crc, queue_id, queue_offset, physical_offset, sys_flag, stored_ms, prepared, body_bytes = found
    start = position + fields.size
    body_end = start + body_bytes if body_bytes > 0 else start
    if body_bytes > size_bytes or body_end > len(view):
        raise CorruptMessageError(position, f"a body of {body_bytes} bytes runs out of the log")
    if verify_crc and not verify_property_crc:
        _check_body_crc(view, position, start, body_end, crc)
    topic, text, end = _topic_and_properties(view, position, body_end, version)
    if verify_property_crc:
        _check_property_crc(view, position, size_bytes, text)
    if verify_dup_info and (find_property(text, _DUP_INFO) or b"").count(b"_") != 1:
        raise CorruptMessageError(position, "DUP_INFO has not two parts")
    if end - position != size_bytes:
        reason = f"its parts end at {end}, the record at {position + size_bytes}"
        raise CorruptMessageError(position, reason, size_bytes)
    code = dispatched_tags_code(topic, text, stored_ms, deliver_time)
    where = topic, queue_id, physical_offset, size_bytes
    return DispatchRequest(*where, code, stored_ms, queue_offset, sys_flag, prepared, text)


def _prefix(view: memoryview, position: int, available: int) -> tuple[int, MessageVersion | None]:
    """Return (size, version) of what stands at `position`; a BLANK has no version."""
    if available < PREFIX.size:
        raise CorruptMessageError(position, "the record is cut short")
    size_bytes, magic = PREFIX.unpack_from(view, position)
    if available < size_bytes:
        raise CorruptMessageError(position, f"{size_bytes} bytes long, {available} are there")
    version = VERSIONS.get(magic)
    if version is None and magic != BLANK_MAGIC:
        raise CorruptMessageError(position, f"magic {magic.hex()} is that of no message")
    if version is not None and (size_bytes < 20 or available < FIXED_BYTES[0]):
        raise CorruptMessageError(position, f"{size_bytes} bytes are no message")
    return size_bytes, version


def _topic_and_properties(
    view: memoryview, position: int, body_end: int, version: MessageVersion
) -> tuple[str, bytes, int]:
    """Return (topic, text of the properties, position behind them)."""
    length = version.topic_length_bytes
    topic_at = body_end + length
    topic_bytes = int.from_bytes(view[body_end:topic_at], "big", signed=True)
    text_at = topic_at + topic_bytes + 2
    if topic_bytes < 0 or text_at > len(view):
        raise CorruptMessageError(position, f"a topic of {topic_bytes} bytes runs out of the log")
    raw_topic = bytes(view[topic_at : text_at - 2])
    topic = _topics.get(raw_topic)
    if topic is None:
        if len(_topics) >= _TOPICS_MAX:
            _topics.clear()
        topic = _topics[raw_topic] = raw_topic.decode("utf-8", "replace")
    (text_bytes,) = PROPERTIES_SIZE.unpack_from(view, text_at - 2)
    end = text_at + text_bytes if text_bytes > 0 else text_at
    if end > len(view):
        raise CorruptMessageError(position, f"{text_bytes} bytes of properties run out of the log")
    return topic, bytes(view[text_at:end]), end


def _check_body_crc(view: memoryview, position: int, start: int, end: int, body_crc: int) -> None:
    """Check what is not empty, as Java does."""
    if end > start and _crc32(view[start:end]) & 0x7FFF_FFFF != body_crc:
        raise CorruptMessageError(position, f"the body's CRC is not {body_crc:08x}")


def _check_property_crc(view: memoryview, position: int, size_bytes: int, text: bytes) -> None:
    stated = parse_crc32_property(_text(text, _CRC32) or "")
    if stated < 0:
        raise CorruptMessageError(position, "the properties hold no CRC")
    found = _crc32(view[position : position + max(0, size_bytes - CRC32_BYTES)]) & 0x7FFF_FFFF
    if found != stated:
        raise CorruptMessageError(position, f"the CRC in the properties is not {stated:08x}")


def _text(properties_text: bytes, needle: bytes) -> str | None:
    value = find_property(properties_text, needle)
    return None if value is None else value.decode("utf-8", "replace")


def _number(text: bytes, bits: int) -> int:
    """Return what Java parses, -1 for what it refuses."""
    try:
        value = int(text)
    except ValueError:
        return -1
    return value if -(1 << bits - 1) <= value < 1 << bits - 1 and b"_" not in text else -1
