"""
Where a topic's messages are, and which it takes (``TopicRouteService``, ``MetadataService``).

With ``proxyMode=LOCAL`` that is the broker beside the proxy, whatever others have; else all brokers
that the name server knows of.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

import attrs
import orjson

from logstore.compat.rocketmq.found_routes import Cluster, FoundRoute
from logstore.compat.rocketmq.name_server.routes import MASTER_ID, QueueData
from logstore.compat.rocketmq.proxy.codes import Code, MessageType
from logstore.compat.rocketmq.proxy.failures import ProxyError
from logstore.compat.rocketmq.steps import Step
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.errors import LogStoreError
from logstore.segments.rocketmq.tables.json_fields import JsonTypeError
from logstore.segments.rocketmq.tables.topics import PERM_READ, PERM_WRITE, TopicConfig

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.clients import ProxyClient
    from logstore.compat.rocketmq.proxy.proxy import Proxy

_log = logging.getLogger(__name__)

KnownT = TypeVar("KnownT")
_TYPE_ATTRIBUTE = "message.type"
_MIXED = (MessageType.NORMAL, MessageType.FIFO, MessageType.DELAY, MessageType.TRANSACTION)
#: how long a route is believed, and which messages a topic takes
_KNOWN_MS = 5_000
#: what is kept of so many topics is forgotten
_KNOWN_COUNT_MAX = 10_000


@attrs.frozen
class TopicRoute:
    """A topic's queues on each broker; the ids of the brokers by name."""

    topic: str
    queues: tuple[QueueData, ...]
    broker_ids: dict[str, tuple[int, ...]]

    def writable_queues(self) -> Sequence[tuple[str, int]]:
        """Return the queues that can be sent to, by broker name and number, in order."""
        found = [
            _queues(data.broker_name, data.write_queue_count)
            for data in self.queues
            if data.perm & PERM_WRITE and MASTER_ID in self.broker_ids.get(data.broker_name, ())
        ]
        return found[0] if len(found) == 1 else sorted(chain.from_iterable(found))

    def readable_brokers(self) -> list[str]:
        """Return the names of the brokers that can be read from, in order."""
        return sorted(
            data.broker_name
            for data in self.queues
            if data.perm & PERM_READ
            and data.read_queue_count
            and data.broker_name in self.broker_ids
        )


@lru_cache(maxsize=1024)
def _queues(broker_name: str, count: int) -> tuple[tuple[str, int], ...]:
    """Return the queues of a topic at one broker: nearly all topics have as many."""
    return tuple((broker_name, queue_id) for queue_id in range(count))


@attrs.frozen
class _Known:
    """A route that is believed for a while, as long as the topic stays `own` here."""

    until_ms: float
    own: TopicConfig | None
    route: TopicRoute


class ProxyRoutes:
    """Finds routes, and where brokers are."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._broker = proxy.broker
        #: the addresses of the masters that were met in any route
        self.addresses: dict[str, str] = {}
        self._found: dict[str, _Known] = {}
        self._types: dict[str, tuple[float, str]] = {}

    @property
    def cluster(self) -> Cluster | None:
        """How other brokers are found; None where they do not matter."""
        is_local = self._proxy.settings.mode.upper() == "LOCAL"
        return None if is_local else self._broker.topics.cluster

    async def of(self, topic: str) -> TopicRoute:
        """
        Return where a topic is; where no name server answers, where it was last, or here.

        Raises:
            ProxyError: it is nowhere.
            LogStoreError: nobody tells where it is.

        """
        if self.cluster is None:
            return self._own(topic)
        now_ms = self._broker.host.clock.monotonic_ms()
        own = self._broker.topics.get(topic)
        known = self._found.get(topic)
        if known is not None and now_ms < known.until_ms and known.own is own:
            return known.route
        try:
            found = await Step(self.cluster.find_route(topic))
        except LogStoreError as error:
            _log.warning("%s: %s", topic, error)
            if known is None and own is None:
                raise
            return self._own(topic) if known is None else known.route
        if not found.queues:
            return self._own(topic)  # a name server may not have heard of it yet
        self.addresses |= found.masters()
        route = _route_of(topic, found)
        _keep(self._found, topic, _Known(now_ms + _KNOWN_MS, own, route))
        return route

    def _own(self, topic: str) -> TopicRoute:
        config = self._broker.topics.get(topic)
        if config is None:
            raise _not_found(topic)
        name = self._broker.settings.broker_name
        data = QueueData(
            name,
            config.read_queue_count,
            config.write_queue_count,
            config.perm,
            config.topic_sys_flag,
        )
        return TopicRoute(topic, (data,), {name: (MASTER_ID,)})

    async def type_name(self, client: ProxyClient, topic: str) -> str:
        """
        Return which messages a topic takes, by Java's name: what its own broker says, or another.

        Raises:
            ProxyError: it is nowhere.
            LogStoreError: nobody answers.

        """
        config = self._broker.topics.get(topic)
        if config is not None or self.cluster is None:
            return type_name(config)
        now_ms = self._broker.host.clock.monotonic_ms()
        known = self._types.get(topic)
        if known is not None and now_ms < known[0]:
            return known[1]
        route = await self.of(topic)
        link = await client.link_of(route.queues[0].broker_name)
        answer = await Step(link.ask(RequestCode.GET_TOPIC_CONFIG, {"topic": topic}))
        found = None
        if answer.code == ResponseCode.SUCCESS:
            found = _config_of(bytes(answer.body))
        _keep(self._types, topic, (now_ms + _KNOWN_MS, type_name(found)))
        return type_name(found)

    async def address_of(self, broker_name: str) -> str:
        """
        Return where a broker's master is; each has a topic that is called as it is.

        Raises:
            ProxyError: nobody knows.
            LogStoreError: no name server answers.

        """
        if broker_name not in self.addresses and self.cluster is not None:
            self.addresses |= (await Step(self.cluster.find_route(broker_name))).masters()
        address = self.addresses.get(broker_name)
        if address is None:
            raise ProxyError(Code.INTERNAL_SERVER_ERROR, f"there is no broker {broker_name}")
        return address


def _route_of(topic: str, found: FoundRoute) -> TopicRoute:
    ids = {name: tuple(sorted(known)) for name, known in found.addresses.items()}
    return TopicRoute(topic, found.queues, ids)


def _keep(table: dict[str, KnownT], topic: str, value: KnownT) -> None:
    if len(table) >= _KNOWN_COUNT_MAX:
        table.clear()
    table[topic] = value


def _not_found(topic: str) -> ProxyError:
    text = (
        f"CODE: 17  DESC: No topic route info in name server for the topic: {topic}"
        "\nFor more information, please visit the url, "
        "https://rocketmq.apache.org/docs/bestPractice/06FAQ"
    )
    return ProxyError(Code.TOPIC_NOT_FOUND, text)


def _config_of(body: bytes) -> TopicConfig | None:
    try:
        return TopicConfig.from_json(orjson.loads(body))
    except (ValueError, TypeError, AttributeError, JsonTypeError):
        return None


def type_name(config: TopicConfig | None) -> str:
    """Return which messages a topic takes, by Java's name."""
    if config is None:
        return MessageType.UNSPECIFIED.name
    return config.attributes.get(_TYPE_ATTRIBUTE, MessageType.NORMAL.name).upper()


def message_types(name: str) -> tuple[MessageType, ...]:
    """Return which messages a topic takes whose type is called so."""
    if name == "MIXED":
        return _MIXED
    return (MessageType[name] if name in MessageType.__members__ else MessageType.UNSPECIFIED,)
