"""
What the settings say of timer messages, and what a message gets that comes due.

How a message comes into topic ``rmq_sys_wheel_timer`` stands in
:mod:`~logstore.segments.rocketmq.putting.put_redirection`. (``TimerMessageStore.convert``)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from logstore.segments.rocketmq.messages.properties import (
    TIMER_DEQUEUE_MS,
    TIMER_ENQUEUE_MS,
    TIMER_OUT_MS,
    TIMER_ROLL_TIMES,
    find_property,
    property_needle,
)
from logstore.segments.rocketmq.putting.put_redirection import TIMER_TOPIC
from logstore.segments.rocketmq.timer.timer_wheel import SLOT_COUNT

if TYPE_CHECKING:
    from logstore.segments.rocketmq.messages.message import Message
    from logstore.segments.rocketmq.timer.timer_unit import TimerUnit

__all__ = [
    "NEVER_ENQUEUED_MS",
    "TimerSettings",
    "due_ms_of",
    "is_unit_of",
    "properties_when_due",
]

#: the enqueue time of a message that was due before it came into the wheel
NEVER_ENQUEUED_MS = (1 << 63) - 1
_DUE = property_needle(TIMER_OUT_MS)
_BLANK_SLOTS = 60
_CONGESTION_OFF = (1 << 31) - 1
_PRECISIONS_MS = (100, 200, 500, 1000)


@attrs.frozen
class TimerSettings:
    """What the settings say of timer messages, by default Java's (``MessageStoreConfig``)."""

    precision_ms: int = 1000
    roll_window_slots: int = 2 * 24 * 3600
    congestion_count: int = _CONGESTION_OFF
    log_file_bytes: int = 100 * 1024 * 1024
    appends_topic_to_delete_key: bool = False
    slot_count: int = SLOT_COUNT

    @classmethod
    def of_settings(cls, settings: Mapping[str, str]) -> TimerSettings:
        """
        Return what Java's keys in `settings` set; what is missing is Java's default.

        Raises:
            ValueError: a value is no number.

        """
        given = {
            field: int(settings[key]) for key, field in _FIELD_OF_KEY.items() if key in settings
        }
        precision_ms = given.get("precision_ms", 1000)
        given["precision_ms"] = max(
            (one for one in _PRECISIONS_MS if one <= precision_ms), default=_PRECISIONS_MS[0]
        )
        return cls(
            **given,
            appends_topic_to_delete_key=(
                settings.get("appendTopicForTimerDeleteKey", "false").lower() == "true"
            ),
        )

    @property
    def has_congestion(self) -> bool:
        """Tell whether there is a limit to how many messages are due at one tick."""
        return self.congestion_count < _CONGESTION_OFF

    @property
    def roll_after_ms(self) -> int:
        """Messages due later than this go round: they come into the timer topic once more."""
        return self.roll_slots * self.precision_ms

    @property
    def roll_slots(self) -> int:
        """How many slots one round has; never so many that the ring would overtake itself."""
        most = self.slot_count - _BLANK_SLOTS
        return self.roll_window_slots if 2 <= self.roll_window_slots <= most else most


_FIELD_OF_KEY = {
    "timerPrecisionMs": "precision_ms",
    "timerRollWindowSlot": "roll_window_slots",
    "timerCongestNumEachSlot": "congestion_count",
    "mappedFileSizeTimerLog": "log_file_bytes",
}


def properties_when_due(
    properties: Mapping[str, str], enqueue_ms: int, now_ms: int, *, is_roll: bool
) -> dict[str, str]:
    """Return the properties of a message that is taken out of the wheel (``convert``)."""
    converted = {**properties, TIMER_ENQUEUE_MS: str(enqueue_ms)}
    if is_roll:
        rolled = properties.get(TIMER_ROLL_TIMES, "0")
        converted[TIMER_ROLL_TIMES] = str(int(rolled) + 1 if rolled.isdecimal() else 1)
    converted[TIMER_DEQUEUE_MS] = str(now_ms)
    return converted


def due_ms_of(message: Message) -> int | None:
    """Return when a message of the timer topic is due, None where it does not say."""
    text = find_property(message.properties_text, _DUE)
    return int(text) if text is not None and text.isdigit() and len(text) < 19 else None


def is_unit_of(unit: TimerUnit, message: Message) -> bool:
    """
    Tell whether a unit was made of the message that stands where it leads.

    A power loss may cost the end of the commit log and leave units that lead there: others stand
    there by and by, half messages even. Java delivers them all the same.
    """
    due_ms = due_ms_of(message)
    if message.topic != TIMER_TOPIC or due_ms is None:
        return False
    return unit.due_ms < due_ms if unit.is_roll else unit.due_ms == due_ms
