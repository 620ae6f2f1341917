"""
A message on its way into the commit log: all of it but where and when it is stored.

A broker drafts a message, the store stamps queue and store time onto it, the commit log its
physical offset; the bytes are put together then, once.

Source: ``org.apache.rocketmq.store.MessageExtEncoder``.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from logstore.errors import RejectedAppendError
from logstore.segments.rocketmq.messages.java_strings import java_length
from logstore.segments.rocketmq.messages.message_layout import (
    BLANK,
    BLANK_MAGIC,
    FIXED_BYTES,
    FIXED_FIELDS,
    PROPERTIES_SIZE,
    TOPIC_LENGTH_V1_MAX,
    MessageVersion,
)
from logstore.segments.rocketmq.messages.properties import (
    CRC32,
    CRC32_BYTES,
    KEYS,
    PROPERTIES_SIZE_BYTES_MAX,
    TAGS,
    UNIQUE_KEY,
    crc32_property,
    find_property,
    property_needle,
    tags_code,
    without_property,
)
from logstore.segments.rocketmq.messages.system_flags import BORN_HOST_IPV6, STORE_HOST_IPV6

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from logstore.segments.rocketmq.messages.host_address import HostAddress
    from logstore.segments.rocketmq.messages.own_properties import OwnProperties
    from logstore.segments.rocketmq.messages.properties_shape import PropertiesShape

_TAGS = property_needle(TAGS)
_KEYS = property_needle(KEYS)
_CRC32 = property_needle(CRC32)
_UNIQUE_KEY = property_needle(UNIQUE_KEY)
_HOSTS_IPV6 = BORN_HOST_IPV6 | STORE_HOST_IPV6
_crc32 = zlib.crc32
#: topics that were encoded already: (topic as it stands in a record, version)
_topics: dict[str, tuple[bytes, MessageVersion]] = {}
_TOPICS_MAX = 4096


class MessageEntry:
    """
    What the commit log appends: one message, a batch of them, or a BLANK.

    An entry of the core; its offsets are physical offsets. A BLANK's `data` are 8 bytes, its
    `size_bytes` all that is left of the file.
    """

    __slots__ = ("base_offset", "data", "next_offset", "size_bytes")

    def __init__(self, base_offset: int, size_bytes: int, data: Buffer) -> None:
        self.base_offset = base_offset
        self.next_offset = base_offset + size_bytes
        self.size_bytes = size_bytes
        self.data = data

    @property
    def is_blank(self) -> bool:
        """Tell whether this fills the end of a file."""
        return bytes(memoryview(self.data)[4:8]) == BLANK_MAGIC


def blank_entry(physical_offset: int, size_bytes: int) -> MessageEntry:
    """Return the BLANK that takes the last `size_bytes` (8 or more) of a commit log file."""
    return MessageEntry(physical_offset, size_bytes, BLANK.pack(size_bytes, BLANK_MAGIC))


class CommitLogDraft:
    """
    What is to be appended to a commit log in one piece: a draft of the core's log.

    `size_bytes` is that of all its records. Where the first one stands, and when they are stored,
    is set when they are stamped.
    """

    __slots__ = ()

    size_bytes: int
    physical_offset: int
    store_timestamp_ms: int

    @property
    def offset_count(self) -> int:
        """How many bytes of the commit log the records take."""
        return self.size_bytes

    @property
    def max_timestamp_ms(self) -> int:
        """When they are stored."""
        return self.store_timestamp_ms

    @property
    def next_offset(self) -> int:
        """The physical offset behind the last record, once they are stamped."""
        return self.physical_offset + self.size_bytes


class MessageDraft(CommitLogDraft):
    """
    One message that lacks its queue offset, physical offset and store time.

    Use :func:`draft_message` to make one. `properties_size_bytes` counts the property CRC too; what
    exceeds `PROPERTIES_SIZE_BYTES_MAX` cannot be stamped.
    """

    __slots__ = (
        "body",
        "body_crc",
        "born_host",
        "born_timestamp_ms",
        "flag",
        "has_property_crc",
        "key",
        "own_properties",
        "physical_offset",
        "prepared_transaction_offset",
        "properties_size_bytes",
        "properties_text",
        "queue_id",
        "queue_offset",
        "reconsume_times",
        "shape",
        "size_bytes",
        "store_host",
        "store_timestamp_ms",
        "sys_flag",
        "topic",
        "topic_field",
        "version",
    )

    def __init__(
        self,
        topic: str,
        topic_field: bytes,
        version: MessageVersion,
        body: bytes | bytearray | memoryview,
        queue_id: int,
        properties_text: bytes,
        properties_size_bytes: int,
        flag: int,
        sys_flag: int,
        born_timestamp_ms: int,
        born_host: HostAddress,
        store_host: HostAddress,
        reconsume_times: int,
        prepared_transaction_offset: int,
        has_property_crc: bool,
    ) -> None:
        self.topic = topic
        #: the topic in UTF-8 as it stands in a record, its length in front
        self.topic_field = topic_field
        self.version = version
        self.body = body
        self.body_crc = _crc32(body) & 0x7FFF_FFFF
        self.queue_id = queue_id
        self.queue_offset = 0
        self.physical_offset = 0
        self.properties_text = properties_text
        #: set when it is put: the unique key, and what the other properties say; None: look at all
        self.key = b""
        self.shape: PropertiesShape | None = None
        self.properties_size_bytes = properties_size_bytes
        self.flag = flag
        self.sys_flag = sys_flag
        self.born_timestamp_ms = born_timestamp_ms
        self.born_host = born_host
        self.store_timestamp_ms = 0
        self.store_host = store_host
        self.reconsume_times = reconsume_times
        self.prepared_transaction_offset = prepared_transaction_offset
        self.has_property_crc = has_property_crc
        fixed_bytes = FIXED_BYTES[sys_flag >> 4 & 3] + len(topic_field) + 2
        self.size_bytes = fixed_bytes + len(body) + properties_size_bytes

    #: what the text was made of; not set where it is a client's
    own_properties: OwnProperties

    #: how many messages, and thus queue offsets, it covers
    message_count = 1

    @property
    def body_size_bytes(self) -> int:
        """How long the body is, as it is stored."""
        return len(self.body)

    @property
    def topic_size_bytes(self) -> int:
        """How long the topic is in UTF-8."""
        return len(self.topic_field) - self.version.topic_length_bytes

    @property
    def tags_code(self) -> int:
        """Java's hash of the tags, 0 without tags."""
        tags = find_property(self.properties_text, _TAGS)
        return tags_code(tags) if tags is not None else 0

    @property
    def tags(self) -> str | None:
        """The value of ``TAGS``."""
        return self.property(_TAGS)

    @property
    def keys(self) -> str:
        """The value of ``KEYS``: keys with spaces between them; empty without."""
        return self.property(_KEYS) or ""

    @property
    def unique_key(self) -> str | None:
        """The id that the client gave the message."""
        return self.property(_UNIQUE_KEY)

    def property(self, needle: bytes) -> str | None:
        """Return the value of the property that `property_needle` made the needle for."""
        value = find_property(self.properties_text, needle)
        return None if value is None else value.decode("utf-8", "replace")

    def replace_properties(self, text: bytes) -> None:
        """Give the draft other properties, before it is stamped."""
        self.properties_text = text
        self.shape = None
        size_bytes = len(text)
        if self.has_property_crc:
            size_bytes += CRC32_BYTES + (1 if text and not text.endswith(b"\x02") else 0)
        self.size_bytes += size_bytes - self.properties_size_bytes
        self.properties_size_bytes = size_bytes

    def end_with_property_crc(self) -> None:
        """Have the record end with a CRC of all of it; one that the properties tell goes."""
        text = self.properties_text
        if not self.has_property_crc or _CRC32 in text:
            self.has_property_crc = True
            self.replace_properties(without_property(text, _CRC32))

    def replace_topic(self, topic: str, queue_id: int) -> None:
        """Send the draft to another queue, before it is stamped: half topics, delay levels."""
        field, version = _topics.get(topic) or _topic_field(topic, None)
        self.size_bytes += len(field) - len(self.topic_field)
        self.topic, self.queue_id, self.topic_field, self.version = topic, queue_id, field, version

    def stamp(self, queue_offset: int, store_timestamp_ms: int) -> None:
        """Say which place in its queue the message has, and when it is stored."""
        self.queue_offset = queue_offset
        self.store_timestamp_ms = store_timestamp_ms

    def stamped(self, base_offset: int) -> MessageEntry:
        """
        Return the record as it stands in the commit log at physical offset `base_offset`.

        Raises:
            RejectedAppendError: the properties are longer than a record can tell.

        """
        self.physical_offset = base_offset
        text = self.properties_text
        if self.properties_size_bytes > PROPERTIES_SIZE_BYTES_MAX:
            raise RejectedAppendError(
                f"the properties take {self.properties_size_bytes} bytes, a message of "
                f"{self.topic} can hold {PROPERTIES_SIZE_BYTES_MAX}"
            )
        sys_flag = self.sys_flag
        size_bytes = self.size_bytes
        head = FIXED_FIELDS[sys_flag >> 4 & 3].pack(
            size_bytes,
            self.version.magic,
            self.body_crc,
            self.queue_id,
            self.flag,
            self.queue_offset,
            base_offset,
            sys_flag,
            self.born_timestamp_ms,
            self.born_host.packed,
            self.store_timestamp_ms,
            self.store_host.packed,
            self.reconsume_times,
            self.prepared_transaction_offset,
            len(self.body),
        )
        data = b"".join(
            (
                head,
                self.body,
                self.topic_field,
                PROPERTIES_SIZE.pack(self.properties_size_bytes),
                text,
            )
        )
        if self.has_property_crc:
            if text and not text.endswith(b"\x02"):
                data += b"\x02"
            data += crc32_property(_crc32(data) & 0x7FFF_FFFF)
        return MessageEntry(base_offset, size_bytes, data)


def draft_message(
    *,
    topic: str,
    body: bytes | bytearray | memoryview,
    queue_id: int,
    properties_text: bytes,
    born_timestamp_ms: int,
    born_host: HostAddress,
    store_host: HostAddress,
    flag: int = 0,
    sys_flag: int = 0,
    reconsume_times: int = 0,
    prepared_transaction_offset: int = 0,
    has_property_crc: bool = False,
    version: MessageVersion | None = None,
) -> MessageDraft:
    """
    Return a message to be stored.

    `body` is as it is to stand in the log. The IPv6 bits of `sys_flag` are set as the hosts are.
    `version` None is what RocketMQ 5.1 and later choose: V2 for topics of over 127 characters.
    With `has_property_crc` the record ends with a CRC of all of it (``enabledAppendPropCRC``).
    """
    known = _topics.get(topic) if version is None else None
    field, used = known or _topic_field(topic, version)
    flags = sys_flag & ~_HOSTS_IPV6
    if len(born_host.address) == 16:
        flags |= BORN_HOST_IPV6
    if len(store_host.address) == 16:
        flags |= STORE_HOST_IPV6
    text_bytes = len(properties_text)
    if has_property_crc:
        text_bytes += CRC32_BYTES + (1 if text_bytes and properties_text[-1] != 2 else 0)
    return MessageDraft(
        topic,
        field,
        used,
        body,
        queue_id,
        properties_text,
        text_bytes,
        flag,
        flags,
        born_timestamp_ms,
        born_host,
        store_host,
        reconsume_times,
        prepared_transaction_offset,
        has_property_crc,
    )


def _topic_field(topic: str, version: MessageVersion | None) -> tuple[bytes, MessageVersion]:
    """Return the topic as it stands in a record, its length in front, and the version."""
    data = topic.encode("utf-8", "replace")
    is_usual = version is None
    if version is None:
        is_long = java_length(topic) > TOPIC_LENGTH_V1_MAX
        version = MessageVersion.V2 if is_long else MessageVersion.V1
    size = version.topic_length_bytes
    field = (len(data) & (1 << 8 * size) - 1).to_bytes(size) + data  # Java casts, too
    if is_usual:
        if len(_topics) >= _TOPICS_MAX:
            _topics.clear()
        _topics[topic] = field, version
    return field, version
