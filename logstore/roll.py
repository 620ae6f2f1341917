"""When to start the next segment, as a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import random


class RollPolicy(NamedTuple):
    """
    Limits of one segment, for its layout's ``has_room_for``.

    `segment_bytes_max` bounds the data file; `segment_ms_max` bounds how far the timestamps in one
    segment may lie apart (None: no bound), shortened per segment by a jitter drawn from
    ``[0, jitter_ms_max)`` so that many logs do not roll in the same moment.
    """

    segment_bytes_max: int
    segment_ms_max: int | None = None
    jitter_ms_max: int = 0

    def draw_jitter_ms(self, rng: random.Random) -> int:
        """Draw the jitter of one new segment (Kafka: ``LogConfig.randomSegmentJitter``)."""
        if self.jitter_ms_max == 0 or self.segment_ms_max is None:
            return 0
        return rng.randrange(max(1, min(self.jitter_ms_max, self.segment_ms_max)))
