"""
Tokens that somebody has signed whose keys are known (JWS, RFC 7515): what an OIDC provider issues.

``base64url(header) . base64url(claims) . base64url(signature)``; settings of the listener say what
the claims must be::

    sasl.oauthbearer.expected.audience     aud is one of these; without them there must be no aud
    sasl.oauthbearer.expected.issuer       iss is this one; whatever it is without
    sasl.oauthbearer.sub.claim.name        who the client is (sub)
    sasl.oauthbearer.scope.claim.name      what it may do, which nobody looks at but for its form
    sasl.oauthbearer.clock.skew.seconds    how far clocks may differ

There must be an end (exp) and a beginning (iat). Source: ``BrokerJwtValidator``, jose4j's
``JwtConsumer``.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from logstore.compat.kafka.security.sasl.exchange import Identity
from logstore.compat.kafka.security.sasl.jwks import UnknownKeyError
from logstore.compat.kafka.security.sasl.unsecured_token import TokenError

#: returns what is signed, once the signature is seen to be right; raises UnknownKeyError
Verify = Callable[[str], bytes]
_PARTS = 3
#: what must be text, if it is there, whether anybody looks at it or not
_TEXTS = ("iss", "sub", "jti")


class SignedTokenRules(NamedTuple):
    """What the claims of a token must be."""

    audiences: frozenset[str] = frozenset()
    issuer: str | None = None
    scope_claim: str = "scope"
    subject_claim: str = "sub"
    clock_skew_ms: int = 30_000

    def identity(self, token: str, verify: Verify, now_ms: float) -> Identity:
        """
        Return who a token is of.

        Raises:
            TokenError: it is not accepted.

        """
        if len(token.split(".")) != _PARTS or not all(token.split(".")):
            raise TokenError("a token has three parts with dots between them")
        try:
            verify(token)
        except UnknownKeyError as error:
            raise TokenError(str(error)) from error
        claims = _decoded(token.split(".")[1])
        for claim in _TEXTS:
            if not isinstance(claims.get(claim), str | None):
                raise TokenError(f"{claim} is no text")
        expiry_ms = self._check_times(claims, now_ms)
        self._check_audience(claims.get("aud"))
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise TokenError(f"the issuer is not {self.issuer}")
        _check_scope(claims.get(self.scope_claim))
        name = claims.get(self.subject_claim)
        if not isinstance(name, str) or not name.strip():
            raise TokenError(f"there is no subject in {self.subject_claim}")
        return Identity(name.strip(), expiry_ms)

    def _check_times(self, claims: Mapping[str, Any], now_ms: float) -> int:
        """Return the end of a token that has begun and has not ended."""
        expiry, issued, begin = (_seconds(claims, name) for name in ("exp", "iat", "nbf"))
        if expiry is None or issued is None:
            raise TokenError("there must be exp and iat")
        if now_ms - self.clock_skew_ms >= expiry * 1000:
            raise TokenError("it has expired")
        if expiry < issued or (begin is not None and expiry < begin):
            raise TokenError("it expired before it was issued")
        if begin is not None and now_ms + self.clock_skew_ms < begin * 1000:
            raise TokenError("it does not hold yet")
        return expiry * 1000

    def _check_audience(self, audience: object) -> None:
        found = cast("list[object]", audience) if isinstance(audience, list) else [audience]
        if self.audiences:
            if not self.audiences & {one for one in found if isinstance(one, str)}:
                raise TokenError("it is for somebody else")
        elif audience is not None:
            raise TokenError("it is for somebody, and nobody is expected here")


def _seconds(claims: Mapping[str, Any], name: str) -> int | None:
    value = _number(claims, name)
    if value is not None and value < 0:
        raise TokenError(f"{name} is negative")
    return None if value is None else int(value)


def _check_scope(scope: object) -> None:
    scopes = cast("list[object]", scope) if isinstance(scope, list) else [scope]
    if not isinstance(scope, str | list):
        return  # as if there was none
    texts = [one.strip() if isinstance(one, str) else "" for one in scopes]
    if not all(texts) or len(set(texts)) < len(texts):
        raise TokenError("a scope is empty or comes twice")


def _decoded(part: str) -> Mapping[str, Any]:
    """Return the JSON object in one part of a token. Raises TokenError."""
    try:
        padded = part + "=" * (-len(part) % 4)
        found = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        raise TokenError("a part is no base64url of JSON") from None
    if not isinstance(found, dict):
        raise TokenError("a part is no JSON object")
    return cast("dict[str, Any]", found)


def _number(claims: Mapping[str, Any], name: str) -> float | None:
    """Return a claim that is a time; None where it is not there. Raises TokenError."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e15:
        raise TokenError(f"{name} is no number of seconds")
    return value
