"""Java's own format of key stores, as Java's `keytool` wrote it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.kafka.security.java_keystore import (
    JavaKeystore,
    KeystoreError,
    pem,
    unprotected,
)

#: made with the passwords below by ``keytool`` of Java 17, ``-storetype JKS``; ``key.der`` is what
#: ``openssl pkcs8`` says that the key is
GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "java-keystore"
KEY_STORE = (GOLDEN / "key.jks").read_bytes()
TRUST_STORE = (GOLDEN / "trusted.jks").read_bytes()
CERTIFICATE = (GOLDEN / "certificate.der").read_bytes()
STORE_PASSWORD, KEY_PASSWORD = "store-secret", "key-secret"


def test_a_key_and_its_chain() -> None:
    """The key is opened by a password of its own."""
    store = JavaKeystore.read(KEY_STORE, STORE_PASSWORD)
    ((key, chain),) = store.keys
    assert (chain, store.trusted) == ([CERTIFICATE], [])
    assert unprotected(key, KEY_PASSWORD) == (GOLDEN / "key.der").read_bytes()


def test_a_trusted_certificate() -> None:
    """Without a password, too: then nobody looks whether it is whole."""
    for password in (STORE_PASSWORD, None):
        store = JavaKeystore.read(TRUST_STORE, password)
        assert (store.keys, store.trusted) == ([], [CERTIFICATE])


def test_another_password() -> None:
    """Of the store, or of the key."""
    with pytest.raises(KeystoreError, match="damaged, or its password is another"):
        JavaKeystore.read(KEY_STORE, "other")
    ((key, _),) = JavaKeystore.read(KEY_STORE, STORE_PASSWORD).keys
    with pytest.raises(KeystoreError, match="password of a key in it is another"):
        unprotected(key, STORE_PASSWORD)
    with pytest.raises(KeystoreError, match="not protected as Java does it"):
        unprotected(key[:-1], KEY_PASSWORD)


@given(st.integers(0, len(KEY_STORE) - 1), st.integers(1, 255))
def test_any_damage_is_seen(position: int, flip: int) -> None:
    """One byte that is another is enough."""
    damaged = bytearray(KEY_STORE)
    damaged[position] ^= flip
    with pytest.raises(KeystoreError):
        JavaKeystore.read(bytes(damaged), STORE_PASSWORD)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "ends too early"),
        (b"\xca\xfe\xba\xbe" + bytes(40), "does not begin as one"),
        (KEY_STORE[:4] + b"\0\0\0\1" + KEY_STORE[8:], "version 1 of the format"),
        (KEY_STORE[:12] + b"\0\0\0\3" + KEY_STORE[16:], "no entry of the kind 3"),
        (KEY_STORE[:-60], "ends too early"),
    ],
)
def test_what_is_no_store(data: bytes, told: str) -> None:
    """It is told, also where no password guards it."""
    with pytest.raises(KeystoreError, match=told):
        JavaKeystore.read(data, None)


@given(st.binary(min_size=1, max_size=200))
def test_pem(der: bytes) -> None:
    """Lines of 64 characters between the dashes; Python's own reader reads them."""
    import ssl

    text = pem("CERTIFICATE", der).decode()
    assert ssl.PEM_cert_to_DER_cert(text) == der
    assert max(map(len, text.splitlines())) <= 64
