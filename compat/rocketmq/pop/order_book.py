"""
What was popped in order and is not finished, one batch of a queue at a time (OrderInfo).

As long as a message of the batch is neither acknowledged nor visible again nobody of the group gets
any of that queue. What is not acknowledged in time is popped again in its place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

from logstore.segments.rocketmq.tables.consumer_order_infos import (
    ConsumerOrderInfoTable,
    OrderInfo,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.pop.handles import PoppedQueues
    from logstore.compat.waiting import Timer

ILLEGAL, NOTHING_TO_COMMIT = -1, -2
#: what nobody popped for so long is forgotten (``CLEAN_SPAN_FROM_LAST``)
_FORGOTTEN_AFTER_MS = 24 * 3600 * 1000


class OrderedPop(Protocol):
    """Who pops in order."""

    @property
    def group(self) -> str:
        """The group that pops."""
        ...

    @property
    def invisible_ms(self) -> int:
        """For how long nobody else gets what is popped."""
        ...

    @property
    def attempt_id(self) -> str | None:
        """The name under which it may try again."""
        ...


class OrderBook(ABC):
    """Which queues are locked by what was popped of them, group by group."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        store = broker.store
        self.table = ConsumerOrderInfoTable(
            broker.host, f"{store.directory}/config", store.options.release
        )
        self._timers: dict[tuple[str, str, int], Timer] = {}

    # popped

    def is_blocked(
        self, attempt_id: str | None, topic: str, group: str, queue_id: int, invisible_ms: int
    ) -> bool:
        """Tell whether nothing of a queue may be popped now; the same attempt may try again."""
        info = self.table.get(topic, group, queue_id)
        if info is None or not info.differences:
            return False
        if info.attempt_id is not None and info.attempt_id == attempt_id:
            return False
        if not info.invisible_ms or info.invisible_ms <= 0:
            info.invisible_ms = invisible_ms
        return self._locked_until(info) is not None

    def _locked_until(self, info: OrderInfo) -> int | None:
        """Return when the first message is visible that locks the queue, None if none does."""
        now_ms = self._broker.host.clock.wall_ms()
        changed = info.visible_at_ms or {}
        for place, queue_offset in enumerate(info.queue_offsets):
            if not info.committed >> place & 1:
                usual_ms = info.pop_time_ms + (info.invisible_ms or 0)
                visible_ms = changed.get(queue_offset, usual_ms)
                if now_ms < visible_ms:
                    return visible_ms
        return None

    def popped(
        self,
        pop: OrderedPop,
        topic: str,
        queue_id: int,
        pop_time_ms: int,
        queue_offsets: Sequence[int],
        queues: PoppedQueues,
    ) -> None:
        """Lock a queue by what was popped of it, and tell how often that was popped before."""
        known = self.table.get(topic, pop.group, queue_id)
        first = queue_offsets[0]
        info = OrderInfo(
            pop_time_ms,
            pop.invisible_ms,
            [first, *(queue_offset - first for queue_offset in queue_offsets[1:])],
            self._broker.host.clock.wall_ms(),
            attempt_id=pop.attempt_id,
        )
        if known is not None:
            info.consumed_times = _consumed_times(known, info)
        self.table.put(topic, pop.group, queue_id, info)
        times_min = 0
        counted = info.consumed_times
        if counted is not None:
            for queue_offset, times in counted.items():
                queues.count_message(topic, queue_id, queue_offset, times)
            if len(counted) == len(queue_offsets):  # else there are new ones among them
                times_min = min(counted.values())
        queues.count_queue(topic, queue_id, times_min)
        self._tell_when_free(topic, pop.group, queue_id, info)

    def clear(self, topic: str, group: str, queue_id: int) -> None:
        """Unlock a queue: the group was sent elsewhere."""
        self.table.remove(topic, group, queue_id)

    # done

    def commit(
        self, topic: str, group: str, queue_id: int, queue_offset: int, pop_time_ms: int
    ) -> int:
        """
        Take note that a message is consumed; return where the group goes on.

        ILLEGAL: it is none of those that were popped; NOTHING_TO_COMMIT: by another pop.
        """
        info = self.table.get(topic, group, queue_id)
        if info is None:
            return queue_offset + 1
        if not info.differences:
            return ILLEGAL
        if pop_time_ms != info.pop_time_ms:
            return NOTHING_TO_COMMIT
        queue_offsets = info.queue_offsets
        if queue_offset not in queue_offsets:
            return ILLEGAL
        info.committed |= 1 << queue_offsets.index(queue_offset)
        self.table.is_dirty = True
        self._tell_when_free(topic, group, queue_id, info)
        for place, offset in enumerate(queue_offsets):
            if not info.committed >> place & 1:
                return offset
        return queue_offsets[-1] + 1

    def change_visible_time(
        self,
        topic: str,
        group: str,
        queue_id: int,
        queue_offset: int,
        pop_time_ms: int,
        visible_ms: int,
    ) -> None:
        """Have a message lock its queue until another time than was said when it was popped."""
        info = self.table.get(topic, group, queue_id)
        if info is None or info.pop_time_ms != pop_time_ms:
            return
        info.visible_at_ms = {**(info.visible_at_ms or {}), queue_offset: visible_ms}
        self.table.is_dirty = True
        self._tell_when_free(topic, group, queue_id, info)

    # free again

    def _free_at(self, info: OrderInfo) -> int | None:
        """Return when whoever waits is to be told; None: at once."""
        return self._locked_until(info)

    def _tell_when_free(self, topic: str, group: str, queue_id: int, info: OrderInfo) -> None:
        """Wake whoever waits for a queue once its lock is over (ConsumerOrderInfoLockManager)."""
        if not self._broker.settings.wakes_after_locks:
            return
        if not info.differences or not info.invisible_ms:
            return
        key = topic, group, queue_id
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        until_ms = self._free_at(info)
        now_ms = self._broker.host.clock.wall_ms()
        delay_ms = 0 if until_ms is None else until_ms - now_ms
        self._timers[key] = self._broker.timers.after(delay_ms, lambda: self._time_up(*key))

    def _time_up(self, topic: str, group: str, queue_id: int) -> None:
        self._timers.pop((topic, group, queue_id), None)
        if self._broker.settings.wakes_after_locks:
            self._freed(topic, group, queue_id)

    @abstractmethod
    def _freed(self, topic: str, group: str, queue_id: int) -> None:
        """Wake whoever waits for a queue."""

    # no longer of use

    def _clean(self) -> None:
        """Forget what is of no use any more: topics, groups and queues that are gone, old pops."""
        infos = self.table.infos
        oldest_ms = self._broker.host.clock.wall_ms() - _FORGOTTEN_AFTER_MS
        for key in list(infos):
            topic, _, group = key.partition("@")
            queue_count = self._queue_count(topic)
            queues = infos[key]
            for queue_id, info in list(queues.items()):
                if queue_id >= queue_count or info.last_consumed_ms < oldest_ms:
                    del queues[queue_id]
            if not queues or not self._broker.groups.contains(group):
                del infos[key]

    @abstractmethod
    def _queue_count(self, topic: str) -> int:
        """Return how many queues of a topic can be read; none where it is gone."""

    def stop(self) -> None:
        """Tell nobody any more."""
        for timer in self._timers.values():
            timer.cancel()


def _consumed_times(known: OrderInfo, info: OrderInfo) -> dict[int, int]:
    """Return how often messages were popped before that are popped again."""
    before = known.consumed_times or {}
    if known.attempt_id is not None and known.attempt_id == info.attempt_id:
        return dict(before)
    popped = set(known.queue_offsets) if known.differences else set[int]()
    return {
        queue_offset: before.get(queue_offset, 0) + 1
        for queue_offset in info.queue_offsets
        if queue_offset in popped
    }
