"""
Java's own format of key and trust stores, JKS, as ``keytool`` wrote it up to Java 8.

A store, big-endian; text is a u16 of its bytes and those::

    store    u32 0xFEEDFEED, u32 version (2), u32 entries, entry..., digest
    entry    u32 tag, text alias, u64 time in ms, then by the tag
      1      u32 size, protected key; u32 certificates, certificate...
      2      certificate, which is trusted
    certificate  text type ("X.509"), u32 size, DER
    digest   SHA-1 of the password in UTF-16, "Mighty Aphrodite", and all before it

A protected key is DER, ``SEQUENCE { algorithm, OCTET STRING }``, and the string is a salt of 20
bytes, the key XOR a chain of SHA-1 digests that begins with the salt, and SHA-1 of password and
key. Source: ``sun.security.provider.JavaKeyStore``, ``KeyProtector``.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
from itertools import cycle

import attrs

from logstore.compat.kafka.security.der import elements
from logstore.errors import LogStoreError

MAGIC = b"\xfe\xed\xfe\xed"
_VERSION = 2
_KEY_ENTRY, _TRUSTED_ENTRY = 1, 2
_WHITENER = b"Mighty Aphrodite"
_DIGEST_SIZE = 20


class KeystoreError(LogStoreError, ValueError):
    """It is no store, it is damaged, or the password is not the one it was written with."""


@attrs.frozen
class JavaKeystore:
    """What stands in one: keys as PKCS8 with their chains, and trusted certificates; all DER."""

    #: protected; :func:`unprotected` opens one
    keys: list[tuple[bytes, list[bytes]]]
    trusted: list[bytes]

    @classmethod
    def read(cls, data: bytes, password: str | None) -> JavaKeystore:
        """
        Read a store; without a password nobody looks whether it is whole.

        Raises:
            KeystoreError: it is no store, it is damaged, or its password is another.

        """
        body, digest = data[:-_DIGEST_SIZE], data[-_DIGEST_SIZE:]
        if password is not None:
            found = hashlib.sha1(_words(password) + _WHITENER + body, usedforsecurity=False)
            if not hmac.compare_digest(found.digest(), digest):
                raise KeystoreError("it is damaged, or its password is another")
        try:
            return _read(_Reader(body))
        except (struct.error, UnicodeDecodeError) as error:
            raise KeystoreError(f"it ends too early: {error}") from None


def unprotected(key: bytes, password: str) -> bytes:
    """
    Return a protected key as PKCS8.

    Raises:
        KeystoreError: the password is another, or it is no protected key.

    """
    try:
        (outer,) = elements(key)
        _, hidden = elements(outer.content)
    except ValueError:
        raise KeystoreError("a key in it is not protected as Java does it") from None
    protected = hidden.content
    salt, check = protected[:_DIGEST_SIZE], protected[-_DIGEST_SIZE:]
    secret = _words(password)
    plain, digest = bytearray(), salt
    covered = protected[_DIGEST_SIZE:-_DIGEST_SIZE]
    for start in range(0, len(covered), _DIGEST_SIZE):
        digest = hashlib.sha1(secret + digest, usedforsecurity=False).digest()
        block = covered[start : start + _DIGEST_SIZE]
        plain += bytes(one ^ other for one, other in zip(block, cycle(digest), strict=False))
    found = hashlib.sha1(secret + plain, usedforsecurity=False).digest()
    if not hmac.compare_digest(found, check):
        raise KeystoreError("the password of a key in it is another")
    return bytes(plain)


def pem(kind: str, der: bytes) -> bytes:
    """Return DER as PEM: `kind` is what stands between BEGIN and the dashes."""
    text = base64.encodebytes(der).replace(b"\n", b"")
    lines = b"\n".join(text[start : start + 64] for start in range(0, len(text), 64))
    return b"-----BEGIN %b-----\n%b\n-----END %b-----\n" % (kind.encode(), lines, kind.encode())


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def u32(self) -> int:
        (value,) = struct.unpack(">I", self.take(4))
        return int(value)

    def take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._data):
            raise struct.error(f"{size} bytes at position {self._position}")
        self._position, start = end, self._position
        return self._data[start:end]

    def text(self) -> str:
        (size,) = struct.unpack(">H", self.take(2))
        return self.take(size).decode()

    def certificate(self) -> bytes:
        self.text()
        return self.take(self.u32())


def _read(reader: _Reader) -> JavaKeystore:
    if reader.take(4) != MAGIC:
        raise KeystoreError("it does not begin as one")
    version = reader.u32()
    if version != _VERSION:
        raise KeystoreError(f"version {version} of the format is not known")
    found = JavaKeystore([], [])
    for _ in range(reader.u32()):
        tag = reader.u32()
        reader.text()
        reader.take(8)
        if tag == _KEY_ENTRY:
            key = reader.take(reader.u32())
            found.keys.append((key, [reader.certificate() for _ in range(reader.u32())]))
        elif tag == _TRUSTED_ENTRY:
            found.trusted.append(reader.certificate())
        else:
            raise KeystoreError(f"there is no entry of the kind {tag}")
    return found


def _words(password: str) -> bytes:
    return password.encode("utf-16-be")
