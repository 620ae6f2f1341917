"""
All files of one log, oldest first: Java's ``MappedFileQueue``, the core's segmented log.

What the core calls the recovery point is *flushedWhere*, its next offset the queue's *max offset*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from logstore.segment import Entry
from logstore.segmented_log import SegmentedLog
from logstore.segments.rocketmq.files.mapped_file import PAGE_BYTES, MappedFile

if TYPE_CHECKING:
    from logstore.segments.rocketmq.files.mapped_file_directory import MappedFileDirectory

EntryT = TypeVar("EntryT", bound=Entry)
MappedFileT = TypeVar("MappedFileT", bound=MappedFile[Any])


class MappedFileQueue(SegmentedLog[EntryT, MappedFileT], Generic[EntryT, MappedFileT]):
    """A segmented log of files of one size, with what Java's queue does besides."""

    family: MappedFileDirectory[MappedFileT]

    def __init__(
        self,
        family: MappedFileDirectory[MappedFileT],
        recovery_point: int | None = None,
        *,
        start_offset: int = 0,
    ) -> None:
        """
        As for any log; where it ends in a full file it goes on as in Java.

        That is in the file of zeros behind it if there is one. Without, the padding goes, and
        appends overwrite it.
        """
        super().__init__(family, recovery_point, start_offset=start_offset)
        if not family.is_writable:
            return
        active = self.active
        if family.has_spare(active.limit_offset) and (active.is_full or active.was_padded):
            active.keep_padding()
            self.roll()
        else:
            active.resume()
        family.remove_spares(but=self.active.limit_offset if family.makes_spare else None)

    def files(self) -> list[MappedFileT]:
        """Return the files, oldest first; the last one is written to."""
        return list(self.segments.values())

    def last(self, count: int) -> list[MappedFileT]:
        """Return the last `count` files, or all: where recoveries begin."""
        return list(self.segments.values()[-count:])

    def needs_flush(self, least_pages: int = 0, end_offset: int | None = None) -> bool:
        """
        Tell whether so many pages below `end_offset` wait for a flush; 0 asks for anything at all.

        A full file waits for no page to fill (``MappedFile.isAbleToFlush``).
        """
        point = self.recovery_point
        end = self.next_offset if end_offset is None else end_offset
        if point >= end:
            return False
        active = self.active
        if least_pages <= 0 or active.is_full or point < active.base_offset:
            return True
        start, offset_bytes = active.base_offset, active.offset_bytes
        last_page = (end - start) * offset_bytes // PAGE_BYTES
        return last_page - (point - start) * offset_bytes // PAGE_BYTES >= least_pages

    def leave_behind(self, offset: int, *, keeps_empty: bool = True) -> None:
        """
        Let the log end at `offset` (``truncateDirtyFiles``).

        Files that start above go; one that starts at `offset` stays, empty, unless told otherwise.
        What stands behind stays in its file until the next append zeroes it.
        """
        highest = offset if keeps_empty else offset - 1
        while self.active.base_offset > highest and len(self.segments) > 1:
            self._drop(self.active)
        self.active.resume()
        self.active.leave_behind(max(offset, self.active.base_offset))
        self.recovery_point = min(self.recovery_point, self.next_offset)

    def settle_remains(self) -> None:
        """Zero, durably, what a recovery left behind the end."""
        self.active.settle_remains()

    @property
    def has_remains(self) -> bool:
        """Tell whether a recovery left something behind the end."""
        return self.active.has_remains

    def close(self, *, is_clean: bool = True) -> None:
        """Let go of the files; at a clean close those that were made ahead are removed."""
        if is_clean and self.family.is_writable:
            self.family.remove_spares()
        super().close()
