"""
Delay levels: how long a delayed message waits, by its level.

A message with property ``DELAY`` waits in topic ``SCHEDULE_TOPIC_XXXX``, a queue a level, until
the store time plus the level's delay. The time it is due stands as the tags code in that queue.
(``ScheduleMessageService``, setting ``messageDelayLevel``)
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from logstore.errors import LogStoreError

__all__ = ["DEFAULT_DELAY_LEVELS", "SCHEDULE_TOPIC", "DelayLevels", "DelayLevelsError"]

SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
DEFAULT_DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
#: a message of a level that is not in the table waits so long
UNKNOWN_LEVEL_DELAY_MS = 1000

_UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LEVEL = re.compile(r"([+-]?[0-9]{1,18})([smhd])")


class DelayLevelsError(LogStoreError):
    """The setting ``messageDelayLevel`` cannot be read; a broker does not start on it."""


@attrs.frozen
class DelayLevels:
    """The delays in ms by level, from 1 on."""

    delays_ms: Mapping[int, int]

    @classmethod
    def parse(cls, text: str = DEFAULT_DELAY_LEVELS) -> DelayLevels:
        """
        Return the levels of ``1s 5s 1m 2h 1d``: numbers with a unit, one space between them.

        Raises:
            DelayLevelsError: an item is none.

        """
        items = text.split(" ")
        while len(items) > 1 and not items[-1]:
            items.pop()  # Java's split leaves out what is empty at the end
        delays_ms: dict[int, int] = {}
        for level, item in enumerate(items, 1):
            found = _LEVEL.fullmatch(item)
            if found is None:
                raise DelayLevelsError(
                    f"messageDelayLevel {text!r}: level {level} is {item!r}; write a number with "
                    "s, m, h or d, and one space between the levels"
                )
            delays_ms[level] = int(found[1]) * _UNITS_MS[found[2]]
        return cls(delays_ms)

    @property
    def level_max(self) -> int:
        """The highest level; messages of a higher one wait as long as those of this one."""
        return len(self.delays_ms)

    def delay_ms(self, level: int) -> int:
        """Return how long a message of `level` waits."""
        return self.delays_ms.get(level, UNKNOWN_LEVEL_DELAY_MS)

    def level_of_delay(self, delay_ms: int) -> int:
        """Return the level that waits a little longer; the longest where none does."""
        levels = sorted(self.delays_ms, key=self.delay_ms)
        longer = (level for level in levels if self.delay_ms(level) > delay_ms)
        return next(longer, levels[-1])

    def deliver_time_ms(self, level: int, store_timestamp_ms: int) -> int:
        """Return when a message is due (``computeDeliverTimestamp``); high levels are clipped."""
        return store_timestamp_ms + self.delay_ms(min(level, self.level_max))

    def is_due(self, level: int, deliver_time_ms: int, now_ms: int) -> bool:
        """
        Tell whether a message is to be delivered now.

        One that is due later than any message of its level can be was put there by a clock that
        went wrong, and is due at once (``correctDeliverTimestamp``).
        """
        return deliver_time_ms <= now_ms or deliver_time_ms > now_ms + self.delay_ms(level)

    @staticmethod
    def queue_id_of(level: int) -> int:
        """Return the queue of the schedule topic in which messages of `level` wait."""
        return level - 1

    @staticmethod
    def level_of(queue_id: int) -> int:
        """Return the level whose messages wait in a queue of the schedule topic."""
        return queue_id + 1
