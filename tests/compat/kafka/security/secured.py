"""A broker with a SASL listener, over connections without a socket."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.connection import KafkaConnection
from logstore.compat.kafka.security.opening import OpenedListener, listened_at, open_listeners
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.conversation import DIRECTORY, joined
from tests.compat.kafka.peer import Peer

LOGIN = "org.apache.kafka.common.security"
PREFIX = "listener.name.sasl_plaintext."
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://:0",
    f"{PREFIX}sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER",
    f"{PREFIX}plain.sasl.jaas.config": f"{LOGIN}.plain.PlainLoginModule required "
    'user_alice="secret" user_bob="hidden";',
    f"{PREFIX}scram-sha-256.sasl.jaas.config": f"{LOGIN}.scram.ScramLoginModule required;",
    f"{PREFIX}oauthbearer.sasl.jaas.config": f"{LOGIN}.oauthbearer.OAuthBearerLoginModule "
    "required;",
}
RIGHT, WRONG = b"\0alice\0secret", b"\0alice\0Secret"


class Secured:
    """A broker whose clients must say who they are."""

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self.host = SimulatedHost(clock=ManualClock())
        given = {**SETTINGS, **(settings or {})}
        self.broker = Broker.open(self.host, DIRECTORY, given)
        self.opened: list[OpenedListener] = open_listeners(self.broker, listened_at(given), given)
        for number, one in enumerate(self.opened):
            one.advertise("127.0.0.1", 9000 + number)

    def peer(self, listener: int = 0) -> SaslPeer:
        """Connect."""
        return SaslPeer(self, listener)

    def pass_time(self, duration_ms: int) -> None:
        """Let time go by, with all that is due."""
        self.host.clock.advance(duration_ms)
        self.broker.timers.run()


class SaslPeer(Peer):
    """A client of one listener."""

    def __init__(self, secured: Secured, listener: int = 0) -> None:
        super().__init__(secured.broker)
        found = secured.opened[listener].connect("127.0.0.1", 1)
        assert isinstance(found, KafkaConnection)
        self.connection = found

    def handshake(self, mechanism: str, version: int = 1) -> dict[str, Any]:
        """Name a mechanism."""
        return self.ask("SaslHandshake", version, {"mechanism": mechanism}).message

    def token(self, token: bytes, version: int = 2) -> dict[str, Any]:
        """Send a token."""
        return self.ask("SaslAuthenticate", version, {"auth_bytes": token}).message

    def send_token(self, token: bytes) -> Self:
        """Send a token whose answer does not come at once."""
        return self.send("SaslAuthenticate", 2, {"auth_bytes": token})

    def raw(self, data: bytes) -> bytes:
        """Send a frame as it is."""
        return joined(self.connection.feed(len(data).to_bytes(4, "big") + data))

    def log_in(self, token: bytes = RIGHT) -> Self:
        """Authenticate by PLAIN."""
        self.handshake("PLAIN")
        assert self.token(token)["error_code"] == 0
        return self

    @property
    def is_hung_up_on(self) -> bool:
        """Tell whether the connection has ended."""
        return self.connection.is_closing

    @property
    def name(self) -> str:
        """The client's principal."""
        return str(self.connection.client.principal)
