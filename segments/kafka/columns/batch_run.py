"""A run of batches that are decoded together: walked, checked, decompressed."""

from __future__ import annotations

import struct
from typing import NoReturn

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.checksum import crc32c
from logstore.errors import CorruptEntryError
from logstore.segments.compiled import loops
from logstore.segments.kafka.columns import batch_kernel
from logstore.segments.kafka.columns.batch_kernel import SOURCE_BYTES_MAX
from logstore.segments.kafka.columns.kernel import RECORD_BYTES_MIN
from logstore.segments.kafka.columns.record_columns import BatchColumns
from logstore.segments.kafka.columns.selection import Selection
from logstore.segments.kafka.compression import Codec, CompressionError, decompress
from logstore.segments.kafka.legacy.message import MAGIC_POSITION, is_legacy_magic
from logstore.segments.kafka.record_batch import (
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_BYTES,
    MAGIC,
    PREFIX_BYTES,
)

# base offset, length, magic, CRC, attributes, last offset delta
_walk = struct.Struct(">qi4xbIhi").unpack_from
_CRC_START = 21


def first_batch_bytes(data: memoryview) -> int:
    """Return how long the batch at the start of `data` says that it is."""
    length: int = _walk(data)[1]
    return PREFIX_BYTES + length


@attrs.frozen(eq=False)
class RecordSource:
    """Where the records of batches stand, uncompressed: batch i in ``data[starts[i]:ends[i]]``."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


class OlderMessageError(Exception):
    """A message of magic 0 or 1 stands where a batch was looked for."""


class BatchRun:
    """
    The wanted batches of `view`, which begins at `file_position` of the file `path`.

    `last_offset` is that of the batch before, None if there is none; :meth:`take` moves it on.
    """

    def __init__(
        self,
        view: memoryview,
        path: str,
        file_position: int,
        selection: Selection,
        last_offset: int | None = None,
    ) -> None:
        self.path = path
        self.file_position = file_position
        self.selection = selection
        self.last_offset = last_offset
        self.starts: list[int] = []
        self.sizes: list[int] = []
        self.is_full = False
        #: decompressed records by place in `starts`
        self._inflated: dict[int, bytes] = {}
        self.view = self._batches_in(view)

    def _batches_in(self, view: memoryview) -> memoryview:
        """Return the bytes of batches that are walked over."""
        return view

    def take(self, size_bytes_max: int) -> int:
        """
        Walk to the last whole batch; return where it ends.

        Stops behind the batch with which `size_bytes_max` of records are reached, and before the
        one that would be too much to count in 32 bits: then the run is full. Raises
        OlderMessageError where something stands that is no batch yet.
        """
        view, end, starts = self.view, len(self.view), self.starts
        first, last = self.selection.span
        is_checked, has_control = self.selection.is_checked, self.selection.has_control
        is_run = self.selection.is_run
        position, size_bytes, previous = self._take_usual(size_bytes_max)
        while end - position >= HEADER_BYTES and not self.is_full:
            base_offset, length, magic, crc, attributes, last_delta = _walk(view, position)
            following = position + PREFIX_BYTES + length
            if magic != MAGIC and is_legacy_magic(magic):
                raise OlderMessageError
            if length < HEADER_BYTES - PREFIX_BYTES:
                self.refuse(position, f"batch length {length} is too small")
            if following > end:
                break
            if magic != MAGIC:
                self.refuse(position, f"magic {magic}, expected {MAGIC}")
            is_wanted = base_offset <= last and base_offset + last_delta >= first
            if is_run and (not is_wanted or first <= previous >= base_offset):
                self.refuse(position, f"a batch of offset {base_offset} is out of place")
            if is_wanted and (has_control or not attributes & CONTROL_BIT):
                if is_checked and crc32c(view[position + _CRC_START : following]) != crc:
                    self._refuse_crc(position, following, crc)
                starts.append(position)
                self.sizes.append(following - position)
                codec = attributes & CODEC_MASK
                size_bytes += self._inflate(codec, position, following) if codec else length
                if size_bytes > SOURCE_BYTES_MAX:
                    self._inflated.pop(len(starts) - 1, None)
                    starts.pop()
                    self.sizes.pop()
                    self.is_full = True
                    break
                self.is_full = size_bytes >= size_bytes_max
            position, previous = following, base_offset + last_delta
        self.last_offset = previous if is_run else None
        is_short = MAGIC_POSITION < end - position < HEADER_BYTES and not self.is_full
        if is_short and is_legacy_magic(view[position + MAGIC_POSITION]):
            raise OlderMessageError  # a message may be shorter than a batch's header
        return position

    def _take_usual(self, size_bytes_max: int) -> tuple[int, int, int]:
        """
        Take what a compiled loop can, from the start on.

        Returns where it ends, how many bytes count, and the last offset.
        """
        first, last = self.selection.span
        previous = first - 1 if self.last_offset is None else self.last_offset
        if not loops.is_available():
            return 0, 0, previous
        found = np.empty((batch_kernel.ROWS, len(self.view) // HEADER_BYTES), dtype=np.int64)
        before = -1 if self.last_offset is None else max(self.last_offset, -1)
        count, position, size_bytes, last_offset = batch_kernel.usual_batches(
            self._array(), first, last, before, size_bytes_max, found
        )
        starts, sizes, crcs = found[:, : int(count)].tolist()
        self.starts += starts
        self.sizes += sizes
        if self.selection.is_checked:
            self._check(crcs)
        self.is_full = bool(size_bytes >= size_bytes_max)
        return int(position), int(size_bytes), int(last_offset) if count else previous

    def _check(self, crcs: list[int]) -> None:
        view = self.view
        for start, size_bytes, crc in zip(self.starts, self.sizes, crcs, strict=True):
            if crc32c(view[start + _CRC_START : start + size_bytes]) != crc:
                self._refuse_crc(start, start + size_bytes, crc)

    def _inflate(self, codec: int, position: int, end: int) -> int:
        """Keep the records of the newest batch, decompressed; return how many bytes they have."""
        try:
            body = decompress(Codec(codec), self.view[position + HEADER_BYTES : end])
        except (CompressionError, ValueError) as error:
            self.refuse(position, str(error))
        self._inflated[len(self.starts) - 1] = body
        return len(body)

    def _refuse_crc(self, position: int, end: int, crc: int) -> NoReturn:
        computed = crc32c(self.view[position + _CRC_START : end])
        self.refuse(position, f"CRC is {computed:#010x}, header says {crc:#010x}")

    def batches(self) -> BatchColumns:
        """Return the headers of all batches taken."""
        return BatchColumns.gather(
            self._array(), np.array(self.starts, dtype=np.int64), self.file_position
        )

    def source(self, batches: BatchColumns) -> RecordSource:
        """
        Return the records of all batches: where they stand, or a copy if any is compressed.

        Raises CorruptEntryError if a batch has too few bytes for its records.
        """
        if self._inflated:
            source = self._copied_source()
        else:
            starts = np.array(self.starts, dtype=np.int64)
            ends = starts + np.array(self.sizes, dtype=np.int64)
            source = RecordSource(self._array(), starts + HEADER_BYTES, ends)
        sizes = source.ends - source.starts
        counts = batches.record_count
        bad = np.flatnonzero((counts < 0) | (counts > sizes // RECORD_BYTES_MIN))
        if len(bad):
            row = int(bad[0])
            self.refuse(self.starts[row], f"{counts[row]} records in {sizes[row]} bytes")
        return source

    def _copied_source(self) -> RecordSource:
        view = self.view
        bodies = [
            self._inflated.get(row, view[start + HEADER_BYTES : start + size_bytes])
            for row, (start, size_bytes) in enumerate(zip(self.starts, self.sizes, strict=True))
        ]
        ends = np.cumsum(np.array([len(body) for body in bodies], dtype=np.int64))
        data = np.frombuffer(b"".join(bodies), dtype=np.uint8)
        return RecordSource(data, np.concatenate((np.zeros(1, np.int64), ends[:-1])), ends)

    def _array(self) -> NDArray[np.uint8]:
        """Return the view as an array that is not written to: one type, compiled once."""
        array = np.frombuffer(self.view, dtype=np.uint8)
        array.flags.writeable = False
        return array

    def refuse_tail(self, position: int) -> NoReturn:
        """Raise CorruptEntryError for what stands at `position` and is no whole batch."""
        available = len(self.view) - position
        if available < HEADER_BYTES:
            self.refuse(position, f"{available} bytes are less than a batch header")
        size_bytes = PREFIX_BYTES + _walk(self.view, position)[1]
        self.refuse(position, f"a batch of {size_bytes} bytes is cut short after {available}")

    def refuse(self, position: int, reason: str) -> NoReturn:
        """Raise CorruptEntryError for the batch at `position` of the view."""
        raise CorruptEntryError(self.path, self.file_position + position, reason)
