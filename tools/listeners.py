"""
Where ``server.properties`` says that a broker listens, and what it is called there.

Only plain text is served: of several listeners the first one with the protocol PLAINTEXT counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from logstore.segments.kafka.config_keys import ConfigError

_LISTENER = re.compile(r"([A-Za-z0-9_.-]+)://\[?([^,\]]*?)\]?:(-?\d+)")
_PLAINTEXT = "PLAINTEXT"
_PORT_MAX = 65535


class Listener(NamedTuple):
    """An address; without a host it is every address of the machine."""

    host: str
    port: int

    @property
    def text(self) -> str:
        """``host:port``, as clients take it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def find_listener(settings: Mapping[str, str], key: str) -> Listener | None:
    """
    Return what `key` (``listeners``, ``advertised.listeners``) names; None where it is not given.

    Raises:
        ConfigError: it cannot be read, or has no listener in plain text.

    """
    text = settings.get(key, "").strip()
    if not text:
        return None
    protocols = _protocols(settings.get("listener.security.protocol.map", ""))
    for part in text.split(","):
        match = _LISTENER.fullmatch(part.strip())
        if match is None or not 0 <= int(match[3]) <= _PORT_MAX:
            raise ConfigError(key, text, "must be a list of NAME://HOST:PORT")
        name = match[1].upper()
        if protocols.get(name, name) == _PLAINTEXT:
            return Listener(match[2], int(match[3]))
    raise ConfigError(key, text, "must have a PLAINTEXT listener; no other protocol is served")


def _protocols(text: str) -> dict[str, str]:
    pairs = (part.partition(":") for part in text.split(",") if ":" in part)
    return {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs}
