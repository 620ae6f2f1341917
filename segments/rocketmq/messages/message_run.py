"""
A run of like messages on their way into the commit log: one write for all that came at a time.

What producers send in one moment goes to many queues, one record each, as if each had been put by
itself; but all of it is put together, written and dispatched in a few steps. Only messages with a
unique key go into a run, and what is to come later only as it waits, redirected already; no inner
batch, and nothing that ends a transaction.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from logstore.segments.rocketmq.messages.dispatch_request import (
    SCHEDULE_TOPIC,
    DeliverTime,
    DispatchRequest,
    delay_level,
)
from logstore.segments.rocketmq.messages.message_draft import (
    CommitLogDraft,
    MessageDraft,
    MessageEntry,
    draft_message,
)
from logstore.segments.rocketmq.messages.message_layout import FIXED_FIELDS, PROPERTIES_SIZE
from logstore.segments.rocketmq.messages.properties import (
    KEYS,
    TAGS,
    find_property,
    property_needle,
    tags_code,
)

if TYPE_CHECKING:
    from logstore.segments.rocketmq.messages.host_address import HostAddress

_KEYS = property_needle(KEYS)
_TAGS = property_needle(TAGS)
_crc32 = zlib.crc32


class MessageKind:
    """
    What many messages have in common: queue, flags, and all properties but those that are keys.

    The properties of a message are `text_before`, what varies, `text_behind`. That is the unique
    key, or all from the first to the last place where that and the value of ``KEYS`` stand:
    `unique_key_at` and `keys_at` are their places in it. It has one length in all messages of a
    kind.
    """

    __slots__ = (
        "born_host",
        "delay_level",
        "flag",
        "frame_bytes",
        "keys",
        "keys_at",
        "magic",
        "middle",
        "pack_head",
        "queue_id",
        "queue_key",
        "reconsume_times",
        "store_host",
        "sys_flag",
        "tags",
        "tags_code",
        "text_before",
        "text_behind",
        "topic",
        "unique_key_at",
        "varying_bytes",
    )

    def __init__(
        self,
        *,
        topic: str,
        queue_id: int,
        flag: int,
        sys_flag: int,
        reconsume_times: int,
        text_before: bytes,
        example: bytes,
        text_behind: bytes,
        born_host: HostAddress,
        store_host: HostAddress,
        unique_key_at: slice | None = None,
        keys_at: slice | None = None,
    ) -> None:
        """`example` is what varies, as it is in one of the messages."""
        self.topic = topic
        self.queue_id = queue_id
        self.flag = flag
        self.reconsume_times = reconsume_times
        self.text_before = text_before
        self.varying_bytes = len(example)
        #: None: what varies is the unique key
        self.unique_key_at = unique_key_at
        #: None: no keys vary
        self.keys_at = keys_at
        self.text_behind = text_behind
        self.born_host = born_host
        self.store_host = store_host
        self.sys_flag = sys_flag
        model = self.draft(b"", example, 0)
        self.sys_flag = model.sys_flag
        self.queue_key = topic, queue_id
        self.tags = find_property(model.properties_text, _TAGS)
        self.tags_code = 0 if self.tags is None else tags_code(self.tags)
        #: of messages that wait for it: when they are due takes the place of the tags code; else 0
        self.delay_level = 0
        if topic == SCHEDULE_TOPIC:
            self.delay_level = max(delay_level(model.properties_text), 0)
        #: the value of ``KEYS`` where it is the same in all messages of the kind
        self.keys = find_property(model.properties_text, _KEYS) if keys_at is None else None
        #: bytes of a record beside its body
        self.frame_bytes = model.size_bytes
        self.magic = model.version.magic
        self.pack_head = FIXED_FIELDS[model.sys_flag >> 4 & 3].pack
        #: what stands between body and that which varies
        self.middle = model.topic_field + PROPERTIES_SIZE.pack(model.properties_size_bytes)
        self.middle += text_before

    def keys_of(self, varying: bytes) -> bytes | None:
        """Return the value of ``KEYS`` of a message, None if it has none."""
        return self.keys if self.keys_at is None else varying[self.keys_at]

    def draft(
        self, body: bytes | memoryview, varying: bytes, born_timestamp_ms: int
    ) -> MessageDraft:
        """Return a message of this kind, to be put by itself."""
        return draft_message(
            topic=self.topic,
            body=body,
            queue_id=self.queue_id,
            properties_text=self.text_before + varying + self.text_behind,
            flag=self.flag,
            sys_flag=self.sys_flag,
            born_timestamp_ms=born_timestamp_ms,
            born_host=self.born_host,
            store_host=self.store_host,
            reconsume_times=self.reconsume_times,
        )


#: where one message of a run stands: kind, physical offset, size, queue offset, what varies
StoredMessage = tuple[MessageKind, int, int, int, bytes]


class MessageRun(CommitLogDraft):
    """
    Plain messages of any queues.

    `record_bytes_max` is the size of the largest record; `queue_keys` are the queues that they go
    to. Once it is stamped, `stored` says where each message stands, and `next_queue_offsets` where
    each queue goes on. The bodies are views of what the sender owns and are let go of then.
    """

    __slots__ = (
        "_messages",
        "_queue_offsets",
        "next_queue_offsets",
        "physical_offset",
        "queue_keys",
        "record_bytes_max",
        "size_bytes",
        "store_timestamp_ms",
        "stored",
    )

    def __init__(self) -> None:
        self._messages: list[tuple[MessageKind, bytes | memoryview, bytes, int]] = []
        self._queue_offsets: Mapping[tuple[str, int], int] = {}
        self.next_queue_offsets: dict[tuple[str, int], int] = {}
        self.stored: list[StoredMessage] = []
        self.queue_keys: set[tuple[str, int]] = set()
        self.size_bytes = 0
        self.record_bytes_max = 0
        self.physical_offset = 0
        self.store_timestamp_ms = 0

    def __len__(self) -> int:
        """Return how many messages it holds."""
        return len(self._messages) or len(self.stored)

    def add(
        self,
        kind: MessageKind,
        body: bytes | memoryview,
        varying: bytes,
        born_timestamp_ms: int,
    ) -> None:
        """Add a message, before the run is stamped; what varies has the kind's length."""
        self._messages.append((kind, body, varying, born_timestamp_ms))
        self.queue_keys.add(kind.queue_key)
        size_bytes = kind.frame_bytes + len(body)
        self.size_bytes += size_bytes
        if size_bytes > self.record_bytes_max:
            self.record_bytes_max = size_bytes

    @property
    def messages(self) -> Sequence[tuple[MessageKind, bytes | memoryview, bytes, int]]:
        """Kind, body, what varies and born time of each message, before they are stamped."""
        return self._messages

    def drafts(self) -> list[MessageDraft]:
        """Return the messages one by one, to be put one by one; only before they are stamped."""
        return [kind.draft(body, own, born_ms) for kind, body, own, born_ms in self._messages]

    def stamp(self, queue_offsets: Mapping[tuple[str, int], int], store_timestamp_ms: int) -> None:
        """Say where every queue goes on, and when all are stored."""
        self._queue_offsets = queue_offsets
        self.store_timestamp_ms = store_timestamp_ms

    def stamped(self, base_offset: int) -> MessageEntry:
        """Return all records as they stand in the commit log from `base_offset` on."""
        # All that a send costs by itself is spent here and where it is read: no calls, no objects.
        stored_ms = self.store_timestamp_ms
        queue_offsets = self._queue_offsets
        going_on: dict[tuple[str, int], int] = {}
        stored: list[StoredMessage] = []
        pieces: list[bytes | memoryview] = []
        physical_offset = base_offset
        for kind, body, varying, born_ms in self._messages:
            queue_key = kind.queue_key
            queue_offset = going_on.get(queue_key)
            if queue_offset is None:
                queue_offset = queue_offsets[queue_key]
            going_on[queue_key] = queue_offset + 1
            body_bytes = len(body)
            size_bytes = kind.frame_bytes + body_bytes
            head = kind.pack_head(
                size_bytes,
                kind.magic,
                _crc32(body) & 0x7FFF_FFFF,
                kind.queue_id,
                kind.flag,
                queue_offset,
                physical_offset,
                kind.sys_flag,
                born_ms,
                kind.born_host.packed,
                stored_ms,
                kind.store_host.packed,
                kind.reconsume_times,
                0,
                body_bytes,
            )
            pieces += (head, body, kind.middle, varying, kind.text_behind)
            stored.append((kind, physical_offset, size_bytes, queue_offset, varying))
            physical_offset += size_bytes
        self.physical_offset = base_offset
        self.stored, self.next_queue_offsets = stored, going_on
        return MessageEntry(base_offset, self.size_bytes, b"".join(pieces))

    def settle(self) -> None:
        """Let go of the bodies: the run stands in the commit log."""
        self._messages = []
        self._queue_offsets = {}

    def tags_code_of(self, kind: MessageKind, deliver_time: DeliverTime | None) -> int:
        """Return what the units of a kind have: a hash of tags, or when they are due."""
        if kind.delay_level and deliver_time is not None:
            return deliver_time(kind.delay_level, self.store_timestamp_ms)
        return kind.tags_code

    def dispatch_request(
        self, index: int, deliver_time: DeliverTime | None = None
    ) -> DispatchRequest:
        """Return the request for one message, once they are stamped."""
        kind, physical_offset, size_bytes, queue_offset, varying = self.stored[index]
        return DispatchRequest(
            kind.topic,
            kind.queue_id,
            physical_offset,
            size_bytes,
            self.tags_code_of(kind, deliver_time),
            self.store_timestamp_ms,
            queue_offset,
            kind.sys_flag,
            0,
            kind.text_before + varying + kind.text_behind,
        )
