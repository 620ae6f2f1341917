"""
Delayed messages, delivered when their level's time has passed (ScheduleMessageService).

A level is a queue of the schedule topic, and the tags code of its units is when they are due (or
leads to the extension that says so). Java looks ten times a second at each; here a level sleeps
until its first unit is due.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.redelivery.redrafts import redraft
from logstore.compat.rocketmq.topics import names
from logstore.errors import LogStoreError
from logstore.segments.rocketmq.messages.properties import REAL_QUEUE_ID, REAL_TOPIC
from logstore.segments.rocketmq.queues.consume_queue_ext import is_ext_address
from logstore.segments.rocketmq.queues.consume_queue_unit import UNIT
from logstore.segments.rocketmq.settings.delay_levels import DelayLevels

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.waiting import Timer

_log = logging.getLogger(__name__)

#: a level looks at the clock at least this often: wall clocks are set now and then
_SLEEP_MS_MAX = 10_000
#: how long a level waits after a put that failed
_PAUSE_MS = 100
_READ_COUNT = 64
#: one level holds up everybody else for no more messages than these
_RUN_COUNT_MAX = 128


class DelayDelivery:
    """Delivers what is due, level by level."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._levels = DelayLevels.parse(broker.settings.delay_levels).delays_ms
        self._timers: dict[int, Timer] = {}
        self._is_running = False

    def start(self) -> None:
        """Look at every level; from now on what arrives is delivered in time."""
        self._is_running = True
        for level in self._levels:
            self._correct(level)
            self._sleep(level, 0)

    def stop(self) -> None:
        """Deliver no more."""
        self._is_running = False
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def arrived(self, queue_id: int) -> None:
        """Take note that there is a new message in a level's queue."""
        level = queue_id + 1
        if self._is_running and level in self._levels and level not in self._timers:
            self._sleep(level, 0)

    def _correct(self, level: int) -> None:
        """Bring a level's progress into what its queue holds (correctDelayOffset)."""
        store = self._broker.store
        known = store.delay_offsets.get(level)
        if known is None:
            return
        low = store.min_queue_offset(names.SCHEDULE_TOPIC, level - 1)
        high = store.max_queue_offset(names.SCHEDULE_TOPIC, level - 1)
        right = min(max(known, low), high)
        if right != known:
            _log.warning("delay level %s goes on at %s, not %s", level, right, known)
            store.delay_offsets.put(level, right)

    def _sleep(self, level: int, delay_ms: float) -> None:
        self._timers[level] = self._broker.timers.after(
            min(delay_ms, _SLEEP_MS_MAX), lambda: self._wake(level)
        )

    def _wake(self, level: int) -> None:
        del self._timers[level]
        if not self._is_running:
            return
        delay_ms: float | None = _PAUSE_MS
        try:
            with self._broker.outbox.gathering():
                delay_ms = self._deliver(level)
                self._broker.requests_served()
        except (LogStoreError, OSError) as error:  # a disk may refuse now and not later
            _log.error("%s: %s", self._broker.store.directory, error)
        if delay_ms is not None and level not in self._timers:
            self._sleep(level, delay_ms)

    def _deliver(self, level: int) -> float | None:
        """Deliver what is due; return how long the next one still takes, None if there is none."""
        store = self._broker.store
        queue_id = level - 1
        start = store.delay_offsets.get(level) or 0
        position = max(start, store.min_queue_offset(names.SCHEDULE_TOPIC, queue_id))
        delay_ms: float | None = None
        count = 0
        while delay_ms is None:
            queue = store.consume_queues.get(names.SCHEDULE_TOPIC, queue_id)
            units = b"" if queue is None else queue.units(position, _READ_COUNT)
            if not len(units):
                break
            for physical_offset, _, tags_code in UNIT.iter_unpack(units):
                delay_ms = self._time_left(level, self._due_ms(level, position, tags_code))
                if delay_ms is not None:
                    if store.delay_offsets.get(level) is None:  # so that the level is seen at all
                        store.delay_offsets.put(level, position)
                    break
                if not self._deliver_one(physical_offset, queue_id):
                    delay_ms = _PAUSE_MS
                    break
                position += 1
                count += 1
            if delay_ms is None and count >= _RUN_COUNT_MAX:
                delay_ms = 0
        if position != start:
            store.delay_offsets.put(level, position)
        return delay_ms

    def _due_ms(self, level: int, queue_offset: int, tags_code: int) -> int:
        """Return when a unit is due; with ``enableConsumeQueueExt`` its extension tells."""
        if not is_ext_address(tags_code):
            return tags_code
        store, queue_id = self._broker.store, level - 1
        queue = store.consume_queues.get(names.SCHEDULE_TOPIC, queue_id)
        ext = None if queue is None else queue.ext_unit(tags_code)
        if ext is not None:
            return ext.tags_code
        _log.error("the extension of level %s has nothing at %s", level, tags_code)
        stored_ms = store.store_timestamp_at(names.SCHEDULE_TOPIC, queue_id, queue_offset)
        return stored_ms + self._levels[level]

    def _time_left(self, level: int, due_ms: int) -> float | None:
        """Return how long a unit still has to wait; None if it is due."""
        now_ms = self._broker.host.clock.wall_ms()
        if due_ms > now_ms + self._levels[level]:
            return None  # the level was shortened, or the clock set back
        return due_ms - now_ms if due_ms > now_ms else None

    def _deliver_one(self, physical_offset: int, level_queue_id: int) -> bool:
        """Put one message where it belongs; False if the store would not have it."""
        store = self._broker.store
        message = store.message_at(physical_offset)
        if message is None:
            _log.error("a delayed message at %s cannot be read", physical_offset)
            return True
        topic = message.properties.get(REAL_TOPIC)
        queue_id = message.properties.get(REAL_QUEUE_ID, "")
        if topic is None or not queue_id.isdigit() or topic == names.HALF_TOPIC:
            _log.error("a delayed message at %s does not say where it belongs", physical_offset)
            return True
        text = store.putting.rules.encoded(message.properties)
        draft = redraft(message, topic, int(queue_id), text)
        result = store.put_message(draft, is_delivery=True)
        if result.is_ok:
            self._broker.stats.count_delivered(level_queue_id, result.size_bytes)
        else:
            _log.error("a delayed message was not delivered: %s", result.reason)
        return result.is_ok
