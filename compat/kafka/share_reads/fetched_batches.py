"""
The batches in a run of a file that was read for a share fetch: where each stands.

Nothing of them is decoded.

Source: ``ShareFetchUtils.maybeSliceFetchRecords``; the rest is what Kafka asks of ``Records``.
"""

from __future__ import annotations

from typing import NamedTuple

from logstore.segment import Extent
from logstore.segments.kafka.batch_walk import walk_spans
from logstore.segments.kafka.legacy.message import MAGIC_POSITION, is_legacy_magic
from logstore.segments.kafka.record_batch import HEADER_BYTES, RecordBatch


class FetchedBatch(NamedTuple):
    """One batch: its offsets, the last included, and its bytes in the file."""

    base_offset: int
    last_offset: int
    position: int
    size_bytes: int


class FetchedBatches(NamedTuple):
    """
    Whole batches that were read, in order; at least one.

    Behind `last_offset` there is either nothing, or only what is too far away to be acquired. If
    the batches are none of the log, but made for the read (`are_made`), every record stands alone.
    What was read may begin one batch more (`is_cut`).
    """

    extent: Extent
    batches: tuple[FetchedBatch, ...]
    last_offset: int
    are_made: bool = False
    is_cut: bool = False

    @classmethod
    def read(
        cls, extent: Extent | None, fetch_offset: int, end_offset: int, record_count_max: int
    ) -> FetchedBatches | None:
        """
        Return the batches in `extent`, or None if there is no whole one.

        Those that start more than `record_count_max` behind all that is read or in flight (which
        ends at `end_offset`) are not looked at: nobody could acquire anything of them now.
        """
        if extent is None:
            return None
        batches: list[FetchedBatch] = []
        far_offset = max(end_offset, fetch_offset) + record_count_max
        expected = fetch_offset
        end = extent.position + extent.size_bytes
        for base_offset, position, size_bytes, last_delta in walk_spans(
            extent.file, extent.position, end
        ):
            last_offset = base_offset + last_delta
            if not batches:
                far_offset = max(far_offset, base_offset + record_count_max)
            elif base_offset > far_offset:
                last_offset = max(batches[-1].last_offset, far_offset)
                return cls(extent, tuple(batches), last_offset)
            if last_delta == 0 and base_offset > expected and _is_legacy(extent, position):
                base_offset = expected  # a message set names the last of its messages only
            batches.append(FetchedBatch(base_offset, last_offset, position, size_bytes))
            expected = last_offset + 1
        if not batches:
            return None
        is_cut = batches[-1].position + batches[-1].size_bytes < end
        return cls(extent, tuple(batches), batches[-1].last_offset, is_cut=is_cut)

    @property
    def base_offset(self) -> int:
        """Where the first batch starts; it may be below what was asked for."""
        return self.batches[0].base_offset

    def end_of_batch(self, offset: int) -> int:
        """Return the last offset of the batch that holds `offset`; itself if it lies in a hole."""
        last_offset = offset
        for batch in () if self.are_made else self.batches:
            if batch.base_offset > offset:
                break
            last_offset = batch.last_offset
        return max(last_offset, offset)

    def header(self, batch: FetchedBatch) -> RecordBatch:
        """Return what the header of a batch says."""
        return RecordBatch(self.extent.file.read(batch.position, HEADER_BYTES), batch.size_bytes)

    def data(self, batch: FetchedBatch) -> bytes:
        """Return the bytes of a batch."""
        return self.extent.file.read(batch.position, batch.size_bytes)

    def slice(self, first_offset: int, last_offset: int) -> Extent:
        """
        Return the run of the file with the batches from one offset to the other, both in it.

        A batch that was read alone keeps what is behind it of another, as with Kafka.
        """
        batches = self.batches
        if self.is_cut and len(batches) == 1:
            return self.extent
        first = batches[0]
        end = first.position + first.size_bytes
        for batch in batches[1:]:
            if batch.base_offset > last_offset:
                break
            if batch.base_offset <= first_offset:
                first = batch
            end = batch.position + batch.size_bytes
        return Extent(self.extent.file, first.position, end - first.position)


def _is_legacy(extent: Extent, position: int) -> bool:
    return is_legacy_magic(extent.file.read(position + MAGIC_POSITION, 1)[0])
