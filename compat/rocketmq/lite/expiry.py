"""Lite topics that nobody has sent to for long (AbstractLiteLifecycleManager)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.lite.lite_names import parent_of
from logstore.compat.rocketmq.lite.lite_rules import expirations, groups_by_parent, is_parent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.lite.lite_orders import LiteOrders
    from logstore.compat.rocketmq.lite.lite_queues import LiteQueues
    from logstore.compat.rocketmq.lite.subscriptions import LiteSubscriptions

_MINUTE_MS = 60_000
_TOOLS_GROUP = "TOOLS_CONSUMER"
#: so often an empty light queue is seen before it goes: a message may be on its way
_EMPTY_SCANS_MAX = 5


class LiteExpiry:
    """Deletes light queues with all that groups have of them."""

    def __init__(
        self,
        broker: Broker,
        queues: LiteQueues,
        subscriptions: LiteSubscriptions,
        orders: LiteOrders,
    ) -> None:
        self._broker = broker
        self._queues = queues
        self._subscriptions = subscriptions
        self._orders = orders
        self._seen_empty: dict[str, int] = {}

    def clean(self) -> None:
        """Delete lite topics whose time is over; none in the first while of a broker."""
        broker = self._broker
        if broker.host.clock.wall_ms() - broker.started_ms < broker.settings.lite_expiry_min_ms:
            return
        minutes = expirations(broker)
        expired: dict[str, list[str]] = {}
        for queue in self._queues:
            parent = parent_of(queue)
            if parent is not None and self._is_over(queue, minutes.get(parent)):
                expired.setdefault(parent, []).append(queue)
        for parent, queues in expired.items():
            self._delete(parent, queues)

    def _is_over(self, queue: str, minutes: int | None) -> bool:
        broker, end = self._broker, self._queues.end(queue)
        if end <= 0:
            self._seen_empty[queue] = seen = self._seen_empty.get(queue, 0) + 1
            if seen > _EMPTY_SCANS_MAX:
                del self._seen_empty[queue]
            return seen > _EMPTY_SCANS_MAX
        self._seen_empty.pop(queue, None)
        idle_ms = broker.host.clock.wall_ms() - self._queues.stored_ms(queue, end - 1)
        if idle_ms < broker.settings.lite_expiry_min_ms or minutes is None or minutes <= 0:
            return False
        return idle_ms > minutes * _MINUTE_MS

    def parent_is_going(self, parent: str) -> None:
        """Delete all lite topics of a topic that is deleted."""
        if is_parent(self._broker.topics.get(parent)):
            self._delete(parent, self._queues.of_parent(parent))

    def _delete(self, parent: str, queues: Iterable[str]) -> None:
        store = self._broker.store
        groups = groups_by_parent(self._broker).get(parent, ())
        for queue in queues:
            for group in groups:
                store.consumer_offsets.forget(group, queue)
                self._orders.forget(queue, group)
            store.delete_topics({queue})
            self._subscriptions.queue_is_gone(queue)
            store.consumer_offsets.clear_pull(_TOOLS_GROUP, queue)
