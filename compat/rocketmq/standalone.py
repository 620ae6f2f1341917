"""
Name server and broker in one process; or a broker for name servers elsewhere.

Whoever runs this gives both services a server, says which ports came of it, and calls
:meth:`Standalone.start`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.found_routes import Cluster
from logstore.compat.rocketmq.machine import Machine
from logstore.compat.rocketmq.name_server.name_server import NameServer
from logstore.compat.rocketmq.name_server.routes import BrokerIdentity
from logstore.compat.rocketmq.registrar import (
    LocalLink,
    NameServerLink,
    OnMaster,
    Reach,
    Registrar,
    RegistrarOptions,
    RemoteLink,
)
from logstore.compat.rocketmq.replication.slave_role import SlaveRole
from logstore.host import Host
from logstore.segments.rocketmq.settings.java_config import ConfigError
from logstore.segments.rocketmq.store import Progress
from logstore.segments.rocketmq.tables.data_version import DataVersion
from logstore.segments.rocketmq.tables.topics import TopicConfig

#: where the name server keeps its key-value table, below the store; made when one is put
_KV_CONFIG = "namesrv/kvConfig.json"


class RegisteredBroker:
    """A broker as name servers are told of it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        #: where slaves are listened for
        self.ha_port = 0

    def identity(self) -> BrokerIdentity:
        """Return who the broker is and where it listens."""
        broker, settings = self._broker, self._broker.settings
        host = broker.advertised_host
        shown = f"[{host}]" if ":" in host else host
        return BrokerIdentity(
            settings.cluster_name,
            settings.broker_name,
            f"{shown}:{broker.advertised_port}",
            settings.broker_id,
        )

    def ha_address(self) -> str:
        """Return where slaves connect."""
        host = self._broker.config.settings.get("brokerIP2", self._broker.advertised_host)
        return f"[{host}]:{self.ha_port}" if ":" in host else f"{host}:{self.ha_port}"

    def registered_topics(self) -> tuple[Mapping[str, TopicConfig], DataVersion]:
        """Return all topics, and the version of their table."""
        table = self._broker.topics.table
        return table.topics, table.data_version

    def registered_mappings(self, topics: Iterable[str]) -> Mapping[str, object]:
        """Return the mappings of those of the topics that are static."""
        return self._broker.static_topics.infos(topics)

    def permission(self) -> int:
        """Return what may be done with the broker at all."""
        return self._broker.settings.permission

    def registers_topics_alone(self) -> bool:
        """Tell whether a topic that has changed is said without the broker around it."""
        return self._broker.settings.registers_topics_alone


class Standalone:
    """A broker and its own `name_server`, which is None where others are given."""

    def __init__(self, broker: Broker, name_server: NameServer | None, registrar: Registrar,
                 remotes: Sequence[tuple[str, int]], options: RegistrarOptions,
                 face: RegisteredBroker) -> None:  # fmt: skip
        self.broker = broker
        self.name_server = name_server
        self.registrar = registrar
        self._remotes = remotes
        self._options = options
        self._face = face
        #: what follows a master, None where this broker is one; made by :meth:`start`
        self.slave_role: SlaveRole | None = None

    @classmethod
    def open(
        cls,
        host: Host,
        directory: str,
        settings: Mapping[str, str],
        *,
        name_servers: Sequence[tuple[str, int]] = (),
        progress: Progress | None = None,
        machine: Machine | None = None,
    ) -> Standalone:
        """
        Open (or create, or recover) the store in `directory`, and a name server beside it.

        `settings` are Java's keys of broker, store and name server. With `name_servers` (host,
        port) the broker registers there, and there is none here. `machine` is the store's to know.

        Raises:
            ConfigError: a setting has a value that is not allowed.
            StorageError: the directory cannot be served; the text says why and what to do.

        """
        _number(settings, "haListenPort", "0")
        broker = Broker.open(host, directory, settings, progress, machine=machine)
        broker.lingers = not broker.settings.is_slave
        try:
            return cls.around(broker, directory, settings, name_servers=name_servers)
        except BaseException:
            broker.abandon()
            raise

    @classmethod
    def around(
        cls,
        broker: Broker,
        directory: str,
        settings: Mapping[str, str],
        *,
        name_servers: Sequence[tuple[str, int]] = (),
    ) -> Standalone:
        """
        Put a name server beside a broker that is open; its table stands in `directory`.

        Raises:
            ConfigError: a setting has a value that is not allowed.

        """
        options = _options_of(settings)
        _number(settings, "haListenPort", "0")
        name_server = None
        if not name_servers:
            path = settings.get("kvConfigPath") or f"{directory}/{_KV_CONFIG}"
            name_server = NameServer(broker.host, path, settings)
        face = RegisteredBroker(broker)
        registrar = Registrar(face, broker.timers, options)
        return cls(broker, name_server, registrar, name_servers, options, face)

    def advertise(self, host: str, port: int) -> None:
        """Say where clients find the broker."""
        self.broker.advertised_host, self.broker.advertised_port = host, port

    def ha_port_wanted(self, broker_port: int) -> int:
        """Return where to listen for slaves: ``haListenPort``, or the port after the broker's."""
        given = int(self.broker.config.settings.get("haListenPort", "0"))
        if given > 0:
            return given
        return broker_port + 1 if broker_port else 0

    def advertise_ha(self, port: int) -> None:
        """Say where slaves find the broker; to be called before :meth:`start`."""
        self._face.ha_port = self.broker.ha_port = port

    def start(self, reach: Reach) -> None:
        """Start the periodic work of both, and register; `reach` connects to other servers."""
        on_master: OnMaster = _follow_nobody
        if self.broker.settings.is_slave:
            self.slave_role = slave_role = SlaveRole(self.broker, reach)
            on_master = slave_role.master_found
            self.registrar.is_searching = lambda: not slave_role.knows_master
        links: list[NameServerLink] = []
        if self.name_server is not None:
            self.name_server.start_housekeeping()
            routes, clock = self.name_server.routes, self.broker.host.clock
            links.append(LocalLink(routes, self._face, clock, on_master))
        links += [
            RemoteLink(
                address,
                self._face,
                self.broker.timers,
                reach,
                self._options,
                on_master,
                self.broker.sign,
            )
            for address in self._remotes
        ]
        self.registrar.links = links
        self.broker.topics.on_change = self.registrar.topic_changed
        self.broker.topics.on_rights = self.registrar.register_all
        self.broker.topics.find_queues = self.registrar.find_queues
        self.broker.static_topics.calls.begin(reach, self.registrar.find_brokers)
        self.broker.topics.cluster = Cluster(self.registrar.find_route, reach)
        self.broker.defers_work = True
        self.broker.start_housekeeping()
        self.registrar.start()
        if self.slave_role is not None:
            self.slave_role.start()

    def stop(self) -> None:
        """Say goodbye to the name servers; to be called while the servers still run."""
        self.registrar.stop()
        if self.slave_role is not None:
            self.slave_role.stop()

    def close(self) -> None:
        """Stop cleanly."""
        self.broker.close()

    def abandon(self) -> None:
        """Stop without a word to the disk: the data is thrown away."""
        self.broker.abandon()


def _follow_nobody(master_address: str, ha_address: str) -> None:
    """Do nothing: this broker is a master."""


def _options_of(settings: Mapping[str, str]) -> RegistrarOptions:
    interval_ms = _number(settings, "registerNameServerPeriod", "30000")
    return RegistrarOptions(
        interval_ms=min(max(interval_ms, 10_000), 60_000),
        timeout_ms=_number(settings, "registerBrokerTimeoutMills", "24000"),
        is_compressed=settings.get("compressedRegister", "").lower() == "true",
        is_forced=settings.get("forceRegister", "true").lower() == "true",
    )


def _number(settings: Mapping[str, str], key: str, default: str) -> int:
    text = settings.get(key, default)
    try:
        return int(text)
    except ValueError:
        raise ConfigError(key, text, "a whole number") from None
