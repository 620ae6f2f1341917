"""What a broker says to every step of SASL, right ones and wrong ones: the real one, and ours."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.interop.raw_wire import METADATA, request
from tests.interop.sasl_wire import (
    SaslWire,
    ScramClient,
    bearer,
    plain_token,
    unsecured_token,
)
from tests.interop.security_stage import SHORT_MS, Secured, both_secured

pytestmark = pytest.mark.interop

RIGHT = plain_token("alice", "alice-secret")
WRONG = plain_token("alice", "alice-secreT")
#: the time that a session lasts may be told a millisecond off
_LIFETIME = "session_lifetime_ms"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Secured]]:
    """Both brokers."""
    with both_secured(tmp_path_factory.mktemp("secured")) as found:
        yield found


def handshakes(address: str) -> Iterator[Any]:
    """Mechanisms that there are, and that there are not; in both versions."""
    for version in (0, 1):
        for mechanism in ("PLAIN", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", "plain", ""):
            with SaslWire(address) as wire:
                found: Any = wire.handshake(mechanism, version)
                yield found
                if found["error_code"]:
                    yield wire.is_closed()


def plain(address: str) -> Iterator[Any]:
    """Right and wrong passwords, empty ones, unknown users, and what is no token of PLAIN."""
    tokens = (
        RIGHT, WRONG, plain_token("nobody", "x"), plain_token("", "x"), plain_token("alice", ""),
        plain_token("alice", "alice-secret", "alice"), plain_token("alice", "alice-secret", "bob"),
        b"", b"alice", b"a\0b", b"a\0b\0c\0d", b"a\0b\0c\0d\0e", b"\0alice\0\xff\xfe",
        plain_token('b,o=b "x"', "pass word"),
    )  # fmt: skip
    for version in (0, 1, 2):
        for token in tokens if version == 2 else tokens[:2]:
            with SaslWire(address) as wire:
                wire.handshake("PLAIN")
                found: Any = wire.token(token, version)
                yield found
                yield wire.is_closed() if found["error_code"] else wire.metadata()


def scram(address: str) -> Iterator[Any]:
    """Both kinds; wrong passwords and nonces, unknown users, what is no message of SCRAM."""
    for mechanism, hash_name in (("SCRAM-SHA-256", "sha256"), ("SCRAM-SHA-512", "sha512")):
        for password in ("alice-secret", "wrong"):
            with SaslWire(address) as wire:
                wire.handshake(mechanism)
                client = ScramClient("alice", password, hash_name)
                yield from converse(wire, client)
                yield wire.metadata()
    with SaslWire(address) as wire:
        wire.handshake("SCRAM-SHA-256")
        yield from converse(wire, ScramClient('b=2Co=3Db "x"', "pass word"))
    for first in (b"n,,n=nobody,r=x", b"n,a=alice,n=alice,r=x", b"n,a=bob,n=alice,r=x",
                  b"n,,n=,r=x", b"y,,n=alice,r=x", b"p=tls,,n=alice,r=x", b"n,,n=al=ice,r=x",
                  b"n,,r=x,n=alice",
                  b"n,,n=alice,r=x,tokenauth=true", b"n,,n=alice,r=x,k=v", b"", b"\xff",
                  b"n,,m=x,n=alice,r=x", b"n,,n=alice,r=a b"):  # fmt: skip
        with SaslWire(address) as wire:
            wire.handshake("SCRAM-SHA-256")
            yield first, told(wire.token(first))
    for nonce, spoil in (("x", b""), (None, b"!"), (None, b",k=v")):
        with SaslWire(address) as wire:
            wire.handshake("SCRAM-SHA-256")
            client = ScramClient("alice", "alice-secret")
            asked: Any = wire.token(client.first)
            yield told(wire.token(client.final(asked["auth_bytes"], nonce) + spoil))
            yield wire.is_closed()


def converse(wire: SaslWire, client: ScramClient) -> Iterator[Any]:
    """Go through both steps of SCRAM; say whether the broker proved to know the user."""
    asked: Any = wire.token(client.first)
    yield told(asked)
    answer: Any = wire.token(client.final(asked["auth_bytes"]))
    yield told(answer), client.is_proved(answer["auth_bytes"])


def told(found: Any) -> Any:
    """Return an outcome without what is drawn by lot."""
    return found if isinstance(found, str) else {**found, "auth_bytes": bool(found["auth_bytes"])}


def bearers(address: str) -> Iterator[Any]:
    """Tokens that are good, late, early, without a name; what is no token, and the wrong user."""
    now = int(time.time())
    good = {"sub": "alice", "iat": now - 10, "exp": now + 1000}
    yield from (
        bearer_outcome(address, bearer(unsecured_token(claims, header), who))
        for claims, header, who in (
            (good, None, ""),
            (good, None, "alice"),
            (good, None, "bob"),
            ({**good, "exp": now - 10}, None, ""),
            ({**good, "iat": now + 100}, None, ""),
            ({**good, "iat": now + 2000}, None, ""),
            ({"sub": "alice"}, None, ""),
            ({"exp": now + 1000}, None, ""),
            ({**good, "sub": 7}, None, ""),
            ({**good, "exp": "soon"}, None, ""),
            ({**good, "scope": ["a", "b"]}, None, ""),
            (good, {"alg": "HS256"}, ""),
        )
    )
    # another scheme than Bearer is left out: the real one trips over the name of a group
    for token in (b"", b"n,,\1\1", b"\1", bearer("a.b.c"), bearer("x"),
                  bearer(unsecured_token(good))[:-1], b"n,,\1auth=Bearer ..\1\1",
                  bearer(unsecured_token(good) + "x")):  # fmt: skip
        yield bearer_outcome(address, token)


def bearer_outcome(address: str, token: bytes) -> Any:
    """Send a token; acknowledge a refusal that stands in JSON."""
    with SaslWire(address) as wire:
        wire.handshake("OAUTHBEARER")
        found: Any = wire.token(token)
        if isinstance(found, str) or not found["auth_bytes"]:
            if not isinstance(found, str) and found[_LIFETIME]:
                assert 990_000 < found.pop(_LIFETIME) <= 1000_000
            return found
        return found, wire.token(b"\1"), wire.is_closed()


def order(address: str) -> Iterator[Any]:
    """Requests before the time for them: some have an answer, the others end the connection."""
    with SaslWire(address) as wire:
        yield wire.metadata()
    with SaslWire(address) as wire:
        yield wire.token(RIGHT)
    for version in (0, 3):
        with SaslWire(address) as wire:
            yield wire.versions(version), wire.versions(version)
    with SaslWire(address) as wire:
        yield wire.versions(), wire.handshake("PLAIN"), wire.token(RIGHT), wire.versions()
        yield wire.handshake("PLAIN"), wire.token(RIGHT), wire.metadata()
    with SaslWire(address) as wire:
        yield wire.handshake("PLAIN"), wire.versions(0)
    with SaslWire(address) as wire:
        yield wire.handshake("PLAIN"), wire.handshake("PLAIN"), wire.is_closed()
    with SaslWire(address) as wire:
        wire.handshake("PLAIN")
        wire.send_frame(request(METADATA, 1, b"\0\0\0\0"))
        yield wire.receive_frame(), wire.is_closed()
    for key, version in ((17, 9), (36, 0), (3, 99), (999, 0)):
        with SaslWire(address) as wire:
            yield key, wire.raw(request(key, version, b""))
    with SaslWire(address) as wire:
        yield wire.raw(b"GET / HTTP/1.1")


def raw_tokens(address: str) -> Iterator[Any]:
    """After a handshake of version 0 tokens come without a request around them."""
    with SaslWire(address) as wire:
        yield wire.handshake("PLAIN", 0), wire.raw(RIGHT), wire.metadata()
    with SaslWire(address) as wire:
        yield wire.handshake("PLAIN", 0), wire.raw(WRONG)
    for password in ("alice-secret", "wrong"):
        with SaslWire(address) as wire:
            client = ScramClient("alice", password)
            yield wire.handshake("SCRAM-SHA-256", 0)
            challenge = wire.raw(client.first)
            assert isinstance(challenge, bytes)
            answer = wire.raw(client.final(challenge))
            yield client.is_proved(answer) if isinstance(answer, bytes) else answer


def large_requests(address: str) -> Iterator[Any]:
    """Before a client is known it may send half a megabyte, and from then on as much as all."""
    with SaslWire(address) as wire:
        yield wire.raw(bytes(600_000))
    with SaslWire(address) as wire:
        wire.handshake("PLAIN")
        yield wire.token(plain_token("alice", "x" * 400_000))
    with SaslWire(address) as wire:
        wire.handshake("PLAIN")
        wire.token(RIGHT)
        yield type(wire.raw(request(METADATA, 1, bytes(600_000))))


Scenario = Callable[[str], Iterator[Any]]
SCENARIOS: list[Scenario] = [handshakes, plain, scram, bearers, order, raw_tokens, large_requests]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
def test_both_say_the_same(secured: list[Secured], scenario: Scenario) -> None:
    """Answer for answer, and where there is none both hang up."""
    real, ours = ([*scenario(one.listeners["SASL"])] for one in secured)
    assert ours == real


def test_no_listener_without_sasl_takes_it(secured: list[Secured]) -> None:
    """Where nobody has to say who he is, to do so is out of place, and not the end."""
    found: list[Any] = []
    for one in secured:
        with SaslWire(one.listeners["PLAIN"]) as wire:
            found.append((wire.handshake("PLAIN"), wire.token(RIGHT), wire.metadata()))
    assert found[0] == found[1]


def sessions(address: str) -> Iterator[Any]:
    """A session has an end; whoever authenticates anew, as the same and as before, goes on."""
    with SaslWire(address) as wire:
        wire.handshake("PLAIN")
        yield wire.token(RIGHT), wire.metadata()
        yield wire.handshake("PLAIN"), wire.token(RIGHT), wire.metadata()
        yield wire.handshake("PLAIN"), wire.token(RIGHT)  # too soon
    with SaslWire(address) as wire:
        wire.handshake("PLAIN")
        wire.token(RIGHT)
        yield wire.handshake("PLAIN"), wire.token(WRONG), wire.is_closed()
    with SaslWire(address) as wire:
        wire.handshake("PLAIN")
        wire.token(RIGHT)
        yield wire.handshake("PLAIN"), wire.token(plain_token('b,o=b "x"', "pass word"))
    with SaslWire(address) as wire:
        wire.handshake("PLAIN")
        wire.token(RIGHT)
        yield wire.handshake("SCRAM-SHA-256"), wire.token(RIGHT)
    with SaslWire(address) as late, SaslWire(address) as anew:
        for wire in (late, anew):
            wire.handshake("PLAIN")
            yield wire.token(RIGHT)
        time.sleep(SHORT_MS / 1000 + 0.2)
        yield late.metadata()
        yield anew.handshake("PLAIN"), anew.token(RIGHT), anew.metadata()


@pytest.mark.slow
def test_both_end_sessions(secured: list[Secured]) -> None:
    """Only the next request finds out that a session is over."""
    real, ours = ([*sessions(one.listeners["SHORT"])] for one in secured)
    assert ours == real
