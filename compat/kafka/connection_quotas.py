"""
How many connections there may be, and how soon one may follow on another.

Who comes by a listener that is full waits until somebody has left, and where connections come too
fast for broker or listener, until the rate is right again; whoever comes behind waits as well. An
address that has its share is hung up on at once, and one that comes too fast by its quota
(``connection_creation_rate``, KIP-612) when it might have come. Settings count as they stand when
somebody comes. The listener of other brokers is not held to the limits of all.

Source: ``SocketServer.ConnectionQuotas``.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from typing import TYPE_CHECKING

import attrs

from logstore.compat.connection import HeldBackError, TurnedAwayError
from logstore.compat.kafka.configs.address_limits import ADDRESS_LIMITS, address_limits
from logstore.segments.kafka.config_keys import INT_MAX

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.quotas.rate import WindowedRate
    from logstore.compat.kafka.security.listener import Listener

_CONNECTIONS, _RATE = "max.connections", "max.connection.creation.rate"
_OF_ADDRESS = "max.connections.per.ip"
_IP, _IP_RATE = "ip", "connection_creation_rate"
_SECOND_MS = 1000
#: how soon somebody who waits for a place looks again
_LOOK_MS = 10
#: how many addresses' rates are remembered
_ADDRESSES_MAX = 10_000


@attrs.define
class _Present:
    """Who is connected to one node."""

    total: int = 0
    by_listener: Counter[str] = attrs.field(factory=Counter[str])
    by_address: Counter[str] = attrs.field(factory=Counter[str])


class ConnectionQuotas:
    """Lets clients of a broker in, or not; times are those of its clock."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._present: dict[int, _Present] = {}
        self._rates: dict[tuple[int, str, str], WindowedRate] = {}
        #: until when somebody waits whose coming was counted already
        self._held_until_ms: dict[tuple[str, int], float] = {}

    def admit(self, listener: Listener, host: str, port: int) -> None:
        """
        Count one more connection.

        Raises:
            HeldBackError: it has to wait, and is to be asked for again.
            TurnedAwayError: it is not let in.

        """
        node_id = self._broker.nodes.node_of(listener).node_id
        present = self._present.setdefault(node_id, _Present())
        self._wait_for_place(node_id, present, listener, (host, port))
        self._limit_rate_of_address(node_id, listener, host)
        address_max = self._address_max(host)
        if present.by_address[host] >= address_max:
            raise TurnedAwayError(
                0.0, f"{host} has {address_max} connections, and may not have more"
            )
        present.total += 1
        present.by_listener[listener.name] += 1
        present.by_address[host] += 1

    def left(self, client: Client) -> None:
        """Count one connection less."""
        present = self._present.get(self._broker.nodes.node_of(client.listener).node_id)
        if present is None or not present.by_address[client.host]:
            return  # it was made without a socket
        present.total -= 1
        present.by_listener[client.listener.name] -= 1
        present.by_address[client.host] -= 1
        if not present.by_address[client.host]:
            del present.by_address[client.host]

    def _wait_for_place(
        self, node_id: int, present: _Present, listener: Listener, peer: tuple[str, int]
    ) -> None:
        now_ms = self._broker.timers.clock.monotonic_ms()
        until_ms = self._held_until_ms.pop(peer, None)
        if until_ms is None:
            until_ms = now_ms + self._note_coming(node_id, listener)
        if until_ms > now_ms:
            self._held_until_ms[peer] = until_ms
            raise HeldBackError(until_ms - now_ms)
        if not self._has_place(present, listener):
            self._held_until_ms[peer] = until_ms
            raise HeldBackError(_LOOK_MS)

    def _has_place(self, present: _Present, listener: Listener) -> bool:
        if present.by_listener[listener.name] >= self._limit(_CONNECTIONS, listener.name):
            return False
        return self._is_of_brokers(listener) or present.total < self._limit(_CONNECTIONS)

    def _note_coming(self, node_id: int, listener: Listener) -> float:
        """Count somebody who comes; return for how many ms he has to wait."""
        return max(
            self._record(key, self._limit(_RATE, key[2])) for key in self._places(node_id, listener)
        )

    def _places(self, node_id: int, listener: Listener) -> list[tuple[int, str, str]]:
        """Return where somebody counts who comes by a listener: there, and in the broker."""
        names = [listener.name] if self._is_of_brokers(listener) else ["", listener.name]
        return [(node_id, "listener", name) for name in names]

    def _limit_rate_of_address(self, node_id: int, listener: Listener, host: str) -> None:
        quotas = self._broker.store.metadata.image.client_quotas
        if not quotas:
            return
        limits = quotas.get(((_IP, host),), {})
        rate = limits.get(_IP_RATE, quotas.get(((_IP, None),), {}).get(_IP_RATE))
        if rate is None or int(rate) == INT_MAX:
            return
        key = (node_id, _IP, host)
        delay_ms = self._record(key, int(rate))
        if delay_ms > 0:  # it does not come, for anybody
            now_ms = int(self._broker.timers.clock.monotonic_ms())
            for one in (key, *self._places(node_id, listener)):
                if one in self._rates:
                    self._rates[one].record(-1, now_ms)
            raise TurnedAwayError(delay_ms, f"{host} connects more than {int(rate)} times a second")

    def _record(self, key: tuple[int, str, str], limit: int) -> float:
        """Count somebody who comes against a limit; return by how many ms that was too soon."""
        if limit == INT_MAX:
            return 0.0
        from logstore.compat.kafka.quotas.rate import Window, WindowedRate

        config = self._broker.dynamic_config
        window_ms = config.integer("quota.window.size.seconds") * _SECOND_MS
        if key not in self._rates:
            if len(self._rates) >= _ADDRESSES_MAX:
                self._rates.clear()
            window = Window(config.integer("quota.window.num"), window_ms)
            self._rates[key] = WindowedRate(window)
        now_ms = int(self._broker.timers.clock.monotonic_ms())
        self._rates[key].record(1, now_ms)
        return (
            min(self._rates[key].throttle_ms(limit, now_ms), window_ms) if limit > 0 else window_ms
        )

    def _is_of_brokers(self, listener: Listener) -> bool:
        """Tell whether the other brokers come by a listener, and clients by another."""
        config = self._broker.dynamic_config
        name = config.value_of("inter.broker.listener.name")
        if name is None:
            name = config.value_of("security.inter.broker.protocol")
        return listener.name == name and len(self._broker.nodes.node_of(listener).listeners) > 1

    def _limit(self, name: str, listener_name: str = "") -> int:
        """Return a limit of the broker, or of a listener, which has the broker's if not its own."""
        config = self._broker.dynamic_config
        own = f"listener.name.{listener_name.lower()}.{name}"
        for layer in (config.of_broker, config.of_cluster, config.static):
            if listener_name and own in layer:
                return int(layer[own])
        return config.integer(name)

    def _address_max(self, host: str) -> int:
        config = self._broker.dynamic_config
        for address, count in address_limits(config.value_of(ADDRESS_LIMITS) or "").items():
            if _is_same(address, host):
                return count
        return config.integer(_OF_ADDRESS)


def _is_same(address: str, host: str) -> bool:
    """Tell whether a setting means an address; names are not looked up, but for ``localhost``."""
    if address == "localhost":
        return host in {"127.0.0.1", "::1"}
    try:
        return ipaddress.ip_address(address) == ipaddress.ip_address(host)
    except ValueError:
        return address == host
