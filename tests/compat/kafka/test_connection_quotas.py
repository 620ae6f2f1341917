"""Who is let in, who has to wait and who is turned away, by a clock that is turned by hand."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from logstore.compat.connection import HeldBackError, TurnedAwayError
from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.connection import KafkaConnection
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.compat.kafka.security.listener import Listener
from logstore.segments.kafka.cluster_metadata.access_records import ClientQuotaRecord
from logstore.segments.kafka.config_keys import ConfigError
from logstore.testing.simulated_host import SimulatedHost

HOST, OTHER = "127.0.0.1", "127.0.0.2"


class Door:
    """A broker, its clock, and people who come."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        host = SimulatedHost()
        self.clock = host.clock
        self.broker = Broker.open(host, "/data", settings)
        self._port = 1000

    def come(self, host: str = HOST, listener: Listener | None = None) -> KafkaConnection:
        """Let somebody come by a socket of his own."""
        self._port += 1
        return self.come_again(host, self._port, listener)

    def come_again(self, host: str, port: int, listener: Listener | None = None) -> KafkaConnection:
        """Let him come who was told to wait."""
        if listener is None:
            return self.broker.connect(host, port)
        self.broker.connection_quotas.admit(listener, host, port)
        connection = self.broker.make_connection(self.broker, host)
        connection.client.listener = listener
        return connection

    def limit_address(self, host: str | None, rate: float | None) -> None:
        """Say how often an address may connect a second, or all that have no limit."""
        entity = (("ip", host),)
        record = ClientQuotaRecord(
            entity, "connection_creation_rate", rate or 0.0, remove=rate is None
        )
        self.broker.change_client_quotas([record])


def test_without_limits_everybody_comes_in() -> None:
    """As many as there are, as fast as they come."""
    door = Door({})
    assert len([door.come() for _ in range(1000)]) == 1000


def test_an_address_may_have_so_many_connections() -> None:
    """Its next one is hung up on at once; others come in, and so does it when one has left."""
    door = Door(
        {"max.connections.per.ip": "2", "max.connections.per.ip.overrides": f"{OTHER}:1, ::1:0"}
    )
    first = door.come()
    door.come()
    with pytest.raises(TurnedAwayError, match=f"{HOST} has 2 connections") as refusal:
        door.come()
    assert refusal.value.delay_ms == 0
    door.come(OTHER)
    for host in (OTHER, "::1"):
        with pytest.raises(TurnedAwayError):
            door.come(host)
    first.lost()
    door.come()
    with pytest.raises(TurnedAwayError):
        door.come()


def test_who_comes_to_a_full_broker_waits() -> None:
    """Until somebody leaves, or the limit is raised."""
    door = Door({"max.connections": "2"})
    first = door.come()
    door.come(OTHER)
    for _ in range(3):
        with pytest.raises(HeldBackError) as held:
            door.come_again(HOST, 7)
        assert 0 < held.value.delay_ms < 1000
    first.lost()
    door.come_again(HOST, 7)
    with pytest.raises(HeldBackError):
        door.come_again(HOST, 8)
    config = door.broker.dynamic_config
    config.replace({**config.of_cluster, "max.connections": "3"}, is_cluster_wide=True)
    door.come_again(HOST, 8)


def test_a_listener_has_limits_of_its_own() -> None:
    """It may have fewer than the broker; that of the other brokers may be beyond the broker's."""
    door = Door({"max.connections": "3", "listener.name.clients.max.connections": "1"})
    clients, brokers = Listener("CLIENTS"), Listener("PLAINTEXT")
    door.broker.listeners[:] = [clients, brokers]
    door.come(listener=clients)
    with pytest.raises(HeldBackError):
        door.come(listener=clients)
    for _ in range(3):
        door.come(listener=brokers)
    with pytest.raises(HeldBackError):
        door.come(listener=brokers)  # its own limit is what the broker's is


def test_who_comes_too_fast_waits_for_the_rate_to_be_right() -> None:
    """And is counted once, however often he asks."""
    door = Door(
        {
            "max.connection.creation.rate": "10",
            "quota.window.num": "2",
            "quota.window.size.seconds": "1",
        }
    )
    for _ in range(10):
        door.come()
    with pytest.raises(HeldBackError) as held:
        door.come_again(HOST, 7)
    assert held.value.delay_ms == pytest.approx(100, abs=1)
    door.clock.advance(60)
    with pytest.raises(HeldBackError) as held:
        door.come_again(HOST, 7)
    assert held.value.delay_ms == pytest.approx(40, abs=1)
    door.clock.advance(40)
    door.come_again(HOST, 7)
    door.clock.advance(5_000)
    door.come()


def test_an_address_that_comes_too_fast_is_hung_up_on_later() -> None:
    """By its own quota, or that of all addresses; it does not count against anybody's rate."""
    door = Door(
        {
            "max.connection.creation.rate": "100",
            "quota.window.num": "2",
            "quota.window.size.seconds": "1",
        }
    )
    door.limit_address(HOST, 2.0)
    door.limit_address(None, 5.0)
    for host, count in ((HOST, 2), (OTHER, 5)):
        for _ in range(count):
            door.come(host)
        for _ in range(200):
            with pytest.raises(TurnedAwayError, match="times a second") as refusal:
                door.come(host)
            assert 0 < refusal.value.delay_ms <= 1_000
    door.limit_address(HOST, None)
    door.come(HOST)
    door.clock.advance(3_000)
    door.come(OTHER)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("oops", "length 4"),
        ("127.0.0.1:x", 'input string: "x"'),
        ("127.0.0.1:2,127.0.0.2", "length 9"),
    ],
)
def test_overrides_that_cannot_be_read_are_refused(text: str, words: str) -> None:
    """As by Kafka, and while the broker runs, too."""
    with pytest.raises(ConfigError, match=words):
        Door({"max.connections.per.ip.overrides": text})
    config = Door({}).broker.dynamic_config
    with pytest.raises(RefusedRequestError, match=words):
        config.replace({"max.connections.per.ip.overrides": text}, is_cluster_wide=False)
