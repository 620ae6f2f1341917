"""
Messages popped in order: one batch of a queue at a time (ConsumerOrderInfoManager).

As long as a message of the batch is neither acknowledged nor visible again nobody of the group gets
any of that queue. What is not acknowledged in time is popped again in its place.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from logstore.segments.rocketmq.tables.consumer_order_infos import (
    ConsumerOrderInfoTable,
    OrderInfo,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.pop.handles import PoppedQueues
    from logstore.compat.rocketmq.pop.pop_requests import PopRequest
    from logstore.compat.waiting import Timer

_log = logging.getLogger(__name__)

ILLEGAL, NOTHING_TO_COMMIT = -1, -2
_FLUSH_INTERVAL_MS = 10_000
#: what nobody popped for so long is forgotten (``CLEAN_SPAN_FROM_LAST``)
_FORGOTTEN_AFTER_MS = 24 * 3600 * 1000


class OrderLocks:
    """Which queues are locked by what was popped of them, group by group."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        store = broker.store
        self.table = ConsumerOrderInfoTable(
            broker.host, f"{store.directory}/config", store.options.release
        )
        self.table.load()
        self._timers: dict[tuple[str, str, int], Timer] = {}
        self._is_flushing = False
        self._flush_later()
        for key, queues in self.table.infos.items():
            topic, _, group = key.partition("@")
            for queue_id, info in queues.items():
                self._tell_when_free(topic, group, queue_id, info)

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
        pop: PopRequest,
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

    def _tell_when_free(self, topic: str, group: str, queue_id: int, info: OrderInfo) -> None:
        """Wake whoever waits for a queue once its lock is over (ConsumerOrderInfoLockManager)."""
        if not info.differences or not info.invisible_ms:
            return
        key = topic, group, queue_id
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        until_ms = self._locked_until(info)
        now_ms = self._broker.host.clock.wall_ms()
        delay_ms = 0 if until_ms is None else until_ms - now_ms
        self._timers[key] = self._broker.timers.after(delay_ms, lambda: self._freed(*key))

    def _freed(self, topic: str, group: str, queue_id: int) -> None:
        self._timers.pop((topic, group, queue_id), None)
        store, popping = self._broker.store, self._broker.popping
        committed = store.consumer_offsets.query(group, topic, queue_id)
        if store.max_queue_offset(topic, queue_id) > committed:
            if not popping.waits.wake_one(topic, group, -1):
                popping.waits.wake_one(topic, group, queue_id)
            popping.notices.freed(topic, queue_id)

    # lasting

    def _flush_later(self) -> None:
        self._broker.timers.after(_FLUSH_INTERVAL_MS, self._flush)

    def _flush(self) -> None:
        if not self._broker.store.is_open:
            return
        self._flush_later()
        if self.table.is_dirty and not self._is_flushing:
            self._clean()
            self._is_flushing = True
            write = self.table.begin_persist()
            self._broker.offload(write.run, self._flushed)

    def _flushed(self, error: BaseException | None) -> None:
        self._is_flushing = False
        self.table.end_persist(error if isinstance(error, OSError) else None)
        if error is not None:
            _log.error("%s: %s", self.table.path, error)

    def _clean(self) -> None:
        """Forget what is of no use any more: topics, groups and queues that are gone, old pops."""
        broker, infos = self._broker, self.table.infos
        oldest_ms = broker.host.clock.wall_ms() - _FORGOTTEN_AFTER_MS
        for key in list(infos):
            topic, _, group = key.partition("@")
            config = broker.topics.get(topic)
            queues = infos[key]
            for queue_id, info in list(queues.items()):
                is_there = config is not None and queue_id < config.read_queue_count
                if not is_there or info.last_consumed_ms < oldest_ms:
                    del queues[queue_id]
            if not queues or not broker.groups.contains(group):
                del infos[key]

    def stop(self) -> None:
        """Make it last; a file that cannot be written has messages popped again at once."""
        for timer in self._timers.values():
            timer.cancel()
        self._clean()
        try:
            self.table.persist_if_dirty()
        except OSError as error:
            _log.error("%s: %s", self.table.path, error)


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
