"""
One stored message: taken apart, and put together again byte by byte.

:mod:`~logstore.segments.rocketmq.messages.message_layout` says where its fields stand,
:mod:`~logstore.segments.rocketmq.messages.message_draft` is the way into the log.

Source: ``org.apache.rocketmq.common.message.MessageDecoder``, ``CommitLog.
checkMessageAndReturnSize``.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import attrs

from logstore.segments.rocketmq.messages.body_compression import (
    DECOMPRESSED_BYTES_MAX,
    decompress_body,
)
from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message_draft import (
    MessageDraft,
    MessageEntry,
    blank_entry,
    draft_message,
)
from logstore.segments.rocketmq.messages.message_id import offset_message_id
from logstore.segments.rocketmq.messages.message_layout import (
    BLANK_MAGIC,
    FIXED_FIELDS,
    PREFIX,
    PROPERTIES_SIZE,
    SYS_FLAG_POSITION,
    VERSIONS,
    MessageVersion,
)
from logstore.segments.rocketmq.messages.properties import (
    CRC32,
    CRC32_BYTES,
    KEYS,
    TAGS,
    UNIQUE_KEY,
    key_items,
    parse_crc32_property,
    parse_properties,
    tags_code,
)
from logstore.segments.rocketmq.messages.system_flags import COMPRESSED, compression_type

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "CorruptMessageError",
    "Message",
    "MessageDraft",
    "MessageEntry",
    "MessageVersion",
    "blank_entry",
    "decode_message",
    "draft_message",
    "encode_message",
]

_crc32 = zlib.crc32


@attrs.frozen
class Message:
    """
    One message as the commit log has it.

    `body` and `properties_text` are the stored bytes; `plain_body` and `properties` say what they
    mean. `physical_offset` is what the record says of itself, `size_bytes` the length of the
    record.
    """

    topic: str
    body: bytes
    queue_id: int
    properties_text: bytes
    flag: int
    sys_flag: int
    born_timestamp_ms: int
    born_host: HostAddress
    store_timestamp_ms: int
    store_host: HostAddress
    reconsume_times: int
    prepared_transaction_offset: int
    queue_offset: int
    physical_offset: int
    size_bytes: int
    body_crc: int
    version: MessageVersion = MessageVersion.V1
    #: parsed when they are first asked for (a cached property costs more than that here)
    _properties: dict[str, str] | None = attrs.field(default=None, init=False, eq=False, repr=False)

    @property
    def properties(self) -> dict[str, str]:
        """The properties by name."""
        found = self._properties
        if found is None:
            found = parse_properties(self.properties_text)
            object.__setattr__(self, "_properties", found)
        return found

    @property
    def tags(self) -> str | None:
        """The value of ``TAGS``."""
        return self.properties.get(TAGS)

    @property
    def tags_code(self) -> int:
        """Java's hash of the tags, 0 without tags."""
        return tags_code((self.tags or "").encode())

    @property
    def keys(self) -> tuple[str, ...]:
        """The single keys in ``KEYS``."""
        return key_items(self.properties.get(KEYS, ""))

    @property
    def unique_key(self) -> str | None:
        """The id that the client gave the message."""
        return self.properties.get(UNIQUE_KEY)

    @property
    def offset_message_id(self) -> str:
        """The id that the broker gave it: its store host and physical offset."""
        return offset_message_id(self.store_host, self.physical_offset)

    @property
    def is_compressed(self) -> bool:
        """Tell whether the stored body is compressed."""
        return bool(self.sys_flag & COMPRESSED)

    @property
    def next_physical_offset(self) -> int:
        """Where the next record of the commit log starts."""
        return self.physical_offset + self.size_bytes

    def plain_body(self, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> bytes:
        """
        Return the body as the producer gave it to its client.

        Raises:
            BodyCompressionError: it cannot be decompressed, or would grow beyond the limit.

        """
        if not self.is_compressed:
            return self.body
        return decompress_body(compression_type(self.sys_flag), self.body, size_bytes_max)


def decode_message(data: Buffer, position: int = 0, *, verify_crc: bool = True) -> Message:
    """
    Return the message that starts at `position` of `data`; it may end before `data` does.

    With `verify_crc` the body's CRC must be right, and so must the property CRC if there is one.

    Raises:
        CorruptMessageError: there is no whole, valid message; a BLANK is none.

    """
    view = memoryview(data).cast("B")
    size_bytes, version = _prefix(view, position)
    end = position + size_bytes
    found, body_at, body_end = _fields(view, position, end, version)
    topic_at, text_at = _topic_place(view, position, body_end, end, version)
    (text_bytes,) = PROPERTIES_SIZE.unpack_from(view, text_at - 2)
    if text_at + max(text_bytes, 0) != end:
        reason = f"its parts end at {text_at + max(text_bytes, 0)}, the record at {end}"
        raise CorruptMessageError(position, reason, size_bytes)
    body, text = view[body_at:body_end], bytes(view[text_at:end])
    if verify_crc:
        if body and _crc32(body) & 0x7FFF_FFFF != found[2]:
            raise CorruptMessageError(position, f"the body's CRC is not {found[2]:08x}")
        check_property_crc(view, position, end, text)
    return Message(
        topic=bytes(view[topic_at : text_at - 2]).decode("utf-8", "replace"),
        body=bytes(body),
        properties_text=text,
        size_bytes=size_bytes,
        body_crc=found[2],
        queue_id=found[3],
        flag=found[4],
        queue_offset=found[5],
        physical_offset=found[6],
        sys_flag=found[7],
        born_timestamp_ms=found[8],
        born_host=HostAddress.from_packed(found[9]),
        store_timestamp_ms=found[10],
        store_host=HostAddress.from_packed(found[11]),
        reconsume_times=found[12],
        prepared_transaction_offset=found[13],
        version=version,
    )


def _fields(
    view: memoryview, position: int, end: int, version: MessageVersion
) -> tuple[tuple[Any, ...], int, int]:
    """Return (the fixed fields as they stand there, start and end of the body)."""
    if position + SYS_FLAG_POSITION + 4 > len(view):
        raise CorruptMessageError(position, "the record is cut short")
    fields = FIXED_FIELDS[view[position + SYS_FLAG_POSITION + 3] >> 4 & 3]
    body_at = position + fields.size
    if body_at > end:
        raise CorruptMessageError(position, f"{end - position} bytes are too few for a message")
    found = fields.unpack_from(view, position)
    body_bytes: int = found[-1]
    body_end = body_at + max(body_bytes, 0)
    if body_end + version.topic_length_bytes > end:
        raise CorruptMessageError(position, f"a body of {body_bytes} bytes runs out of the record")
    return found, body_at, body_end


def _topic_place(
    view: memoryview, position: int, body_end: int, end: int, version: MessageVersion
) -> tuple[int, int]:
    """Return where the topic and, two bytes behind it, the properties start."""
    topic_at = body_end + version.topic_length_bytes
    topic_bytes = int.from_bytes(view[body_end:topic_at], "big", signed=True)
    text_at = topic_at + topic_bytes + 2
    if topic_bytes < 0 or text_at > end:
        raise CorruptMessageError(
            position, f"a topic of {topic_bytes} bytes runs out of the record"
        )
    return topic_at, text_at


def _prefix(view: memoryview, position: int) -> tuple[int, MessageVersion]:
    """Return (size, version) of the record at `position`, or say that there is none."""
    if len(view) - position < PREFIX.size:
        raise CorruptMessageError(position, "the record is cut short")
    size_bytes, magic = PREFIX.unpack_from(view, position)
    version = VERSIONS.get(magic)
    if version is None:
        what = "a BLANK, the end of a file" if magic == BLANK_MAGIC else "no message"
        raise CorruptMessageError(position, f"magic {magic.hex()} is {what}")
    if not 0 <= size_bytes <= len(view) - position:
        reason = f"a record of {size_bytes} bytes, {len(view) - position} are there"
        raise CorruptMessageError(position, reason)
    return size_bytes, version


def check_property_crc(view: memoryview, position: int, end: int, text: bytes) -> bool:
    """
    Check the CRC over a whole record, if its properties end with one; tell whether they do.

    Raises:
        CorruptMessageError: it is wrong.

    """
    if text[-CRC32_BYTES:-11] != b"__CRC32#\x01":
        return False
    stated = parse_crc32_property(parse_properties(text[-CRC32_BYTES:]).get(CRC32, ""))
    if _crc32(view[position : end - CRC32_BYTES]) & 0x7FFF_FFFF != stated:
        raise CorruptMessageError(position, f"the CRC in the properties is not {stated:08x}")
    return True


def encode_message(message: Message) -> bytes:
    """
    Return the record: for what :func:`decode_message` returned the same bytes again.

    Raises:
        struct.error: a field does not fit its place.

    """
    topic = message.topic.encode("utf-8", "replace")
    head = FIXED_FIELDS[message.sys_flag >> 4 & 3]
    size_of_topic = message.version.topic_length_bytes
    size_bytes = head.size + len(message.body) + size_of_topic + len(topic) + 2
    return b"".join(
        (
            head.pack(
                size_bytes + len(message.properties_text),
                message.version.magic,
                message.body_crc,
                message.queue_id,
                message.flag,
                message.queue_offset,
                message.physical_offset,
                message.sys_flag,
                message.born_timestamp_ms,
                message.born_host.packed,
                message.store_timestamp_ms,
                message.store_host.packed,
                message.reconsume_times,
                message.prepared_transaction_offset,
                len(message.body),
            ),
            message.body,
            len(topic).to_bytes(size_of_topic, "big"),
            topic,
            PROPERTIES_SIZE.pack(len(message.properties_text)),
            message.properties_text,
        )
    )
