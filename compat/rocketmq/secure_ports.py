"""
TLS at the ports of a name server or broker: ``tls.server.mode``.

A peer who speaks TLS begins with a byte that begins no frame. The connection that finds it ends,
and leaves him to another one with TLS around it; so plain ones cost nothing, and nothing of TLS is
loaded before somebody speaks it. That is what ``permissive`` does, Java's default as well.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from logstore.segments.rocketmq.settings.java_config import ConfigError

if TYPE_CHECKING:
    from logstore.compat.connection import Connection
    from logstore.compat.rocketmq.connection import RemotingConnection
    from logstore.compat.tls import TlsServer

_log = logging.getLogger(__name__)
#: the type of a TLS record with a handshake in it
_HANDSHAKE = b"\x16"
_MODE = "tls.server.mode"
DISABLED, PERMISSIVE, ENFORCING = "disabled", "permissive", "enforcing"


class OptionalTls:
    """What all connections of one service share that may speak TLS, or must."""

    def __init__(
        self,
        settings: Mapping[str, str],
        connect: Callable[[str, int], Connection],
        *,
        is_enforced: bool,
        protocol: str | None = None,
    ) -> None:
        self._settings = settings
        self._connect = connect
        self._protocol = protocol
        #: nobody is served who speaks anything else
        self.is_enforced = is_enforced
        self._server: TlsServer | None = None
        if is_enforced:
            self._server = self._made()

    @classmethod
    def of(
        cls,
        settings: Mapping[str, str],
        connect: Callable[[str, int], Connection],
        *,
        protocol: str | None = None,
    ) -> OptionalTls | None:
        """
        Return what the settings say, None where nobody may speak TLS; `connect` makes connections.

        With a `protocol` peers may ask whether it is spoken within (ALPN), and nobody asks them for
        a certificate, whatever the settings say: that is how Java's proxy does it.

        Raises:
            ConfigError: everybody must, and there is no certificate for it.

        """
        mode = mode_of(settings)
        if mode == DISABLED:
            return None
        return cls(settings, connect, is_enforced=mode == ENFORCING, protocol=protocol)

    def meet(self, connection: RemotingConnection) -> None:
        """Let the peer of a new connection speak TLS."""
        connection.tls = self
        if self.is_enforced:
            connection.refuse_plain()

    def heir(self, host: str, port: int, data: bytes) -> Connection | None:
        """Return who goes on with a peer whose first bytes are `data`, if he begins with TLS."""
        if not data.startswith(_HANDSHAKE):
            return None
        try:
            if self._server is None:
                self._server = self._made()
        except ConfigError as error:
            _log.error("no TLS with %s:%s: %s", host, port, error)
            return None
        secure = self._server.wrap(self._connect(host, port))
        while data:
            target = secure.writable()
            count = min(len(target), len(data))
            target[:count] = data[:count]
            secure.received(count)
            data = data[count:]
        return secure

    def _made(self) -> TlsServer:
        import ssl

        from logstore.compat.rocketmq.tls_settings import tls_context
        from logstore.compat.tls import TlsServer

        context = tls_context(self._settings)
        if self._protocol is not None:
            context.set_alpn_protocols([self._protocol])
            context.verify_mode = ssl.CERT_NONE
        return TlsServer(context)


def mode_of(settings: Mapping[str, str]) -> str:
    """Return who speaks TLS; Java takes a mode that it does not know for permissive."""
    mode = settings.get(_MODE, PERMISSIVE).strip().lower()
    return mode if mode in (DISABLED, ENFORCING) else PERMISSIVE
