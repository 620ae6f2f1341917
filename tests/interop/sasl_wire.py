"""A client's side of SASL, byte for byte: what no library would send, and what comes of it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import struct
import time
from typing import Any

from kafka.protocol.metadata.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from tests.interop.raw_wire import CLOSED, METADATA, Wire, request

#: what a pause before a refusal is at least; Kafka's own is 100 ms
PAUSE_SECONDS = 0.09

Outcome = dict[str, Any] | str


class SaslWire(Wire):
    """One connection; each method sends one thing, and returns what the broker says to it."""

    def handshake(self, mechanism: str, version: int = 1) -> Outcome:
        """Name a mechanism."""
        asked = SaslHandshakeRequest(mechanism=mechanism)
        found = self._ask(asked, SaslHandshakeResponse, version)
        if isinstance(found, dict):
            found["mechanisms"] = sorted(found["mechanisms"])
        return found

    def token(self, token: bytes, version: int = 2) -> Outcome:
        """Send a token in a request."""
        asked = SaslAuthenticateRequest(auth_bytes=token)
        return self._ask(asked, SaslAuthenticateResponse, version)

    def raw(self, token: bytes) -> bytes | str:
        """Send a token as it is."""
        self.send_frame(token)
        answer = self.receive_frame()
        return CLOSED if answer is None else answer

    def versions(self, version: int = 3) -> Outcome:
        """Ask for the versions; only the error is told."""
        asked = ApiVersionsRequest(client_software_name="t", client_software_version="1")
        found = self._ask(asked, ApiVersionsResponse, version)
        return found if isinstance(found, str) else {"error_code": found["error_code"]}

    def metadata(self) -> str:
        """Ask for no topics; tell whether there is an answer."""
        self.send_frame(request(METADATA, 1, struct.pack(">i", 0)))
        return CLOSED if self.receive_frame() is None else "answered"

    def is_closed(self) -> bool:
        """Tell whether the broker hangs up without another word."""
        return self.receive_frame() is None

    def _ask(self, asked: Any, response: Any, version: int) -> Outcome:
        asked.with_header(correlation_id=7, client_id="test")
        began = time.monotonic()
        self.send(asked.encode(version=version, header=True, framed=True))
        answer = self.receive_frame()
        if answer is None:
            return CLOSED
        found: dict[str, Any] = response.decode(answer, version=version, header=True).to_dict(
            json=False
        )
        if found["error_code"] and time.monotonic() - began >= PAUSE_SECONDS:
            found["after_a_pause"] = True
        return found


def plain_token(name: str, password: str, authorization_id: str = "") -> bytes:
    """Return what a client of PLAIN sends."""
    return f"{authorization_id}\0{name}\0{password}".encode()


def unsecured_token(claims: dict[str, Any], header: dict[str, Any] | None = None) -> str:
    """Return a bearer token that nobody has signed."""
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in (header or {"alg": "none"}, claims)
    ]
    return f"{parts[0]}.{parts[1]}."


def bearer(token: str, authorization_id: str = "") -> bytes:
    """Return what a client of OAUTHBEARER sends."""
    who = f"a={authorization_id}" if authorization_id else ""
    return f"n,{who},\1auth=Bearer {token}\1\1".encode()


class ScramClient:
    """What a client of SCRAM computes."""

    def __init__(self, name: str, password: str, hash_name: str = "sha256") -> None:
        self.bare = f"n={name},r=fyko+d2lbbFgONRv9qkxdawL"
        self._password = password.encode()
        self._hash = hash_name
        self._said = ""
        self._salted = b""

    @property
    def first(self) -> bytes:
        """The first token."""
        return f"n,,{self.bare}".encode()

    def final(self, challenge: bytes, nonce: str | None = None) -> bytes:
        """Return the token that answers a challenge."""
        words = dict(word.split("=", 1) for word in challenge.decode().split(","))
        salt = base64.b64decode(words["s"])
        unproved = f"c=biws,r={nonce or words['r']}"
        self._said = f"{self.bare},{challenge.decode()},{unproved}"
        self._salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, int(words["i"]))
        key = hmac.digest(self._salted, b"Client Key", self._hash)
        stored = hashlib.new(self._hash, key).digest()
        signature = hmac.digest(stored, self._said.encode(), self._hash)
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        return f"{unproved},p={base64.b64encode(proof).decode()}".encode()

    def is_proved(self, answer: bytes) -> bool:
        """Tell whether the broker knows the user, too."""
        key = hmac.digest(self._salted, b"Server Key", self._hash)
        expected = hmac.digest(key, self._said.encode(), self._hash)
        return answer == b"v=" + base64.b64encode(expected)
