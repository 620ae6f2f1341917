"""What pop consumption keeps for one broker; made when somebody pops, or did before a restart."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.pop.in_flight import InFlight
from logstore.compat.rocketmq.pop.order_locks import OrderLocks
from logstore.compat.rocketmq.pop.pop_waits import PopWaits
from logstore.compat.rocketmq.pop.revive_log import ReviveLog
from logstore.compat.rocketmq.pop.reviving import Reviving
from logstore.segments.rocketmq.tables.message_request_modes import MessageRequestModeTable

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel


class Popping:
    """
    The parts that pops, acknowledgements and notifications share.

    `waits` are pops that wait, `notices` those who only want to know; `revive_log` takes
    checkpoints, `reviving` has unacknowledged messages come again, `orders` knows what was popped
    in order, `in_flight` how much was popped and is not finished.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.waits = PopWaits(broker)
        self.notices = PopWaits(broker, takes_last=True)
        self.revive_log = ReviveLog(broker)
        self.orders = OrderLocks(broker)
        self.in_flight = InFlight(broker)
        self.reviving = Reviving(broker)
        self.reviving.start()

    @cached_property
    def request_modes(self) -> MessageRequestModeTable:
        """How groups get their messages, where somebody said so."""
        store = self._broker.store
        table = MessageRequestModeTable(
            self._broker.host, f"{store.directory}/config", store.options.release
        )
        table.load()
        return table

    def arrived(self, topic: str, queue_id: int) -> None:
        """Wake whoever waits for messages of a queue."""
        self.waits.arrived(topic, queue_id)
        self.notices.arrived(topic, queue_id)

    def lost(self, channel: Channel) -> None:
        """Forget what waits for a connection that is gone."""
        self.waits.lost(channel)
        self.notices.lost(channel)

    def stop(self) -> None:
        """Stop cleanly."""
        self.reviving.stop()
        self.orders.stop()
