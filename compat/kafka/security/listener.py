"""One listener of a broker that runs: what clients who come in by it are told of the address."""

from __future__ import annotations

import attrs

PLAINTEXT = "PLAINTEXT"
SSL = "SSL"


@attrs.define(eq=False)
class Listener:
    """Its name, its security protocol, the address that clients are told, and its own port."""

    name: str = PLAINTEXT
    protocol: str = PLAINTEXT
    advertised_host: str = "127.0.0.1"
    advertised_port: int = 0
    #: where it listens, once it does
    port: int = 0

    @property
    def address(self) -> str:
        """``host:port``, as clients take it."""
        host = self.advertised_host
        return f"{f'[{host}]' if ':' in host else host}:{self.advertised_port}"
