"""
Members of a group are told that members have come or gone (DefaultConsumerIdsChangeListener).

At once, or with ``realTimeNotifyConsumerChange=false`` once in a while of all changes since: a
group of many members that start one after the other shares its queues out anew only once then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import RequestCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.clients.consumers import ConsumerGroup
    from logstore.compat.rocketmq.connection import Channel

#: what is not told at once is told so long after the broker has started, and then every so often
FIRST_ROUND_MS, ROUND_MS = 30_000, 15_000


class MemberNews:
    """What members are told, and which groups' members are to be told yet."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        #: who was a member after the last change, by group
        self._untold: dict[str, tuple[Channel, ...]] = {}

    def changed(self, group: ConsumerGroup) -> None:
        """Tell all members of a group that it has changed, now or in the next round."""
        settings = self._broker.settings
        if not settings.notifies_consumer_ids:
            return
        if settings.notifies_at_once:
            _tell(group.name, group.members)
        else:
            self._untold[group.name] = tuple(group.members)

    def tell_rest(self) -> None:
        """Tell what has not been told yet."""
        untold, self._untold = self._untold, {}
        if self._broker.settings.notifies_consumer_ids:
            for group_name, members in untold.items():
                _tell(group_name, members)


def _tell(group_name: str, members: Iterable[Channel]) -> None:
    for channel in members:
        channel.tell(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": group_name})
