"""One broker: a store, its settings and what all connections share. It has no socket or thread."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from logstore.compat.offload import Offload, run_at_once
from logstore.compat.rocketmq.broker_handlers import handlers_for
from logstore.compat.rocketmq.broker_stats import SAMPLE_INTERVAL_MS, BrokerStats
from logstore.compat.rocketmq.clients.clients import CLIENT_SCAN_INTERVAL_MS
from logstore.compat.rocketmq.clients.consumers import ConsumerGroup, Consumers
from logstore.compat.rocketmq.clients.member_news import FIRST_ROUND_MS, ROUND_MS, MemberNews
from logstore.compat.rocketmq.clients.producers import Producers
from logstore.compat.rocketmq.clients.queue_locks import QueueLocks
from logstore.compat.rocketmq.clients.subscriptions import Subscription, subscription_to
from logstore.compat.rocketmq.connection import (
    Channel,
    MakeConnection,
    RemotingConnection,
)
from logstore.compat.rocketmq.follow_up import FollowUp
from logstore.compat.rocketmq.groups.broker_groups import BrokerGroups
from logstore.compat.rocketmq.groups.consumer_filters import register_filters
from logstore.compat.rocketmq.groups.slow_readers import LOOK_INTERVAL_MS, disable_slow_readers
from logstore.compat.rocketmq.machine import Machine
from logstore.compat.rocketmq.pulling.held_pulls import SCAN_INTERVAL_MS, HeldPulls
from logstore.compat.rocketmq.pulling.shared_reads import SharedReads
from logstore.compat.rocketmq.rarely_used import RarelyUsed
from logstore.compat.rocketmq.redelivery.delay_delivery import DelayDelivery
from logstore.compat.rocketmq.redelivery.timed_delivery import TimedDelivery
from logstore.compat.rocketmq.replication.master_service import MasterService
from logstore.compat.rocketmq.roles import checked_role
from logstore.compat.rocketmq.secure_ports import OptionalTls
from logstore.compat.rocketmq.sending.group_commit import GroupCommit
from logstore.compat.rocketmq.sending.send_answers import SendAnswers
from logstore.compat.rocketmq.sending.send_run import SendRun
from logstore.compat.rocketmq.sending.sent_properties import PropertyRewriter
from logstore.compat.rocketmq.sending.unique_keys import UniqueKeys
from logstore.compat.rocketmq.settings import Settings
from logstore.compat.rocketmq.static_topics.static_topics import CLEAN_INTERVAL_MS, StaticTopics
from logstore.compat.rocketmq.topics import names
from logstore.compat.rocketmq.topics.broker_topics import BrokerTopics
from logstore.compat.rocketmq.transactions.op_messages import OpMessages
from logstore.compat.rocketmq.transactions.transaction_checks import TransactionChecks
from logstore.compat.rocketmq.wire.outbox import Outbox
from logstore.compat.waiting import Timers
from logstore.errors import LogStoreError
from logstore.host import Host
from logstore.segments.rocketmq import store_rules
from logstore.segments.rocketmq.filters.bloom_filter import BloomFilter
from logstore.segments.rocketmq.filters.sql_filter import FilterBitMaps
from logstore.segments.rocketmq.ha.settings import HaSettings
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.settings.broker_config import BrokerSettings
from logstore.segments.rocketmq.settings.delay_levels import DelayLevels
from logstore.segments.rocketmq.store import Progress, RocketMQStore, StoreOptions

if TYPE_CHECKING:
    from logstore.compat.rocketmq.auth.access import Access
    from logstore.compat.rocketmq.replication.follower import Follower
    from logstore.segments.rocketmq.upkeep.store_syncs import StoreSync

_log = logging.getLogger(__name__)

#: how often the store's services are looked at; each of them knows when it is due
_TICK_INTERVAL_MS = 100
_METRICS_INTERVAL_MS = 180_000
#: a check of half messages that was cut short goes on so soon
_CHECK_PAUSE_MS = 5
#: where one of these is set, a broker has users to know from its start on
_ACCESS_KEYS = (
    "authenticationEnabled",
    "authorizationEnabled",
    "initAuthenticationUser",
    "innerClientAuthenticationCredentials",
)
#: subscriptions that came with pulls are the same again and again
_SUBSCRIPTIONS_MAX = 4096


class Broker(RarelyUsed):
    """
    Serves one store to any number of connections.

    `advertised_host` and `advertised_port` are what the name server tells clients; they stand in
    every message as its store host, too.
    """

    def __init__(self, host: Host, store: RocketMQStore, config: BrokerSettings) -> None:
        self.host = host
        self.store = store
        #: all settings by Java's keys; `settings` are those that matter here
        self.config = config
        self.settings = checked_role(Settings.of_config(config))
        self.timers = Timers(host.clock)
        self.outbox = Outbox()
        #: None where each request is looked at before it is served
        self.send_run: SendRun | None = SendRun(self)
        self.offload: Offload = run_at_once
        self.idle_ms_max = self.settings.idle_ms_max
        #: set by whoever runs the timers as soon as they are due: what need not be done before an
        #: answer is done after it, and once for the requests of many connections
        self.defers_work = False
        #: set where nobody but clients of this broker reads the store: queues and index, which all
        #: of them see whole, then follow the log many messages at a time
        self.lingers = False
        self._advertised = self.settings.ip1, 10911
        #: where slaves connect, as far as there is such a port
        self.ha_port = 0
        self.started_ms = host.clock.wall_ms()
        #: how often settings were changed since
        self.config_changes = 0
        self._open_tables()
        self._open_clients()
        self._open_services()
        self._apply_to_tables()
        self._apply_durability()
        #: by whom each request is looked at, None where nobody does
        self.guarding: Access | None = None
        if any(config[name] for name in _ACCESS_KEYS):
            access = self.access
            if access.settings.authenticates or access.settings.authorizes:
                self.send_run, self.guarding = None, access
        self.choose_handlers()

    def choose_handlers(self) -> None:
        """Look again who serves which request."""
        self.handlers = handlers_for(self)

    def _open_tables(self) -> None:
        settings, store = self.settings, self.store
        self.topics = BrokerTopics(store.topic_table, settings)
        self.static_topics = StaticTopics(self)
        self.topics.mapped = self.static_topics.details
        self.groups = BrokerGroups(store.subscription_groups, settings)
        self.topics.begin(store)
        self.groups.add_system_groups()
        self.stats = BrokerStats(
            self.host.clock, store.stats, settings.cluster_name, self.topics.is_system
        )
        self.bloom_filter = BloomFilter.sized(
            settings.bloom_error_percent, settings.bloom_group_count
        )
        if settings.computes_filter_bit_maps:
            bit_maps = FilterBitMaps(store.consumer_filters, self.bloom_filter)
            store.consume_queues.bit_map_of = bit_maps.bit_map_of

    def _open_clients(self) -> None:
        self.producers = Producers()
        self.consumers = Consumers(
            expiry_ms=self.settings.consumer_expiry_ms,
            pulled_expiry_ms=self.settings.subscription_expiry_ms,
        )
        self.member_news = MemberNews(self)
        self.consumers.on_change = self.member_news.changed
        self.consumers.on_register = self._register_filters
        self.consumers.on_end = self.store.consumer_filters.unregister
        self.queue_locks = QueueLocks(self.host.clock.monotonic_ms)
        #: the fingerprint of each group's last heart beat (version 2, 5.x)
        self.fingerprints: dict[str, int] = {}
        #: where each connection's messages are born
        self.born_hosts: dict[Channel, HostAddress] = {}
        self.make_connection: MakeConnection = RemotingConnection  # a test may want others
        self.tls = OptionalTls.of(self.config.settings, self.connect_within)

    def _open_services(self) -> None:
        store = self.store
        self.held_pulls = HeldPulls(self.timers, store.max_queue_offset)
        self.shared_reads = SharedReads(store)
        self.group_commit = GroupCommit(
            store.commit_log,
            lambda: self.offload,
            self.timers,
            self.outbox,
            timeout_ms=self.settings.sync_flush_timeout_ms,
        )
        self.group_commit.on_flushed = self.finish_requests  # what is durable can be read now
        self.replication = MasterService(
            store.commit_log, self._ha_settings(), self.timers, self.outbox
        )
        #: what follows the master, where this broker is a slave that has been started
        self.follower: Follower | None = None
        self.delay_delivery = DelayDelivery(self)
        self.timed_delivery = TimedDelivery(self)
        self.op_messages = OpMessages(self)
        self.transaction_checks = TransactionChecks(self)
        self.revive_topic = names.revive_topic(self.settings.cluster_name)
        self._follow_up = FollowUp(self, self.revive_topic)

    def _ha_settings(self) -> HaSettings:
        return HaSettings.of_settings(self.config.settings, self.store.options.release)

    def _apply_durability(self) -> None:
        """Take in what answers to sends wait for."""
        ha = self.replication.master.settings
        self.is_sync_flush = self.settings.flushes_at_once
        self.waits_for_slaves = ha.waits_for_slaves
        #: whether an answer to a send may have to wait for anything
        self.awaits_puts = self.is_sync_flush or self.waits_for_slaves
        self.answers_puts_at_once = not (self.awaits_puts or self.settings.is_slave)

    @classmethod
    def open(
        cls,
        host: Host,
        directory: str,
        settings: Mapping[str, str],
        progress: Progress | None = None,
        *,
        machine: Machine | None = None,
    ) -> Broker:
        """
        Open (or create, or recover) the store in `directory` and return a broker over it.

        `settings` are Java's keys of broker and store. The directory is Java's storePathRootDir.
        `machine` is what the store is told of process and memory.

        Raises:
            ConfigError: a setting has a value that is not allowed.
            StorageError: the directory cannot be served; the text says why and what to do.

        """
        given = {**settings, "storePathRootDir": directory}
        config = BrokerSettings(given)
        for name, value in config.unknown.items():
            _log.info("%s=%s: no release of RocketMQ knows this setting", name, value)
        checked_role(Settings.of_config(config))
        machine = machine or Machine()
        options = StoreOptions(
            settings=given,
            progress=progress,
            process_id=machine.process_id,
            memory_bytes=machine.memory_bytes,
        )
        store = RocketMQStore(host, directory, options)
        try:
            return cls(host, store, config)
        except BaseException:
            store.abandon()  # lets go of the lock
            raise

    # who we are

    @property
    def advertised_host(self) -> str:
        """The address that clients are told."""
        return self._advertised[0]

    @advertised_host.setter
    def advertised_host(self, host: str) -> None:
        self._advertise(host, self.advertised_port)

    @property
    def advertised_port(self) -> int:
        """The port that clients are told."""
        return self._advertised[1]

    @advertised_port.setter
    def advertised_port(self, port: int) -> None:
        self._advertise(self.advertised_host, port)

    def _advertise(self, host: str, port: int) -> None:
        self._advertised = host, port
        for name in ("store_host", "send_answers", "property_rewriter"):
            self.__dict__.pop(name, None)

    @cached_property
    def store_host(self) -> HostAddress:
        """What messages are told to be stored at."""
        try:
            return HostAddress.of(*self._advertised)
        except ValueError:  # a name: what is stored is an address
            return HostAddress.of("127.0.0.1", self.advertised_port)

    @cached_property
    def send_answers(self) -> SendAnswers:
        """Writes what senders are answered."""
        settings = self.settings
        return SendAnswers(self.store_host, settings.region, is_trace_on=settings.is_trace_on)

    @cached_property
    def property_rewriter(self) -> PropertyRewriter:
        """Makes stored properties of sent ones."""
        settings = self.settings
        keys = UniqueKeys(self.host, self.store_host)
        return PropertyRewriter(
            settings.region, settings.cluster_name, keys.make, is_trace_on=settings.is_trace_on
        )

    # connections

    def connect(self, peer_host: str, peer_port: int = 0) -> RemotingConnection:
        """Return the sans-IO side of a new connection."""
        connection = self.connect_within(peer_host, peer_port)
        if self.tls is not None:
            self.tls.meet(connection)
        return connection

    def connect_within(self, peer_host: str, peer_port: int) -> RemotingConnection:
        """Return the same for somebody of whom it is known that he speaks no TLS here."""
        connection = self.make_connection(self, peer_host, peer_port)
        try:
            address = HostAddress.of(peer_host, peer_port)
        except ValueError:  # no address at all, as of a socket without one
            address = HostAddress.of("127.0.0.1", peer_port)
        self.born_hosts[connection.channel] = address
        return connection

    def disconnected(self, channel: Channel) -> None:
        """Forget what was kept for a connection; groups that it was in are told."""
        self.born_hosts.pop(channel, None)
        self.held_pulls.lost(channel)
        if self.has_popped:
            self.popping.lost(channel)
        if self.has_lite:
            self.lite.lost(channel)
        self.producers.lost(channel)
        with self.outbox.gathering():
            self.consumers.lost(channel)

    def requests_served(self) -> None:
        """Finish what the requests of one read began, now or once their answers are out."""
        self._follow_up.requests_served()

    def catch_up(self) -> None:
        """Have everything that was put so far in its queue, for whoever asks about queues now."""
        self._follow_up.catch_up()

    def finish_requests(self) -> None:
        """Dispatch, send to slaves, flush, answer held pulls."""
        self._follow_up.finish()

    # groups

    def _register_filters(
        self, group: ConsumerGroup, subscriptions: tuple[Subscription, ...]
    ) -> None:
        register_filters(self, group.name, subscriptions)

    @staticmethod
    @lru_cache(maxsize=_SUBSCRIPTIONS_MAX)
    def pulled_subscription(
        topic: str, sub_string: str | None, expression_type: str | None, sub_version: int
    ) -> Subscription:
        """
        Return the subscription that comes with a pull.

        Raises:
            SubscriptionError: it cannot be understood.

        """
        return subscription_to(topic, sub_string, expression_type, sub_version)

    # settings

    def update_settings(self, given: Mapping[str, str]) -> None:
        """
        Change settings by Java's keys while the broker runs.

        Raises:
            ConfigError, DelayLevelsError: a value is not allowed; nothing has changed then.

        """
        DelayLevels.parse(given.get("messageDelayLevel", self.settings.delay_levels))
        self.config_changes += bool(self.config.update(given))
        self.settings.update(given)
        self.store.config.update(given)
        self._apply_to_store()
        self._apply_to_tables()
        self.timed_delivery.follow_settings()
        self.topics.routes.clear()
        self.replication.master.settings = self._ha_settings()
        self._apply_durability()
        self._advertise(*self._advertised)
        if "brokerPermission" in given:
            self.topics.rights_changed()

    def _apply_to_store(self) -> None:
        """Have the store follow its settings as far as they can change while it is open."""
        store, config = self.store, self.store.config
        is_batch_topic, release = store.tables.is_batch_topic, store.options.release
        store.putting.rules = store_rules.put_rules(config, release, is_batch_topic)
        store.cleaning.rule = store_rules.cleaning_rule(config)
        store.follow_index_settings()

    def _apply_to_tables(self) -> None:
        """Have tables count their versions and forget filters as settings say."""
        store, settings = self.store, self.settings
        store.consumer_offsets.version_step = max(settings.offset_version_step, 1)
        store.delay_offsets.version_step = max(settings.delay_offset_version_step, 1)
        store.consumer_filters.clean_span_ms = settings.dead_filter_ms_max

    def disk_use_text(self) -> str:
        """Return how full the disk is, as Java's refusals say it."""
        table = self.store.runtime()
        log, queues = table.get("commitLogDiskRatio", "0"), table.get("consumeQueueDiskRatio", "0")
        return f"CL: {float(log):5.2f} CQ: {float(queues):5.2f} INDEX: {float(queues):5.2f}"

    # running

    def start_housekeeping(self) -> None:
        """Start the periodic work: the store's services, delayed messages, checks, silence."""
        self._every(_TICK_INTERVAL_MS, self.tick)
        self._every(CLIENT_SCAN_INTERVAL_MS, self.expire_clients)
        self._every(SCAN_INTERVAL_MS, self.held_pulls.scan)
        self._every(ROUND_MS, self.member_news.tell_rest, FIRST_ROUND_MS)
        self._every(SAMPLE_INTERVAL_MS, self.stats.sample)
        self._every(LOOK_INTERVAL_MS, lambda: disable_slow_readers(self))
        if not self.settings.is_slave:
            self.delay_delivery.start()
            self.timed_delivery.start()
            self._every(_METRICS_INTERVAL_MS, self.timed_delivery.forget_topics)
            self._every(CLEAN_INTERVAL_MS, self.static_topics.clean)
            self._every(self.settings.lite_expiry_check_interval_ms, self.expire_lite_topics)
            if self.store.consume_queues.of_topic(self.revive_topic):
                self.popping.reviving.start()
            self._check_later(self.settings.transaction_check_interval_ms)

    def tick(self) -> None:
        """Run the services of the store that are due; its syncs run off the loop."""
        sync = self.store.tick_without_syncs()
        if sync is not None:
            self.offload(sync.run, lambda error: self._synced(sync, error))
        self.requests_served()

    def _synced(self, sync: StoreSync, error: BaseException | None) -> None:
        self.store.syncs.end(sync, error)
        if error is not None:
            _log.error("%s: %s", self.store.directory, error)
        self.requests_served()

    def expire_clients(self) -> None:
        """Hang up on clients that have sent no heart beat for too long."""
        now_ms = int(self.host.clock.monotonic_ms())
        for channel in self.producers.expire(now_ms) + self.consumers.expire(now_ms):
            channel.hang_up()
        self.queue_locks.forget_expired()

    def check_transactions(self) -> None:
        """Ask producers about transactions that they never ended; go on until all are seen."""
        is_done = self.transaction_checks.check()
        interval_ms = self.settings.transaction_check_interval_ms
        self._check_later(interval_ms if is_done else _CHECK_PAUSE_MS)

    def _check_later(self, delay_ms: float) -> None:
        self.timers.after(delay_ms, lambda: self._guarded(self.check_transactions))

    def _every(
        self, interval_ms: int, call: Callable[[], Any], first_ms: int | None = None
    ) -> None:
        def run() -> None:
            self.timers.after(interval_ms, run)
            self._guarded(call)

        self.timers.after(interval_ms if first_ms is None else first_ms, run)

    def _guarded(self, call: Callable[[], Any]) -> None:
        try:
            with self.outbox.gathering():
                call()
        except (LogStoreError, OSError) as error:  # a disk may be full now and not later
            _log.error("%s: %s", self.store.directory, error)

    def close(self) -> None:
        """Stop cleanly."""
        self.delay_delivery.stop()
        if self.has_popped:
            self.popping.stop()
        if self.has_lite:
            self.lite.orders.stop()
        self.op_messages.write()
        self.store.dispatch()
        self.timed_delivery.stop()
        self.store.close()

    def abandon(self) -> None:
        """Stop without a word to the disk: the data is thrown away."""
        self.delay_delivery.stop()
        self.timed_delivery.abandon()
        self.store.abandon()
