"""What a pass over a ``.log`` is asked (:class:`ScanRequest`) and what it finds."""

from __future__ import annotations

from typing import NamedTuple

import attrs

from logstore.tools.inspection.verification.producer_fold import Event, ProducerChange

_FAR = 2**63 - 1


@attrs.frozen
class LostStretch:
    """Bytes that hold no good batch; `next_offset` is where good ones go on, None at the end."""

    position: int
    end_position: int
    kind: str
    reason: str
    first_offset: int
    next_offset: int | None

    @property
    def size_bytes(self) -> int:
        """How many bytes it has."""
        return self.end_position - self.position

    def covers(self, offset: int) -> bool:
        """Tell whether the offset may have been in it."""
        return self.first_offset <= offset and (
            self.next_offset is None or offset < self.next_offset
        )


class Landmark(NamedTuple):
    """A batch that an index leads to: its offsets, its largest timestamp and that so far."""

    position: int
    base_offset: int
    last_offset: int
    max_timestamp_ms: int
    max_timestamp_so_far_ms: int


@attrs.frozen
class Hole:
    """Offsets between two good batches that neither has."""

    position: int
    start_offset: int
    end_offset: int


@attrs.define
class SegmentScan:
    """What a pass found; `next_offset` and `end_position` are those of the last good batch."""

    base_offset: int
    size_bytes: int
    next_offset: int
    end_position: int = 0
    first_offset: int | None = None
    last_position: int = 0
    batch_count: int = 0
    max_timestamp_ms: int = -1
    #: batches of magic 2, which alone have leader epochs
    has_epochs: bool = False
    is_newest_legacy: bool = False
    has_producers: bool = False
    lost: list[LostStretch] = attrs.field(factory=list[LostStretch])
    holes: list[Hole] = attrs.field(factory=list[Hole])
    #: records were taken out of a batch, as only compaction does
    is_thinned: bool = False
    #: (epoch, base offset, position) of every batch with another epoch than the one before
    epochs: list[tuple[int, int, int]] = attrs.field(factory=list[tuple[int, int, int]])
    #: how many entries of the indexes, from the first one on, are as the batches demand
    right_entry_count: int = 0
    right_time_count: int = 0
    #: where the last of them leads, and how far, behind the last one of the offset index, those of
    #: the time index are apart at the most
    told_position: int = 0
    time_step_bytes: int = 0
    #: where the others lead
    at_position: dict[int, Landmark] = attrs.field(factory=dict[int, Landmark])
    at_offset: dict[int, Landmark] = attrs.field(factory=dict[int, Landmark])
    events: list[Event] = attrs.field(factory=list[Event])
    changes: dict[int, ProducerChange] = attrs.field(factory=dict[int, ProducerChange])

    @property
    def is_cut(self) -> bool:
        """Tell whether the end of the segment is lost."""
        return any(stretch.next_offset is None for stretch in self.lost)

    @property
    def has_gaps(self) -> bool:
        """Tell whether batches are lost, so that what they did is not known."""
        return any(stretch.kind != "base-offset" for stretch in self.lost)

    def is_lost(self, offset: int, position: int = -1) -> bool:
        """Tell whether an index entry may be true of bytes that cannot be read any more."""
        return any(
            stretch.position <= position < stretch.end_position or stretch.covers(offset)
            for stretch in self.lost
            if stretch.kind != "base-offset"
        )


@attrs.frozen
class ScanRequest:
    """
    What to look for on the way.

    `limit_offset` is where the next segment starts; `index_entries` are (offset, position) and
    `time_entries` (timestamp, offset) of its indexes; `snapshots` the offsets inside of the segment
    that producer snapshots have. With `has_landmarks` all that the entries lead to is noted, not
    only from the first one on that is not as it was made.
    """

    base_offset: int
    limit_offset: int = _FAR
    index_entries: tuple[tuple[int, int], ...] = ()
    time_entries: tuple[tuple[int, int], ...] = ()
    snapshots: tuple[int, ...] = ()
    has_records: bool = False
    has_landmarks: bool = False
