"""
The record batch (magic 2): its 61-byte header, read and stamped in place.

Layout, big-endian (Kafka: ``DefaultRecordBatch``; see FORMAT.md)::

     0  baseOffset i64          12  partitionLeaderEpoch i32     21  attributes i16
     8  batchLength i32         16  magic i8                     23  lastOffsetDelta i32
                                17  crc u32 (of 21 .. end)       27  baseTimestamp i64
    35  maxTimestamp i64        43  producerId i64               51  producerEpoch i16
    53  baseSequence i32        57  recordCount i32              61  records

Base offset and leader epoch lie outside the CRC: a leader stamps them without touching the rest.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from logstore.checksum import crc32c
from logstore.errors import CorruptEntryError

if TYPE_CHECKING:
    from typing_extensions import Buffer

#: bytes before ``batchLength`` starts to count
PREFIX_BYTES = 12
HEADER_BYTES = 61
MAGIC = 2
NO_PRODUCER = -1
NO_TIMESTAMP = -1

CODEC_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40
#: what is left of a batch's attributes when Kafka writes them anew
_KNOWN_ATTRIBUTES = 0x7F

_HEADER = struct.Struct(">qiibIhiqqqhii")
_PREFIX = struct.Struct(">qi")
_BASE_OFFSET = struct.Struct(">q")
_STAMP = struct.Struct(">qii")  # base offset, length, leader epoch
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_MAX_TIMESTAMP = struct.Struct(">q")
_SEQUENCE_MODULUS = 1 << 31

_unpack_header = _HEADER.unpack_from


class RecordBatch:
    """
    A view of one batch of magic 2; `data` starts with its first byte and ends with its last.

    Both an entry and a draft of a Kafka partition log. Stamping needs a writable `data`.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp_ms",
        "crc",
        "data",
        "last_offset_delta",
        "leader_epoch",
        "length_bytes",
        "magic",
        "max_timestamp_ms",
        "producer_epoch",
        "producer_id",
        "record_count",
        "size_bytes",
    )

    base_offset: int
    length_bytes: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    def __init__(self, data: memoryview | bytes | bytearray, size_bytes: int) -> None:
        (
            self.base_offset,
            self.length_bytes,
            self.leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp_ms,
            self.max_timestamp_ms,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        ) = _unpack_header(data)
        self.data = data
        self.size_bytes = size_bytes

    # what the header says

    @property
    def next_offset(self) -> int:
        """The offset after the last one that the batch covers."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_offset(self) -> int:
        """The last offset that the batch covers; compaction may have removed its record."""
        return self.base_offset + self.last_offset_delta

    @property
    def offset_count(self) -> int:
        """How many offsets the batch covers."""
        return self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, -1 without one; sequences wrap after 2^31-1."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) % _SEQUENCE_MODULUS

    @property
    def codec(self) -> int:
        """Number of the compression codec, 0 for none."""
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        """Tell whether the broker's clock, not the producer's, gave the timestamps."""
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def is_transactional(self) -> bool:
        """Tell whether the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        """Tell whether the batch is a transaction marker or another control batch."""
        return bool(self.attributes & CONTROL_BIT)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones in the batch may go (KIP-534), None where no cleaner has set it."""
        return self.base_timestamp_ms if self.attributes & DELETE_HORIZON_BIT else None

    def computed_crc(self) -> int:
        """Return the CRC-32C of what the header's CRC covers."""
        return crc32c(memoryview(self.data)[21 : self.size_bytes])

    # stamping

    def stamped(self, base_offset: int, leader_epoch: int | None = None) -> RecordBatch:
        """Write base offset (and leader epoch) into `data`; return this same batch."""
        if leader_epoch is None:
            _BASE_OFFSET.pack_into(self.data, 0, base_offset)
        else:
            _STAMP.pack_into(self.data, 0, base_offset, self.length_bytes, leader_epoch)
            self.leader_epoch = leader_epoch
        self.base_offset = base_offset
        return self

    def restamp_time(self, max_timestamp_ms: int, *, is_log_append_time: bool) -> None:
        """Write maximal timestamp and timestamp type into `data` and compute the CRC anew."""
        attributes = self.attributes & _KNOWN_ATTRIBUTES & ~LOG_APPEND_TIME_BIT
        if is_log_append_time:
            attributes |= LOG_APPEND_TIME_BIT
        data = self.data
        _ATTRIBUTES.pack_into(data, 21, attributes)
        _MAX_TIMESTAMP.pack_into(data, 35, max_timestamp_ms)
        self.attributes = attributes
        self.max_timestamp_ms = max_timestamp_ms
        self.crc = self.computed_crc()
        _CRC.pack_into(data, 17, self.crc)

    def __repr__(self) -> str:
        return (
            f"RecordBatch([{self.base_offset}, {self.next_offset}), {self.record_count} records, "
            f"{self.size_bytes} bytes)"
        )


def batch_size_bytes(data: Buffer, position: int = 0) -> int:
    """Return the whole length of the batch at `position`, as its ``batchLength`` says."""
    length: int = _PREFIX.unpack_from(data, position)[1]
    return PREFIX_BYTES + length


def parse_batch(
    data: memoryview, position: int = 0, path: str = "request", *, is_checked: bool = True
) -> RecordBatch:
    """
    Return a view of the whole, valid batch at `position` of `data`.

    Without `is_checked` its CRC may be wrong.

    Raises:
        CorruptEntryError: it is cut short, has another magic, or its CRC is wrong. The error
            names `path` and `position`.

    """
    available = len(data) - position
    if available < HEADER_BYTES:
        raise CorruptEntryError(path, position, f"{available} bytes are less than a batch header")
    size_bytes = batch_size_bytes(data, position)
    if size_bytes < HEADER_BYTES:
        raise CorruptEntryError(path, position, f"batch length {size_bytes - 12} is too small")
    if size_bytes > available:
        raise CorruptEntryError(
            path, position, f"a batch of {size_bytes} bytes is cut short after {available}"
        )
    batch = RecordBatch(data[position : position + size_bytes], size_bytes)
    if batch.magic != MAGIC:
        raise CorruptEntryError(path, position, f"magic {batch.magic}, expected {MAGIC}")
    if is_checked and crc32c(batch.data[21:]) != batch.crc:
        raise CorruptEntryError(
            path, position, f"CRC is {batch.computed_crc():#010x}, header says {batch.crc:#010x}"
        )
    return batch


def iterate_batches(data: memoryview, path: str = "request") -> Iterator[RecordBatch]:
    """Yield every whole batch in `data`; a tail that is cut short ends the iteration."""
    position = 0
    while len(data) - position >= HEADER_BYTES:
        if batch_size_bytes(data, position) > len(data) - position:
            return
        batch = parse_batch(data, position, path)
        yield batch
        position += batch.size_bytes
