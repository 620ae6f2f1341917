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
    StumbledError,
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
        (token({"exp": [1]}), "exp is no number"),
        (token({"iat": "soon"}), "iat is no number"),
        (token({"sub": {}}), "no principal"),
        (token({"sub": "\1"}), "no principal"),
        (token({"scope": 5}), "scope is neither"),
        (token()[:-1] + "+.", "no base64url"),
        (token({"exp": NOW_MS / 1000}), "expired"),
        (token({"iat": NOW_MS / 1000 + 1}), "future"),
        (token({"sub": None}), "no principal"),
        (token({"sub": 7}), "no principal"),
        (token({"sub": " "}), "no principal"),
        (token(header={"alg": "RS256"}), "algorithm"),
        (token() + "signature", "not be signed"),
        (token()[:-1], "three parts"),
        ("..", "three parts"),
        ("a.b.c.d", "three parts"),
        ("!.!.", "no base64url"),
        (part({"alg": "none"}) + ".W10.", "no expiration"),
        (part({"alg": ["none"]}) + ".e30.", "algorithm"),
        (part({"alg": "none"}) + ".eyJleHAiOk5hTn0.", "no base64url of JSON"),
    ],
)
def test_a_bad_token(bad: str, told: str) -> None:
    """The reason is for the log; the client hears that the token is invalid."""
    with pytest.raises(TokenError, match=told) as caught:
        TokenRules().identity(bad, NOW_MS)
    assert (caught.value.status, caught.value.scope) == ("invalid_token", None)


#: claims of other types, and who is let in with them
CLAIMED: list[tuple[dict[str, Any], str]] = [
    ({"sub": True}, "true"), ({"sub": "\u00a0"}, "\u00a0"), ({"scope": [1, None, {}]}, "alice"),
    ({"scope": False}, "alice"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "name"), CLAIMED)
def test_claims_are_what_java_makes_of_them(changes: dict[str, Any], name: str) -> None:
    """A truth is a text, and blank is what Java calls so."""
    assert TokenRules().identity(token(changes), NOW_MS).name == name


def test_null_is_a_text() -> None:
    """It names somebody, and is no time."""
    claims = json.dumps(CLAIMS | {"sub": None}).encode()
    text = f"{part({'alg': 'none'})}.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}."
    assert TokenRules().identity(text, NOW_MS).name == "null"


def test_what_stands_behind_the_claims() -> None:
    """Nobody looks at it."""
    claims = json.dumps(CLAIMS).encode() + b" and more"
    text = f"{part({'alg': 'none'})}.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}."
    assert TokenRules().identity(text, NOW_MS).name == "alice"


def test_an_end_beyond_all_times() -> None:
    """It is the last time that there is."""
    assert TokenRules().identity(token({"exp": 1e300}), NOW_MS).expiry_ms == 2**63 - 1


@pytest.mark.parametrize("header", [{"typ": "JWT"}, [1], "none", 5])
def test_a_header_without_an_algorithm(header: object) -> None:
    """Kafka stumbles over it: the client is hung up on, and not answered."""
    for start in (part(header), ""):
        with pytest.raises(StumbledError):
            TokenRules().identity(f"{start}.{part(CLAIMS)}.{'' if start else 'x'}", NOW_MS)


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
    [b"", b"\1", b"n,,\1\1", b"n,,\1auth=Bearer\1\1", b"y,,\1auth=x\1\1",
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


def test_another_scheme() -> None:
    """Kafka stumbles over what is no Bearer."""
    with pytest.raises(StumbledError):
        exchange().evaluate(b"n,,\1auth=Basic x\1\1")
