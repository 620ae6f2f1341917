"""
What decoding to columns returns: arrays of numbers, and bytes with bounds, as Arrow keeps them.

A column of n byte strings is `data`, all of them back to back, and `bounds`, n + 1 positions in
it: string i is ``data[bounds[i]:bounds[i + 1]]``. Nulls take no bytes and are marked beside.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.segments.kafka.record import Record
from logstore.segments.kafka.record_batch import (
    CODEC_MASK,
    CONTROL_BIT,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
)

#: the 61 bytes of a batch's header, as they stand in the file
_HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp_ms", ">i8"),
        ("max_timestamp_ms", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("record_count", ">i4"),
    ]
)
#: the same as one thing, which is copied at once
_HEADER_BYTES = np.dtype((np.void, _HEADER.itemsize))


@attrs.frozen(eq=False)
class BytesColumn:
    """
    n byte strings or nulls: data uint8, bounds int32 of n + 1, `is_null` bool of n.

    `null_count` says how many are null.
    """

    data: NDArray[np.uint8]
    bounds: NDArray[np.int32]
    is_null: NDArray[np.bool_]
    null_count: int

    def __len__(self) -> int:
        return len(self.is_null)

    def __getitem__(self, index: int) -> bytes | None:
        if self.is_null[index]:
            return None
        return self.data[self.bounds[index] : self.bounds[index + 1]].tobytes()

    @classmethod
    def without_rows(cls) -> BytesColumn:
        """Return a column of no byte strings."""
        no_data = np.empty(0, dtype=np.uint8)
        return cls(no_data, np.zeros(1, dtype=np.int32), np.empty(0, dtype=np.bool_), 0)

    def __iter__(self) -> Iterator[bytes | None]:
        whole, bounds = self.data.tobytes(), self.bounds.tolist()
        for index, is_null in enumerate(self.is_null.tolist()):
            yield None if is_null else whole[bounds[index] : bounds[index + 1]]


@attrs.frozen(eq=False)
class HeaderColumns:
    """The headers of n records: those of record i are names and values [bounds[i], bounds[i+1])."""

    bounds: NDArray[np.int32]
    names: BytesColumn
    values: BytesColumn

    @classmethod
    def without_headers(cls, count: int) -> HeaderColumns:
        """Return those of `count` records that have none."""
        bounds = np.zeros(count + 1, dtype=np.int32)
        return cls(bounds, BytesColumn.without_rows(), BytesColumn.without_rows())


@attrs.frozen(eq=False)
class BatchColumns:
    """
    The headers of batches, a row a batch; `position` is where it starts in its file.

    `magic` is what stands in the file: 0 and 1 of messages that were made into batches.
    """

    position: NDArray[np.int64]
    size_bytes: NDArray[np.int64]
    magic: NDArray[np.int8]
    base_offset: NDArray[np.int64]
    leader_epoch: NDArray[np.int32]
    attributes: NDArray[np.int16]
    last_offset_delta: NDArray[np.int32]
    base_timestamp_ms: NDArray[np.int64]
    max_timestamp_ms: NDArray[np.int64]
    producer_id: NDArray[np.int64]
    producer_epoch: NDArray[np.int16]
    base_sequence: NDArray[np.int32]
    record_count: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.position)

    @property
    def codec(self) -> NDArray[np.int16]:
        """Numbers of the compression codecs, 0 for none."""
        return self.attributes & np.int16(CODEC_MASK)

    @property
    def is_log_append_time(self) -> NDArray[np.bool_]:
        """Whether the timestamps are the broker's."""
        return self._has(LOG_APPEND_TIME_BIT)

    @property
    def is_transactional(self) -> NDArray[np.bool_]:
        """Whether the batch belongs to a transaction."""
        return self._has(TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> NDArray[np.bool_]:
        """Whether the batch is a marker."""
        return self._has(CONTROL_BIT)

    def _has(self, bit: int) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.attributes & np.int16(bit) != 0
        return found

    @classmethod
    def gather(
        cls, data: NDArray[np.uint8], starts: NDArray[np.int64], file_position: int
    ) -> BatchColumns:
        """Read the headers that begin at `starts` of `data`, which begins at `file_position`."""
        # A view in which a header begins at each byte: those at `starts` are copied whole.
        everywhere = max(len(data) - _HEADER.itemsize + 1, 0)
        rows = np.ndarray((everywhere,), _HEADER_BYTES, data, strides=(1,))[starts]
        return cls.of_headers(rows, starts + file_position)

    @classmethod
    def of_headers(cls, headers: NDArray[Any], position: NDArray[np.int64]) -> BatchColumns:
        """Read headers that stand back to back; those of batches at `position`, in the file."""
        rows = headers.view(_HEADER)
        return cls(
            position=position,
            size_bytes=rows["length"].astype(np.int64) + 12,
            magic=rows["magic"].astype(np.int8),
            base_offset=rows["base_offset"].astype(np.int64),
            leader_epoch=rows["leader_epoch"].astype(np.int32),
            attributes=rows["attributes"].astype(np.int16),
            last_offset_delta=rows["last_offset_delta"].astype(np.int32),
            base_timestamp_ms=rows["base_timestamp_ms"].astype(np.int64),
            max_timestamp_ms=rows["max_timestamp_ms"].astype(np.int64),
            producer_id=rows["producer_id"].astype(np.int64),
            producer_epoch=rows["producer_epoch"].astype(np.int16),
            base_sequence=rows["base_sequence"].astype(np.int32),
            record_count=rows["record_count"].astype(np.int32),
        )


@attrs.frozen(eq=False)
class RecordColumns:
    """
    Records, a row each, in the order of the file.

    `sequence` is the producer's, -1 without one. `batch` is the row of the record's batch in
    `batches`; a batch without records that were kept has no row that leads to it. Columns that were
    not asked for are None. `next_position` is where in the file the next batch starts.
    `unpacked_bytes` are those of each batch's records, decompressed.
    """

    offset: NDArray[np.int64]
    timestamp_ms: NDArray[np.int64]
    sequence: NDArray[np.int32]
    batch: NDArray[np.int32]
    key: BytesColumn | None
    value: BytesColumn | None
    headers: HeaderColumns | None
    batches: BatchColumns
    next_position: int
    unpacked_bytes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offset)

    def records(self) -> list[Record]:
        """Return the rows as records; columns that were left out are null or empty."""
        count = len(self)
        keys = [None] * count if self.key is None else list(self.key)
        values = [None] * count if self.value is None else list(self.value)
        rows = zip(self.offset.tolist(), self.timestamp_ms.tolist(), keys, values, strict=True)
        headers, sequences = self._headers(), self.sequence.tolist()
        return [
            Record(offset, timestamp_ms, key, value, headers[row], sequences[row])
            for row, (offset, timestamp_ms, key, value) in enumerate(rows)
        ]

    def _headers(self) -> list[tuple[tuple[str, bytes | None], ...]]:
        if self.headers is None:
            return [()] * len(self)
        names = [(name or b"").decode("utf-8", "surrogateescape") for name in self.headers.names]
        pairs = list(zip(names, self.headers.values, strict=True))
        bounds: list[int] = self.headers.bounds.tolist()
        return [tuple(pairs[start:end]) for start, end in pairwise(bounds)]
