"""
Pops that wait for messages (PopLongPollingService): in line by group and queue.

An arrival wakes the first in line for the queue and the first in line for all queues of the topic,
and whoever finds more than it may take wakes the next. Who is woken asks again, and waits again if
there is nothing. Arrivals are seen by sentries among the held pulls, one for each queue of a topic
that somebody waits for: so nothing looks at messages while nobody waits.
"""

from __future__ import annotations

import bisect
import itertools
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.pop.allocation import ALL_QUEUES
from logstore.compat.rocketmq.pulling.held_pulls import HeldPull

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.waiting import Timer

#: so long before its time a wait is given up (``PopRequest.isTimeout``)
EARLY_MS = 50
_SENTRY_MS = 60_000


class Polling(Enum):
    """What becomes of somebody who would wait (PollingResult)."""

    WAITS = 0
    FULL = 1
    TIMEOUT = 2
    NOT_WANTED = 3


@attrs.define(eq=False)
class PopWait:
    """
    One who waits; `expires_ms` is a wall clock's time. `wake` has it ask again.

    `is_by_message` tells whether it is woken by messages, and not by its time or by a queue that is
    free again.
    """

    topic: str
    group: str
    queue_id: int
    expires_ms: int
    wake: Callable[[], None]
    owner: Channel
    timer: Timer | None = attrs.field(default=None, init=False)
    is_by_message: bool = attrs.field(default=False, init=False)

    @property
    def line(self) -> tuple[str, str, int]:
        """Where it waits."""
        return self.topic, self.group, self.queue_id


class PopWaits:
    """
    All who wait; with `takes_last` the last in line is woken instead of the first.

    Without `watches` nobody is woken by messages, but by whoever says so.
    """

    def __init__(self, broker: Broker, *, takes_last: bool = False, watches: bool = True) -> None:
        self._broker = broker
        self._takes_last = takes_last
        self._watches = watches
        self._order = itertools.count()
        self._lines: dict[tuple[str, str, int], list[tuple[int, int, PopWait]]] = {}
        self._groups: dict[str, dict[str, int]] = {}
        self._owned: dict[Channel, set[PopWait]] = {}
        self._sentries: dict[str, _Sentries] = {}
        self._size = 0
        self._due: deque[PopWait] = deque()
        self._is_waking = False

    def __len__(self) -> int:
        """Return how many wait."""
        return self._size

    def count(self, topic: str, group: str, queue_id: int) -> int:
        """Return how many wait in one line."""
        return len(self._lines.get((topic, group, queue_id), ()))

    def hold(self, wait: PopWait, poll_ms: int) -> Polling:
        """Let somebody wait, if it wants to and there is time and room."""
        broker = self._broker
        left_ms = wait.expires_ms - EARLY_MS - broker.host.clock.wall_ms()
        if poll_ms <= 0:
            return Polling.NOT_WANTED
        if self._size >= broker.settings.pop_waits_max:
            return Polling.FULL
        if left_ms < 0:
            return Polling.TIMEOUT
        if self.count(*wait.line) > broker.settings.pop_waits_of_queue_max:
            return Polling.FULL
        line = self._lines.setdefault(wait.line, [])
        bisect.insort(line, (wait.expires_ms, next(self._order), wait))
        self._size += 1
        groups = self._groups.setdefault(wait.topic, {})
        groups[wait.group] = groups.get(wait.group, 0) + 1
        self._owned.setdefault(wait.owner, set()).add(wait)
        wait.timer = broker.timers.after(left_ms + 1, lambda: self._time_up(wait))
        if self._watches:
            if wait.topic not in self._sentries:
                self._sentries[wait.topic] = _Sentries(broker, wait.topic, self.arrived)
            self._sentries[wait.topic].post()
        return Polling.WAITS

    def arrived(self, topic: str, queue_id: int, *, is_by_message: bool = True) -> None:
        """Wake one of each group for all queues and one for this queue."""
        for group in list(self._groups.get(topic, ())):
            self._take(topic, group, ALL_QUEUES, is_by_message=is_by_message)
            if queue_id != ALL_QUEUES:
                self._take(topic, group, queue_id, is_by_message=is_by_message)
        self._wake()

    def freed(self, topic: str, queue_id: int) -> None:
        """Wake as an arrival does, of no message: whoever is woken looks for itself."""
        self.arrived(topic, queue_id, is_by_message=False)

    def wake_one(self, topic: str, group: str, queue_id: int) -> bool:
        """Wake one of a line; tell whether there was any."""
        is_woken = self._take(topic, group, queue_id)
        self._wake()
        return is_woken

    def wake_soon(self, topic: str, group: str, queue_id: int) -> None:
        """Wake one of a line once what is under way is done."""

        def wake() -> None:
            self.wake_one(topic, group, queue_id)

        self._broker.timers.soon(wake)

    def lost(self, owner: Channel) -> None:
        """Forget the waits of a connection that is gone."""
        for wait in list(self._owned.get(owner, ())):
            self._forget(wait)
        self._due = deque(wait for wait in self._due if wait.owner is not owner)

    def _take(self, topic: str, group: str, queue_id: int, *, is_by_message: bool = False) -> bool:
        line = self._lines.get((topic, group, queue_id))
        if not line:
            return False
        wait = line[-1 if self._takes_last else 0][2]
        self._forget(wait)
        wait.is_by_message = is_by_message
        self._due.append(wait)
        return True

    def _wake(self) -> None:
        """Have those ask who were taken, and those whom they take, one after the other."""
        if self._is_waking:
            return
        self._is_waking = True
        try:
            with self._broker.outbox.gathering():
                while self._due:
                    self._due.popleft().wake()
        finally:
            self._is_waking = False

    def _time_up(self, wait: PopWait) -> None:
        self._forget(wait)
        self._due.append(wait)
        self._wake()

    def _forget(self, wait: PopWait) -> None:
        if wait.timer is not None:
            wait.timer.cancel()
        line = self._lines[wait.line]
        line[:] = [entry for entry in line if entry[2] is not wait]
        if not line:
            del self._lines[wait.line]
        self._size -= 1
        groups = self._groups[wait.topic]
        groups[wait.group] -= 1
        if not groups[wait.group]:
            del groups[wait.group]
        owned = self._owned[wait.owner]
        owned.discard(wait)
        if not owned:
            del self._owned[wait.owner]
        if not groups:
            del self._groups[wait.topic]
            if self._watches:
                self._sentries.pop(wait.topic).leave()


class _Sentries:
    """Sees what arrives in the queues of one topic, as long as somebody waits there."""

    def __init__(self, broker: Broker, topic: str, arrived: Callable[[str, int], None]) -> None:
        self._broker = broker
        self._topic = topic
        self._arrived = arrived
        self._posted: set[int] = set()
        self._has_left = False

    def post(self) -> None:
        """Look at every queue; those that were seen are looked at again."""
        config = self._broker.topics.get(self._topic)
        for queue_id in range(0 if config is None else config.read_queue_count):
            if queue_id not in self._posted:
                self._posted.add(queue_id)
                self._look(queue_id)

    def _look(self, queue_id: int) -> None:
        end = self._broker.store.max_queue_offset(self._topic, queue_id)
        pull = HeldPull(self._topic, queue_id, end, None, lambda: self._seen(queue_id), owner=self)
        self._broker.held_pulls.hold(pull, _SENTRY_MS)

    def _seen(self, queue_id: int) -> None:
        if self._has_left:
            return
        self._posted.discard(queue_id)
        self._arrived(self._topic, queue_id)
        if not self._has_left:
            self.post()

    def leave(self) -> None:
        """Look no longer."""
        self._has_left = True
        self._broker.held_pulls.lost(self)
