"""
Which broker a lite topic's messages go to (LiteShardingImpl).

All queues of the parent that can be written to, on all brokers, are asked by consistent hashing:
proxies send, and brokers take subscriptions, by the same rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.lite.lite_names import lite_topic_of
from logstore.java_hash import java_hash
from logstore.segments.rocketmq.tables.topics import PERM_WRITE

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.found_routes import FoundRoute

_LONG = (1 << 64) - 1
#: how long an answer of the name server counts (``loadBalancePollNameServerInterval``)
_KNOWN_MS = 30_000


def bucket_of(lite_topic: str, count: int) -> int:
    """Return which of `count` queues a lite topic belongs to (Guava's ``consistentHash``)."""
    state, candidate = java_hash(lite_topic) & _LONG, 0
    while True:
        state = (2862933555777941757 * state + 1) & _LONG
        following = int((candidate + 1) / (((state >> 33) + 1) / 2.0**31))
        if not 0 <= following < count:
            return candidate
        candidate = following


def broker_of(lite_topic: str, brokers: Sequence[str]) -> str:
    """Return the broker among those of all queues, one name a queue."""
    return brokers[bucket_of(lite_topic, len(brokers))]


def writable(route: FoundRoute) -> list[str]:
    """Return the broker of each queue that can be written to; those without a master have none."""
    masters = route.masters()
    return [
        data.broker_name
        for data in sorted(route.queues, key=lambda data: data.broker_name)
        if data.perm & PERM_WRITE and data.broker_name in masters
        for _ in range(data.write_queue_count)
    ]


class Shards:
    """What one broker knows of where lite topics belong."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._brokers: dict[str, tuple[float, list[str]]] = {}

    def is_ours(self, parent: str, queue: str) -> bool:
        """Tell whether a lite topic belongs here, by what is known; so does what has no place."""
        _, brokers = self._brokers.get(parent, (0, []))
        lite_topic = lite_topic_of(queue)
        if not brokers or not lite_topic:
            return True
        return broker_of(lite_topic, brokers) == self._broker.settings.broker_name

    def learn(self, parent: str, then: Callable[[], None]) -> None:
        """Ask the name server about a parent, unless that was just done, and go on."""
        cluster, now_ms = self._broker.topics.cluster, self._broker.host.clock.monotonic_ms()
        known = self._brokers.get(parent)
        if cluster is None or (known is not None and now_ms - known[0] < _KNOWN_MS):
            then()
            return

        def told(route: FoundRoute) -> None:
            self._brokers[parent] = now_ms, writable(route)
            then()

        def not_told(error: Exception) -> None:
            del error  # what was known is good enough, or the broker is all there is
            then()

        cluster.find_route(parent).then(told, not_told)
