"""
What follows requests: queues and index, slaves, the disk, and pulls that waited.

Some of it may wait until answers are out, and some until more has come: putting many messages into
their queues together costs little more than one. Whoever asks about queues has it done first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.topics import names

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.segments.rocketmq.messages.dispatch_request import DispatchRequest

#: so far queues and index may stay behind the log while nobody asks, until the next tick at most;
#: what so many messages take then, fewer than one sender in a hundred waits for
_BEHIND_MESSAGES_MAX = 128
_BEHIND_BYTES_MAX = 1024 * 1024
#: the same where so few come in a turn that their sender is busy for longer than this takes
_FEW_MESSAGES = 2
_BEHIND_FEW_MAX = 16


class FollowUp:
    """The work that requests leave behind in one broker, whose `revive_topic` it has to know."""

    def __init__(self, broker: Broker, revive_topic: str) -> None:
        self._broker = broker
        self._revive_topic = revive_topic
        #: what comes there is delivered by services of the broker
        self._watched_topics = frozenset((names.SCHEDULE_TOPIC, names.TIMER_TOPIC, revive_topic))
        self._is_pending = False
        #: messages that waited for their queues at the end of the last turn
        self._pending_before = 0
        broker.store.add_arrival_listener(self._arrived)
        broker.store.dispatching.is_awaited = self._is_awaited
        broker.store.dispatching.is_watched = self._watched_topics.__contains__

    def requests_served(self) -> None:
        """
        Finish what the requests of one read began, now or once their answers are out.

        Whoever waits for what was just sent is answered before the sender: a sender that goes on
        takes the processor.
        """
        broker = self._broker
        dispatching = broker.store.dispatching
        if not broker.defers_work:
            self.finish()
            return
        if dispatching.has_awaited:
            self.finish(defers_index=True)
            self._finish_soon()
            return
        pending = dispatching.pending_messages
        came, self._pending_before = pending - self._pending_before, pending
        if (
            not broker.lingers
            or pending >= (_BEHIND_FEW_MAX if came <= _FEW_MESSAGES else _BEHIND_MESSAGES_MAX)
            or dispatching.pending_bytes >= _BEHIND_BYTES_MAX
            or broker.held_pulls.has_woken
            or broker.awaits_puts
            or broker.replication.has_slaves
        ):
            self._finish_soon()

    def _finish_soon(self) -> None:
        if not self._is_pending:
            self._is_pending = True
            self._broker.timers.soon(self._finish_later)

    def _finish_later(self) -> None:
        self._is_pending = False
        with self._broker.outbox.gathering():
            self.finish()

    def catch_up(self) -> None:
        """Have everything that was put so far in its queue."""
        store = self._broker.store
        if self._is_pending or store.dispatching.pending_messages:
            store.dispatch()
            self._pending_before = 0

    def finish(self, *, defers_index: bool = False) -> None:
        """Dispatch, send to slaves, flush, answer held pulls; the index may follow later."""
        broker = self._broker
        broker.store.dispatch(defers_index=defers_index)
        self._pending_before = 0
        broker.replication.log_grew()
        if broker.held_pulls.has_woken:
            with broker.outbox.gathering(), broker.shared_reads.sharing():
                broker.held_pulls.wake(broker.outbox.send_now)
        if broker.is_sync_flush:
            broker.group_commit.begin()

    def _is_awaited(self, queue: tuple[str, int]) -> bool:
        """Tell whether somebody waits for messages of a queue, who gets them before all else."""
        broker = self._broker
        return broker.held_pulls.is_awaited(queue) or (
            broker.has_lite and broker.lite.is_awaited(queue[0])
        )

    def _arrived(self, request: DispatchRequest) -> None:
        broker = self._broker
        broker.held_pulls.arrived(
            request.topic,
            request.queue_id,
            request.queue_offset + 1,
            request.tags_code,
            request.properties_text,
        )
        if broker.has_lite and broker.lite.is_awaited(request.topic):
            broker.lite.arrived(request)
        if request.topic == names.SCHEDULE_TOPIC:
            broker.delay_delivery.arrived(request.queue_id)
        elif request.topic == names.TIMER_TOPIC:
            broker.timed_delivery.arrived()
        elif request.topic == self._revive_topic:
            broker.popping.reviving.start()
