"""
Columns of records to record batches, many at a time: what the compiled loops are given, and make.

Keys, values and what else is of a record stand anywhere in some bytes; a loop writes the records
where the batch's header will stand in front of them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import pairwise

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.checksum import crc32c
from logstore.compat.spark.convert import batch_kernel
from logstore.segments.compiled.reused_memory import ReusedMemory
from logstore.segments.kafka.compression import Codec, compress
from logstore.segments.kafka.record_batch import HEADER_BYTES

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
class Measures:
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


@attrs.frozen(eq=False)
class RecordPieces:
    """
    Records in the order of their offsets.

    `texts` have the keys, where `measures` says, and headers in the form of properties; `rests` the
    keys and headers of those that were records before.
    """

    offsets: NDArray[np.int64]
    timestamps_ms: NDArray[np.int64]
    texts: Pieces
    values: Pieces
    rests: Rests
    measures: Measures

    def cuts(self) -> NDArray[np.int64]:
        """Return before which records batches end that are large enough, and how many there are."""
        ends = np.cumsum(self.measures.sizes + _DELTAS_BYTES_MAX)
        found: list[int] = []
        before = 0
        while not found or found[-1] < len(ends):
            last = int(np.searchsorted(ends, before + BATCH_BYTES, side="right"))
            found.append(max(found[-1] + 1 if found else 1, last))
            before = int(ends[found[-1] - 1])
        return np.array(found, dtype=np.int64)

    def pack(
        self,
        cuts: NDArray[np.int64],
        memory: ReusedMemory,
        codec: Codec = Codec.NONE,
        leader_epoch: int = 0,
    ) -> Iterator[PackedBatch]:
        """Yield batches that end before the records of `cuts`; there must be a record."""
        records_bytes = int(self.measures.sizes.sum()) + _DELTAS_BYTES_MAX * len(self.offsets)
        target = memory.array(records_bytes + HEADER_BYTES * len(cuts), np.uint8)
        bounds = np.empty(len(cuts) + 1, dtype=np.int64)
        batch_kernel.pack_batches(
            cuts,
            _template(leader_epoch),
            (self.offsets, self.timestamps_ms),
            self.texts.arrays,
            self.values.arrays,
            self.rests.arrays,
            self.measures.arrays,
            target,
            bounds,
        )
        data, first = target.data, 0
        for last, (start, end) in zip(cuts.tolist(), pairwise(bounds.tolist()), strict=True):
            yield PackedBatch(first, last, _whole(data[start:end], codec))
            first = last


def _template(leader_epoch: int) -> NDArray[np.uint8]:
    """Return a header without what each batch says of its records."""
    fields = (0, 0, leader_epoch, _MAGIC, 0, 0, 0, 0, 0, -1, -1, -1, 0)
    return np.frombuffer(_HEADER.pack(*fields), dtype=np.uint8)


def _whole(batch: memoryview, codec: Codec) -> memoryview:
    """Return a batch with its CRC, and compressed if it is to be."""
    if codec is not Codec.NONE:
        records = compress(codec, batch[HEADER_BYTES:].tobytes())
        batch = memoryview(bytearray(batch[:HEADER_BYTES]) + records)
        _LENGTH.pack_into(batch, _LENGTH_START, len(batch) - _LENGTH_END)
        _ATTRIBUTES.pack_into(batch, _CRC_START, int(codec))
    _CRC.pack_into(batch, _CRC_POSITION, crc32c(batch[_CRC_START:]))
    return batch
