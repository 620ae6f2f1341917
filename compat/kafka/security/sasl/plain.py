"""
PLAIN: name and password as they are, ``[authzid] NUL authcid NUL passwd`` (RFC 4616).

Users stand in the JAAS configuration, each as an option ``user_<name>="<password>"``.
Source: ``PlainSaslServer``, ``PlainServerCallbackHandler``.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from logstore.compat.kafka.security.sasl.exchange import Identity, SaslAuthenticationError

PLAIN = "PLAIN"
_USER_PREFIX = "user_"


class PlainExchange:
    """One token, and all is said."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options
        self.identity: Identity | None = None

    def evaluate(self, token: bytes) -> bytes:
        """Check the name and password in the token."""
        parts = token.decode(errors="replace").split("\0", 3)
        if len(parts) != 3:
            raise SaslAuthenticationError(
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}"
            )
        authorization_id, name, password = parts
        for what, text in (("username", name), ("password", password)):
            if not text:
                raise SaslAuthenticationError(f"Authentication failed: {what} not specified")
        expected = self._options.get(_USER_PREFIX + name)
        if expected is None or not hmac.compare_digest(expected.encode(), password.encode()):
            raise SaslAuthenticationError("Authentication failed: Invalid username or password")
        if authorization_id not in ("", name):
            raise SaslAuthenticationError(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        self.identity = Identity(name)
        return b""
