"""
The time that a request gives the controller.

What waits for it in its queue is told after that time that it was in vain (7), and is not done.
Here nothing waits; but what is given no time at all has never any chance there. Releases with
ZooKeeper do what they are asked for, and then wait for the other brokers to learn of it; who gives
that no time is told 7 of what is done.

Source: ``KafkaEventQueue``, ``ControllerRequestContext.requestTimeoutMsToDeadlineNs``; before 4.0
``ZkAdminManager``, ``TopicPurgatory``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker


def is_none_given(broker: Broker, timeout_ms: int) -> bool:
    """Tell whether the time is over before anything can be done."""
    return timeout_ms <= 0 and not _has_zookeeper(broker)


def is_not_waited_for(broker: Broker, timeout_ms: int) -> bool:
    """Tell whether the time is over once something is done, before the others know of it."""
    return timeout_ms <= 0 and _has_zookeeper(broker)


def _has_zookeeper(broker: Broker) -> bool:
    return broker.emulation is not None and broker.emulation.has_zookeeper
