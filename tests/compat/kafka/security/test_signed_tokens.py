"""Signed bearer tokens: what they must say, and where the keys come from that check them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import HMACAlgorithm, RSAAlgorithm

from logstore.compat.kafka.security.sasl import jwks
from logstore.compat.kafka.security.sasl.exchange import Identity
from logstore.compat.kafka.security.sasl.jwks import FetchedKeys, FileKeys, KeySet, UnknownKeyError
from logstore.compat.kafka.security.sasl.signed_token import SignedTokenRules
from logstore.compat.kafka.security.sasl.unsecured_token import TokenError
from logstore.segments.kafka.config_keys import ConfigError
from tests.compat.kafka.security.secured import LOGIN, PREFIX, Secured

NOW = 1_700_000_000
SHARED, OTHER = b"0123456789abcdef0123456789abcdef", b"fedcba9876543210fedcba9876543210"
CLAIMS: dict[str, Any] = {"sub": "alice", "iat": NOW - 10, "exp": NOW + 60}
FAMILY = f"{PREFIX}sasl.oauthbearer."
SIGNED = {
    f"{PREFIX}sasl.enabled.mechanisms": "OAUTHBEARER",
    f"{PREFIX}oauthbearer.sasl.jaas.config": f"{LOGIN}.oauthbearer.OAuthBearerLoginModule "
    "required;",
    f"{PREFIX}oauthbearer.sasl.server.callback.handler.class": (
        f"{LOGIN}.oauthbearer.OAuthBearerValidatorCallbackHandler"
    ),
}


def key(secret: bytes = SHARED, key_id: str = "k", **more: Any) -> dict[str, Any]:
    """Return a key as a JWKS has it."""
    return {**json.loads(HMACAlgorithm.to_jwk(secret)), "kid": key_id, **more}


def keys(*known: dict[str, Any]) -> str:
    """Return a JWKS."""
    return json.dumps({"keys": known or [key()]})


def token(secret: bytes = SHARED, key_id: str | None = "k", **changes: Any) -> str:
    """Return a token; a claim that is None is left out."""
    claims = {name: value for name, value in (CLAIMS | changes).items() if value is not None}
    headers = {} if key_id is None else {"kid": key_id}
    return jwt.PyJWS().encode(json.dumps(claims).encode(), secret, "HS256", headers=headers)


def identity(text: str, rules: SignedTokenRules | None = None) -> Identity:
    """Return who a token is of."""
    verify = KeySet.of(keys()).verify
    return (rules or SignedTokenRules()).identity(text, verify, NOW * 1000)


def test_a_good_token_says_who_and_until_when() -> None:
    """The subject without blanks, and the end in milliseconds."""
    assert identity(token()) == Identity("alice", (NOW + 60) * 1000)
    assert identity(token(sub=" al ", exp=NOW + 1.9)) == Identity("al", (NOW + 1) * 1000)
    named = SignedTokenRules(subject_claim="who", issuer="i", audiences=frozenset({"a", "b"}))
    assert identity(token(who="bob", iss="i", aud=["x", "b"]), named).name == "bob"


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (token(exp=None), "must be exp"),
        (token(iat=None), "must be exp and iat"),
        (token(exp=NOW - 30), "expired"),
        (token(iat=NOW + 61), "before it was issued"),
        (token(nbf=NOW + 31), "does not hold yet"),
        (token(nbf=NOW + 61), "before it was issued"),
        (token(exp=-1), "exp is negative"),
        (token(exp="soon"), "no number"),
        (token(sub=None), "no subject"),
        (token(sub=" "), "no subject"),
        (token(sub=7), "sub is no text"),
        (token(iss=7), "iss is no text"),
        (token(jti=[]), "jti is no text"),
        (token(aud="brokers"), "nobody is expected"),
        (token(scope=["a", "a"]), "comes twice"),
        (token(scope=" "), "a scope is empty"),
        (token(OTHER), "not accepted"),
        (token(key_id="another"), "no key for a token"),
        ("a.b", "three parts"),
        ("a..c", "three parts"),
        ("a.b.c", "not accepted"),
        (token()[:-2], "not accepted"),
    ],
)
def test_a_token_that_is_not_accepted(bad: str, told: str) -> None:
    """Each for its reason, which the client is not told."""
    with pytest.raises(TokenError, match=told) as caught:
        identity(bad)
    assert caught.value.status == "invalid_token"


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        (SignedTokenRules(audiences=frozenset({"a"})), "somebody else"),
        (SignedTokenRules(issuer="i"), "issuer"),
        (SignedTokenRules(subject_claim="who"), "no subject in who"),
    ],
)
def test_what_settings_want(rules: SignedTokenRules, told: str) -> None:
    """A token that lacks it is not accepted."""
    with pytest.raises(TokenError, match=told):
        identity(token(), rules)


def test_which_key() -> None:
    """By id, kind and use; the algorithm decides among several only."""
    spare = key(OTHER, "spare")
    for known, is_right in (
        ([spare, key()], True),
        ([key(use="enc")], False),
        ([key(key_ops=["sign"])], False),
        ([key(alg="HS512")], True),
        ([key(OTHER, alg="HS512"), key()], True),
        ([{"kty": "odd", "kid": "k"}, key()], True),
        ([], False),
    ):
        keyset = KeySet.of(json.dumps({"keys": known}))
        if is_right:
            assert keyset.verify(token())
        else:
            with pytest.raises(UnknownKeyError):
                keyset.verify(token())
    assert KeySet.of(keys(key(), spare)).verify(token(key_id=None))


@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")
def test_short_keys_are_refused() -> None:
    """An RSA key that is easily broken signs nothing."""
    short = rsa.generate_private_key(65537, 1024)  # noqa: S505 - that is the point
    known = {**json.loads(RSAAlgorithm.to_jwk(short.public_key())), "kid": "k"}
    text = jwt.PyJWS().encode(json.dumps(CLAIMS).encode(), short, "RS256", headers={"kid": "k"})
    with pytest.raises(UnknownKeyError, match="1024 bits"):
        KeySet.of(keys(known)).verify(text)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"keys": 7}', "[[[", "\0"])
def test_what_is_no_jwks(text: str) -> None:
    """It is told in words."""
    with pytest.raises(ValueError, match=r"JWKS|JSON|Expecting"):
        KeySet.of(text)


def test_a_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    """New keys hold at once; a file that cannot be read lets nobody in."""
    path = tmp_path / "keys.json"
    path.write_text(keys(key(OTHER, "k")))
    found = FileKeys(path)
    with pytest.raises(UnknownKeyError):
        found.verify(token())
    path.write_text(keys())
    os.utime(path, ns=(1, 1))
    assert found.verify(token())
    path.write_text("{")
    os.utime(path, ns=(2, 2))
    with pytest.raises(UnknownKeyError, match=r"keys\.json"):
        found.verify(token())


class Address:
    """What is fetched: the newest of `answers`, counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *known: dict[str, Any]) -> None:
        self.known: tuple[dict[str, Any], ...] | None = known
        self.count = 0
        monkeypatch.setattr(jwks, "fetched", self._fetch)

    def _fetch(self, _: str) -> KeySet:
        self.count += 1
        if self.known is None:
            raise OSError("nobody is there")
        return KeySet.of(keys(*self.known))


def test_keys_are_fetched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the interval; keys of before are used on where that fails."""
    address = Address(monkeypatch, key(OTHER, "k"))
    secured = Secured()
    found = FetchedKeys(secured.broker, "http://x.test", 1000)
    assert address.count == 1
    address.known = (key(),)
    with pytest.raises(UnknownKeyError):
        found.verify(token())
    secured.pass_time(1000)
    assert found.verify(token())
    address.known = None
    secured.pass_time(1000)
    assert found.verify(token())
    assert address.count == 3


def test_a_key_that_is_not_there_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The token that names it is refused, the next one is not; and nobody can ask all the time."""
    address = Address(monkeypatch, key(OTHER, "old"))
    secured = Secured()
    found = FetchedKeys(secured.broker, "http://x.test", 3_600_000)
    address.known = (key(),)
    with pytest.raises(UnknownKeyError):
        found.verify(token())
    assert found.verify(token())
    for count, wait_ms in ((3, 0), (3, 59_999), (4, 1)):
        secured.pass_time(wait_ms)
        with pytest.raises(UnknownKeyError):
            found.verify(token(key_id="never"))
        assert address.count == count
    with pytest.raises(UnknownKeyError):
        found.verify(token(OTHER))  # its key is there, its signature wrong
    with pytest.raises(UnknownKeyError):
        found.verify("a.b.c")
    assert address.count == 4


def test_a_client_comes_in(tmp_path: Path) -> None:
    """By a listener whose settings say where the keys are; a wrong token is told in JSON."""
    path = tmp_path / "keys.json"
    path.write_text(keys())
    secured = Secured(SIGNED | {f"{FAMILY}jwks.endpoint.url": path.as_uri()})
    now = int(secured.host.clock.wall_ms() / 1000)
    for exp, is_right in ((now + 60, True), (now - 60, False)):
        peer = secured.peer()
        peer.handshake("OAUTHBEARER")
        text = token(iat=now - 600, exp=exp)
        answer = peer.token(f"n,,\1auth=Bearer {text}\1\1".encode())
        if is_right:
            assert (peer.name, answer["session_lifetime_ms"]) == ("User:alice", 60_000)
        else:
            assert json.loads(answer["auth_bytes"]) == {"status": "invalid_token"}


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (None, "must say where the keys are"),
        ("keys.json", "expected a URL"),
        ("file:///not/there.json", "leads to no keys"),
    ],
)
def test_settings_without_keys(url: str | None, told: str) -> None:
    """The start says what is missing."""
    given = {} if url is None else {f"{FAMILY}jwks.endpoint.url": url}
    with pytest.raises(ConfigError, match=told):
        Secured(SIGNED | given)


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start says which extra has it."""
    for name in [name for name in sys.modules if name.endswith((".jwks", ".signed_token"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jwt", None)
    given = {f"{FAMILY}jwks.endpoint.url": "file:///keys.json"}
    with pytest.raises(ConfigError, match=r"logstore-segments\[oauth\]"):
        Secured(SIGNED | given)
