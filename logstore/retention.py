"""Which old segments to give up, as a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Retainable(Protocol):
    """What a policy looks at in a segment."""

    @property
    def base_offset(self) -> int:
        """Where the segment starts."""
        ...

    @property
    def next_offset(self) -> int:
        """Where it ends."""
        ...

    @property
    def end_position(self) -> int:
        """Its bytes."""
        ...

    def largest_timestamp_ms(self) -> int:
        """Return the time of its newest entry."""
        ...


class RetentionPolicy(NamedTuple):
    """
    Bounds of age and size; None means no such bound.

    Segments go that are older than `retention_ms`, and the oldest ones as long as
    `retention_bytes` or more would remain without them.

    Source of the rules and of their order (start offset, size, time): Kafka's ``UnifiedLog``.
    """

    retention_ms: int | None = None
    retention_bytes: int | None = None

    def expired(self, segments: Sequence[Retainable], now_ms: int, start_offset: int) -> int:
        """
        Return how many of the oldest `segments` go.

        The last (active) segment counts only when it holds something; the caller then rolls first.
        Segments wholly below `start_offset` always go.
        """
        count = 0
        while count + 1 < len(segments) and segments[count + 1].base_offset <= start_offset:
            count += 1
        count = self._expired_by_size(segments, count)
        return self._expired_by_time(segments, count, now_ms)

    def _expired_by_size(self, segments: Sequence[Retainable], count: int) -> int:
        if self.retention_bytes is None:
            return count
        excess = sum(segment.end_position for segment in segments[count:]) - self.retention_bytes
        while count < len(segments):
            size_bytes = segments[count].end_position
            if size_bytes > excess or _is_empty_active(segments, count):
                break
            excess -= size_bytes
            count += 1
        return count

    def _expired_by_time(self, segments: Sequence[Retainable], count: int, now_ms: int) -> int:
        if self.retention_ms is None:
            return count
        while count < len(segments) and not _is_empty_active(segments, count):
            if now_ms - segments[count].largest_timestamp_ms() <= self.retention_ms:
                break
            count += 1
        return count


def _is_empty_active(segments: Sequence[Retainable], index: int) -> bool:
    return index == len(segments) - 1 and segments[index].end_position == 0
