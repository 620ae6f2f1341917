"""One broker: a store, its settings and what all connections share. It has no socket or thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING

from logstore.compat.connection import BUFFER_BYTES_USUAL
from logstore.compat.kafka.api_choice import ApiChoice
from logstore.compat.kafka.configs.dynamic import DynamicConfig
from logstore.compat.kafka.configs.settings import BrokerSettings
from logstore.compat.kafka.connection import KafkaConnection
from logstore.compat.kafka.connection_quotas import ConnectionQuotas
from logstore.compat.kafka.features import ELIGIBLE_LEADER_REPLICAS_VERSION, SHARE_VERSION
from logstore.compat.kafka.flushing import Flusher
from logstore.compat.kafka.housekeeping import Housekeeping
from logstore.compat.kafka.nodes.nodes import Nodes
from logstore.compat.kafka.nodes.placements import Placements
from logstore.compat.kafka.produce.run import ProduceRun
from logstore.compat.kafka.readers import Readers
from logstore.compat.kafka.security.listener import Listener
from logstore.compat.kafka.topics.names import (
    GROUPS_TOPIC,
    SHARE_GROUPS_TOPIC,
    TRANSACTIONS_TOPIC,
)
from logstore.compat.offload import Offload, run_at_once
from logstore.compat.waiting import Timers
from logstore.host import Host
from logstore.segments.kafka.broker_config import BrokerConfig
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.store import KafkaStore, Progress, StoreOptions
from logstore.segments.kafka.topic import Topic

if TYPE_CHECKING:
    import uuid

    from logstore.compat.kafka.delegation_tokens.delegation_tokens import DelegationTokens
    from logstore.compat.kafka.emulation.release import Emulation
    from logstore.compat.kafka.fetch.sessions import FetchSessions
    from logstore.compat.kafka.groups.coordinator import GroupCoordinator
    from logstore.compat.kafka.groups.share.cluster import ShareCluster
    from logstore.compat.kafka.produce.route import ProduceRoute
    from logstore.compat.kafka.security.authorizer import Authorizer
    from logstore.compat.kafka.security.guarded_apis import GuardedApis
    from logstore.compat.kafka.share_reads.share_partitions import SharePartitions
    from logstore.compat.kafka.share_state.share_coordinator import ShareCoordinator
    from logstore.compat.kafka.transactions.coordinator import TransactionCoordinator
    from logstore.compat.kafka.transactions.markers import MarkerWriter
    from logstore.compat.kafka.transactions.transactions_log import TransactionsLog
    from logstore.segments.kafka.cluster_metadata.records import MetadataRecord
    from logstore.segments.kafka.cluster_metadata.release import MetadataVersion


class Broker:
    """
    Serves one store to any number of connections.

    `listener` and its like in `listeners` say what clients are told to connect to. Clients may see
    `node_count` nodes in it.
    """

    def __init__(
        self, host: Host, store: KafkaStore, config: BrokerSettings, *, node_count: int = 1
    ) -> None:
        self.host = host
        self.store = store
        self.config = config
        self.dynamic_config = DynamicConfig(store, config.given.settings, node_count)
        self.timers = Timers(host.clock)
        self.offload: Offload = run_at_once
        self.readers = Readers()
        self.flusher = Flusher(lambda: self.offload, self.is_here)
        self.node_id = store.node_id
        self.cluster_id = store.meta.cluster_id if store.meta is not None else ""
        #: the first listener, by which all come in who are not said to come in by another
        self.listener = Listener()
        #: all of them
        self.listeners = [self.listener]
        #: this node and, in a cluster, the others
        self.nodes = Nodes(self, node_count)
        self.placements = Placements(self)
        self.request_bytes_max: int = config.socket_request_max_bytes
        #: how long a server lets connections be on which nothing moves; negative: for ever
        self.idle_ms_max: int = config.connections_max_idle_ms
        #: where the bytes of all connections arrive; one thread serves them
        self.landing = memoryview(bytearray(BUFFER_BYTES_USUAL))
        #: how produce requests of a version that start with certain bytes are understood
        self.produce_routes: dict[tuple[int, bytes], ProduceRoute] = {}
        #: gathers what arrives together
        self.produce_run = ProduceRun(self)
        self._producer_ids = range(0)
        #: a test may want other connections, some of whose requests fail
        self.make_connection: Callable[[Broker, str], KafkaConnection] = KafkaConnection
        is_cluster = not self.nodes.is_alone
        self._choice = ApiChoice(config.given, store.metadata, host, is_cluster=is_cluster)
        #: (key, version) -> who serves it; None where it is what the registry says
        self.find_api = self._choice.find_api()
        #: a client's transactional records need a transaction that the coordinator knows of
        self.verifies_transactions = bool(config.given["transaction.partition.verification.enable"])
        #: partitions by the topic name's UTF-8 bytes, and by the topic id's 16 bytes
        self.by_name: dict[bytes, dict[int, KafkaPartition]] = {}
        self.by_id: dict[bytes, dict[int, KafkaPartition]] = {}
        for topic in store.topics_by_name.values():
            self._enter(topic)
        self._housekeeping = Housekeeping(self)
        self._groups: GroupCoordinator | None = None
        self._transactions: TransactionCoordinator | None = None
        self._share_state: ShareCoordinator | None = None
        self._share_partitions: SharePartitions | None = None
        self._open_coordinators()

    @property
    def authorizer(self) -> Authorizer | None:
        """Who decides on what clients may do, if anybody does."""
        return self._choice.authorizer

    @property
    def guarded_apis(self) -> GuardedApis | None:
        """The registry's entries behind their guards, where there is an authorizer."""
        return self._choice.guarded_apis

    @property
    def emulation(self) -> Emulation | None:
        """The release whose clients are served, if it is not the newest."""
        return self._choice.emulation

    @emulation.setter
    def emulation(self, emulation: Emulation | None) -> None:
        self._choice.emulation = emulation
        self.find_api = self._choice.find_api()
        self._settle()

    def change_client_quotas(self, records: Sequence[MetadataRecord]) -> None:
        """Say how much clients may use from now on, durably."""
        self.store.metadata.change_access(records)
        self.find_api = self._choice.find_api()

    def _open_coordinators(self) -> None:
        """Open those that have something on disk: whoever cannot read it must not start."""
        if SHARE_GROUPS_TOPIC in self.topics:
            self._share_state = self._open_share_state()
        if GROUPS_TOPIC in self.topics:
            self._groups = self._open_groups()
        if TRANSACTIONS_TOPIC in self.topics:
            self._transactions = self._open_transactions()

    @classmethod
    def open(
        cls,
        host: Host,
        directory: str,
        settings: Mapping[str, str],
        progress: Progress | None = None,
        *,
        is_parallel: bool = False,
        release: MetadataVersion | None = None,
        emulated_release: str | None = None,
        node_count: int = 1,
    ) -> Broker:
        """
        Open (or create, or recover) the store in `directory` and return a broker over it.

        `settings` are those of ``server.properties``. With `is_parallel` as many partitions are
        recovered at a time as they say; without, one after the other, every time the same.
        `release` is the metadata version of a new directory, and must be that of an old one.
        `emulated_release`, as "3.9", is the one whose APIs clients find here. `node_count` is how
        many brokers they find (:mod:`logstore.compat.kafka.nodes`).

        Raises:
            ConfigError: a setting has a value that is not allowed, or nobody knows the release.
            StorageError: the directory cannot be served; the text says why and what to do.

        """
        emulation = None
        if emulated_release is not None:
            from logstore.compat.kafka.emulation.release import Emulation

            emulation = Emulation.of(emulated_release)
            settings = emulation.settings(settings)
        given = BrokerConfig(settings)
        config = BrokerSettings.of(given)
        options = StoreOptions(
            node_id=config.node_id,
            log_defaults=given.topic_defaults(),
            progress=progress,
            recovery_thread_count=config.num_recovery_threads_per_data_dir if is_parallel else 1,
            release=release,
        )
        store = KafkaStore(host, directory, options)
        try:
            store.lead_anew()
            broker = cls(host, store, config, node_count=node_count)
            broker.emulation = emulation
            return broker
        except BaseException:
            store.abandon()  # lets go of the lock
            raise

    @property
    def advertised_host(self) -> str:
        """What clients of the first listener are told to connect to."""
        return self.listener.advertised_host

    @advertised_host.setter
    def advertised_host(self, host: str) -> None:
        self.listener.advertised_host = host

    @property
    def advertised_port(self) -> int:
        """The port of the same."""
        return self.listener.advertised_port

    @advertised_port.setter
    def advertised_port(self, port: int) -> None:
        self.listener.advertised_port = port

    def connect(self, peer_host: str, peer_port: int = 0) -> KafkaConnection:
        """Return the sans-IO side of a new connection."""
        self.connection_quotas.admit(self.listener, peer_host, peer_port)
        return self.make_connection(self, peer_host)

    def disconnected(self, connection: KafkaConnection) -> None:
        """Forget what was kept for a connection."""
        self.connection_quotas.left(connection.client)
        if self._share_partitions is not None:
            self._share_partitions.disconnected(connection.client)

    @cached_property
    def connection_quotas(self) -> ConnectionQuotas:
        """Who counts connections, and lets them in or not."""
        return ConnectionQuotas(self)

    @property
    def data_directory(self) -> str:
        """Where the records are."""
        return self.store.directory

    @cached_property
    def fetch_sessions(self) -> FetchSessions:
        """The fetchers' sessions; there are none before the first Fetch."""
        from logstore.compat.kafka.fetch.sessions import FetchSessions

        return FetchSessions(self.host, self.config.max_incremental_fetch_session_cache_slots)

    @cached_property
    def delegation_tokens(self) -> DelegationTokens:
        """The delegation tokens; most brokers have none."""
        from logstore.compat.kafka.delegation_tokens.delegation_tokens import DelegationTokens

        return DelegationTokens(self)

    # topics

    @property
    def topics(self) -> dict[str, Topic]:
        """Every topic by name."""
        return self.store.topics_by_name

    def topic_by_id(self, topic_id: bytes | uuid.UUID) -> Topic | None:
        """Return the topic of that id."""
        key = topic_id if isinstance(topic_id, bytes) else topic_id.bytes
        return self.store.topics_by_id.get(key)

    def partition(self, topic: str, index: int) -> KafkaPartition | None:
        """Return one partition, None if there is none."""
        found = self.topics.get(topic)
        return None if found is None else found.partitions.get(index)

    def is_here(self, partition: KafkaPartition) -> bool:
        """Tell whether a partition is still that of its topic and number."""
        return self.partition(partition.topic, partition.index) is partition

    def _enter(self, topic: Topic) -> None:
        self.by_name[topic.name.encode()] = topic.partitions
        self.by_id[topic.topic_id] = topic.partitions
        for partition in topic.partitions.values():
            self._adopt(partition)

    def _adopt(self, partition: KafkaPartition) -> None:
        partition.on_flush_due = self.flusher.mark_due
        partition.on_roll = self.flusher.flush
        partition.verifies_transactions = self.verifies_transactions

    def flaw_of_new_topic(self, name: str) -> str | None:
        """Return why the store cannot have a topic of that name, which Kafka allows; or None."""
        del name
        return None

    def create_topic(
        self, name: str, partition_count: int, settings: dict[str, str] | None = None
    ) -> Topic:
        """Create a topic whose name is known to be free and allowed."""
        topic = self.store.create_topic(name, partition_count, settings)
        self._enter(topic)
        self.placements.place(topic, self.placements.factor_of(name))
        return topic

    def add_partitions(self, topic: Topic, partition_count: int) -> None:
        """Grow a topic."""
        self.store.add_partitions(topic, partition_count)
        for partition in topic.partitions.values():
            self._adopt(partition)

    def delete_topic(self, topic: Topic) -> None:
        """Delete a topic; whoever waits for its data is told, and its offsets are forgotten."""
        partitions = dict(topic.partitions)
        self.store.delete_topic(topic)
        self.placements.forget(topic)
        del self.by_name[topic.name.encode()]
        del self.by_id[topic.topic_id]
        topic.partitions.clear()  # also ends the routes of producers that lead here
        for partition in partitions.values():
            self.readers.abandon(partition)
        if self._groups is not None:
            self._groups.forget_partitions(topic.name, partitions)
            if self._groups.share_groups:
                self._groups.shares.states.forget_topic(topic.topic_id)
        if self._share_partitions is not None:
            self._share_partitions.forget_topic(topic)
        if topic.name == TRANSACTIONS_TOPIC:
            self._close_transactions()  # what it knew is gone with its log
        if topic.name == SHARE_GROUPS_TOPIC:
            self._close_share_state()
        elif self._share_state is not None:
            self._share_state.forget_topics({topic.topic_id})

    # groups

    @property
    def groups(self) -> GroupCoordinator:
        """The group coordinator; without groups on disk it is made when somebody asks for it."""
        if self._groups is None:
            self._groups = self._open_groups()
        return self._groups

    def _open_groups(self) -> GroupCoordinator:
        from logstore.compat.kafka.groups.coordinator import GroupCoordinator
        from logstore.compat.kafka.groups.modern.broker_cluster import BrokerCluster
        from logstore.compat.kafka.groups.topic import GroupsTopic

        log, cluster = GroupsTopic(self), BrokerCluster(self.store, self.dynamic_config)
        coordinator = GroupCoordinator.from_config(
            self.host, self.timers, self.config, log, cluster, self.share_cluster
        )
        self._choice.settle(coordinator.surroundings)
        return coordinator

    def share_cluster(self) -> ShareCluster:
        """Return what share groups must know of this broker."""
        from logstore.compat.kafka.groups.share.broker_cluster import BrokerShareCluster

        return BrokerShareCluster(self)

    def _close_groups(self) -> None:
        if self._groups is not None:
            self._groups.close()

    # share groups

    @property
    def share_state(self) -> ShareCoordinator:
        """What keeps the state of share-partitions; made when somebody asks for it."""
        if self._share_state is None:
            self._share_state = self._open_share_state()
        return self._share_state

    def _open_share_state(self) -> ShareCoordinator:
        from logstore.compat.kafka.share_state.topic import open_share_state

        return open_share_state(self)

    def _close_share_state(self) -> None:
        if self._share_state is not None:
            self._share_state.close()
            self._share_state = None

    @property
    def share_partitions(self) -> SharePartitions:
        """What share groups read here; there is nothing before the first ShareFetch."""
        if self._share_partitions is None:
            from logstore.compat.kafka.share_reads.share_partitions import SharePartitions

            self._share_partitions = SharePartitions(self)
        return self._share_partitions

    # transactions

    @property
    def transactions(self) -> TransactionCoordinator:
        """The transaction coordinator; without transactions on disk made when it is needed."""
        if self._transactions is None:
            self._transactions = self._open_transactions()
        return self._transactions

    def _open_transactions(self) -> TransactionCoordinator:
        from logstore.compat.kafka.transactions.config import TransactionConfig
        from logstore.compat.kafka.transactions.coordinator import TransactionCoordinator

        coordinator = TransactionCoordinator(
            TransactionConfig.of(self.config, self.feature_levels),
            self.timers,
            self._transactions_log(),
            self._markers(),
            self.new_producer_id,
        )
        coordinator.load()
        return coordinator

    def _markers(self) -> MarkerWriter:
        """Return who writes the ends of transactions to their partitions."""
        from logstore.compat.kafka.transactions.marking import BrokerMarkers

        return BrokerMarkers(self)

    def _transactions_log(self) -> TransactionsLog:
        """Return where the transaction coordinator keeps what must survive a restart."""
        from logstore.compat.kafka.transactions.topic import TransactionsTopic

        return TransactionsTopic(self)

    def _close_transactions(self) -> None:
        if self._transactions is not None:
            self._transactions.close()
            self._transactions = None

    # features

    @property
    def feature_levels(self) -> Mapping[str, int]:
        """The levels in force; a release that is emulated did not know them all."""
        return self._choice.feature_levels

    def change_features(self, levels: Mapping[str, int]) -> None:
        """Give features these levels, durably; whoever has to know is told."""
        now = self.store.metadata.image.features
        changes = {name: level for name, level in levels.items() if now.get(name, 0) != level}
        if not changes:
            return
        if changes.get(ELIGIBLE_LEADER_REPLICAS_VERSION):
            self.dynamic_config.fix_min_insync_replicas()
        self.store.metadata.change_features(changes)
        if self._share_partitions is not None and not now.get(SHARE_VERSION, 0):
            self._share_partitions.close_all()
        self._settle()

    def _settle(self) -> None:
        if self._transactions is not None:
            self._transactions.config = self._transactions.config.at(self.feature_levels)
        if self._groups is not None:
            self._choice.settle(self._groups.surroundings)

    # producers

    def new_producer_id(self) -> int:
        """
        Return a producer id that nobody has, not even one that has not written yet.

        Raises:
            WriteFailedError, OSError: all of a block were given out, and the disk refused to note
                that the next one is taken.

        """
        if not self._producer_ids:
            self._producer_ids = self.store.metadata.take_producer_ids()
        producer_id, self._producer_ids = self._producer_ids[0], self._producer_ids[1:]
        return producer_id

    def unsupported_api_versions(self, correlation_id: int) -> bytes | None:
        """Return the v0 answer to an ApiVersions of an unknown version, if there is one."""
        from logstore.compat.kafka.apis.api_18_api_versions import unsupported

        return unsupported(self, correlation_id)

    # running

    def start_housekeeping(self) -> None:
        """Start the periodic work."""
        self._housekeeping.start()

    def close(self) -> None:
        """Stop cleanly; many partitions wait for the disk together."""
        self._housekeeping.close()
        try:
            self._close_transactions()
            self._close_groups()
            self._close_share_state()
        finally:
            with ThreadPoolExecutor(8) as pool:
                self.store.close(pool.map)

    def abandon(self) -> None:
        """Stop without a word to the disk: the data is thrown away."""
        self._housekeeping.close()
        self._close_transactions()
        self._close_groups()
        self._close_share_state()
        self.store.abandon()
