"""
Tokens that nobody has signed, which are what Kafka takes without further settings: for tests only.

``base64url({"alg":"none"}) . base64url({"sub":"alice","exp":1700000000}) .``; options of the JAAS
configuration say which claims are asked for::

    unsecuredValidatorPrincipalClaimName="sub"   unsecuredValidatorScopeClaimName="scope"
    unsecuredValidatorRequiredScope="a b"        unsecuredValidatorAllowableClockSkewMs="3000"

Source: ``OAuthBearerUnsecuredValidatorCallbackHandler``, ``OAuthBearerUnsecuredJws``.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from logstore.compat.kafka.security.sasl.exchange import Identity
from logstore.errors import LogStoreError

_PARTS = 3


class TokenError(LogStoreError):
    """A token is not accepted: the status that the client is told, and the scope it lacks."""

    def __init__(self, reason: str, scope: str | None = None) -> None:
        super().__init__(reason)
        self.status = "invalid_token" if scope is None else "insufficient_scope"
        self.scope = scope


class TokenRules(NamedTuple):
    """Which claims a token must have."""

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: tuple[str, ...] = ()
    clock_skew_ms: int = 0

    @classmethod
    def of(cls, options: Mapping[str, str]) -> TokenRules:
        """
        Return the rules of a JAAS configuration.

        Raises:
            ValueError: the clock skew is no number, or negative.

        """

        def option(name: str) -> str:
            return options.get(f"unsecuredValidator{name}", "").strip()

        skew_ms = int(option("AllowableClockSkewMs") or 0)
        if skew_ms < 0:
            raise ValueError("the allowable clock skew must not be negative")
        return cls(
            option("PrincipalClaimName") or "sub",
            option("ScopeClaimName") or "scope",
            tuple(option("RequiredScope").split()),
            skew_ms,
        )

    def identity(self, token: str, now_ms: float) -> Identity:
        """
        Return who a token is of.

        Raises:
            TokenError: it is not accepted.

        """
        claims = _claims(token)
        expiry = number(claims, "exp")
        issued = number(claims, "iat")
        if expiry is None:
            raise TokenError("there is no expiration time")
        name = claims.get(self.principal_claim)
        if not isinstance(name, str) or not name.strip():
            raise TokenError(f"there is no principal in {self.principal_claim}")
        if issued is not None and issued * 1000 > now_ms + self.clock_skew_ms:
            raise TokenError("it was issued in the future")
        if now_ms - self.clock_skew_ms >= expiry * 1000:
            raise TokenError("it has expired")
        if issued is not None and expiry <= issued:
            raise TokenError("it expired before it was issued")
        scope = _scope(claims.get(self.scope_claim))
        if not set(self.required_scope) <= scope:
            raise TokenError("a scope is missing", f"[{', '.join(self.required_scope)}]")
        return Identity(name, round(expiry * 1000))


def _claims(token: str) -> Mapping[str, Any]:
    parts = token.split(".")
    if ".." in token or len(parts) != _PARTS:
        raise TokenError("a token has three parts with dots between them")
    header, claims = decoded(parts[0]), decoded(parts[1])
    if header.get("alg") != "none":
        raise TokenError("an unsecured token must have the algorithm 'none'")
    if parts[2]:
        raise TokenError("an unsecured token must not be signed")
    return claims


def decoded(part: str) -> Mapping[str, Any]:
    """Return the JSON object in one part of a token. Raises TokenError."""
    try:
        padded = part + "=" * (-len(part) % 4)
        found = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        raise TokenError("a part is no base64url of JSON") from None
    if not isinstance(found, dict):
        raise TokenError("a part is no JSON object")
    return cast("dict[str, Any]", found)


def number(claims: Mapping[str, Any], name: str) -> float | None:
    """Return a claim that is a time; None where it is not there. Raises TokenError."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e15:
        raise TokenError(f"{name} is no number of seconds")
    return value


def _scope(value: object) -> set[str]:
    """Return what stands in the scope: text is one, as in Kafka; a list has several."""
    texts = cast("list[object]", value) if isinstance(value, list) else [value]
    return {text.strip() for text in texts if isinstance(text, str) and text.strip()}
