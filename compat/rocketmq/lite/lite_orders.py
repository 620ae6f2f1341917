"""Messages of lite topics that were popped and are not done (MemoryConsumerOrderInfoManager)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.pop.order_book import OrderBook

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.segments.rocketmq.tables.consumer_order_infos import OrderInfo

_CLEAN_INTERVAL_MS = 5 * 60 * 1000


class LiteOrders(OrderBook):
    """
    The book of light queues, which a restart forgets: what was popped comes again then.

    `on_free` is told when a group may have messages of a light queue again.
    """

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.on_free: Callable[[str, str], None] = _nobody_waits
        self._clean_later()

    def __len__(self) -> int:
        """Return how many pairs of a light queue and a group there are."""
        return len(self.table.infos)

    def is_blocked(
        self, attempt_id: str | None, topic: str, group: str, queue_id: int, invisible_ms: int
    ) -> bool:
        """Tell whether nothing may be popped now; who has asked once is counted."""
        self.table.infos.setdefault(f"{topic}@{group}", {})
        return super().is_blocked(attempt_id, topic, group, queue_id, invisible_ms)

    def forget(self, queue: str, group: str) -> None:
        """Unlock a light queue, and forget that the group was there."""
        self.table.infos.pop(f"{queue}@{group}", None)

    def suspend(self, queue: str, group: str, pop_time_ms: int, visible_ms: int) -> None:
        """Have all that was popped come again at a time, and not counted as tried once more."""
        info = self.table.get(queue, group, 0)
        if info is None or info.pop_time_ms != pop_time_ms:
            return
        if info.consumed_times is not None:
            info.consumed_times = {
                queue_offset: max(times - 1, 0)
                for queue_offset, times in info.consumed_times.items()
            }
        info.visible_at_ms = None
        info.invisible_ms = visible_ms - pop_time_ms
        self._tell_when_free(queue, group, 0, info)

    def _free_at(self, info: OrderInfo) -> int | None:
        """Return when the last message is visible that locks the queue: then it is free."""
        now_ms = self._broker.host.clock.wall_ms()
        changed = info.visible_at_ms or {}
        usual_ms = info.pop_time_ms + (info.invisible_ms or 0)
        times_ms = [
            changed.get(queue_offset, usual_ms)
            for place, queue_offset in enumerate(info.queue_offsets)
            if not info.committed >> place & 1
        ]
        return max((time_ms for time_ms in times_ms if time_ms > now_ms), default=None)

    def _freed(self, topic: str, group: str, queue_id: int) -> None:
        del queue_id
        self.on_free(group, topic)

    def _queue_count(self, topic: str) -> int:
        del topic  # whatever is called so is a light queue, and has one
        return 1

    def _clean_later(self) -> None:
        self._broker.timers.after(_CLEAN_INTERVAL_MS, self._clean_again)

    def _clean_again(self) -> None:
        if self._broker.store.is_open:
            self._clean_later()
            self._clean()


def _nobody_waits(group: str, queue: str) -> None:
    del group, queue
