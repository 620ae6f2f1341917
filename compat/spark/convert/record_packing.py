"""Messages of one queue to record batches of one partition, many at a time."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cached_property

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.checksum import crc32c
from logstore.compat.spark.convert import batch_kernel
from logstore.segments.kafka.compression import Codec, compress
from logstore.segments.rocketmq.columns import BytesColumn, MessageColumns
from logstore.segments.rocketmq.messages.message import Message, decode_message
from logstore.segments.rocketmq.messages.system_flags import COMPRESSED

#: how much a batch may have, uncompressed; a longer record has one of its own
BATCH_BYTES = 64 * 1024
# base offset, length, leader epoch, magic, CRC, attributes, last offset delta, base and max
# timestamp, producer id, epoch and sequence, record count
_HEADER = struct.Struct(">qiibIhiqqqhii")
_CRC_START = 21
_LENGTH_START = 12
_MAGIC = 2
#: varints of a record's length and of both deltas, at most
_DELTAS_BYTES_MAX = 25


@attrs.frozen(eq=False)
class PackedBatch:
    """One record batch and the rows that it is made of."""

    first: int
    last: int
    data: bytes


@attrs.frozen(eq=False, slots=False)
class RecordBatches:
    """Messages of one queue in order, and what they are as batches."""

    columns: MessageColumns
    codec: Codec = Codec.NONE

    @cached_property
    def bodies(self) -> BytesColumn:
        """The bodies as their producers gave them."""
        column = self.columns.body
        packed = np.flatnonzero((self.columns.sys_flag & COMPRESSED) != 0)
        if len(packed) == 0:
            return column
        plain = list(column)
        for row in packed.tolist():
            plain[row] = self._message(row).plain_body()
        data = np.frombuffer(b"".join(body or b"" for body in plain), dtype=np.uint8)
        bounds = np.zeros(len(plain) + 1, dtype=np.int32)
        np.cumsum([len(body or b"") for body in plain], out=bounds[1:])
        return BytesColumn(data, bounds, column.is_null, column.null_count)

    def _message(self, row: int) -> Message:
        start = int(self.columns.size_bytes[:row].sum(dtype=np.int64))
        end = start + int(self.columns.size_bytes[row])
        return decode_message(self.columns.scan.data[start:end].data)

    def batches(self, offsets: NDArray[np.int64]) -> Iterator[PackedBatch]:
        """Yield batches of all messages; message i becomes the record of ``offsets[i]``."""
        columns, bodies, texts = self.columns, self.bodies, self.columns.properties_text
        count = len(columns)
        key_starts, key_sizes = np.zeros(count, np.int64), np.zeros(count, np.int64)
        header_counts, sizes = np.zeros(count, np.int32), np.zeros(count, np.int64)
        batch_kernel.measure_records(
            texts.data, texts.bounds, bodies.bounds, key_starts, key_sizes, header_counts, sizes
        )
        ends = np.cumsum(sizes + _DELTAS_BYTES_MAX)
        first = 0
        while first < count:
            before = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, before + BATCH_BYTES, side="right")))
            target = np.empty(int(ends[last - 1]) - before, dtype=np.uint8)
            size_bytes = batch_kernel.pack_records(
                first,
                last,
                offsets,
                columns.born_timestamp_ms,
                texts.data,
                texts.bounds,
                bodies.data,
                bodies.bounds,
                key_starts,
                key_sizes,
                header_counts,
                sizes,
                target,
            )
            records = target[: int(size_bytes)].tobytes()
            yield PackedBatch(first, last, self._whole(first, last, offsets, records))
            first = last

    def _whole(self, first: int, last: int, offsets: NDArray[np.int64], records: bytes) -> bytes:
        """Return a batch of these records: header, CRC, and the records compressed."""
        times = self.columns.born_timestamp_ms[first:last]
        body = records if self.codec is Codec.NONE else compress(self.codec, records)
        batch = bytearray(
            _HEADER.pack(
                int(offsets[first]),
                _HEADER.size - _LENGTH_START + len(body),
                0,
                _MAGIC,
                0,
                int(self.codec),
                int(offsets[last - 1] - offsets[first]),
                int(times[0]),
                int(times.max()),
                -1,
                -1,
                -1,
                last - first,
            )
        )
        batch += body
        struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[_CRC_START:]))
        return bytes(batch)
