"""Kafka's ssl.* settings: stores of each kind, versions, cipher suites, and what is refused."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from logstore.compat.certificates import KeyAndCertificate
from logstore.compat.cipher_suites import openssl_name
from logstore.compat.kafka.security.listener_settings import ListenerSettings
from logstore.compat.kafka.security.tls_settings import tls_context
from logstore.compat.tls import TlsServer
from logstore.segments.kafka.config_keys import ConfigError
from tests.compat.scripted_service import ScriptedConnection, ScriptedService, echo
from tests.compat.tls_peers import TlsClient, authority, client_context

HUSH = "hush"


@pytest.fixture(scope="module")
def issued() -> KeyAndCertificate:
    """What the server of all these tests shows."""
    return authority().server()


@pytest.fixture(scope="module")
def pem(issued: KeyAndCertificate, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A key store as a PEM file."""
    path = tmp_path_factory.mktemp("pem") / "server.pem"
    path.write_text(issued.key + issued.certificate)
    return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(path)}


def context(settings: Mapping[str, str], *, has_sasl: bool = False) -> ssl.SSLContext:
    """Return what settings say."""
    return tls_context(ListenerSettings(settings, "SSL"), has_sasl=has_sasl)


def connected(settings: Mapping[str, str], client: ssl.SSLContext) -> TlsClient:
    """Shake hands with a server that has these settings."""
    inner = ScriptedConnection(ScriptedService(echo))
    peer = TlsClient(TlsServer(context(settings)).wrap(inner), client)
    peer.shake_hands()
    return peer


def encrypted(issued: KeyAndCertificate) -> str:
    """Return the key in need of a password."""
    key = load_pem_private_key(issued.key.encode(), None)
    kind = BestAvailableEncryption(HUSH.encode())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, kind).decode()


def test_key_stores_of_every_kind(issued: KeyAndCertificate, tmp_path: Path) -> None:
    """PEM inline and in a file, with a password and without; PKCS12, also under the name JKS."""
    chain = {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": issued.certificate}
    secret = encrypted(issued)
    (tmp_path / "both.pem").write_text(secret + issued.certificate)
    (tmp_path / "store.p12").write_bytes(store(issued))
    path = str(tmp_path / "store.p12")
    for settings in (
        {**chain, "ssl.keystore.key": issued.key},
        {**chain, "ssl.keystore.key": secret, "ssl.key.password": HUSH},
        {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(tmp_path / "both.pem"),
         "ssl.key.password": HUSH},
        {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": path,
         "ssl.keystore.password": HUSH},
        {"ssl.keystore.location": path, "ssl.keystore.password": HUSH},
    ):  # fmt: skip
        peer = connected(settings, client_context(tmp_path))
        assert peer.tls.version() == "TLSv1.3"


def test_stores_in_javas_own_format() -> None:
    """Whatever type they are said to have; each has its password, and the key has one, too."""
    where = Path(__file__).resolve().parents[3] / "golden" / "java-keystore"
    context = ssl.create_default_context(
        cadata=ssl.DER_cert_to_PEM_cert((where / "certificate.der").read_bytes())
    )
    settings = {
        "ssl.keystore.location": str(where / "key.jks"),
        "ssl.keystore.password": "store-secret",
        "ssl.key.password": "key-secret",
        "ssl.truststore.location": str(where / "trusted.jks"),
        "ssl.truststore.password": "store-secret",
        "ssl.client.auth": "requested",
    }
    for kind in ("JKS", "PKCS12"):
        types = {"ssl.keystore.type": kind, "ssl.truststore.type": kind}
        assert connected(settings | types, context).tls.version() == "TLSv1.3"
    with pytest.raises(ConfigError, match="that its passwords open: the password of a key"):
        connected(settings | {"ssl.key.password": "store-secret"}, context)


def store(issued: KeyAndCertificate) -> bytes:
    """Return key and certificates as PKCS12."""
    return pkcs12.serialize_key_and_certificates(
        b"kafka",
        load_pem_private_key(issued.key.encode(), None),  # type: ignore[arg-type]
        x509.load_pem_x509_certificate(issued.certificate.encode()),
        [x509.load_pem_x509_certificate(authority().certificate.encode())],
        BestAvailableEncryption(HUSH.encode()),
    )


def trusted(tmp_path: Path, kind: str) -> dict[str, str]:
    """Return a trust store."""
    if kind == "inline":
        return {
            "ssl.truststore.type": "PEM", "ssl.truststore.certificates": authority().certificate
        }  # fmt: skip
    path = tmp_path / "trusted"
    if kind == "PEM":
        path.write_text(authority().certificate)
    else:
        if not hasattr(pkcs12, "serialize_java_truststore"):
            pytest.skip("cryptography before 45 writes no trust store to read")
        root = x509.load_pem_x509_certificate(authority().certificate.encode())
        one = pkcs12.PKCS12Certificate(root, b"ca")
        path.write_bytes(
            pkcs12.serialize_java_truststore([one], BestAvailableEncryption(HUSH.encode()))
        )
    found = {"ssl.truststore.type": kind, "ssl.truststore.location": str(path)}
    return found if kind == "PEM" else found | {"ssl.truststore.password": HUSH}


@pytest.mark.parametrize("kind", ["inline", "PEM", "PKCS12"])
def test_clients_are_asked_for_certificates(pem: dict[str, str], tmp_path: Path, kind: str) -> None:
    """Whose is from the trust store is let in; where it is only requested, also who has none."""
    for auth, may_be_none in (("required", False), ("requested", True), ("none", True)):
        settings = {**pem, **trusted(tmp_path, kind), "ssl.client.auth": auth}
        peer = connected(settings, client_context(tmp_path, "alice"))
        assert not peer.connection.is_closing
        peer = connected(settings, client_context(tmp_path))
        assert peer.connection.is_closing != may_be_none


def test_with_sasl_only_a_listeners_own_setting_counts(pem: dict[str, str]) -> None:
    """The broker's is for listeners where the certificate says who the client is."""
    broker = {**pem, "ssl.client.auth": "required"}
    assert context(broker).verify_mode is ssl.CERT_REQUIRED
    assert context(broker, has_sasl=True).verify_mode is ssl.CERT_NONE
    own = {**pem, "listener.name.ssl.ssl.client.auth": "required"}
    assert context(own, has_sasl=True).verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("versions", "suites", "found"),
    [
        ("TLSv1.2", "", "TLSv1.2"),
        ("TLSv1.3", "", "TLSv1.3"),
        ("TLSv1.3,TLSv1.2", "", "TLSv1.3"),
        ("", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLSv1.2"),
        ("", "TLS_AES_256_GCM_SHA384", "TLSv1.3"),
        ("", "TLS_AES_256_GCM_SHA384,TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLSv1.3"),
    ],
)
def test_versions_and_suites(
    pem: dict[str, str], tmp_path: Path, versions: str, suites: str, found: str
) -> None:
    """What is not named is not spoken."""
    settings = {**pem, "ssl.cipher.suites": suites}
    if versions:
        settings["ssl.enabled.protocols"] = versions
    peer = connected(settings, client_context(tmp_path))
    assert peer.tls.version() == found
    cipher = peer.tls.cipher()
    assert cipher is not None
    if found == "TLSv1.2" and suites:
        assert cipher[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE-RSA-AES256-SHA384"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"),
        ("TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "DHE-RSA-CHACHA20-POLY1305"),
        ("ECDHE-RSA-AES128-SHA", "ECDHE-RSA-AES128-SHA"),
    ],
)
def test_names_of_suites(java: str, openssl: str) -> None:
    """Java's are the standard's, OpenSSL's are its own, and are taken too."""
    assert openssl_name(java) == openssl


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"ssl.keystore.location": "/no/such"}, "can be read: No such file"),
        ({"ssl.keystore.location": None}, "ssl.keystore.location = None: must be set"),
        ({"ssl.keystore.type": "BCFKS"}, "must be PEM, PKCS12 or JKS"),
        ({"ssl.keystore.type": "PKCS12", "ssl.keystore.password": HUSH}, "opens"),
        ({"ssl.keystore.key": "x"}, "certificate.chain"),
        ({"ssl.keystore.key": "x", "ssl.keystore.certificate.chain": "y"}, "must not be set with"),
        ({"ssl.enabled.protocols": "SSLv3"}, r"must be of TLSv1\.2, TLSv1\.3"),
        ({"ssl.cipher.suites": "TLS_NO_SUCH_WITH_THING_SHA256"}, "OpenSSL knows"),
        ({"ssl.client.auth": "required", "ssl.truststore.certificates": "x"}, "the type PEM"),
        ({"ssl.client.auth": "required", "ssl.truststore.type": "PEM",
          "ssl.truststore.certificates": "x"}, "must have certificates"),
        ({"ssl.client.auth": "perhaps"}, "must be one of: required"),
    ],
)  # fmt: skip
def test_what_is_refused(pem: dict[str, str], changes: dict[str, str | None], told: str) -> None:
    """With the setting's name; and without what is secret."""
    settings = {key: value for key, value in {**pem, **changes}.items() if value is not None}
    with pytest.raises(ConfigError, match=told) as caught:
        context(settings)
    assert HUSH not in str(caught.value)


def test_keys_that_do_not_open(issued: KeyAndCertificate, tmp_path: Path) -> None:
    """A missing password is said so, and asked for at no terminal; old Java stores have a way."""
    inline = {
        "ssl.keystore.type": "PEM", "ssl.keystore.key": encrypted(issued),
        "ssl.keystore.certificate.chain": issued.certificate,
    }  # fmt: skip
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.key.*ssl\.key\.password is not set"):
        context(inline)
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.key"):
        context({**inline, "ssl.key.password": "wrong"})
    other = authority().server()
    with pytest.raises(ConfigError, match=r"(?i)mismatch"):
        context({**inline, "ssl.keystore.key": other.key})
    (tmp_path / "old.jks").write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    with pytest.raises(ConfigError, match="store that its passwords open"):
        context({"ssl.keystore.location": str(tmp_path / "old.jks"), "ssl.keystore.password": "x"})
