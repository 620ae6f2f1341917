"""Signed OAuth tokens: which of them a broker accepts, the real one and ours."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, HMACAlgorithm, OKPAlgorithm, RSAAlgorithm

from logstore.compat import TestBroker
from logstore.tools.dev.free_ports import free_port
from logstore.tools.dev.kafka_peer import BROKER_JVM, KafkaPeer
from logstore.tools.dev.maven import PeerUnavailable
from tests.interop.conftest import SETTINGS, missing
from tests.interop.sasl_wire import SaslWire, bearer
from tests.interop.security_stage import wait_for_all

pytestmark = [pytest.mark.interop, pytest.mark.slow]

CLASSES = "org.apache.kafka.common.security.oauthbearer"
PLAIN, ANY, OURS = "PLAINTEXT", "ANY", "OURS"
ISSUER = "https://issuer.test"
HOUR = 3600
#: by key id; the last two are not in the set, or not for signing
RSA, OTHER = (rsa.generate_private_key(65537, 2048) for _ in range(2))
CURVE = ec.generate_private_key(ec.SECP256R1())
EDWARDS = ed25519.Ed25519PrivateKey.generate()
SHARED = b"0123456789abcdef0123456789abcdef"


def public(kind: Any, key: Any, key_id: str, **more: Any) -> dict[str, Any]:
    """Return a public key as a JWKS has it."""
    return {**json.loads(kind.to_jwk(key)), "kid": key_id, **more}


KEYS = {
    "keys": [
        public(RSAAlgorithm, OTHER.public_key(), "secret", use="enc"),
        public(RSAAlgorithm, RSA.public_key(), "rsa", use="sig"),
        public(RSAAlgorithm, OTHER.public_key(), "ps", alg="PS256"),
        public(ECAlgorithm, CURVE.public_key(), "curve"),
        public(OKPAlgorithm, EDWARDS.public_key(), "edwards"),
        {**json.loads(HMACAlgorithm.to_jwk(SHARED)), "kid": "shared"},
        {"kty": "of another kind", "kid": "odd"},
    ]
}


class Answer(BaseHTTPRequestHandler):
    """Whoever asks gets the keys."""

    def do_GET(self) -> None:
        """Answer."""
        body = json.dumps(KEYS).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Say nothing."""


@contextmanager
def key_server() -> Generator[str]:
    """Serve the keys; yield their address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/keys"
    server.shutdown()


def security(url: str, ports: Mapping[str, int]) -> dict[str, Any]:
    """Return the settings: one listener takes any audience and issuer, one its own."""
    found: dict[str, Any] = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,ANY:SASL_PLAINTEXT,"
        "OURS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listener.name.ours.oauthbearer.sasl.oauthbearer.expected.audience": "brokers,others",
        "listener.name.ours.sasl.oauthbearer.expected.issuer": ISSUER,
        "listener.name.ours.sasl.oauthbearer.sub.claim.name": "who",
        "listener.name.ours.sasl.oauthbearer.scope.claim.name": "may",
        "listener.name.ours.sasl.oauthbearer.clock.skew.seconds": "5",
        "sasl.oauthbearer.jwks.endpoint.url": url,
    }
    for name in ("any", "ours"):
        prefix = f"listener.name.{name}."
        found |= {
            f"{prefix}sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{prefix}oauthbearer.sasl.jaas.config": f"{CLASSES}.OAuthBearerLoginModule required;",
            f"{prefix}oauthbearer.sasl.server.callback.handler.class": (
                f"{CLASSES}.OAuthBearerValidatorCallbackHandler"
            ),
        }
    return found


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, str]]]:
    """The addresses of the listeners, by name, of the real one and of ours."""
    with key_server() as url:
        ports: dict[str, int] = {}
        while len(ports) < 3:
            port = free_port(1)
            if port is not None and not {port, port + 1} & {*ports.values()}:
                ports[(PLAIN, ANY, OURS)[len(ports)]] = port
        given = SETTINGS | security(url, ports)
        given["advertised.listeners"] = given["listeners"]
        given["listeners"] = f"{given['listeners']},CONTROLLER://127.0.0.1:{ports[PLAIN] + 1}"
        given["inter.broker.listener.name"] = PLAIN
        peer = KafkaPeer(
            "4", tmp_path_factory.mktemp("real"), port=ports[PLAIN],
            settings={key: str(value) for key, value in given.items()},
            jvm=f"{BROKER_JVM} -Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}",
        )  # fmt: skip
        try:
            peer.start()
        except PeerUnavailable as reason:
            missing(str(reason))
        real = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
        wait_for_all(real)
        own = security(url, dict.fromkeys(ports, 0))
        with TestBroker(settings={key: str(value) for key, value in own.items()}) as broker:
            yield [real, broker.listeners]
        peer.stop()


def token(key: Any = RSA, key_id: str | None = "rsa", algorithm: str = "RS256", **more: Any) -> str:
    """Return a token that holds for an hour; claims that are None are left out."""
    now = int(time.time())
    claims: dict[str, Any] = {
        "sub": "alice",
        "who": "alice",
        "iat": now,
        "exp": now + HOUR,
        "iss": ISSUER,
    }
    claims |= {"aud": "brokers"} | more
    known = {name: value for name, value in claims.items() if value is not None}
    headers = {} if key_id is None else {"kid": key_id}
    payload = json.dumps(known).encode()
    return jwt.PyJWS().encode(payload, key, algorithm, headers=headers)


def tokens(listener: str) -> Iterator[tuple[str, str]]:
    """Yield what is to be said of a token, and the token."""
    now = int(time.time())
    signed: list[dict[str, Any]] = [
        {}, {"key_id": None}, {"key_id": "unknown"}, {"key_id": "curve"}, {"key": OTHER},
        {"key": OTHER, "key_id": "secret"}, {"key": OTHER, "key_id": "ps"},
        {"key": OTHER, "key_id": "ps", "algorithm": "PS256"}, {"algorithm": "RS512"},
        {"algorithm": "PS384"}, {"key": CURVE, "key_id": "curve", "algorithm": "ES256"},
        {"key": CURVE, "key_id": None, "algorithm": "ES256"},
        {"key": EDWARDS, "key_id": "edwards", "algorithm": "EdDSA"},
        {"key": SHARED, "key_id": "shared", "algorithm": "HS256"},
        {"key": b"another secret of 32 bytes.......", "key_id": "shared", "algorithm": "HS256"},
        {"key": None, "algorithm": "none"},
    ]  # fmt: skip
    times: list[dict[str, Any]] = [
        {"exp": None}, {"iat": None}, {"exp": now - HOUR}, {"exp": now - 20}, {"exp": now - 2},
        {"exp": -1}, {"exp": "soon"}, {"exp": now + HOUR + 0.5}, {"iat": now + HOUR // 2},
        {"iat": now + 2 * HOUR}, {"iat": -1}, {"nbf": now + 20}, {"nbf": now + 2},
        {"nbf": now - 5}, {"nbf": now + 2 * HOUR}, {"nbf": "now"}, {"iat": True},
    ]  # fmt: skip
    names: list[dict[str, Any]] = [
        {"sub": None, "who": None}, {"sub": "", "who": ""}, {"sub": " ", "who": " "},
        {"sub": " al ", "who": " al "}, {"sub": 7, "who": 7}, {"sub": "bob"}, {"who": "bob"},
    ]  # fmt: skip
    places: list[dict[str, Any]] = [
        {"aud": one}
        for one in (None, "others", "nobody", ["x", "brokers"], ["x"], [], 7, "", {"a": 1})
    ]
    places += [{"iss": one} for one in (None, "https://elsewhere.test", "", 7, [ISSUER])]
    places += [{"jti": one} for one in ("x", "", 7, ["x"])]
    scopes: list[dict[str, Any]] = [
        {name: one}
        for name in ("scope", "may")
        for one in ("", " ", "a b", ["a", "b"], ["a", "a"], ["a", ""], [], 7)
    ]
    usual: Mapping[str, Any] = {"aud": "brokers" if listener == OURS else None}
    for wanted in (*signed, *times, *names, *places, *scopes):
        chosen: dict[str, Any] = {**usual, **wanted}
        yield str(wanted), token(**chosen)
    nobodys: dict[str, Any] = {**usual, "iss": None}
    yield "no issuer", token(**nobodys)
    for odd in ("", "a", "a.b", "a.b.c", "a.b.c.d", token()[:-3], token() + ".", ".".join("...")):
        yield odd[-20:], odd
    head, _, tail = token().partition(".")
    yield "other claims", f"{head}.{token(sub='bob').split('.')[1]}.{tail.split('.')[1]}"


def is_accepted(address: str, text: str) -> Any:
    """Come in by a token; return what the broker says, with the end in hours."""
    with SaslWire(address) as wire:
        wire.handshake("OAUTHBEARER")
        found: Any = wire.token(bearer(text))
        if not isinstance(found, dict):
            return found
        lifetime_ms = found.get("session_lifetime_ms") or 0
        return found | {"session_lifetime_ms": round(lifetime_ms / 1000 / HOUR, 1)}


@pytest.mark.parametrize("listener", [ANY, OURS])
def test_what_is_accepted(both: list[dict[str, str]], listener: str) -> None:
    """The same tokens, for as long; the same words where they are not."""
    accepted = 0
    for what, text in tokens(listener):
        real, ours = (is_accepted(addresses[listener], text) for addresses in both)
        assert ours == real, what
        accepted += not real["auth_bytes"] if isinstance(real, dict) else 0
    assert accepted > 5
