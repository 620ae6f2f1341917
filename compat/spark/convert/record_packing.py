"""
Messages of one queue to record batches of one partition, many at a time.

Compiled loops read the messages where they stand in what was read of the commit log, and write the
records where the batch's header will stand in front of them. Messages that were records once become
these again: what was kept beside them (:mod:`logstore.compat.spark.convert.offset_map`) is read by
the same loops.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.checksum import crc32c
from logstore.compat.record_mapping import MappingError
from logstore.compat.spark.convert import batch_kernel
from logstore.segments.compiled.reused_memory import ReusedMemory
from logstore.segments.kafka.compression import Codec, compress
from logstore.segments.kafka.record_batch import HEADER_BYTES
from logstore.segments.rocketmq.columns import BytesColumn, MessageColumns, kernel
from logstore.segments.rocketmq.messages.message import Message, decode_message
from logstore.segments.rocketmq.messages.system_flags import COMPRESSED

#: how much a batch may have, uncompressed; a longer record has one of its own
BATCH_BYTES = 64 * 1024
# base offset, length, leader epoch, magic, CRC, attributes, last offset delta, base and max
# timestamp, producer id, epoch and sequence, record count
_HEADER = struct.Struct(">qiibIhiqqqhii")
_CRC_POSITION, _CRC_START = 17, 21
_LENGTH_START, _LENGTH_END = 8, 12
_LENGTH, _ATTRIBUTES, _CRC = struct.Struct(">i"), struct.Struct(">h"), struct.Struct(">I")
_MAGIC = 2
#: varints of a record's length and of both deltas, at most
_DELTAS_BYTES_MAX = 25


@attrs.frozen(eq=False)
class PackedBatch:
    """One record batch and the rows that it is made of."""

    first: int
    last: int
    data: memoryview


@attrs.frozen(eq=False)
class Pieces:
    """Byte strings anywhere in `data`, a row each."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @property
    def arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """All of it, as the compiled loops want it."""
        return self.data, self.starts, self.sizes


@attrs.frozen(eq=False)
class Rests:
    """
    What was kept of records: rest i is ``data[bounds[i]:bounds[i + 1]]``.

    `rows` says for each message which rest is its own, -1 for none.
    """

    data: NDArray[np.uint8]
    bounds: NDArray[np.int64]
    rows: NDArray[np.int64]

    @property
    def arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """All of it, as the compiled loops want it."""
        return self.data, self.bounds, self.rows

    @classmethod
    def none(cls, count: int) -> Rests:
        """Return those of so many messages that were never records."""
        return cls(np.empty(0, np.uint8), np.zeros(1, np.int64), np.full(count, -1, np.int64))


@attrs.frozen(eq=False)
class _Measures:
    """What the compiled loops find out about records before they write any."""

    key_starts: NDArray[np.int64]
    key_sizes: NDArray[np.int64]
    header_counts: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @property
    def arrays(
        self,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """All of it, as the compiled loops want it."""
        return self.key_starts, self.key_sizes, self.header_counts, self.sizes


@attrs.frozen(eq=False, slots=False)
class RecordBatches:
    """Messages of one queue in order, and what they are as batches."""

    columns: MessageColumns
    codec: Codec = Codec.NONE
    leader_epoch: int = 0
    #: what the batches are written to
    memory: ReusedMemory = attrs.field(factory=ReusedMemory)

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

    def _body_pieces(self) -> Pieces:
        """Return where the bodies stand: in the messages, if none of them is compressed."""
        if not (self.columns.sys_flag & COMPRESSED).any():
            return self._pieces(kernel.BODY)
        bounds = self.bodies.bounds.astype(np.int64)
        return Pieces(self.bodies.data, bounds[:-1], np.diff(bounds))

    def _pieces(self, place: int) -> Pieces:
        scan = self.columns.scan
        return Pieces(scan.data, scan.column(place), scan.column(place + 1))

    def batches(
        self,
        offsets: NDArray[np.int64],
        rests: Rests | None = None,
        cuts: NDArray[np.int64] | None = None,
    ) -> Iterator[PackedBatch]:
        """
        Yield batches of all messages; message i becomes the record of ``offsets[i]``.

        They end before the messages of `cuts`, the last of which is their number; without it where
        they are large enough.

        Raises:
            MappingError: a rest is damaged.

        """
        count = len(self.columns)
        if count == 0:
            return
        rests = Rests.none(count) if rests is None else rests
        texts, bodies = self._pieces(kernel.TEXT), self._body_pieces()
        found = self._measured(texts, bodies, rests, offsets)
        ends = np.cumsum(found.sizes + _DELTAS_BYTES_MAX)
        lasts = _cuts(ends) if cuts is None else cuts
        target = self.memory.array(int(ends[-1]) + HEADER_BYTES * len(lasts), np.uint8)
        bounds = np.empty(len(lasts) + 1, dtype=np.int64)
        batch_kernel.pack_batches(
            lasts,
            self._template,
            (offsets, self.columns.born_timestamp_ms),
            texts.arrays,
            bodies.arrays,
            rests.arrays,
            found.arrays,
            target,
            bounds,
        )
        data, first = target.data, 0
        for last, (start, end) in zip(lasts.tolist(), pairwise(bounds.tolist()), strict=True):
            yield PackedBatch(first, last, self._whole(data[start:end]))
            first = last

    @property
    def _template(self) -> NDArray[np.uint8]:
        """A header without what each batch says of its records."""
        fields = (0, 0, self.leader_epoch, _MAGIC, 0, 0, 0, 0, 0, -1, -1, -1, 0)
        return np.frombuffer(_HEADER.pack(*fields), dtype=np.uint8)

    def _measured(
        self, texts: Pieces, bodies: Pieces, rests: Rests, offsets: NDArray[np.int64]
    ) -> _Measures:
        count = len(self.columns)
        found = _Measures(*(np.zeros(count, np.int64) for _ in range(4)))
        batch_kernel.measure_records(texts.arrays, bodies.sizes, found.arrays)
        bad = batch_kernel.measure_rests(rests.arrays, bodies.sizes, found.arrays)
        if bad >= 0:
            raise MappingError(
                f"what was kept of the record at queue offset {offsets[int(bad)]} is damaged; "
                "move the files logstore-rest-*.parquet away to convert without"
            )
        return found

    def _whole(self, batch: memoryview) -> memoryview:
        """Return a batch with its CRC, and compressed if it is to be."""
        if self.codec is not Codec.NONE:
            records = compress(self.codec, batch[HEADER_BYTES:].tobytes())
            batch = memoryview(bytearray(batch[:HEADER_BYTES]) + records)
            _LENGTH.pack_into(batch, _LENGTH_START, len(batch) - _LENGTH_END)
            _ATTRIBUTES.pack_into(batch, _CRC_START, int(self.codec))
        _CRC.pack_into(batch, _CRC_POSITION, crc32c(batch[_CRC_START:]))
        return batch


def _cuts(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return before which messages batches end that are large enough, and how many there are."""
    found: list[int] = []
    before = 0
    while not found or found[-1] < len(ends):
        last = int(np.searchsorted(ends, before + BATCH_BYTES, side="right"))
        found.append(max(found[-1] + 1 if found else 1, last))
        before = int(ends[found[-1] - 1])
    return np.array(found, dtype=np.int64)
