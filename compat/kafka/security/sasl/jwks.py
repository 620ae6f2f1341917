"""
The public keys by which signed tokens are checked, and where they come from (JWKS, RFC 7517).

A file is read again when it has changed. What stands at an address is fetched at the start, again
every ``sasl.oauthbearer.jwks.endpoint.refresh.ms``, and once more when a token names a key that is
not there; that token is refused, the client comes again. Nobody waits for that.

Source: ``JwksFileVerificationKeyResolver``, ``RefreshingHttpsJwks``, jose4j's
``VerificationJwkSelector``.
"""

from __future__ import annotations

import json
import logging
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit
from urllib.request import url2pathname

import jwt

from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker

_log = logging.getLogger(__name__)
_FETCH_SECONDS_MAX = 10
#: an id that nobody knows is not asked for again so soon
_UNKNOWN_ID_PAUSE_MS = 60_000
_UNKNOWN_IDS_MAX = 16
#: which kind of key an algorithm wants, and on which curve
_KINDS: Mapping[str, tuple[str, str | None]] = {
    **{f"{family}{bits}": ("RSA", None) for family in ("RS", "PS") for bits in (256, 384, 512)},
    **{f"HS{bits}": ("oct", None) for bits in (256, 384, 512)},
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "ES256K": ("EC", "secp256k1"),
    "EdDSA": ("OKP", None),
}
#: keys that are easily broken are refused, as by jose4j
_JWS = jwt.PyJWS(options={"enforce_minimum_key_length": True})


class UnknownKeyError(LogStoreError):
    """A token is not signed by any of the keys."""


class KeySet(NamedTuple):
    """Public keys as JSON has them."""

    keys: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, text: str | bytes) -> KeySet:
        """
        Return the keys of a JWKS.

        Raises:
            ValueError: it is none.

        """
        found: Any = json.loads(text)
        keys: Any = cast("dict[str, Any]", found).get("keys") if isinstance(found, dict) else None
        if not isinstance(keys, list):
            raise ValueError("a JWKS is a JSON object with a list of keys")
        known = cast("list[object]", keys)
        return cls(tuple(cast("dict[str, Any]", one) for one in known if isinstance(one, dict)))

    def verify(self, token: str) -> bytes:
        """
        Return what is signed in a token.

        Raises:
            UnknownKeyError: it is signed by none of the keys, or not at all.

        """
        try:
            header: Mapping[str, Any] = jwt.get_unverified_header(token)
            algorithm = str(header.get("alg"))
            key = jwt.PyJWK(dict(self._select(header, algorithm)), algorithm)
            signed: bytes = _JWS.decode(token, key, [algorithm])
        except (jwt.PyJWTError, ValueError, TypeError, LookupError, AttributeError) as error:
            raise UnknownKeyError(f"a token is not accepted: {error}") from error
        return signed

    def _select(self, header: Mapping[str, Any], algorithm: str) -> Mapping[str, Any]:
        """
        Return the first key that fits what a token says of its signature.

        Algorithm and curve only decide among several: a key that was made for another algorithm of
        its kind will do where it is the only one.
        """
        kind, curve = _KINDS.get(algorithm, (None, None))
        found = [
            key
            for key in self.keys
            if key.get("kty") == kind
            and header.get("kid") in (None, key.get("kid"))
            and key.get("use", "sig") == "sig"
            and "verify" in key.get("key_ops", ("verify",))
        ]
        if len(found) > 1:
            found = [key for key in found if key.get("alg", algorithm) == algorithm]
        if len(found) > 1 and curve is not None:
            found = [key for key in found if key.get("crv") == curve]
        if not found:
            raise UnknownKeyError(
                f"no key for a token with algorithm {algorithm!r} and key id {header.get('kid')!r}"
            )
        return found[0]


class FileKeys:
    """Keys in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._modified_ns = -1
        self._keys = KeySet(())
        self._load()

    def _load(self) -> None:
        modified_ns = self._path.stat().st_mtime_ns
        if modified_ns != self._modified_ns:
            self._keys = KeySet.of(self._path.read_bytes())
            self._modified_ns = modified_ns

    def verify(self, token: str) -> bytes:
        """Return what is signed in a token. Raises UnknownKeyError."""
        try:
            self._load()
        except (OSError, ValueError) as error:
            raise UnknownKeyError(f"{self._path}: {error}") from error
        return self._keys.verify(token)


class FetchedKeys:
    """Keys at an address."""

    def __init__(self, broker: Broker, url: str, refresh_ms: int) -> None:
        self._broker = broker
        self._url = url
        self._keys = fetched(url)
        self._unknown_until_ms: dict[str, float] = {}
        self._is_fetching = False
        self._every(refresh_ms)

    def _every(self, refresh_ms: int) -> None:
        def run() -> None:
            self._every(refresh_ms)
            self._fetch_aside()

        self._broker.timers.after(max(refresh_ms, 1), run)

    def _fetch_aside(self) -> None:
        if self._is_fetching:
            return
        self._is_fetching = True
        found: list[KeySet] = []

        def done(error: BaseException | None) -> None:
            self._is_fetching = False
            if error is not None:
                _log.warning("%s: the keys of before are used on: %s", self._url, error)
            elif found:
                self._keys = found[0]

        self._broker.offload(lambda: found.append(fetched(self._url)), done)

    def verify(self, token: str) -> bytes:
        """Return what is signed in a token. Raises UnknownKeyError."""
        try:
            return self._keys.verify(token)
        except UnknownKeyError:
            self._look_for(token)
            raise

    def _look_for(self, token: str) -> None:
        """Fetch the keys anew for the sake of one that is not there."""
        try:
            key_id = str(jwt.get_unverified_header(token).get("kid"))
        except jwt.PyJWTError:
            return
        if any(one.get("kid") == key_id for one in self._keys.keys):
            return
        now_ms, unknown = self._broker.host.clock.monotonic_ms(), self._unknown_until_ms
        if unknown.get(key_id, 0.0) > now_ms:
            return
        if len(unknown) >= _UNKNOWN_IDS_MAX:
            del unknown[next(iter(unknown))]
        unknown[key_id] = now_ms + _UNKNOWN_ID_PAUSE_MS
        self._fetch_aside()


def fetched(url: str) -> KeySet:
    """
    Return the keys at an address.

    Raises:
        OSError: they cannot be fetched.
        ValueError: they are no JWKS.

    """
    with urllib.request.urlopen(url, timeout=_FETCH_SECONDS_MAX) as answer:  # noqa: S310 - checked
        return KeySet.of(answer.read())


def keys_at(broker: Broker, url: str, refresh_ms: int) -> Callable[[str], bytes]:
    """
    Return who verifies tokens by the keys at a URL: ``file:``, ``http:`` or ``https:``.

    Raises:
        OSError: they are not there.
        ValueError: they are no JWKS, or the URL is of another kind.

    """
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    if scheme == "file":
        return FileKeys(Path(url2pathname(parts.path))).verify
    if scheme in ("http", "https"):
        return FetchedKeys(broker, url, refresh_ms).verify
    raise ValueError("expected a URL that begins with file:, http: or https:")
