"""One name server: routes, key-value table and what all connections share. It has no socket."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from logstore.compat.offload import Offload, run_at_once
from logstore.compat.rocketmq.connection import Channel, MakeConnection, RemotingConnection
from logstore.compat.rocketmq.name_server.config import NameServerConfig
from logstore.compat.rocketmq.name_server.kv_config import KvConfig
from logstore.compat.rocketmq.name_server.routes import RouteTable
from logstore.compat.rocketmq.registry import handlers_of
from logstore.compat.rocketmq.secure_ports import OptionalTls
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.compat.rocketmq.wire.outbox import Outbox
from logstore.compat.waiting import Timers

if TYPE_CHECKING:
    from logstore.host import Host

_log = logging.getLogger(__name__)

_C = RequestCode
HANDLERS = handlers_of(
    "logstore.compat.rocketmq.name_server.handlers",
    (
        _C.PUT_KV_CONFIG,
        _C.GET_KV_CONFIG,
        _C.DELETE_KV_CONFIG,
        _C.REGISTER_BROKER,
        _C.UNREGISTER_BROKER,
        _C.GET_ROUTEINFO_BY_TOPIC,
        _C.GET_BROKER_CLUSTER_INFO,
        _C.WIPE_WRITE_PERM_OF_BROKER,
        _C.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
        _C.DELETE_TOPIC_IN_NAMESRV,
        _C.REGISTER_TOPIC_IN_NAMESRV,
        _C.GET_KVLIST_BY_NAMESPACE,
        _C.GET_TOPICS_BY_CLUSTER,
        _C.GET_SYSTEM_TOPIC_LIST_FROM_NS,
        _C.GET_UNIT_TOPIC_LIST,
        _C.GET_HAS_UNIT_SUB_TOPIC_LIST,
        _C.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
        _C.UPDATE_NAMESRV_CONFIG,
        _C.GET_NAMESRV_CONFIG,
        _C.QUERY_DATA_VERSION,
        _C.ADD_WRITE_PERM_OF_BROKER,
        _C.GET_BROKER_MEMBER_GROUP,
        _C.BROKER_HEARTBEAT,
    ),
)


class NameServer:
    """
    Tells clients where topics are served (``NamesrvController``).

    Implements the service of :mod:`logstore.compat.server`.

    Raises, on opening:
        ConfigError: it is to speak TLS only, and has no certificate.
        KvConfigError: the file of the key-value table is not what it should be.
    """

    def __init__(
        self, host: Host, kv_config_path: str, settings: Mapping[str, str] | None = None
    ) -> None:
        self.host = host
        self.handlers = HANDLERS
        self.timers = Timers(host.clock)
        self.outbox = Outbox()
        self.send_run = None
        self.offload: Offload = run_at_once
        self.config = NameServerConfig(settings or {})
        self.idle_ms_max = self.config.idle_ms_max
        self.kv_config = KvConfig(host, kv_config_path)
        forgets_topics = partial(self.config.is_on, "deleteTopicWithBrokerRegistration")
        self.routes = RouteTable(forgets_topics)
        self.started_ms = host.clock.monotonic_ms()
        self.make_connection: MakeConnection = RemotingConnection  # a test may want others
        self.tls = OptionalTls.of(settings or {}, self._connect_within)

    def connect(self, peer_host: str, peer_port: int) -> RemotingConnection:
        """Return the sans-IO side of a new connection."""
        connection = self._connect_within(peer_host, peer_port)
        if self.tls is not None:
            self.tls.meet(connection)
        return connection

    def _connect_within(self, peer_host: str, peer_port: int) -> RemotingConnection:
        """Return the same, which speaks no TLS."""
        return self.make_connection(self, peer_host, peer_port)

    def requests_served(self) -> None:
        """Do nothing: here every request ends with its answer."""

    def disconnected(self, channel: Channel) -> None:
        """Forget the broker that hung up, if it was one."""
        self.routes.lost(channel)

    def start_housekeeping(self) -> None:
        """Look again and again for brokers that have gone silent."""
        interval_ms = self.config.number("scanNotActiveBrokerInterval")

        def run() -> None:
            self.timers.after(interval_ms, run)
            self.expire_brokers()

        self.timers.after(interval_ms, run)

    def expire_brokers(self) -> None:
        """Forget brokers that have gone silent, and hang up on them."""
        with self.outbox.gathering():
            for channel in self.routes.expire(self.host.clock.wall_ms()):
                channel.hang_up()
