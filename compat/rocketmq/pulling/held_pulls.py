"""
Pulls that wait for messages (PullRequestHoldService): by queue, until something arrives for them.

A pull is woken by a message that its filter may let through, by the periodic look at every queue,
or at its deadline. Whoever is woken is asked again, and is then answered whatever there is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import attrs

from logstore.compat.waiting import Timer, Timers
from logstore.segments.rocketmq.reading.message_filter import MessageFilter

#: how often every queue with a waiting pull is looked at
SCAN_INTERVAL_MS = 5_000


@attrs.define(eq=False)
class HeldPull:
    """One waiting pull. `wake` answers it."""

    topic: str
    queue_id: int
    #: where it wants to read: below that nothing interests it
    queue_offset: int
    filter: MessageFilter | None
    wake: Callable[[], None]
    #: whose it is, so that it ends with its connection
    owner: object
    _timer: Timer | None = attrs.field(default=None, init=False)

    def start_timer(self, timer: Timer) -> None:
        """Remember the timer of its deadline."""
        self._timer = timer

    def stop_timer(self) -> None:
        """The deadline does not matter any more."""
        if self._timer is not None:
            self._timer.cancel()


class HeldPulls:
    """All waiting pulls of a broker."""

    def __init__(self, timers: Timers, next_queue_offset: Callable[[str, int], int]) -> None:
        self._timers = timers
        self._next_queue_offset = next_queue_offset
        self._queues: dict[tuple[str, int], list[HeldPull]] = {}
        self._owners: dict[object, set[HeldPull]] = {}
        self._woken: list[HeldPull] = []

    def __len__(self) -> int:
        """Return how many pulls wait."""
        return sum(map(len, self._queues.values()))

    @property
    def has_woken(self) -> bool:
        """Tell whether somebody was marked and is not answered yet."""
        return bool(self._woken)

    def is_awaited(self, queue: tuple[str, int]) -> bool:
        """Tell whether somebody waits for messages of a queue (topic, queue id)."""
        return queue in self._queues

    def hold(self, pull: HeldPull, timeout_ms: float) -> None:
        """Let `pull` wait for at most `timeout_ms`."""
        self._queues.setdefault((pull.topic, pull.queue_id), []).append(pull)
        self._owners.setdefault(pull.owner, set()).add(pull)
        pull.start_timer(self._timers.after(timeout_ms, lambda: self._time_up(pull)))

    def arrived(
        self,
        topic: str,
        queue_id: int,
        next_queue_offset: int,
        tags_code: int | None = None,
        properties_text: bytes = b"",
    ) -> None:
        """
        Mark whoever may want the message before `next_queue_offset`; see :meth:`wake`.

        Without `tags_code` nothing is known of the message, so everybody may want it.
        """
        pulls = self._queues.get((topic, queue_id))
        if pulls is None:
            return
        woken = [
            pull
            for pull in pulls
            if next_queue_offset > pull.queue_offset
            and (
                tags_code is None
                or pull.filter is None
                or (
                    pull.filter.matches_unit(tags_code, None)
                    and pull.filter.matches_properties(properties_text)
                )
            )
        ]
        for pull in woken:
            self._forget(pull)
        self._woken += woken

    def wake(self, on_answered: Callable[[], None] | None = None) -> None:
        """
        Answer everybody who was marked.

        `on_answered` is called whenever all that one owner waited for is answered: whoever hears of
        it at once has something to do while others are answered.
        """
        while self._woken:
            woken, self._woken = self._woken, []
            left = Counter(pull.owner for pull in woken)
            for pull in woken:
                pull.wake()
                left[pull.owner] -= 1
                if on_answered is not None and not left[pull.owner]:
                    on_answered()

    def scan(self) -> None:
        """Look at every queue somebody waits for: what a filter passed over counts now."""
        for topic, queue_id in list(self._queues):
            self.arrived(topic, queue_id, self._next_queue_offset(topic, queue_id))
        self.wake()

    def wake_all(self, queues: Iterable[tuple[str, int]]) -> None:
        """Answer everybody who waits for one of these queues: what they wait for has changed."""
        for key in queues:
            for pull in list(self._queues.get(key, ())):
                self._forget(pull)
                self._woken.append(pull)
        self.wake()

    def lost(self, owner: object) -> None:
        """Forget the pulls of a connection that is gone."""
        for pull in list(self._owners.get(owner, ())):
            self._forget(pull)
        self._woken = [pull for pull in self._woken if pull.owner is not owner]

    def _time_up(self, pull: HeldPull) -> None:
        self._forget(pull)
        pull.wake()

    def _forget(self, pull: HeldPull) -> None:
        pull.stop_timer()
        key = (pull.topic, pull.queue_id)
        pulls = self._queues[key]
        pulls.remove(pull)
        if not pulls:
            del self._queues[key]
        owned = self._owners[pull.owner]
        owned.discard(pull)
        if not owned:
            del self._owners[pull.owner]
