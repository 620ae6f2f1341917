"""
Tokens that nobody has signed, which are what Kafka takes without further settings: for tests only.

``base64url({"alg":"none"}) . base64url({"sub":"alice","exp":1700000000}) .``; options of the JAAS
configuration say which claims are asked for::

    unsecuredValidatorPrincipalClaimName="sub"   unsecuredValidatorScopeClaimName="scope"
    unsecuredValidatorRequiredScope="a b"        unsecuredValidatorAllowableClockSkewMs="3000"

Claims are what Java makes of them: true, false and null are texts, an object is an empty one, and
of a part that is JSON but no object there are none.

Source: ``OAuthBearerUnsecuredValidatorCallbackHandler``, ``OAuthBearerUnsecuredJws``.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from logstore.compat.kafka.java_trim import is_blank, trimmed
from logstore.compat.kafka.security.sasl.exchange import Identity, StumbledError
from logstore.errors import LogStoreError

_PARTS = 3
_TIME_MAX = 2**63 - 1
#: what may stand before JSON
_BLANKS = " \t\n\r"


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
            StumbledError: Kafka stumbles over it.

        """
        claims = _claims(token)
        scope = _scope(claims, self.scope_claim)
        expiry = _time(claims, "exp")
        name = claims.get(self.principal_claim)
        if expiry is None:
            raise TokenError("there is no expiration time")
        if not isinstance(name, str) or is_blank(name):
            raise TokenError(f"there is no principal in {self.principal_claim}")
        issued = _time(claims, "iat")
        if issued is not None and issued * 1000 > now_ms + self.clock_skew_ms:
            raise TokenError("it was issued in the future")
        if now_ms - self.clock_skew_ms >= expiry * 1000:
            raise TokenError("it has expired")
        if issued is not None and expiry <= issued:
            raise TokenError("it expired before it was issued")
        if not scope.issuperset(self.required_scope):
            raise TokenError("a scope is missing", f"[{', '.join(self.required_scope)}]")
        return Identity(name, _TIME_MAX if expiry * 1000 >= _TIME_MAX else round(expiry * 1000))


def _claims(token: str) -> Mapping[str, object]:
    parts = token.split(".")
    if ".." in token or len(parts) != _PARTS:
        raise TokenError("a token has three parts with dots between them")
    header, claims = _read(parts[0]), _read(parts[1])
    if "alg" not in header:
        raise StumbledError("the token's header has no algorithm")
    if header["alg"] != "none":
        raise TokenError("an unsecured token must have the algorithm 'none'")
    if parts[2]:
        raise TokenError("an unsecured token must not be signed")
    return claims


def _read(part: str) -> Mapping[str, object]:
    """Return what is in the first JSON of a part; nobody looks at what stands behind it."""
    try:
        data = base64.b64decode(_padded(part), altchars=b"-_", validate=True)
        text = data.decode(json.detect_encoding(data)).lstrip(_BLANKS)
        found = _JSON.raw_decode(text)[0] if text else None
    except (ValueError, RecursionError):
        raise TokenError("a part is no base64url of JSON") from None
    if not isinstance(found, dict):
        return {}
    return {key: _value(one) for key, one in cast("dict[str, Any]", found).items()}


def _padded(part: str) -> str:
    if "+" in part or "/" in part:
        raise ValueError("those are of another base64")
    return part + "=" * (-len(part) % 4)


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is nothing in JSON")


_JSON = json.JSONDecoder(parse_constant=_no_number)


def _value(found: object) -> object:
    """Return a claim as Java has it."""
    if isinstance(found, list):
        return [_text(one) for one in cast("list[object]", found)]
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return found if is_number else _text(found)


def _text(found: object) -> str:
    if isinstance(found, dict | list):
        return ""
    return found if isinstance(found, str) else json.dumps(found)


def _time(claims: Mapping[str, object], name: str) -> float | None:
    """Return a claim that is a time in seconds; None where it is not there. Raises TokenError."""
    value = claims.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float):
        raise TokenError(f"{name} is no number of seconds")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _scope(claims: Mapping[str, object], name: str) -> set[str]:
    """Return what stands in the scope: text is one, as in Kafka; a list has several."""
    value = claims.get(name)
    if value is None:
        return set()
    if not isinstance(value, str | list):
        raise TokenError(f"{name} is neither text nor a list")
    texts = cast("list[str]", value) if isinstance(value, list) else [value]
    return {trimmed(text) for text in texts if not is_blank(text)}
