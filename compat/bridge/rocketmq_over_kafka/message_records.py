"""Messages on their way into a partition: each a record, what records cannot hold in a header."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from logstore.checksum import crc32c
from logstore.compat.bridge.reserved_names import MESSAGE_REST_HEADER
from logstore.compat.record_mapping import natural_rest, packed_hosts, record_parts
from logstore.segments.kafka.record_batch import MAGIC, PREFIX_BYTES
from logstore.segments.kafka.record_run import Row, encode_run
from logstore.segments.kafka.varint import encode_varint, encode_varlong
from logstore.segments.rocketmq.messages.message import Message
from logstore.segments.rocketmq.messages.message_batch import MessageBatchDraft
from logstore.segments.rocketmq.messages.message_draft import MessageDraft
from logstore.segments.rocketmq.messages.system_flags import COMPRESSED

if TYPE_CHECKING:
    from logstore.compat.bridge.rocketmq_over_kafka.record_kinds import RecordKind

_HEADER = struct.Struct(">qiibIhiqqqhii")
_HEADER_BYTES = _HEADER.size
_CRC_POSITION = 17
_CRC_START = 21
_SMALL_COUNT = 4096
_SMALL = tuple(encode_varint(value) for value in range(_SMALL_COUNT))
_NULL = b"\x01"
_KEYS = b"KEYS"
_crc32 = zlib.crc32


def length_field(value: int) -> bytes:
    """Return a length, or a count, as records have it."""
    return _SMALL[value] if value < _SMALL_COUNT else encode_varint(value)


def sized(data: bytes) -> bytes:
    """Return bytes with their length in front."""
    size_bytes = len(data)
    if size_bytes < _SMALL_COUNT:
        return _SMALL[size_bytes] + data
    return encode_varint(size_bytes) + data


#: the name of the header that holds a rest
REST_NAME = sized(MESSAGE_REST_HEADER.encode())


class RecordRun:
    """
    Messages as the records of one batch, put together in the order in which they are added.

    Properties are taken apart only as far as a record needs it; what is unusual about a message
    makes :meth:`add` decline it.
    """

    def __init__(self, stored_ms: int) -> None:
        self.stored_ms = stored_ms
        self.count = 0
        self.size_bytes = _HEADER_BYTES
        self._base_ms = 0
        self._max_ms = 0
        self._pieces: list[bytes | bytearray | memoryview] = [b""]

    def add(
        self,
        body: bytes | bytearray | memoryview,
        text: bytes,
        born_ms: int,
        body_crc: int,
        flag: int,
        model: MessageDraft,
        hosts: bytes,
    ) -> bool:
        """
        Add a message that is like `model` but for these; False, and nothing done, if it is unusual.

        Unusual are properties that would not be written as `text` is, and compressed bodies.
        """
        split = None if model.sys_flag & COMPRESSED else split_properties(text)
        if split is None:
            return False
        key, headers, header_count, keys_index = split
        rest = natural_rest(
            model.version.topic_length_bytes, flag, model.sys_flag, self.stored_ms,
            model.reconsume_times, model.prepared_transaction_offset, body_crc, keys_index, hosts,
        )  # fmt: skip
        count = self.count
        if not count:
            self._base_ms = self._max_ms = born_ms
        elif born_ms > self._max_ms:
            self._max_ms = born_ms
        before = b"".join(
            (
                b"\x00",
                encode_varlong(born_ms - self._base_ms),
                length_field(count),
                key,
                length_field(len(body)),
            )
        )
        behind = b"".join((length_field(header_count + 1), headers, REST_NAME, sized(rest)))
        size_bytes = len(before) + len(body) + len(behind)
        length = length_field(size_bytes)
        self._pieces += (length, before, body, behind)
        self.size_bytes += len(length) + size_bytes
        self.count = count + 1
        return True

    def add_like(
        self, kind: RecordKind, body: bytes | memoryview, unique_key: bytes, born_ms: int
    ) -> None:
        """Add a message of a kind that knows when it is stored."""
        count = self.count
        if not count:
            self._base_ms = self._max_ms = born_ms
        elif born_ms > self._max_ms:
            self._max_ms = born_ms
        delta_ms, body_bytes = born_ms - self._base_ms, len(body)
        begin = b"".join(
            (
                b"\x00",
                _SMALL[delta_ms] if 0 <= delta_ms < _SMALL_COUNT else encode_varlong(delta_ms),
                length_field(count),
                kind.key,
                length_field(body_bytes),
            )
        )
        size_bytes = len(begin) + body_bytes + kind.behind_bytes
        length = length_field(size_bytes)
        crc = (_crc32(body) & 0x7FFF_FFFF).to_bytes(4, "big")
        self._pieces += (
            length, begin, body, kind.before, unique_key, kind.between, crc, kind.behind,
        )  # fmt: skip
        self.size_bytes += len(length) + size_bytes
        self.count = count + 1

    @property
    def max_born_ms(self) -> int:
        """When the last one of them was born."""
        return self._max_ms

    def batch(self) -> bytearray:
        """Return the batch of what was added, at least one message."""
        self._pieces[0] = _HEADER.pack(
            0, self.size_bytes - PREFIX_BYTES, 0, MAGIC, 0, 0, self.count - 1,
            self._base_ms, self._max_ms, -1, -1, -1, self.count,
        )  # fmt: skip
        batch = bytearray().join(self._pieces)
        checksum = crc32c(memoryview(batch)[_CRC_START:])
        batch[_CRC_POSITION:_CRC_START] = checksum.to_bytes(4, "big")
        return batch


def split_properties(text: bytes) -> tuple[bytes, bytes, int, int] | None:
    """
    Return key, headers, how many these are, and the place of ``KEYS`` among the properties.

    None if that would not be written as the text is.
    """
    if not text:
        return _NULL, b"", 0, 0
    if not text.endswith(b"\x02"):
        return None
    if not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError:
            return None
    key, keys_index = _NULL, 0
    pieces: list[bytes] = []
    names: set[bytes] = set()
    for item in text[:-1].split(b"\x02"):
        name, _, value = item.partition(b"\x01")
        if not name or not value or name in names:
            return None
        if name == _KEYS:
            key, keys_index = sized(value), len(names)
        else:
            pieces += (sized(name), sized(value))
        names.add(name)
    return key, b"".join(pieces), len(pieces) // 2, keys_index


def record_batch_of(draft: MessageDraft | MessageBatchDraft, stored_ms: int) -> bytearray:
    """
    Return the record batch of the messages, stored at `stored_ms`.

    Raises:
        BodyCompressionError: the body of one cannot be decompressed.

    """
    run = RecordRun(stored_ms)
    is_usual = True
    if isinstance(draft, MessageDraft):
        hosts = packed_hosts(draft.born_host, draft.store_host)
        is_usual = run.add(
            draft.body, draft.properties_text, draft.born_timestamp_ms,
            draft.body_crc, draft.flag, draft, hosts,
        )  # fmt: skip
    else:
        model = draft.model
        born_ms, hosts = draft.born_timestamp_ms, packed_hosts(model.born_host, model.store_host)
        _, crcs, flags, bodies, texts = draft.columns
        for crc, flag, body, text in zip(crcs, flags, bodies, texts, strict=True):
            if not run.add(body, text[2:], born_ms, crc, flag, model, hosts):
                is_usual = False
                break
    if is_usual:
        return run.batch()
    return encode_run(0, [_row(message) for message in _messages(draft, stored_ms)])


def _row(message: Message) -> Row:
    record, rest = record_parts(message)
    headers = (*record.headers, (MESSAGE_REST_HEADER, rest))
    return record.timestamp_ms, record.key, record.value, headers


def _messages(draft: MessageDraft | MessageBatchDraft, stored_ms: int) -> Iterator[Message]:
    if isinstance(draft, MessageDraft):
        body, text = bytes(draft.body), draft.properties_text
        times = draft.born_timestamp_ms, stored_ms
        yield _message(draft, body, text, draft.body_crc, draft.flag, times)
        return
    _, crcs, flags, bodies, texts = draft.columns
    times = draft.born_timestamp_ms, stored_ms
    for crc, flag, body, text in zip(crcs, flags, bodies, texts, strict=True):
        yield _message(draft.model, body, text[2:], crc, flag, times)


def _message(
    draft: MessageDraft, body: bytes, text: bytes, crc: int, flag: int, times_ms: tuple[int, int]
) -> Message:
    born_ms, stored_ms = times_ms
    return Message(
        topic=draft.topic,
        body=body,
        queue_id=draft.queue_id,
        properties_text=text,
        flag=flag,
        sys_flag=draft.sys_flag,
        born_timestamp_ms=born_ms,
        born_host=draft.born_host,
        store_timestamp_ms=stored_ms,
        store_host=draft.store_host,
        reconsume_times=draft.reconsume_times,
        prepared_transaction_offset=draft.prepared_transaction_offset,
        queue_offset=0,
        physical_offset=0,
        size_bytes=0,
        body_crc=crc,
        version=draft.version,
    )
