"""
Messages with a time of their own, delivered through the time wheel (TimerMessageStore, 5.x).

The wheel's files are opened when the first such message is there. Java's threads look at the wheel
ten times a second; so does this, as long as something waits in it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.redelivery.redrafts import redraft
from logstore.errors import LogStoreError
from logstore.segments.rocketmq.messages.properties import TIMER_DELETE_UNIQUE_KEY
from logstore.segments.rocketmq.putting.put_redirection import TIMER_TOPIC
from logstore.segments.rocketmq.putting.put_result import PutMessageStatus
from logstore.segments.rocketmq.queues.consume_queue import ConsumeQueue
from logstore.segments.rocketmq.reading.message_query import message_at
from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.timer.due_tick import DueTick
from logstore.segments.rocketmq.timer.timer_rules import TimerSettings
from logstore.segments.rocketmq.timer.timer_steps import EnqueueStep
from logstore.segments.rocketmq.timer.timer_store import TimerStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.waiting import Timer
    from logstore.segments.rocketmq.timer.timer_steps import (
        TimerDelivery,
        TimerSync,
    )

_log = logging.getLogger(__name__)

LOOK_INTERVAL_MS = 100
FLUSH_INTERVAL_MS = 1000
#: the wheel holds up everybody else for no more messages than these at a time
_RUN_COUNT_MAX = 128
#: one that is delivered takes as long as so many that are put into the wheel
_DELIVERY_COUNT = 4
#: the same of looking for what is due
_FIND_COUNT_MAX = 2000
#: what never succeeds, however often it is tried
HOPELESS = frozenset(
    {
        PutMessageStatus.MESSAGE_ILLEGAL,
        PutMessageStatus.PROPERTIES_SIZE_EXCEEDED,
        PutMessageStatus.WHEEL_TIMER_NOT_ENABLE,
        PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL,
    }
)


class TimedDelivery:
    """Puts messages into the wheel as they arrive, and where they belong when they are due."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._wheel: TimerStore | None = None
        self._step: EnqueueStep | DueTick | None = None
        #: what is left to be put of the step
        self._deliveries: Iterator[TimerDelivery] = iter(())
        #: what the store would not have; it is tried again
        self._refused: TimerDelivery | None = None
        self._timer: Timer | None = None
        self._is_running = False
        self._is_syncing = False
        self._flush_due_ms = 0.0
        #: what was said last of a disk that refuses, ten times a second maybe
        self._complaint = ""
        self._cleaned_below = 0
        #: the checkpoint is prepared, and written when all below is durable: what it says is
        #: delivered must not be lost
        self._awaited_physical_offset = -1

    @property
    def is_enabled(self) -> bool:
        """Tell whether there is a time wheel: in 5.x, unless it is switched off."""
        broker = self._broker
        is_v5 = broker.store.options.release is not Release.V4
        return is_v5 and broker.settings.has_timer_wheel

    @property
    def timer_store(self) -> TimerStore | None:
        """Wheel and log, None as long as nothing was ever put into them."""
        return self._wheel

    @property
    def delivered_until_ms(self) -> int | None:
        """Up to when all that was due is delivered; None where nothing ever waited."""
        queue, wheel = self._queue(), self._wheel
        if queue is None:
            return None
        if wheel is None or self._step is not None or wheel.queue_offset < queue.max_queue_offset:
            return 0
        return wheel.read_time_ms

    @property
    def waiting_count(self) -> int:
        """How many messages the wheel holds."""
        wheel = self._wheel
        return 0 if wheel is None else wheel.wheel.count_from(wheel.read_time_ms)

    @property
    def unread_count(self) -> int:
        """How many messages of the timer topic have yet to be put into the wheel."""
        queue, wheel = self._queue(), self._wheel
        if queue is None or not self.is_enabled:
            return 0
        return int(queue.max_queue_offset) - (0 if wheel is None else wheel.queue_offset)

    def start(self) -> None:
        """Begin; messages that came before are there to be delivered."""
        self._is_running = self.is_enabled
        if self._is_running and self._queue() is not None:
            self._sleep(0)

    def arrived(self) -> None:
        """Take note that there is a new message in the timer topic."""
        if self._is_running and self._timer is None:
            self._sleep(0)

    def forget_topics(self) -> None:
        """Count no more what waited for topics that are gone."""
        if self._wheel is not None:
            self._wheel.metrics.keep_only(self._broker.topics.table.topics)

    def stop(self) -> None:
        """Deliver no more, and make durable how far it came: what was delivered goes first."""
        self._halt()
        wheel, self._wheel = self._wheel, None
        if wheel is None:
            return
        try:
            self._broker.store.commit_log.flush()
            wheel.close()
        except (LogStoreError, OSError) as error:  # messages come again: that is no loss
            _log.error("%s: %s", self._broker.store.directory, error)
            self._broker.store.stays_unclean = True
            wheel.abandon()

    def abandon(self) -> None:
        """Deliver no more, without a word to the disk."""
        self._halt()
        if self._wheel is not None:
            self._wheel.abandon()
            self._wheel = None

    def _halt(self) -> None:
        self._is_running = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _queue(self) -> ConsumeQueue | None:
        queue = self._broker.store.consume_queues.get(TIMER_TOPIC, 0)
        is_used = isinstance(queue, ConsumeQueue) and queue.max_queue_offset > 0
        return queue if is_used and isinstance(queue, ConsumeQueue) else None

    def _open(self) -> TimerStore:
        store = self._broker.store
        self._wheel = TimerStore(
            self._broker.host,
            store.directory,
            self._settings(TimerSettings.of_settings(store.options.settings)),
            lambda place, size_bytes: message_at(store.commit_log, place, size_bytes),
            self._queue,
            is_clean=store.was_clean,
        )
        store.putting.timer = self._wheel
        return self._wheel

    def _settings(self, before: TimerSettings) -> TimerSettings:
        """Return settings with what may change while the broker runs as it is now."""
        appends = self._broker.store.config.boolean("appendTopicForTimerDeleteKey")
        return attrs.evolve(before, appends_topic_to_delete_key=appends)

    def follow_settings(self) -> None:
        """Go by the store's settings as far as they can change while the broker runs."""
        if self._wheel is not None:
            self._wheel.settings = self._settings(self._wheel.settings)

    # running

    def _sleep(self, delay_ms: float) -> None:
        self._timer = self._broker.timers.after(delay_ms, self._wake)

    def _wake(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if not self._is_running:
            return
        self._sleep(LOOK_INTERVAL_MS)  # first: whatever goes wrong, it is tried again
        try:
            with self._broker.outbox.gathering():
                is_over = self._run(self._wheel or self._open())
                self._broker.requests_served()
            if not is_over:  # everybody else has a turn before
                self._broker.timers.soon(self._wake)
            self._flush_if_due()
        except (LogStoreError, OSError) as error:  # a disk may refuse now and not later
            if str(error) != self._complaint:
                self._complaint = str(error)
                _log.error("%s: %s", self._broker.store.directory, error)

    def _run(self, wheel: TimerStore) -> bool:
        """Put in what has come and take out what is due; False if that is not all for now."""
        count = 0
        while count < _RUN_COUNT_MAX:
            if self._step is None:
                before = wheel.queue_offset
                self._step = wheel.enqueue(_RUN_COUNT_MAX) or wheel.dequeue()
                if self._step is None:
                    return True
                if isinstance(self._step, EnqueueStep):
                    self._deliveries = iter(self._step.late)
                    count += self._step.next_queue_offset - before
                else:
                    self._deliveries = self._step
            if isinstance(self._step, DueTick) and not self._step.find(_FIND_COUNT_MAX):
                return False
            while (delivery := self._refused or next(self._deliveries, None)) is not None:
                self._refused = None if self._deliver(delivery) else delivery
                if self._refused is not None:
                    return True  # whatever it is, it takes a while
                count += _DELIVERY_COUNT
                if count >= _RUN_COUNT_MAX:
                    return False
            if isinstance(self._step, EnqueueStep):
                wheel.commit_enqueue(self._step)
            else:
                wheel.commit_dequeue(self._step)
            self._step = None
        return False

    def _deliver(self, delivery: TimerDelivery) -> bool:
        """Put one message where it belongs; False if it is to be tried again."""
        if not delivery.is_roll and TIMER_DELETE_UNIQUE_KEY in delivery.properties:
            return True  # it only took another one back
        if not delivery.is_roll and delivery.topic == TIMER_TOPIC:
            # A power loss may cost properties that nobody waited for. Put, it would be due again.
            place = delivery.message.physical_offset
            _log.error("a timer message at %s does not say where it belongs", place)
            return True
        draft = redraft(delivery.message, delivery.topic, delivery.queue_id, delivery.properties)
        result = self._broker.store.put_message(draft, is_delivery=True)
        if not result.is_ok:
            _log.error("a message of the time wheel was not delivered: %s", result.reason)
        return result.is_ok or result.status in HOPELESS

    # lasting

    def _flush_if_due(self) -> None:
        broker, wheel = self._broker, self._wheel
        now_ms = broker.host.clock.monotonic_ms()
        if wheel is None or self._is_syncing or now_ms < self._flush_due_ms:
            return
        commit_log = broker.store.commit_log
        if self._awaited_physical_offset < 0:
            wheel.prepare_checkpoint()
            self._awaited_physical_offset = commit_log.wrote_where
        if commit_log.flushed_where < self._awaited_physical_offset:
            return
        self._awaited_physical_offset = -1
        self._flush_due_ms = now_ms + FLUSH_INTERVAL_MS
        self._clean(wheel, commit_log.min_physical_offset)
        sync = wheel.begin_flush(prepares_checkpoint=False)
        self._is_syncing = True
        broker.offload(sync.run, lambda error: self._synced(sync, error))

    def _clean(self, wheel: TimerStore, min_physical_offset: int) -> None:
        """Remove what the wheel's log knows of messages that the commit log has lost."""
        if min_physical_offset > self._cleaned_below:
            wheel.clean(min_physical_offset)
            self._cleaned_below = min_physical_offset

    def _synced(self, sync: TimerSync, error: BaseException | None) -> None:
        self._is_syncing = False
        if self._wheel is not None:
            self._wheel.end_flush(sync, error)
        if error is not None:
            _log.error("%s: %s", self._broker.store.directory, error)
