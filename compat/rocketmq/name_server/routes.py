"""
Which brokers live and which topics they serve (``RouteInfoManager``).

Brokers say it again and again; whoever is silent for too long, or hangs up, is forgotten. Nothing
here is kept on disk.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import attrs

from logstore.segments.rocketmq.tables.data_version import DataVersion
from logstore.segments.rocketmq.tables.java_maps import in_hash_map_order
from logstore.segments.rocketmq.tables.topics import PERM_READ, PERM_WRITE

if TYPE_CHECKING:
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.name_server.registration import Registration
    from logstore.segments.rocketmq.tables.topics import TopicConfig

_log = logging.getLogger(__name__)

MASTER_ID = 0
#: system flags of a topic (``TopicSysFlag``)
UNIT_FLAG = 1
UNIT_SUB_FLAG = 2
#: a broker that says nothing for longer is gone, unless it named another time itself
BROKER_EXPIRY_MS = 120_000


@attrs.define
class QueueData:
    """A topic on one broker name."""

    broker_name: str
    read_queue_count: int
    write_queue_count: int
    perm: int
    topic_sys_flag: int

    @staticmethod
    def of(broker_name: str, topic: TopicConfig, perm: int | None = None) -> QueueData:
        """Return a topic as a broker says it; `perm` takes the place of its own rights."""
        return QueueData(
            broker_name,
            topic.read_queue_count,
            topic.write_queue_count,
            topic.perm if perm is None else perm,
            topic.topic_sys_flag,
        )


@attrs.define
class BrokerData:
    """A broker name: a master and its slaves, by broker id."""

    cluster: str
    broker_name: str
    addresses: dict[int, str] = attrs.field(factory=dict[int, str])
    zone_name: str | None = None
    is_acting_master_enabled: bool = False


@attrs.define
class LiveBroker:
    """One broker process, known by cluster and address."""

    seen_ms: int
    expiry_ms: int
    data_version: DataVersion
    channel: Channel | None
    ha_address: str | None


@attrs.frozen
class Route:
    """Where a topic is served."""

    queues: list[QueueData]
    brokers: list[BrokerData]
    #: filter servers by broker address, as 4.x has them
    filter_servers: Mapping[str, list[str]]
    #: queue mappings of a static topic (5.x), by broker name, as they were registered
    mappings: Mapping[str, object] | None

    def near(self, zone_name: str) -> Route:
        """Return the part in a zone; brokers without a master stay: their slaves must help."""
        brokers = [
            data
            for data in self.brokers
            if MASTER_ID not in data.addresses
            or (data.zone_name or "").lower() == zone_name.lower()
        ]
        gone = {data.broker_name for data in self.brokers if data not in brokers}
        return Route(
            [queue for queue in self.queues if queue.broker_name not in gone],
            brokers,
            self.filter_servers,
            self.mappings,
        )


@attrs.frozen
class BrokerIdentity:
    """What a broker says of itself with every request."""

    cluster: str
    name: str
    address: str
    broker_id: int


@attrs.frozen
class MasterAddresses:
    """What a registered slave is told of its master; nothing where there is none."""

    ha_address: str | None = None
    master_address: str | None = None


class RouteTable:
    """
    All routes. Times are ms of the wall clock, handed in by the caller.

    `forgets_topics` tells whether a broker no longer has a topic that it does not register any more
    (``deleteTopicWithBrokerRegistration``).
    """

    def __init__(self, forgets_topics: Callable[[], bool] = lambda: False) -> None:
        self._forgets_topics = forgets_topics
        self.topics: dict[str, dict[str, QueueData]] = {}
        self.brokers: dict[str, BrokerData] = {}
        #: broker names by cluster
        self.clusters: dict[str, set[str]] = {}
        #: by cluster and address
        self.live: dict[tuple[str, str], LiveBroker] = {}
        self._filter_servers: dict[tuple[str, str], list[str]] = {}
        self._mappings: dict[str, dict[str, object]] = {}

    # brokers come

    def register(
        self,
        broker: BrokerIdentity,
        registration: Registration,
        now_ms: int,
        channel: Channel | None = None,
    ) -> MasterAddresses | None:
        """
        Take in what a broker serves; None where it is refused.

        Refused is a broker id that nobody knows and that registers a single topic: it has to say
        all that it serves first. The name and its cluster are known from then on, as with Java.
        """
        key = broker.cluster, broker.address
        topics, version = registration.topics, registration.data_version
        data = self._enter(broker, registration)
        if self._is_outdated(broker, data.addresses, version):
            self.live.pop(key, None)
            return MasterAddresses()
        is_first = broker.broker_id not in data.addresses
        if is_first and len(topics) == 1:
            _log.warning("%s registers one topic before all: refused", broker)
            return None
        data.addresses[broker.broker_id] = broker.address
        self._take_topics(broker, registration, data, is_first=is_first)
        expiry_ms = registration.heartbeat_timeout_ms
        self.live[key] = LiveBroker(
            now_ms,
            BROKER_EXPIRY_MS if expiry_ms is None else expiry_ms,
            version,
            channel,
            registration.ha_address,
        )
        if registration.filter_servers:
            self._filter_servers[key] = list(registration.filter_servers)
        else:
            self._filter_servers.pop(key, None)
        return self._master_of(broker, data)

    def _take_topics(
        self,
        broker: BrokerIdentity,
        registration: Registration,
        data: BrokerData,
        *,
        is_first: bool,
    ) -> None:
        """Enter the topics of a master, or of the slave that stands in for it (5.x)."""
        is_prime_slave = (
            registration.enables_acting_master is not None
            and broker.broker_id != MASTER_ID
            and broker.broker_id == min(data.addresses)
        )
        if broker.broker_id != MASTER_ID and not is_prime_slave:
            return
        if self._forgets_topics() and not registration.mappings:
            # With a static topic among them Java leaves all as they are.
            gone = [
                name
                for name, queues in self.topics.items()
                if broker.name in queues and name not in registration.topics
            ]
            self._forget_queues(gone, [broker.name])
        version = registration.data_version
        is_read_only = is_prime_slave and data.is_acting_master_enabled
        is_changed = is_first or self.is_changed(broker.cluster, broker.address, version)
        for topic in registration.topics.values():
            if is_changed or broker.name not in self.topics.get(topic.topic_name, {}):
                self._put_queue_data(broker.name, topic, is_read_only=is_read_only)
        if is_changed:
            for topic_name, mapping in registration.mappings.items():
                self._mappings.setdefault(topic_name, {})[broker.name] = mapping

    def _is_outdated(
        self, broker: BrokerIdentity, addresses: Mapping[int, str], version: DataVersion
    ) -> bool:
        """Tell whether another address holds this id with a later state (controller mode)."""
        other = addresses.get(broker.broker_id)
        if other is None or other == broker.address:
            return False
        live = self.live.get((broker.cluster, other))
        return live is not None and live.data_version.state_version > version.state_version

    def _enter(self, broker: BrokerIdentity, registration: Registration) -> BrokerData:
        data = self.brokers.setdefault(broker.name, BrokerData(broker.cluster, broker.name))
        self.clusters.setdefault(broker.cluster, set()).add(broker.name)
        data.is_acting_master_enabled = bool(registration.enables_acting_master)
        data.zone_name = registration.zone_name
        # A slave that became master has one address under a new id.
        for broker_id, address in list(data.addresses.items()):
            if address == broker.address and broker_id != broker.broker_id:
                del data.addresses[broker_id]
        return data

    def _put_queue_data(self, broker_name: str, topic: TopicConfig, *, is_read_only: bool) -> None:
        perm = topic.perm & ~PERM_WRITE if is_read_only else topic.perm
        queues = QueueData.of(broker_name, topic, perm)
        self.topics.setdefault(topic.topic_name, {})[broker_name] = queues

    def _master_of(self, broker: BrokerIdentity, data: BrokerData) -> MasterAddresses:
        master_address = data.addresses.get(MASTER_ID)
        if broker.broker_id == MASTER_ID or master_address is None:
            return MasterAddresses()
        master = self.live.get((broker.cluster, master_address))
        if master is None:
            return MasterAddresses()
        return MasterAddresses(master.ha_address, master_address)

    def data_version(self, cluster: str, address: str) -> DataVersion | None:
        """Return the version that a broker registered last."""
        live = self.live.get((cluster, address))
        return None if live is None else live.data_version

    def is_changed(self, cluster: str, address: str, version: DataVersion) -> bool:
        """Tell whether a broker's topics are of another version than those registered."""
        return self.data_version(cluster, address) != version

    def heard_of(self, cluster: str, address: str, now_ms: int) -> None:
        """Take note that a broker lives."""
        live = self.live.get((cluster, address))
        if live is not None:
            live.seen_ms = now_ms

    # brokers go

    def unregister(self, cluster: str, address: str, broker_name: str) -> None:
        """Forget a broker, and what only it served; unknown ones are fine."""
        self.live.pop((cluster, address), None)
        self._filter_servers.pop((cluster, address), None)
        data = self.brokers.get(broker_name)
        if data is None:
            return
        for broker_id, known in list(data.addresses.items()):
            if known == address:
                del data.addresses[broker_id]
        if data.addresses:
            if data.is_acting_master_enabled and min(data.addresses) != MASTER_ID:
                self._set_perms(broker_name, lambda perm: perm & ~PERM_WRITE)
            return
        del self.brokers[broker_name]
        names = self.clusters.get(cluster, set())
        names.discard(broker_name)
        if not names:
            self.clusters.pop(cluster, None)
        self._forget_queues(self.topics, [broker_name])

    def _forget_queues(self, topics: Iterable[str], broker_names: Iterable[str]) -> None:
        names = list(broker_names)
        for topic in list(topics):
            queues = self.topics.get(topic, {})
            for name in names:
                queues.pop(name, None)
            if not queues:
                self.topics.pop(topic, None)

    def lost(self, channel: Channel) -> None:
        """Forget the broker that was connected so, if any was."""
        for key in [key for key, live in self.live.items() if live.channel is channel]:
            self._forget(*key)

    def expire(self, now_ms: int) -> list[Channel]:
        """Forget who has been silent for too long; return the connections to be closed."""
        silent = [
            (key, live) for key, live in self.live.items() if live.seen_ms + live.expiry_ms < now_ms
        ]
        for (cluster, address), live in silent:
            _log.warning("broker %s of %s said nothing for %s ms", address, cluster, live.expiry_ms)
            self._forget(cluster, address)
        return [live.channel for _, live in silent if live.channel is not None]

    def _forget(self, cluster: str, address: str) -> None:
        for data in list(self.brokers.values()):
            if data.cluster == cluster and address in data.addresses.values():
                self.unregister(cluster, address, data.broker_name)
                return
        self.live.pop((cluster, address), None)

    # topics

    def add_topic(self, topic: str, queues: list[QueueData]) -> None:
        """Enter a topic of brokers that are known; of others it is not entered (5.x)."""
        if all(queue.broker_name in self.brokers for queue in queues):
            known = self.topics.setdefault(topic, {})
            known.update({queue.broker_name: queue for queue in queues})

    def delete_topic(self, topic: str, cluster: str | None) -> None:
        """Forget a topic, in one cluster or in all."""
        if not cluster:
            self.topics.pop(topic, None)
        elif topic in self.topics:
            self._forget_queues([topic], self.clusters.get(cluster, ()))

    def wipe_write_perm(self, broker_name: str) -> int:
        """Take the right to write from all topics of a broker; return how many those are."""
        return self._set_perms(broker_name, lambda perm: perm & ~PERM_WRITE)

    def add_write_perm(self, broker_name: str) -> int:
        """Let all topics of a broker be read and written; return how many those are."""
        return self._set_perms(broker_name, lambda _: PERM_READ | PERM_WRITE)

    def _set_perms(self, broker_name: str, change: Callable[[int], int]) -> int:
        found = [queues[broker_name] for queues in self.topics.values() if broker_name in queues]
        for queue in found:
            queue.perm = change(queue.perm)
        return len(found)

    def topics_of_cluster(self, cluster: str) -> list[str]:
        """Return the topics that any broker of a cluster serves."""
        names = self.clusters.get(cluster, set())
        return [topic for topic, queues in self.topics.items() if not names.isdisjoint(queues)]

    def topics_with(self, has: Callable[[int], bool]) -> list[str]:
        """Return topics whose system flags fulfil `has`, on the broker that Java meets first."""
        return [
            topic
            for topic, queues in self.topics.items()
            if queues and has(queues[in_hash_map_order(queues)[0]].topic_sys_flag)
        ]

    def route(self, topic: str) -> Route | None:
        """Return where a topic is served; None if nowhere."""
        queues = self.topics.get(topic)
        if queues is None:
            return None
        # In Java a map of hashes, and a set of its keys, which has a size of its own.
        capacity = max(int(len(queues) / 0.75) + 1, 16)
        names = in_hash_map_order(queues, capacity)
        brokers = [self.brokers[name] for name in names if name in self.brokers]
        if not brokers:
            return None
        filter_servers = {
            address: self._filter_servers[data.cluster, address]
            for data in (brokers if self._filter_servers else ())
            for address in data.addresses.values()
            if (data.cluster, address) in self._filter_servers
        }
        listed = [queues[name] for name in in_hash_map_order(queues)]
        return Route(listed, brokers, filter_servers, self._mappings.get(topic))
