"""
The files of one log, as the log needs them: names, creating, opening, listing, removing.

:class:`logstore.flat_segment_files.FlatSegmentFiles` is the one for a single file per segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from logstore.segment import LogSegment

if TYPE_CHECKING:
    from logstore.host import FileSystem

SegmentT = TypeVar("SegmentT", bound=LogSegment[Any])


class SegmentFamily(Protocol[SegmentT]):
    """Knows the file names of one log: creates, opens, lists and removes its segments."""

    fs: FileSystem
    directory: str

    def base_offsets(self) -> list[int]:
        """Return the base offsets of the segments that are on disk."""
        ...

    def create(self, base_offset: int) -> SegmentT:
        """Create a new, empty, writable segment."""
        ...

    def open(self, base_offset: int, *, is_active: bool) -> SegmentT:
        """Open a segment that is on disk; the active one for writing."""
        ...

    def remove(self, segment: SegmentT) -> None:
        """
        Take a segment's files away (at once, or renamed for a delayed removal).

        Some may be gone already: a recovery has kept the data aside, or a removal failed half way.
        """
        ...
