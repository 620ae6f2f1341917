"""All messages of one tick, found and read bit by bit: there may be millions."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from logstore.segments.rocketmq.messages.properties import REAL_TOPIC, TIMER_DELETE_UNIQUE_KEY
from logstore.segments.rocketmq.timer.timer_rules import is_unit_of
from logstore.segments.rocketmq.timer.timer_steps import TimerDelivery

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from logstore.host import Clock
    from logstore.segments.rocketmq.messages.message import Message
    from logstore.segments.rocketmq.timer.timer_log import TimerLog
    from logstore.segments.rocketmq.timer.timer_rules import TimerSettings
    from logstore.segments.rocketmq.timer.timer_unit import TimerUnit
    from logstore.segments.rocketmq.timer.timer_wheel import Slot

__all__ = ["DueTick"]


class DueTick:
    """
    What is due at one tick: :meth:`find` all of it, then go through it, oldest message first.

    The chain of a slot's units leads from the newest to the oldest, and what one of them takes
    back is not to be delivered: so all of them are looked at before the first delivery. Of the
    messages only one is in memory. An error ends nothing: whoever goes on is where it happened.
    """

    def __init__(
        self,
        slot: Slot,
        log: TimerLog,
        message_at: Callable[[int, int], Message | None],
        settings: TimerSettings,
        clock: Clock,
    ) -> None:
        self.time_ms = slot.time_ms
        #: what the metrics of a topic change by, of the messages gone through so far
        self.changes: list[tuple[str, int]] = []
        self._log = log
        self._message_at = message_at
        self._settings = settings
        self._clock = clock
        self._next_offset = slot.last_timer_offset
        #: of the units that are still to be delivered, newest first
        self._timer_offsets: array[int] = array("q")
        #: by key
        self._taken_back: set[str] = set()

    def find(self, count_max: int) -> bool:
        """Look at up to `count_max` more units; tell whether that were all. Raises OSError."""
        for _ in range(count_max):
            timer_offset = self._next_offset
            unit = None if timer_offset == -1 else self._log.unit_at(timer_offset)
            if unit is None or self._tick(unit) != self.time_ms:
                self._next_offset = -1  # the chain ends where it leads elsewhere
                return True
            if unit.is_delete and not unit.is_roll:
                self._take_back(unit)
            else:
                self._timer_offsets.append(timer_offset)
            # Units lead to older ones only: all else is a loop.
            previous = unit.previous_timer_offset
            self._next_offset = previous if previous < timer_offset else -1
        return self._next_offset == -1

    def _tick(self, unit: TimerUnit) -> int:
        return unit.due_ms // self._settings.precision_ms * self._settings.precision_ms

    def _take_back(self, unit: TimerUnit) -> None:
        """Note the key of the message that a unit takes back."""
        message = self._message_of(unit)
        key = None if message is None else message.properties.get(TIMER_DELETE_UNIQUE_KEY)
        if message is not None and key is not None:
            self._count(message, 1)  # it counted off when it came
            self._taken_back.add(key)

    def __iter__(self) -> Self:
        """Return itself."""
        return self

    def __next__(self) -> TimerDelivery:
        """Return what is to be put next; all units must have been found. Raises OSError."""
        assert self._next_offset == -1, "find() has not found all units yet"
        while self._timer_offsets:
            delivery = self._delivery_at(self._timer_offsets[-1])
            self._timer_offsets.pop()
            if delivery is not None:
                return delivery
        raise StopIteration

    def _delivery_at(self, timer_offset: int) -> TimerDelivery | None:
        """Return what a unit says is to be put, None if nothing is (any more)."""
        unit = self._log.unit_at(timer_offset)
        if unit is None:
            return None
        message = self._message_of(unit)
        if message is None:
            return None
        self._count(message, -1)
        if self._key_of(message) in self._taken_back:
            return None
        now_ms = self._clock.wall_ms()
        return TimerDelivery.of(message, unit.write_time_ms, now_ms, is_roll=unit.is_roll)

    def _message_of(self, unit: TimerUnit) -> Message | None:
        """Return the message of a unit, None if it is gone, whatever stands in its place."""
        message = self._message_at(unit.physical_offset, unit.size_bytes)
        return message if message is not None and is_unit_of(unit, message) else None

    def _key_of(self, message: Message) -> str | None:
        """Return the key by which a message is taken back."""
        key = message.unique_key
        if key is None or not self._settings.appends_topic_to_delete_key:
            return key
        return f"{message.properties.get(REAL_TOPIC)}+{key}"

    def _count(self, message: Message, change: int) -> None:
        topic = message.properties.get(REAL_TOPIC)
        if topic is not None:
            self.changes.append((topic, change))
