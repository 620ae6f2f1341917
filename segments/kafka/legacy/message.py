"""
One message of magic 0 or 1 as it stands in a log: plain, or a wrapper around compressed ones.

To the log it is one more batch (:class:`LegacyMessage`). What its header tells is read at once;
what a wrapper holds, by :func:`logstore.segments.kafka.legacy.message_set.decode_message` only.
"""

from __future__ import annotations

import struct
import zlib
from typing import NoReturn

from logstore.errors import CorruptEntryError, RejectedAppendError
from logstore.segments.kafka.record_batch import (
    CODEC_MASK,
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    PREFIX_BYTES,
    RecordBatch,
    batch_size_bytes,
)

MAGIC_0 = 0
MAGIC_1 = 1
#: where every format has its magic
MAGIC_POSITION = 16
#: offset, size, CRC, magic and attributes; then the two lengths, and in magic 1 the timestamp
HEADER_BYTES = 18
MESSAGE_BYTES_MIN = {MAGIC_0: HEADER_BYTES + 8, MAGIC_1: HEADER_BYTES + 8 + 8}
KNOWN_ATTRIBUTES = {MAGIC_0: CODEC_MASK, MAGIC_1: CODEC_MASK | LOG_APPEND_TIME_BIT}

_HEADER = struct.Struct(">qiIbB")
_TIMESTAMP = struct.Struct(">q")


class LegacyMessage(RecordBatch):
    """
    A view of one message of magic 0 or 1; `data` starts with its first byte and ends with its last.

    A wrapper's header tells its last offset and nothing of the first: `base_offset` is that last
    one too, and what lies in front of it is to the log a hole like those of compaction. Kafka also
    orders such messages by their last offset. `record_count` of a wrapper is -1: not told.
    """

    __slots__ = ()

    def __init__(self, data: memoryview | bytes | bytearray, size_bytes: int) -> None:
        (self.base_offset, self.length_bytes, self.crc, magic, attributes) = _HEADER.unpack_from(
            data
        )
        self.magic = magic
        self.attributes = attributes & KNOWN_ATTRIBUTES[magic]
        self.leader_epoch = self.producer_id = self.producer_epoch = self.base_sequence = -1
        self.last_offset_delta = 0
        self.record_count = -1 if attributes & CODEC_MASK else 1
        timestamp_ms = NO_TIMESTAMP
        if magic == MAGIC_1:
            timestamp_ms = _TIMESTAMP.unpack_from(data, HEADER_BYTES)[0]
        self.base_timestamp_ms = self.max_timestamp_ms = timestamp_ms
        self.data = data
        self.size_bytes = size_bytes

    @property
    def delete_horizon_ms(self) -> None:
        """Nobody marked tombstones then."""
        return

    def computed_crc(self) -> int:
        """Return the CRC-32 of what the header's CRC covers."""
        return zlib.crc32(memoryview(self.data)[MAGIC_POSITION : self.size_bytes])

    def stamped(self, base_offset: int, leader_epoch: int | None = None) -> NoReturn:
        """Refuse: no leader appends this format any more."""
        raise RejectedAppendError(
            f"a message of magic {self.magic} keeps its offset {self.base_offset} and cannot get "
            f"{base_offset} of leader epoch {leader_epoch}: convert it to magic 2"
        )

    def restamp_time(self, max_timestamp_ms: int, *, is_log_append_time: bool) -> NoReturn:
        """Refuse: no leader appends this format any more."""
        raise RejectedAppendError(
            f"a message of magic {self.magic} keeps its time and cannot get {max_timestamp_ms} "
            f"(LogAppendTime: {is_log_append_time}): convert it to magic 2"
        )

    def __repr__(self) -> str:
        kind = "wrapper" if self.codec else "message"
        return (
            f"LegacyMessage(magic {self.magic} {kind} at {self.last_offset}, "
            f"{self.size_bytes} bytes)"
        )


def is_legacy_magic(magic: int) -> bool:
    """Tell whether the byte at :data:`MAGIC_POSITION` is that of a message, not of a batch."""
    return magic in KNOWN_ATTRIBUTES


def parse_message(
    data: memoryview, position: int = 0, path: str = "request", *, is_checked: bool = True
) -> LegacyMessage:
    """
    Return a view of the whole, valid message at `position` of `data`.

    Without `is_checked` its CRC may be wrong.

    Raises:
        CorruptEntryError: it is cut short, has another magic, or its CRC is wrong. The error
            names `path` and `position`.

    """
    available = len(data) - position
    if available < HEADER_BYTES:
        raise CorruptEntryError(path, position, f"{available} bytes are less than a message header")
    magic = data[position + MAGIC_POSITION]
    if magic not in KNOWN_ATTRIBUTES:
        raise CorruptEntryError(path, position, f"magic {magic}, expected 0 or 1")
    size_bytes = batch_size_bytes(data, position)
    if size_bytes < MESSAGE_BYTES_MIN[magic]:
        raise CorruptEntryError(
            path, position, f"message size {size_bytes - PREFIX_BYTES} is too small"
        )
    if size_bytes > available:
        raise CorruptEntryError(
            path, position, f"a message of {size_bytes} bytes is cut short after {available}"
        )
    message = LegacyMessage(data[position : position + size_bytes], size_bytes)
    if is_checked and message.computed_crc() != message.crc:
        raise CorruptEntryError(
            path,
            position,
            f"CRC is {message.computed_crc():#010x}, header says {message.crc:#010x}",
        )
    return message
