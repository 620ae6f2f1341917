"""
Messages of one queue to record batches of one partition, many at a time.

Compiled loops read the messages where they stand in what was read of the commit log, and write the
records where the batch's header will stand in front of them. Messages that were records once become
these again: what was kept beside them (:mod:`logstore.compat.spark.convert.offset_map`) is read by
the same loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.compat.record_mapping import MappingError
from logstore.compat.spark.convert import batch_kernel
from logstore.compat.spark.convert.batch_packing import (
    Measures,
    PackedBatch,
    Pieces,
    RecordPieces,
    Rests,
)
from logstore.segments.compiled.reused_memory import ReusedMemory
from logstore.segments.kafka.compression import Codec
from logstore.segments.rocketmq.columns import BytesColumn, MessageColumns, kernel
from logstore.segments.rocketmq.messages.message import Message, decode_message
from logstore.segments.rocketmq.messages.system_flags import COMPRESSED


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
        found = RecordPieces(
            offsets,
            self.columns.born_timestamp_ms,
            texts,
            bodies,
            rests,
            self._measured(texts, bodies, rests, offsets),
        )
        lasts = found.cuts() if cuts is None else cuts
        yield from found.pack(lasts, self.memory, self.codec, self.leader_epoch)

    def _measured(
        self, texts: Pieces, bodies: Pieces, rests: Rests, offsets: NDArray[np.int64]
    ) -> Measures:
        count = len(self.columns)
        found = Measures(*(np.zeros(count, np.int64) for _ in range(4)))
        batch_kernel.measure_records(texts.arrays, bodies.sizes, found.arrays)
        bad = batch_kernel.measure_rests(rests.arrays, bodies.sizes, found.arrays)
        if bad >= 0:
            raise MappingError(
                f"what was kept of the record at queue offset {offsets[int(bad)]} is damaged; "
                "move the files logstore-rest-*.parquet away to convert without"
            )
        return found
