"""
Where ``server.properties`` says that a broker listens, by which protocol, and what it is called.

::

    listeners=PLAINTEXT://:9092,INSIDE://10.0.0.1:9093,CONTROLLER://:9094
    listener.security.protocol.map=PLAINTEXT:PLAINTEXT,INSIDE:SASL_SSL,CONTROLLER:PLAINTEXT
    advertised.listeners=PLAINTEXT://broker.example:9092,INSIDE://10.0.0.1:9093

Listeners of the controller are nobody's here. Source: ``AbstractKafkaConfig``, ``EndPoint``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from logstore.segments.kafka.broker_config import BROKER_CONFIG_KEYS
from logstore.segments.kafka.config_keys import ConfigError

LISTENERS, ADVERTISED, PROTOCOL_MAP = (
    "listeners",
    "advertised.listeners",
    "listener.security.protocol.map",
)
_END_POINT = re.compile(r"([A-Za-z0-9_.-]+)://\[?([^,\]]*?)\]?:(-?\d+)")
_PORT_MAX = 65535


class SecurityProtocol(StrEnum):
    """What is between a socket and the requests."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def has_tls(self) -> bool:
        """Tell whether bytes are encrypted."""
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def has_sasl(self) -> bool:
        """Tell whether clients say who they are by SASL."""
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


class EndPoint(NamedTuple):
    """One listener: its name in capitals, and an address; without a host all of the machine."""

    name: str
    protocol: SecurityProtocol
    host: str
    port: int


def end_points(settings: Mapping[str, str], key: str) -> list[EndPoint]:
    """
    Return what `key` (``listeners``, ``advertised.listeners``) names; nothing if it is not given.

    Raises:
        ConfigError: it cannot be read, or names a listener twice or one without a protocol.

    """
    text = settings.get(key, "").strip()
    if not text:
        return []
    protocols = _protocols(settings)
    controllers = _names(settings, "controller.listener.names").upper().split(",")
    found: list[EndPoint] = []
    for part in text.split(","):
        match = _END_POINT.fullmatch(part.strip())
        if match is None or not 0 <= int(match[3]) <= _PORT_MAX:
            raise ConfigError(key, text, "must be a list of NAME://HOST:PORT")
        name = match[1].upper()
        if name in map(str.strip, controllers):
            continue
        if any(other.name == name for other in found):
            raise ConfigError(key, text, f"must name each listener once; {name} is there twice")
        protocol = protocols.get(name)
        if protocol is None:
            raise ConfigError(key, text, f"{name} must have a protocol in {PROTOCOL_MAP}")
        found.append(EndPoint(name, protocol, match[2], int(match[3])))
    return found


def _protocols(settings: Mapping[str, str]) -> dict[str, SecurityProtocol]:
    """Return the protocol of each name; of Kafka's own names where nothing is said."""
    text = _names(settings, PROTOCOL_MAP)
    found: dict[str, SecurityProtocol] = {}
    for part in text.split(","):
        name, separator, protocol = (piece.strip().upper() for piece in part.partition(":"))
        if not part.strip():
            continue
        if not separator or protocol not in SecurityProtocol.__members__:
            raise ConfigError(
                PROTOCOL_MAP, text, f"must be a list of NAME:{'|'.join(SecurityProtocol)}"
            )
        found[name] = SecurityProtocol(protocol)
    return found


def _names(settings: Mapping[str, str], key: str) -> str:
    return settings.get(key, BROKER_CONFIG_KEYS[key].default or "")


def check_advertised(listened: list[EndPoint], advertised: list[EndPoint], text: str) -> None:
    """Refuse an advertised address of a listener that there is not."""
    strangers = {point.name for point in advertised} - {point.name for point in listened}
    if strangers and listened:
        raise ConfigError(
            ADVERTISED, text, f"must name listeners of {LISTENERS}; {min(strangers)} is none"
        )
