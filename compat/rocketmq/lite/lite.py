"""What one broker keeps of lite topics; made when somebody asks about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.lite.events import LiteEvents
from logstore.compat.rocketmq.lite.expiry import LiteExpiry
from logstore.compat.rocketmq.lite.lags import LiteLags
from logstore.compat.rocketmq.lite.lite_names import is_lite, parent_of
from logstore.compat.rocketmq.lite.lite_orders import LiteOrders
from logstore.compat.rocketmq.lite.lite_queues import LiteQueues
from logstore.compat.rocketmq.lite.lite_rules import GroupRules
from logstore.compat.rocketmq.lite.shards import Shards
from logstore.compat.rocketmq.lite.subscriptions import LiteSubscriptions
from logstore.compat.rocketmq.pop.pop_waits import PopWaits

if TYPE_CHECKING:
    from collections.abc import Callable

    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.segments.rocketmq.messages.dispatch_request import DispatchRequest


class Lite:
    """
    The parts that work together.

    `subscriptions` says who reads what, `events` who is to look where, `waits` are pops that wait,
    `orders` knows what was popped, `lags` how much is left, `expiry` deletes what nobody sends to.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.shards = Shards(broker)
        self.queues = LiteQueues(broker, self.shards)
        self.rules = GroupRules(broker)
        self.orders = LiteOrders(broker)
        self.waits = PopWaits(broker, watches=False)
        self.lags = LiteLags(broker, self.queues)
        self.subscriptions = LiteSubscriptions(broker, self.queues, self.rules, self.orders)
        self.events = LiteEvents(broker, self.queues, self.rules, self.subscriptions, self.waits)
        self.expiry = LiteExpiry(broker, self.queues, self.subscriptions, self.orders)
        self.subscriptions.on_new = self.events.subscribed
        self.subscriptions.on_gone = self.events.client_is_gone
        self.orders.on_free = self.events.available
        settings = broker.settings
        self._again(lambda: settings.lite_event_check_interval_ms, self.events.scan)
        self._again(
            lambda: settings.lite_subscription_check_interval_ms, self.subscriptions.forget_silent
        )

    def _again(self, interval_ms: Callable[[], int], call: Callable[[], None]) -> None:
        def run() -> None:
            if self._broker.store.is_open:
                self._again(interval_ms, call)
                call()

        self._broker.timers.after(interval_ms(), run)

    def is_awaited(self, topic: str) -> bool:
        """Tell whether messages of a topic may be news to anybody."""
        return not self.subscriptions.is_empty and topic in self._broker.topics.table.topics

    def arrived(self, request: DispatchRequest) -> None:
        """Tell whoever reads the lite topic that a message is for."""
        multi = self._broker.store.consume_queues.multi_dispatch
        for queue, _, _ in multi.units(request.topic, request.queue_id, request.properties):
            if is_lite(queue) and parent_of(queue) is not None:
                self.events.arrived(queue)

    def lost(self, channel: Channel) -> None:
        """Forget pops that wait for a connection that is gone."""
        self.waits.lost(channel)
