"""
The listeners of a broker as its settings describe them: what is between their sockets and requests.

Only a broker that has more than one plain listener needs any of this, and imports it.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, overload

from logstore.compat.kafka.security.end_points import (
    ADVERTISED,
    LISTENERS,
    EndPoint,
    check_advertised,
    end_points,
)
from logstore.compat.kafka.security.listener import Listener
from logstore.compat.kafka.security.listener_settings import ListenerSettings
from logstore.compat.kafka.security.principal import USER, Principal
from logstore.segments.kafka.config_keys import ConfigError

if TYPE_CHECKING:
    from logstore.compat.connection import Connection
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.security.principal_mapping import Rule
    from logstore.compat.kafka.security.sasl.sasl_config import SaslConfig
    from logstore.compat.tls import TlsServer

_EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104 - it is where the user listens
_HOME = "127.0.0.1"


class OpenedListener:
    """
    One listener: where it is, what clients are told, and the connections of who comes in by it.

    Raises:
        ConfigError: its settings are not enough, or not allowed.

    """

    def __init__(self, broker: Broker, point: EndPoint, advertised: EndPoint | None) -> None:
        self.point = point
        protocol = point.protocol
        self.listener = Listener(point.name, str(protocol))
        self._broker = broker
        self._advertised = advertised
        settings = ListenerSettings(broker.config.given.settings, point.name)
        self._tls: TlsServer | None = None
        self._sasl: SaslConfig | None = None
        self._rules: list[Rule] = []
        if protocol.has_tls:
            self._tls = _tls_server(settings, has_sasl=protocol.has_sasl)
        if protocol.has_sasl:
            from logstore.compat.kafka.security.sasl.sasl_config import SaslConfig

            self._sasl = SaslConfig.of(broker, settings)
        elif protocol.has_tls:
            self._rules = _rules(settings)

    def connect(self, peer_host: str, peer_port: int = 0) -> Connection:
        """Return the sans-IO side of a new connection."""
        self._broker.connection_quotas.admit(self.listener, peer_host, peer_port)
        connection = self._broker.make_connection(self._broker, peer_host)
        client = connection.client
        client.listener = self.listener
        if self._sasl is not None:
            from logstore.compat.kafka.security.sasl.authentication import Authentication

            client.authentication = Authentication(connection, self._sasl)
        if self._tls is None:
            return connection
        if self._sasl is not None:
            return self._tls.wrap(connection)
        return self._tls.wrap(connection, lambda tls: self._know(client, tls))

    def _know(self, client: Client, tls: ssl.SSLObject) -> None:
        """Note who the certificate of a client says that it is, if it has one."""
        certificate = tls.getpeercert(binary_form=True)
        if certificate:
            from logstore.compat.kafka.security.distinguished_name import subject_of
            from logstore.compat.kafka.security.principal_mapping import mapped

            client.principal = Principal(USER, mapped(self._rules, subject_of(certificate)))

    def advertise(self, host: str, port: int) -> None:
        """Tell clients an address: the one that is advertised, or else this one, listened at."""
        self.listener.port = port
        told = self._advertised
        self.listener.advertised_host = (
            told.host if told is not None else _HOME if host in _EVERYWHERE else host
        )
        self.listener.advertised_port = (told.port if told is not None else 0) or port


def open_listeners(
    broker: Broker, points: Iterable[EndPoint], settings: Mapping[str, str]
) -> list[OpenedListener]:
    """
    Ready a broker for clients at several listeners, or at one that is not plain.

    Raises:
        ConfigError: the settings are not enough, or not allowed.

    """
    listened = list(points)
    told = _advertised(listened, settings)
    opened = [OpenedListener(broker, point, told.get(point.name)) for point in listened]
    broker.listeners[:] = [one.listener for one in opened]
    broker.listener = broker.listeners[0]
    return opened


def open_node_listeners(
    broker: Broker, points: Iterable[EndPoint], settings: Mapping[str, str]
) -> list[OpenedListener]:
    """
    Ready the other nodes of a cluster for clients at listeners of the same kinds.

    The ports of each node come behind those of the one before: with three listeners they are three
    further on, where it listens and where clients are told that it does. Port 0 is a free one.

    Raises:
        ConfigError: the settings are not enough, or not allowed.

    """
    listened = list(points)
    told = _advertised(listened, settings)
    found: list[OpenedListener] = []
    others = [one for one in broker.nodes.by_id.values() if one.node_id != broker.node_id]
    for number, node in enumerate(others, start=1):
        step = number * len(listened)
        opened = [
            OpenedListener(broker, _further(point, step), _further(told.get(point.name), step))
            for point in listened
        ]
        node.listeners[:] = [one.listener for one in opened]
        found += opened
    return found


@overload
def _further(point: EndPoint, step: int) -> EndPoint: ...
@overload
def _further(point: EndPoint | None, step: int) -> EndPoint | None: ...
def _further(point: EndPoint | None, step: int) -> EndPoint | None:
    """Return the end point with a port that is so many further on, if it names one."""
    if point is None or not point.port:
        return point
    return point._replace(port=point.port + step)


def _advertised(listened: list[EndPoint], settings: Mapping[str, str]) -> dict[str, EndPoint]:
    advertised = end_points(settings, ADVERTISED)
    check_advertised(listened, advertised, settings.get(ADVERTISED, ""))
    return {point.name: point for point in advertised}


def listened_at(settings: Mapping[str, str]) -> list[EndPoint]:
    """Return where the settings say that the broker listens. Raises ConfigError."""
    points = end_points(settings, LISTENERS)
    if not points and settings.get(LISTENERS, "").strip():
        raise ConfigError(
            LISTENERS, settings[LISTENERS], "must have a listener that is not the controller's"
        )
    return points


def _tls_server(settings: ListenerSettings, *, has_sasl: bool) -> TlsServer:
    from logstore.compat.kafka.security.tls_settings import tls_context
    from logstore.compat.tls import TlsServer

    return TlsServer(tls_context(settings, has_sasl=has_sasl))


def _rules(settings: ListenerSettings) -> list[Rule]:
    from logstore.compat.kafka.security.principal_mapping import MappingError, parse_rules

    key = "ssl.principal.mapping.rules"
    try:
        return parse_rules(settings.text(key) or "")
    except MappingError as error:
        raise settings.refusal(key, str(error)) from None
