"""
One counter of the broker's statistics, and what it comes to over a minute, an hour and a day.

As in Java (StatsItem) few notes are kept of it: one every ten seconds for a minute, one every ten
minutes for an hour, one every hour for a day. Each is what lies between the first and the last of
its notes. So there is nothing in an hour before ten minutes of the broker's life have passed, and
nothing in a day before an hour has.
"""

from __future__ import annotations

from collections import deque

import attrs

SAMPLE_INTERVAL_MS = 10_000
MINUTE, HOUR, DAY = range(3)
#: how far apart the notes of a minute, an hour and a day are, and how many are kept
_NOTES = ((SAMPLE_INTERVAL_MS, 7), (600_000, 7), (3_600_000, 25))


@attrs.frozen
class Snapshot:
    """A sum over a span of time, how many a second that is, and how much each time."""

    sum: int
    tps: float
    average: float

    def to_json(self) -> dict[str, float]:
        """Return it as Java prints it."""
        return {"avgpt": self.average, "sum": self.sum, "tps": self.tps}


_NOTHING = Snapshot(0, 0.0, 0.0)


class StatsItem:
    """Value and times now, and what they were at earlier moments."""

    __slots__ = ("_notes", "times", "value")

    def __init__(self) -> None:
        self.value = 0
        self.times = 0
        #: (when, value, times), for each entry of :data:`_NOTES`, the oldest first
        self._notes = tuple(deque[tuple[int, int, int]](maxlen=count) for _, count in _NOTES)

    def sample(self, now_ms: int, sample_number: int) -> None:
        """Take a note for each span whose turn it is at this sample of the broker."""
        entry = now_ms, self.value, self.times
        for notes, (interval_ms, _) in zip(self._notes, _NOTES, strict=True):
            if sample_number % (interval_ms // SAMPLE_INTERVAL_MS):
                continue
            if not notes:  # it has all been counted since the last note, when there was nothing
                notes.append((now_ms - interval_ms, 0, 0))
            notes.append(entry)

    def over(self, span: int) -> Snapshot:
        """Return what lies between the notes of a span."""
        notes = self._notes[span]
        if not notes:
            return _NOTHING
        first, last = notes[0], notes[-1]
        total, times = last[1] - first[1], last[2] - first[2]
        elapsed_ms = last[0] - first[0]
        rate = total * 1000 / elapsed_ms if elapsed_ms > 0 else 0.0  # clocks are set back, too
        return Snapshot(total, round(rate, 2), round(total / times, 2) if times else 0.0)
