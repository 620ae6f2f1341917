"""
OAUTHBEARER: a token that says who the client is (RFC 7628).

The client's token is ``n,[a=authzid],^Aauth=Bearer <token>[^Akey=value...]^A^A`` with ^A for the
byte 1. One that is not accepted is answered with JSON that says why; when the client has
acknowledged that by a single ^A the authentication has failed.
Source: ``OAuthBearerSaslServer``, ``OAuthBearerClientInitialResponse``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from logstore.compat.kafka.security.sasl.exchange import (
    Identity,
    SaslAuthenticationError,
    SaslError,
    StumbledError,
)
from logstore.compat.kafka.security.sasl.unsecured_token import TokenError

OAUTHBEARER = "OAUTHBEARER"
_SASL_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PAIRS = r"(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*"
_FIRST = re.compile(rf"n,(?:a=(?P<authzid>{_SASL_NAME}))?,\x01(?P<pairs>{_PAIRS})\x01")
_AUTH = re.compile(r"(?P<scheme>[a-zA-Z_0-9]+) +(?P<token>[-_~+/.a-zA-Z0-9]+(?:=*))")
_ACKNOWLEDGED = b"\x01"

#: returns who a token is of; raises TokenError
ReadToken = Callable[[str], Identity]


class OAuthBearerExchange:
    """One token, or one that is refused and its acknowledgement."""

    def __init__(self, read_token: ReadToken) -> None:
        self._read_token = read_token
        self._refusal = ""
        self.identity: Identity | None = None

    def evaluate(self, token: bytes) -> bytes:
        """Check the bearer token in the client's token."""
        if token == _ACKNOWLEDGED and self._refusal:
            raise SaslAuthenticationError(self._refusal)
        self._refusal = ""
        match = _FIRST.fullmatch(token.decode(errors="replace"))
        if match is None:
            raise SaslError("the client's first message is none of OAUTHBEARER")
        pairs = dict(pair.split("=", 1) for pair in match["pairs"].split("\1") if pair)
        auth = _AUTH.fullmatch(pairs.get("auth", ""))
        if auth is None:
            raise SaslError("the client's first message has no bearer token")
        if auth["scheme"].lower() != "bearer":
            raise StumbledError(f"the client comes with {auth['scheme']}")
        try:
            identity = self._read_token(auth["token"])
        except TokenError as error:
            self._refusal = _as_json(error)
            return self._refusal.encode()
        if match["authzid"] not in (None, identity.name):
            raise SaslAuthenticationError(
                "Authentication failed: Client requested an authorization id "
                f"({match['authzid']}) that is different from the token's principal name "
                f"({identity.name})"
            )
        self.identity = identity
        return b""


def _as_json(error: TokenError) -> str:
    scope = "" if error.scope is None else f', "scope":"{error.scope}"'
    return f'{{"status":"{error.status}"{scope}}}'
