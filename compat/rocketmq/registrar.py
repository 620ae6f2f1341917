"""
Keeps a broker known to name servers: one in this process, or others over the network.

Everything is said at the start and then again and again (``registerNameServerPeriod``); a new
topic is said at once, alone. A name server that cannot be reached is tried again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import attrs

from logstore.compat.connection import Connection
from logstore.compat.rocketmq.connection import Channel, RemotingConnection, Sign
from logstore.compat.rocketmq.found_brokers import brokers_at, brokers_in_table
from logstore.compat.rocketmq.found_queues import queues_at, queues_in_table
from logstore.compat.rocketmq.found_routes import FoundRoute, route_at, route_in_table
from logstore.compat.rocketmq.name_server.registration import (
    Registration,
    crc_of,
    version_fields,
    write_registration,
)
from logstore.compat.rocketmq.name_server.routes import BrokerIdentity, QueueData, RouteTable
from logstore.compat.rocketmq.registry import Handlers
from logstore.compat.rocketmq.wire.bodies import json_body
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.rocketmq.wire.fields import as_fields, read_flag
from logstore.compat.rocketmq.wire.message_queue import MessageQueue
from logstore.compat.rocketmq.wire.outbox import Outbox
from logstore.compat.rocketmq.wire.remoting import Command
from logstore.compat.waiting import Later, Timers
from logstore.errors import LogStoreError
from logstore.host import Clock
from logstore.segments.rocketmq.tables.data_version import DataVersion
from logstore.segments.rocketmq.tables.topics import PERM_READ, PERM_WRITE, TopicConfig

_log = logging.getLogger(__name__)

#: how soon a name server that could not be reached at the start is tried again
_RETRY_MS = 1000

#: connects to (host, port): makes its connection with the third, or tells the fourth why not
Reach = Callable[[str, int, Callable[[str, int], Connection], Callable[[Exception], None]], None]
#: told where a slave's master is: its address, its HA address; either is "" where there is none
OnMaster = Callable[[str, str], None]


def _ignore(master_address: str, ha_address: str) -> None:
    """Do nothing: a master follows nobody."""


@attrs.frozen
class RegistrarOptions:
    """How to register; Java's keys are in brackets."""

    #: time between two registrations (``registerNameServerPeriod``)
    interval_ms: int = 30_000
    #: how long to wait for an answer (``registerBrokerTimeoutMills``)
    timeout_ms: int = 24_000
    #: pack the body (``compressedRegister``)
    is_compressed: bool = False
    #: register even if the name server knows this version of the topics (``forceRegister``)
    is_forced: bool = True


class Registered(Protocol):
    """What is said of a broker, each time anew."""

    def identity(self) -> BrokerIdentity:
        """Return who the broker is and where it listens."""
        ...

    def ha_address(self) -> str:
        """Return where slaves connect."""
        ...

    def registered_topics(self) -> tuple[Mapping[str, TopicConfig], DataVersion]:
        """Return all topics, and the version of their table."""
        ...

    def registered_mappings(self, topics: Iterable[str]) -> Mapping[str, object]:
        """Return the mappings of those of the topics that are static."""
        ...

    def permission(self) -> int:
        """Return what may be done with the broker at all (``brokerPermission``)."""
        ...

    def registers_topics_alone(self) -> bool:
        """Tell whether a topic that has changed is said alone (``enableSingleTopicRegister``)."""
        ...


class NameServerLink(Protocol):
    """One name server, as a broker sees it."""

    is_registered: bool

    def register(self, registration: Registration) -> None:
        """Say what the broker serves."""
        ...

    def register_topic(self, topic: TopicConfig) -> None:
        """Say of one topic alone what the broker has of it."""
        ...

    def unregister(self) -> None:
        """Say goodbye."""
        ...

    def find_queues(self, topic: str) -> Later[list[MessageQueue]] | None:
        """Return the queues of a topic, on all brokers; None if it cannot be asked now."""
        ...

    def find_brokers(self) -> Later[dict[str, str]] | None:
        """Return the addresses of all masters; None if it cannot be asked now."""
        ...

    def find_route(self, topic: str) -> Later[FoundRoute] | None:
        """Return the route of a topic; None if it cannot be asked now."""
        ...


class LocalLink:
    """A name server in this process: it is told by a call."""

    def __init__(
        self,
        routes: RouteTable,
        broker: Registered,
        clock: Clock,
        on_master: OnMaster = _ignore,
    ) -> None:
        self._routes = routes
        self._on_master = on_master
        self._broker = broker
        self._clock = clock
        self.is_registered = False

    def register(self, registration: Registration) -> None:
        """Say what the broker serves."""
        broker, now_ms = self._broker.identity(), self._clock.wall_ms()
        master = self._routes.register(broker, registration, now_ms)
        if master is not None:
            self.is_registered = True
            self._on_master(master.master_address or "", master.ha_address or "")

    def register_topic(self, topic: TopicConfig) -> None:
        """Say of one topic alone what the broker has of it."""
        queues = QueueData.of(self._broker.identity().name, topic)
        self._routes.add_topic(topic.topic_name, [queues])

    def unregister(self) -> None:
        """Say goodbye."""
        broker = self._broker.identity()
        self._routes.unregister(broker.cluster, broker.address, broker.name)

    def find_queues(self, topic: str) -> Later[list[MessageQueue]] | None:
        """Return the queues of a topic, on all brokers."""
        return queues_in_table(self._routes, topic)

    def find_brokers(self) -> Later[dict[str, str]] | None:
        """Return the addresses of all masters."""
        return brokers_in_table(self._routes)

    def find_route(self, topic: str) -> Later[FoundRoute] | None:
        """Return the route of a topic."""
        return route_in_table(self._routes, topic)


class RemoteLink:
    """A name server elsewhere. Also the service behind the one connection to it."""

    def __init__(
        self,
        address: tuple[str, int],
        broker: Registered,
        timers: Timers,
        reach: Reach,
        options: RegistrarOptions,
        on_master: OnMaster = _ignore,
        sign: Sign | None = None,
    ) -> None:
        self._address = address
        self._sign = sign
        self._on_master = on_master
        self._broker = broker
        self._reach = reach
        self._options = options
        self._channel: Channel | None = None
        self._is_reaching = False
        self._waiting: list[Registration] = []
        self.is_registered = False
        # What a connection needs of its service.
        self.handlers: Handlers = {}
        self.timers = timers
        self.outbox = Outbox()
        self.send_run = None

    def requests_served(self) -> None:
        """Do nothing: name servers ask brokers for nothing that is served here."""

    def disconnected(self, channel: Channel) -> None:
        """Connect anew with the next registration."""
        if self._channel is channel:
            self._channel = None
            self.is_registered = False

    def register(self, registration: Registration) -> None:
        """Say what the broker serves, once there is a connection."""
        if self._channel is not None and self._channel.is_open:
            self._ask(self._channel, registration)
            return
        self._waiting.append(registration)
        if not self._is_reaching:
            self._is_reaching = True
            self._reach(*self._address, self._connect, self._not_reached)

    def register_topic(self, topic: TopicConfig) -> None:
        """Say of one topic what the broker has of it; without a connection all is said later."""
        if self._channel is None or not self._channel.is_open:
            return
        queues = {
            "brokerName": self._broker.identity().name, "perm": topic.perm,
            "readQueueNums": topic.read_queue_count, "topicSysFlag": topic.topic_sys_flag,
            "writeQueueNums": topic.write_queue_count,
        }  # fmt: skip
        self._channel.ask(
            RequestCode.REGISTER_TOPIC_IN_NAMESRV,
            {"topic": topic.topic_name},
            json_body({"queueDatas": [queues]}),
            timeout_ms=self._options.timeout_ms,
        ).then(self._topic_answered, self._failed)

    def _topic_answered(self, answer: Command) -> None:
        if answer.code != ResponseCode.SUCCESS:
            _log.warning("name server %s:%s: %s", *self._address, answer.remark)

    def unregister(self) -> None:
        """Say goodbye, if there is a connection; the answer is not waited for."""
        if self._channel is not None:
            fields = _header(self._broker)
            self._channel.tell(RequestCode.UNREGISTER_BROKER, fields)

    def find_queues(self, topic: str) -> Later[list[MessageQueue]] | None:
        """Return the queues of a topic, on all brokers; None if there is no connection."""
        if self._channel is None or not self._channel.is_open:
            return None
        return queues_at(self._channel, topic)

    def find_brokers(self) -> Later[dict[str, str]] | None:
        """Return the addresses of all masters; None if there is no connection."""
        if self._channel is None or not self._channel.is_open:
            return None
        return brokers_at(self._channel)

    def find_route(self, topic: str) -> Later[FoundRoute] | None:
        """Return the route of a topic; None if there is no connection."""
        if self._channel is None or not self._channel.is_open:
            return None
        return route_at(self._channel, topic)

    def _connect(self, host: str, port: int) -> RemotingConnection:
        connection = RemotingConnection(self, host, port)
        self._channel = connection.channel
        self._channel.sign = self._sign
        self._is_reaching = False
        # What is said before the driver has the connection goes out when it is asked first.
        self.timers.after(0, self._say_what_waits)
        return connection

    def _not_reached(self, error: Exception) -> None:
        self._is_reaching = False
        self._waiting.clear()
        host, port = self._address
        _log.warning("name server %s:%s cannot be reached: %s", host, port, error)

    def _say_what_waits(self) -> None:
        waiting, self._waiting = self._waiting, []
        if self._channel is not None:
            for registration in waiting:
                self._ask(self._channel, registration)

    def _ask(self, channel: Channel, registration: Registration) -> None:
        if self._options.is_forced or not self.is_registered:
            self._register(channel, registration)
            return

        def answered(answer: Command) -> None:
            if read_flag(answer.ext_fields, "changed", default=True):
                self._register(channel, registration)

        channel.ask(
            RequestCode.QUERY_DATA_VERSION,
            _header(self._broker),
            json_body(version_fields(registration.data_version)),
            timeout_ms=self._options.timeout_ms,
        ).then(answered, self._failed)

    def _register(self, channel: Channel, registration: Registration) -> None:
        body = write_registration(registration, is_compressed=self._options.is_compressed)
        fields = _header(self._broker) | as_fields(
            haServerAddr=registration.ha_address,
            compressed=self._options.is_compressed,
            bodyCrc32=crc_of(body),
            enableActingMaster=False,
        )
        channel.ask(
            RequestCode.REGISTER_BROKER, fields, body, timeout_ms=self._options.timeout_ms
        ).then(self._answered, self._failed)

    def _answered(self, answer: Command) -> None:
        if answer.code == ResponseCode.SUCCESS:
            self.is_registered = True
            fields = answer.ext_fields
            self._on_master(fields.get("masterAddr") or "", fields.get("haServerAddr") or "")
        else:
            _log.warning("name server %s:%s: %s", *self._address, answer.remark)

    def _failed(self, error: Exception) -> None:
        _log.warning("name server %s:%s: %s", *self._address, error)


def _header(broker: Registered) -> dict[str, str]:
    identity = broker.identity()
    return as_fields(
        brokerName=identity.name,
        brokerAddr=identity.address,
        clusterName=identity.cluster,
        brokerId=identity.broker_id,
    )


class Registrar:
    """Registers one broker with all its name servers."""

    def __init__(self, broker: Registered, timers: Timers, options: RegistrarOptions) -> None:
        self.links: list[NameServerLink] = []
        self._broker = broker
        self._timers = timers
        self._options = options
        self._is_stopped = False
        #: tells whether a name server is still to be asked something: then it is asked often
        self.is_searching: Callable[[], bool] = lambda: False

    @property
    def is_registered(self) -> bool:
        """Tell whether any name server lists the broker."""
        return any(link.is_registered for link in self.links)

    def start(self) -> None:
        """Register now and from now on again and again; often until it succeeds once."""
        if self._is_stopped:
            return
        is_registered = self.is_registered
        self.register_all()
        is_done = is_registered and not self.is_searching()
        delay_ms = self._options.interval_ms if is_done else _RETRY_MS
        self._timers.after(delay_ms, self.start)

    def register_all(self) -> None:
        """Say all that the broker serves."""
        topics, version = self._broker.registered_topics()
        self._register({name: self._seen(topic) for name, topic in topics.items()}, version)

    def topic_changed(self, topic: TopicConfig) -> None:
        """Say that one topic is new or other."""
        if not self.is_registered:
            return  # all of them are about to be said
        seen = self._seen(topic)
        is_static = bool(self._broker.registered_mappings([topic.topic_name]))
        if self._broker.registers_topics_alone() and not is_static:
            for link in self.links:
                link.register_topic(seen)
            return
        version = self._broker.registered_topics()[1]
        self._register({topic.topic_name: seen}, version)

    def _seen(self, topic: TopicConfig) -> TopicConfig:
        """Return a topic with what the broker's own permission leaves of its rights."""
        permission = self._broker.permission()
        if permission & PERM_READ and permission & PERM_WRITE:
            return topic
        return attrs.evolve(topic, perm=topic.perm & permission)

    def _register(self, topics: Mapping[str, TopicConfig], version: DataVersion) -> None:
        registration = Registration(
            topics,
            version,
            ha_address=self._broker.ha_address(),
            mappings=self._broker.registered_mappings(topics),
            enables_acting_master=False,
        )
        for link in self.links:
            link.register(registration)

    def find_queues(self, topic: str) -> Later[list[MessageQueue]]:
        """Return the queues of a topic, on all brokers; fails where no name server is there."""
        for link in self.links:
            found = link.find_queues(topic)
            if found is not None:
                return found
        later: Later[list[MessageQueue]] = Later()
        later.fail(LogStoreError("no name server can be reached"))
        return later

    def find_brokers(self) -> Later[dict[str, str]]:
        """Return the addresses of all masters; fails where no name server is there."""
        for link in self.links:
            found = link.find_brokers()
            if found is not None:
                return found
        later: Later[dict[str, str]] = Later()
        later.fail(LogStoreError("no name server can be reached"))
        return later

    def find_route(self, topic: str) -> Later[FoundRoute]:
        """Return the route of a topic; fails where no name server is there."""
        for link in self.links:
            found = link.find_route(topic)
            if found is not None:
                return found
        later: Later[FoundRoute] = Later()
        later.fail(LogStoreError("no name server can be reached"))
        return later

    def stop(self) -> None:
        """Say goodbye to all name servers."""
        self._is_stopped = True
        for link in self.links:
            link.unregister()
