"""Unsecured bearer tokens, and the messages that bring them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from logstore.compat.kafka.security.sasl.exchange import (
    Identity,
    SaslAuthenticationError,
    SaslError,
)
from logstore.compat.kafka.security.sasl.oauthbearer import OAuthBearerExchange
from logstore.compat.kafka.security.sasl.unsecured_token import TokenError, TokenRules

NOW_MS = 1_700_000_000_000
CLAIMS: dict[str, Any] = {"sub": "alice", "iat": NOW_MS // 1000 - 10, "exp": NOW_MS // 1000 + 60}
PREFIX = "unsecuredValidator"


def part(value: object) -> str:
    """Return one part of a token."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def token(changes: dict[str, Any] | None = None, header: object = None) -> str:
    """Return a token; a claim that is None is left out."""
    claims = {key: value for key, value in (CLAIMS | (changes or {})).items() if value is not None}
    return f"{part(header or {'alg': 'none'})}.{part(claims)}."


def test_a_good_token_says_who_and_until_when() -> None:
    """The principal, and the end in milliseconds."""
    assert TokenRules().identity(token(), NOW_MS) == Identity("alice", CLAIMS["exp"] * 1000)
    assert TokenRules().identity(token({"iat": None, "exp": 1.7e9 + 0.5}), NOW_MS) == Identity(
        "alice", NOW_MS + 500
    )


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (token({"exp": None}), "no expiration"),
        (token({"exp": "soon"}), "exp is no number"),
        (token({"exp": True}), "exp is no number"),
        (token({"exp": 1e300}), "exp is no number"),
        (token({"exp": NOW_MS / 1000}), "expired"),
        (token({"iat": NOW_MS / 1000 + 1}), "future"),
        (token({"sub": None}), "no principal"),
        (token({"sub": 7}), "no principal"),
        (token({"sub": " "}), "no principal"),
        (token(header={"alg": "RS256"}), "algorithm"),
        (token(header=[1]), "no JSON object"),
        (token() + "signature", "not be signed"),
        (token()[:-1], "three parts"),
        ("..", "three parts"),
        ("a.b.c.d", "three parts"),
        ("!.!.", "no base64url"),
        (part("x") + ".e30.", "no JSON object"),
    ],
)
def test_a_bad_token(bad: str, told: str) -> None:
    """The reason is for the log; the client hears that the token is invalid."""
    with pytest.raises(TokenError, match=told) as caught:
        TokenRules().identity(bad, NOW_MS)
    assert (caught.value.status, caught.value.scope) == ("invalid_token", None)


def test_options_of_the_login_module() -> None:
    """Other claims, scopes that must be there, clocks that differ."""
    rules = TokenRules.of(
        {
            f"{PREFIX}PrincipalClaimName": "upn",
            f"{PREFIX}ScopeClaimName": "roles",
            f"{PREFIX}RequiredScope": "read write",
            f"{PREFIX}AllowableClockSkewMs": "5000",
        }
    )
    late = {"upn": "bob", "roles": ["write", "read", "x"], "exp": NOW_MS / 1000 - 4}
    assert rules.identity(token(late), NOW_MS).name == "bob"
    with pytest.raises(TokenError) as caught:
        rules.identity(token(late | {"roles": "read write"}), NOW_MS)  # one scope with a space
    assert (caught.value.status, caught.value.scope) == ("insufficient_scope", "[read, write]")
    for bad in ("-1", "x"):
        with pytest.raises(ValueError, match=r"negative|invalid"):
            TokenRules.of({f"{PREFIX}AllowableClockSkewMs": bad})


def exchange() -> OAuthBearerExchange:
    """Return an exchange at the time of the tests."""
    return OAuthBearerExchange(lambda text: TokenRules().identity(text, NOW_MS))


@pytest.mark.parametrize("more", ["", "\1extension=value\1traceId=1"])
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER "])
def test_a_good_message(more: str, scheme: str) -> None:
    """Extensions are taken, and mean nothing."""
    server = exchange()
    assert server.evaluate(f"n,,\1auth={scheme} {token()}{more}\1\1".encode()) == b""
    assert server.identity == Identity("alice", CLAIMS["exp"] * 1000)


def test_a_refusal_is_acknowledged() -> None:
    """It is told in JSON first, and is the end once the client has read that."""
    server = exchange()
    told = server.evaluate(f"n,,\1auth=Bearer {token({'exp': 1})}\1\1".encode())
    assert json.loads(told) == {"status": "invalid_token"}
    assert server.identity is None
    with pytest.raises(SaslAuthenticationError, match="invalid_token"):
        server.evaluate(b"\1")


@pytest.mark.parametrize(
    "message",
    [b"", b"\1", b"n,,\1\1", b"n,,\1auth=Basic x\1\1", b"n,,\1auth=Bearer\1\1", b"y,,\1auth=x\1\1",
     b"n,,\1host=x\1\1", b"n,,\1auth=Bearer a b\1\1", b"n,,\1auth=Bearer a\1"],
)  # fmt: skip
def test_what_is_no_message(message: bytes) -> None:
    """It fails without a word."""
    with pytest.raises(SaslError):
        exchange().evaluate(message)


def test_somebody_elses_name() -> None:
    """A token is of whom it says."""
    text = f"n,a=%s,\1auth=Bearer {token()}\1\1"
    assert exchange().evaluate((text % "alice").encode()) == b""
    with pytest.raises(SaslAuthenticationError, match=r"\(bob\).*\(alice\)"):
        exchange().evaluate((text % "bob").encode())
