"""
Messages of before there were batches, made into batches so that they decode to columns like these.

Such logs are old and small; what counts is that they read. Positions and sizes are those in the
file, everything else is what the conversion of :mod:`logstore.segments.kafka.legacy` says.
"""

from __future__ import annotations

from typing import NoReturn

import attrs
import numpy as np

from logstore.errors import CorruptEntryError
from logstore.segments.kafka.batch_walk import parse_entry
from logstore.segments.kafka.columns.batch_run import BatchRun
from logstore.segments.kafka.columns.record_columns import BatchColumns
from logstore.segments.kafka.legacy.message import MAGIC_POSITION, is_legacy_magic
from logstore.segments.kafka.legacy.up_conversion import up_convert
from logstore.segments.kafka.record import CorruptRecordError
from logstore.segments.kafka.record_batch import batch_size_bytes


class ConvertedRun(BatchRun):
    """A run of messages and batches; its `view` has a batch for each of them."""

    #: where in the file's own bytes each batch of the conversion starts, and the end
    _origins: dict[int, int]
    #: of what each batch of the conversion was made
    _magics: dict[int, int]
    _original: memoryview

    def _batches_in(self, view: memoryview) -> memoryview:
        self._origins, self._magics = {}, {}
        self._original = original = view
        made = bytearray()
        position = 0
        while len(original) - position > MAGIC_POSITION:
            size_bytes = batch_size_bytes(original, position)
            if size_bytes > len(original) - position:
                break
            self._origins[len(made)] = position
            entry = original[position : position + max(size_bytes, MAGIC_POSITION + 1)]
            try:
                is_checked = self.selection.is_checked
                batch = parse_entry(entry, 0, self.path, is_checked=is_checked)
                self._magics[len(made)] = batch.magic
                is_old = is_legacy_magic(batch.magic)
                made += up_convert(batch.data) if is_old else batch.data
            except CorruptEntryError as error:
                self.refuse(len(made), error.reason)
            except CorruptRecordError as error:
                self.refuse(len(made), str(error))
            position += size_bytes
        self._origins[len(made)] = position
        return memoryview(bytes(made))

    def take(self, size_bytes_max: int) -> int:
        """Walk as a run of batches does; return where in the file's own bytes that ends."""
        return self._origins[super().take(size_bytes_max)]

    def batches(self) -> BatchColumns:
        """Return the headers of all batches taken, with their places in the file."""
        found = super().batches()
        starts = [self._origins[start] for start in self.starts]
        ends = [
            self._origins[start + size_bytes]
            for start, size_bytes in zip(self.starts, self.sizes, strict=True)
        ]
        position = np.array(starts, dtype=np.int64)
        size_bytes = np.array(ends, dtype=np.int64) - position
        magic = np.array([self._magics[start] for start in self.starts], dtype=np.int8)
        return attrs.evolve(
            found, position=position + self.file_position, size_bytes=size_bytes, magic=magic
        )

    def refuse_tail(self, position: int) -> NoReturn:
        """Raise CorruptEntryError for what stands at `position` of the file's own bytes."""
        self.view = self._original
        self._origins = {position: position}
        super().refuse_tail(position)

    def refuse(self, position: int, reason: str) -> NoReturn:
        """Raise CorruptEntryError for what the batch at `position` was made of."""
        super().refuse(self._origins[position], reason)
