"""
What becomes of a message with a time on its way into the store, and of one that is due.

Properties ``TIMER_DELAY_SEC``, ``TIMER_DELAY_MS`` or ``TIMER_DELIVER_MS`` send a message into
topic ``rmq_sys_wheel_timer`` until it is due. (``HookUtils.transformTimerMessage``,
``TimerMessageStore.convert``)
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import attrs

from logstore.segments.rocketmq.properties import (
    DELAY,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TIMER_DELAY_MS,
    TIMER_DELAY_SECONDS,
    TIMER_DELETE_UNIQUE_KEY,
    TIMER_DELIVER_MS,
    TIMER_DEQUEUE_MS,
    TIMER_ENQUEUE_MS,
    TIMER_OUT_MS,
    TIMER_ROLL_TIMES,
)
from logstore.segments.rocketmq.put_result import PutMessageStatus
from logstore.segments.rocketmq.timer.timer_wheel import SLOT_COUNT

__all__ = [
    "NEVER_ENQUEUED_MS",
    "TIMER_TOPIC",
    "TimerPlacement",
    "TimerSettings",
    "is_timer_message",
    "properties_when_due",
    "timer_placement",
]

TIMER_TOPIC = "rmq_sys_wheel_timer"
#: the enqueue time of a message that was due before it came into the wheel
NEVER_ENQUEUED_MS = (1 << 63) - 1
_BLANK_SLOTS = 60
_LONG_MAX = (1 << 63) - 1
_CONGESTION_OFF = (1 << 31) - 1
_PRECISIONS_MS = (100, 200, 500, 1000)


@attrs.frozen
class TimerSettings:
    """What the settings say of timer messages, by default Java's (``MessageStoreConfig``)."""

    is_enabled: bool = True
    precision_ms: int = 1000
    roll_window_slots: int = 2 * 24 * 3600
    delay_seconds_max: int = 3 * 24 * 3600
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
            is_enabled=settings.get("timerWheelEnable", "true").lower() == "true",
            appends_topic_to_delete_key=(
                settings.get("appendTopicForTimerDeleteKey", "false").lower() == "true"
            ),
        )

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
    "timerMaxDelaySec": "delay_seconds_max",
    "timerCongestNumEachSlot": "congestion_count",
    "mappedFileSizeTimerLog": "log_file_bytes",
}


@attrs.frozen
class TimerPlacement:
    """Where a message waits: topic, queue and the properties that it gets."""

    due_ms: int
    properties: dict[str, str]
    topic: str = TIMER_TOPIC
    queue_id: int = 0


def is_timer_message(topic: str, properties: Mapping[str, str]) -> bool:
    """Tell whether a message is to wait for a time (``checkIfTimerMessage``)."""
    if topic == TIMER_TOPIC or TIMER_OUT_MS in properties:
        return False
    if _level(properties) > 0:
        return False
    return any(
        name in properties for name in (TIMER_DELIVER_MS, TIMER_DELAY_MS, TIMER_DELAY_SECONDS)
    )


def _level(properties: Mapping[str, str]) -> int:
    text = properties.get(DELAY, "0")
    return int(text) if text.lstrip("+-").isdecimal() else 0


def timer_placement(
    topic: str,
    queue_id: int,
    properties: Mapping[str, str],
    now_ms: int,
    settings: TimerSettings,
    congestion: int = 0,
    rng: random.Random | None = None,
) -> TimerPlacement | PutMessageStatus | None:
    """
    Return where a message with a time waits, None if it is due already, or why it is refused.

    Call it for what :func:`is_timer_message` says is one. `congestion` is how many messages the
    slot of the time holds; above the limit some are refused, above twice the limit all.
    """
    if not settings.is_enabled:
        return PutMessageStatus.WHEEL_TIMER_NOT_ENABLE
    deliver_ms = _deliver_ms(properties, now_ms)
    if deliver_ms is None:
        return PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL
    if deliver_ms <= now_ms:
        is_delete = TIMER_DELETE_UNIQUE_KEY in properties
        return PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL if is_delete else None
    if deliver_ms - now_ms > settings.delay_seconds_max * 1000:
        return PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL
    due_ms = due_tick_ms(deliver_ms, settings.precision_ms)
    if _is_congested(congestion, settings.congestion_count, rng):
        return PutMessageStatus.WHEEL_TIMER_FLOW_CONTROL
    placed = {
        **properties,
        TIMER_OUT_MS: str(due_ms),
        REAL_TOPIC: topic,
        REAL_QUEUE_ID: str(queue_id),
    }
    return TimerPlacement(due_ms, placed)


def _deliver_ms(properties: Mapping[str, str], now_ms: int) -> int | None:
    """Return the time that the properties ask for, None where they cannot be read."""
    for name, factor, start in (
        (TIMER_DELAY_SECONDS, 1000, now_ms),
        (TIMER_DELAY_MS, 1, now_ms),
        (TIMER_DELIVER_MS, 1, 0),
    ):
        text = properties.get(name)
        if text is not None:
            is_number = text.isascii() and text.lstrip("+-").isdigit() and len(text) < 20
            value = int(text) if is_number and text.count("-") + text.count("+") < 2 else None
            if value is None or abs(value) > _LONG_MAX:
                return None
            return start + value * factor
    return None


def due_tick_ms(deliver_ms: int, precision_ms: int) -> int:
    """Return the tick at which a message is taken out: the one before its time is over."""
    if deliver_ms % precision_ms == 0:
        return deliver_ms - precision_ms
    return deliver_ms // precision_ms * precision_ms


def _is_congested(count: int, limit: int, rng: random.Random | None) -> bool:
    """Tell whether a slot takes no more (``isReject``)."""
    if count <= limit:
        return False
    if count >= 2 * limit or rng is None:
        return True
    return rng.randrange(1000) > 1000 * (count - limit) / (limit + 0.1)


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
