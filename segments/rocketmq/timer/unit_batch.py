"""Messages on their way into the time wheel together: one write to the log, one change a slot."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from logstore.java_hash import java_hash
from logstore.segments.rocketmq.messages.properties import (
    REAL_TOPIC,
    TIMER_DELETE_UNIQUE_KEY,
    find_property,
    property_needle,
)
from logstore.segments.rocketmq.timer.timer_unit import (
    DELETE,
    PUT,
    ROLL,
    TIMER_UNIT_BYTES,
    TimerUnit,
)
from logstore.segments.rocketmq.timer.timer_wheel import NO_SLOT, Slot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logstore.segments.rocketmq.messages.message import Message
    from logstore.segments.rocketmq.timer.timer_log import TimerLog
    from logstore.segments.rocketmq.timer.timer_metrics import TimerMetrics
    from logstore.segments.rocketmq.timer.timer_wheel import TimerWheel

_REAL_TOPIC = property_needle(REAL_TOPIC)
_DELETE_KEY = property_needle(TIMER_DELETE_UNIQUE_KEY)

#: due time, bits of the magic, real topic, physical offset, size
_Row = tuple[int, int, str | None, int, int]


class UnitBatch:
    """
    Gathers messages that come into the wheel at `write_time_ms`, and puts them there.

    A message that is due later than `roll_slots` ticks from then goes round once more.
    """

    def __init__(
        self,
        wheel: TimerWheel,
        log: TimerLog,
        metrics: TimerMetrics,
        write_time_ms: int,
        roll_slots: int,
    ) -> None:
        self._wheel = wheel
        self._log = log
        self._metrics = metrics
        self._write_ms = write_time_ms
        self._roll_slots = roll_slots
        self._rows: list[_Row] = []

    def add(self, message: Message, physical_offset: int, size_bytes: int, due_ms: int) -> None:
        """Add a message of the timer topic (``doEnqueue``)."""
        write_ms, precision_ms = self._write_ms, self._wheel.precision_ms
        magic, round_ms = PUT, self._roll_slots * precision_ms
        if due_ms - write_ms >= round_ms:
            magic |= ROLL
            # The last round is never a short one.
            is_short = due_ms - write_ms - round_ms < self._roll_slots // 3 * precision_ms
            slots = self._roll_slots // 2 if is_short else self._roll_slots
            due_ms = write_ms + slots * precision_ms
        text = message.properties_text
        if find_property(text, _DELETE_KEY) is not None:
            magic |= DELETE
        topic = find_property(text, _REAL_TOPIC)
        name = None if topic is None else topic.decode("utf-8", "replace")
        self._rows.append((due_ms, magic, name, physical_offset, size_bytes))

    def put(self) -> None:
        """
        Give each message a unit in the log and a place in its slot.

        Raises:
            WriteFailedError: the disk refused; those before are in the wheel.

        """
        rows = self._rows
        while rows:
            timer_offset, count = self._log.reserve(len(rows))
            self._put_together(rows[:count], timer_offset)
            rows = rows[count:]

    def _put_together(self, rows: Sequence[_Row], timer_offset: int) -> None:
        """Put messages whose units stand in one file."""
        wheel, precision_ms, write_ms = self._wheel, self._wheel.precision_ms, self._write_ms
        slots: dict[int, Slot] = {}
        pieces: list[bytes] = []
        for due_ms, magic, topic, physical_offset, size_bytes in rows:
            index, tick_ms = wheel.index(due_ms), due_ms // precision_ms * precision_ms
            slot = slots.get(index)
            if slot is None:
                slot = wheel.slot(due_ms)
            elif slot.time_ms != tick_ms:
                slot = NO_SLOT
            last, delay_ms = slot.last_timer_offset, due_ms - write_ms
            topic_hash = 0 if topic is None else java_hash(topic)
            where = physical_offset, size_bytes
            pieces.append(TimerUnit(last, magic, write_ms, delay_ms, *where, topic_hash).encode())
            first = slot.first_timer_offset
            slots[index] = Slot(
                tick_ms,
                timer_offset if first == -1 else first,
                timer_offset,
                slot.count + _change(magic),
                max(slot.magic, 0),
            )
            timer_offset += TIMER_UNIT_BYTES
        self._log.append(b"".join(pieces))
        for slot in slots.values():
            first, last = slot.first_timer_offset, slot.last_timer_offset
            wheel.put(slot.time_ms, first, last, slot.count, slot.magic)
        self._count(rows)

    def _count(self, rows: Sequence[_Row]) -> None:
        """Count what has come of each topic, and what takes others back."""
        changes, times = Counter[str](), Counter[str]()
        for _, magic, topic, _, _ in rows:
            if topic is not None:
                changes[topic] += _change(magic)
                times[topic] += 1
        for topic, change in changes.items():
            self._metrics.add(topic, change, times[topic])


def _change(magic: int) -> int:
    """Return what a message adds to how many wait."""
    return -1 if magic & DELETE else 1
