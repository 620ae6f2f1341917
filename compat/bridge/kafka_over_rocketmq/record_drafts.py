"""A produced batch as messages on their way into the commit log: all of it, or nothing."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

from logstore.compat.bridge.reserved_names import RECORD_REST_PROPERTY, rest_as_text
from logstore.compat.record_mapping import message_parts
from logstore.errors import RejectedAppendError
from logstore.segments.kafka.record import Record
from logstore.segments.kafka.record_run import Row
from logstore.segments.rocketmq.messages.batch_columns import BatchColumns
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message_batch import (
    MessageBatchDraft,
    batch_model,
    with_property_crc,
)
from logstore.segments.rocketmq.messages.message_draft import (
    MessageDraft,
    MessageEntry,
    draft_message,
)
from logstore.segments.rocketmq.messages.message_layout import FIXED_BYTES, FIXED_FIELDS
from logstore.segments.rocketmq.messages.properties import (
    PROPERTIES_SIZE_BYTES_MAX,
    encode_properties,
)

_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_KEYS = b"KEYS\x01"
_crc32 = zlib.crc32


class RecordRunDraft(MessageBatchDraft):
    """The messages of one record batch; unlike those of a client's batch each has its own time."""

    __slots__ = ("born_timestamps_ms", "has_rests")

    def __init__(self, topic: str, queue_id: int, host: HostAddress) -> None:
        super().__init__(batch_model(topic, queue_id, host))
        self.born_timestamps_ms: list[int] = []
        #: whether a property of one holds what messages have no place for
        self.has_rests = False

    def take(self, rows: Sequence[Row]) -> None:
        """
        Put the records in, as rows.

        Raises:
            RejectedAppendError: key and headers of one take more than properties can.

        """
        sizes: list[int] = []
        crcs: list[int] = []
        bodies: list[bytes] = []
        texts: list[bytes] = []
        model, born = self.model, self.born_timestamps_ms
        fixed_bytes = FIXED_BYTES[model.sys_flag >> 4 & 3] + len(model.topic_field) + 2
        for row in rows:
            born_ms, key, value, headers = row
            if not value or headers:
                text = self._full_text(row)
            elif key is None:
                text = b""
            elif key and key.isascii() and b"\x01" not in key and b"\x02" not in key:
                text = _KEYS + key + b"\x02"
            else:
                text = self._full_text(row)
            if len(text) > PROPERTIES_SIZE_BYTES_MAX:
                raise RejectedAppendError(
                    f"key and headers of record {len(sizes)} take {len(text)} bytes as "
                    f"properties, {PROPERTIES_SIZE_BYTES_MAX} are allowed"
                )
            body = value or b""
            sizes.append(fixed_bytes + len(body) + len(text))
            crcs.append(_crc32(body) & 0x7FFF_FFFF)
            bodies.append(body)
            texts.append(_SHORT.pack(len(text)) + text)
            born.append(born_ms)
        self.columns = BatchColumns(sizes, crcs, [0] * len(rows), bodies, texts)
        self.properties_size_bytes = max(map(len, texts), default=2) - 2
        self.message_count = len(sizes)
        self.size_bytes = sum(sizes)

    def _full_text(self, row: Row) -> bytes:
        born_ms, key, value, headers = row
        parts, rest = message_parts(Record(0, born_ms, key, value, tuple(headers)))
        if rest is None:
            return encode_properties(parts.properties)
        self.has_rests = True
        return encode_properties({**parts.properties, RECORD_REST_PROPERTY: rest_as_text(rest)})

    def stamped(self, base_offset: int) -> MessageEntry:
        """Return all messages as they stand in the commit log from `base_offset` on."""
        model = self.model
        sys_flag, topic_field = model.sys_flag, model.topic_field
        pack = FIXED_FIELDS[sys_flag >> 4 & 3].pack
        magic, queue_id, stored_ms = model.version.magic, model.queue_id, self.store_timestamp_ms
        born_host, store_host = model.born_host.packed, model.store_host.packed
        queue_offset, physical_offset = self.queue_offset, base_offset
        pieces: list[bytes] = []
        offsets: list[int] = []
        sizes, crcs, _, bodies, texts = self.columns
        for size_bytes, crc, body, text, born_ms in zip(
            sizes, crcs, bodies, texts, self.born_timestamps_ms, strict=True
        ):
            head = pack(
                size_bytes, magic, crc, queue_id, 0, queue_offset, physical_offset, sys_flag,
                born_ms, born_host, stored_ms, store_host, 0, 0, len(body),
            )  # fmt: skip
            if model.has_property_crc:
                pieces.append(with_property_crc(b"".join((head, body, topic_field, text))))
            else:
                pieces += (head, body, topic_field, text)
            offsets.append(physical_offset)
            queue_offset += 1
            physical_offset += size_bytes
        self.physical_offsets = offsets
        self.physical_offset = base_offset
        return MessageEntry(base_offset, self.size_bytes, b"".join(pieces))


def draft_single(topic: str, queue_id: int, row: Row, host: HostAddress) -> MessageDraft | None:
    """Return the one message that a plain record becomes; None if it is not plain."""
    born_ms, key, value, headers = row
    if not value or headers:
        return None
    text = b""
    if key is not None:
        if not key or not key.isascii() or b"\x01" in key or b"\x02" in key:
            return None
        text = _KEYS + key + b"\x02"
        if len(text) > PROPERTIES_SIZE_BYTES_MAX:
            return None
    return draft_message(
        topic=topic,
        body=value,
        queue_id=queue_id,
        properties_text=text,
        born_timestamp_ms=born_ms,
        born_host=host,
        store_host=host,
    )


def draft_records(
    topic: str, queue_id: int, rows: Sequence[Row], host: HostAddress
) -> RecordRunDraft:
    """
    Return the messages that the records in `rows` become.

    `host` is where they are said to be born and stored.

    Raises:
        RejectedAppendError: key and headers of one take more than properties can.

    """
    draft = RecordRunDraft(topic, queue_id, host)
    draft.take(rows)
    return draft
