"""
Which of the stored segments make up one log: the lineage of its leaders, without holes.

A broker that loses its leadership may have copied what its successor never had; such a segment has
an epoch, or an end of one, that the newest segment's history does not know. And a new leader
copies from where the last copy ended, but by its own segments: the first of them may begin below.

Source: ``RemoteLogManager.isRemoteSegmentWithinLeaderEpochs``.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import attrs

from logstore.errors import CorruptFileError, StorageError
from logstore.host import FileSystem
from logstore.segments.kafka.checkpoints import parse_integer, read_checkpoint
from logstore.segments.kafka.remote.segment_metadata import SegmentMetadata

Epochs = tuple[tuple[int, int], ...]


class MissingOffsetsError(StorageError):
    """Offsets between two stored segments are stored nowhere."""


@attrs.frozen
class Link:
    """A segment of a chain, and the first offset that the one before it does not have."""

    metadata: SegmentMetadata
    start_offset: int

    @property
    def is_whole(self) -> bool:
        """Tell whether all of the segment is wanted."""
        return self.start_offset == self.metadata.start_offset


def read_epochs(fs: FileSystem, path: str) -> Epochs:
    """Return (epoch, start offset) of a leader epoch checkpoint; CorruptFileError if they fall."""
    entries = tuple(
        (parse_integer(path, epoch, 32), parse_integer(path, offset, 64))
        for epoch, offset in read_checkpoint(fs, path, 2)
    )
    for before, after in pairwise(entries):
        if not (before[0] < after[0] and before[1] <= after[1]):
            raise CorruptFileError(path, f"epoch {after[0]} at {after[1]} comes behind {before}")
    return entries


def epochs_between(entries: Epochs, start_offset: int, end_offset: int) -> Epochs:
    """Return the epochs of ``[start_offset, end_offset)``; the first starts at `start_offset`."""
    inside = [(epoch, max(start, start_offset)) for epoch, start in entries if start < end_offset]
    # Of those that start at or below the first offset only the last one reaches into the span.
    return tuple(
        entry
        for entry, following in zip(inside, [*inside[1:], None], strict=True)
        if following is None or following[1] > start_offset
    )


def newest(segments: Iterable[SegmentMetadata]) -> SegmentMetadata:
    """Return the segment that the latest leader wrote last; its history is the log's."""
    return max(segments, key=lambda one: (_last_epoch(one), one.end_offset))


def chain(segments: Iterable[SegmentMetadata], lineage: Epochs) -> list[Link]:
    """
    Return the segments that make up the log with that history, oldest first.

    Raises:
        MissingOffsetsError: there is a hole between two of them.

    """
    fitting = [one for one in segments if _is_within(one, lineage)]
    # Of those that start alike the longest comes first, and of copies of one segment the latest.
    fitting.sort(key=lambda one: (one.start_offset, -one.end_offset, -one.event_timestamp_ms))
    links: list[Link] = []
    next_offset = fitting[0].start_offset if fitting else 0
    for one in fitting:
        if one.start_offset > next_offset:
            raise MissingOffsetsError(
                f"{one.partition}: offsets [{next_offset}, {one.start_offset}) are not stored"
            )
        if one.next_offset > next_offset:
            links.append(Link(one, next_offset))
            next_offset = one.next_offset
    return links


def _is_within(metadata: SegmentMetadata, lineage: Epochs) -> bool:
    """Tell whether all of a segment was written by leaders of that history, in their time."""
    starts = dict(lineage)
    if not lineage or not metadata.leader_epochs:
        return True
    for index, (epoch, start) in enumerate(metadata.leader_epochs):
        known = starts.get(epoch)
        if known is None or (known != start and index > 0) or known > start:
            return False
    last_epoch = _last_epoch(metadata)
    following = next((start for epoch, start in lineage if epoch > last_epoch), None)
    return following is None or metadata.end_offset < following


def _last_epoch(metadata: SegmentMetadata) -> int:
    return metadata.leader_epochs[-1][0] if metadata.leader_epochs else -1
