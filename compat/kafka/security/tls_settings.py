"""
Kafka's ``ssl.*`` settings of one listener as an ``ssl.SSLContext``.

Key and trust stores are PEM, inline or in a file, PKCS12, which ``cryptography`` reads (extra
``tls``), or JKS, Java's own format. Under either of the types JKS (Kafka's default) and PKCS12 the
other format is read too, as by Java. Source: ``DefaultSslEngineFactory``, ``SslFactory``.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from logstore.compat.kafka.security import java_keystore
from logstore.compat.kafka.security.cipher_suites import restrict_ciphers
from logstore.compat.kafka.security.java_keystore import (
    JavaKeystore,
    KeystoreError,
    pem,
    unprotected,
)
from logstore.compat.tls import load_chain
from logstore.segments.kafka.config_keys import ConfigError

if TYPE_CHECKING:
    from logstore.compat.kafka.security.listener_settings import ListenerSettings

_PEM = "PEM"
_VERSIONS = {
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_KEYSTORE, _TRUSTSTORE, _AUTH = "ssl.keystore", "ssl.truststore", "ssl.client.auth"


def tls_context(settings: ListenerSettings, *, has_sasl: bool) -> ssl.SSLContext:
    """
    Return what a listener's settings say of TLS.

    Where clients say by SASL who they are, they are asked for a certificate only if the listener
    has ``ssl.client.auth`` of its own.

    Raises:
        ConfigError: there is no key, or what there is cannot be read.

    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    _limit_versions(context, settings)
    restrict_ciphers(context, settings)
    chain, password = _key_store(settings)
    try:
        load_chain(context, chain, password, "ssl.key.password")
    except (ssl.SSLError, ValueError) as error:
        is_file = settings.text("ssl.keystore.location") is not None
        key = "ssl.keystore.location" if is_file else "ssl.keystore.key"
        raise settings.refusal(
            key, f"must have a private key and its certificates: {error}"
        ) from None
    is_asked = not has_sasl or settings.is_own(_AUTH)
    context.verify_mode = (
        _CLIENT_AUTH[settings.text(_AUTH) or "none"] if is_asked else ssl.CERT_NONE
    )
    if context.verify_mode is not ssl.CERT_NONE:
        _load_trusted(context, settings)
    return context


def _limit_versions(context: ssl.SSLContext, settings: ListenerSettings) -> None:
    key = "ssl.enabled.protocols"
    names = settings.names(key)
    wanted = [_VERSIONS[name] for name in names if name in _VERSIONS]
    if len(wanted) < len(names):
        raise settings.refusal(key, f"must be of {', '.join(_VERSIONS)}")
    if wanted:
        context.minimum_version, context.maximum_version = min(wanted), max(wanted)


def _key_store(settings: ListenerSettings) -> tuple[bytes, str | None]:
    """Return key and certificates as PEM, and the key's password."""
    kind = settings.text("ssl.keystore.type")
    key = settings.text("ssl.keystore.key")
    chain = settings.text("ssl.keystore.certificate.chain")
    path = settings.text("ssl.keystore.location")
    password = settings.text("ssl.key.password")
    if key is not None:
        if kind != _PEM:
            raise settings.refusal("ssl.keystore.key", f"must not be set for the type {kind}")
        if chain is None:
            raise settings.refusal("ssl.keystore.certificate.chain", "must be set with the key")
        if path is not None:
            raise settings.refusal("ssl.keystore.location", "must not be set with ssl.keystore.key")
        return f"{key}\n{chain}\n".encode(), password
    if path is None:
        raise settings.refusal(
            "ssl.keystore.location", "must be set, or ssl.keystore.key: TLS needs a certificate"
        )
    return _store(settings, _KEYSTORE, path), password


def _load_trusted(context: ssl.SSLContext, settings: ListenerSettings) -> None:
    """Let clients in whose certificates come from somebody who is trusted, or are so themselves."""
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    inline = settings.text("ssl.truststore.certificates")
    path = settings.text("ssl.truststore.location")
    if inline is None and path is None:
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
        return
    if inline is not None and settings.text("ssl.truststore.type") != _PEM:
        raise settings.refusal("ssl.truststore.certificates", "must have the type PEM")
    try:
        trusted = inline if path is None else _store(settings, _TRUSTSTORE, path).decode("ascii")
        context.load_verify_locations(cadata=trusted)
    except (ssl.SSLError, ValueError) as error:
        key = "ssl.truststore.certificates" if path is None else "ssl.truststore.location"
        raise settings.refusal(key, f"must have certificates: {error}") from None


def _store(settings: ListenerSettings, family: str, path: str) -> bytes:
    """Return what stands in a store, as PEM."""
    key = f"{family}.location"
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise settings.refusal(key, f"must be a file that can be read: {error.strerror}") from None
    kind = settings.text(f"{family}.type")
    if kind == _PEM:
        return data
    if kind not in ("JKS", "PKCS12"):
        raise settings.refusal(f"{family}.type", "must be PEM, PKCS12 or JKS")
    if data.startswith(java_keystore.MAGIC):
        return _pem_of_jks(settings, family, data)
    return _pem_of_pkcs12(settings, family, data)


def _pem_of_jks(settings: ListenerSettings, family: str, data: bytes) -> bytes:
    password = settings.text(f"{family}.password")
    key_password = settings.text("ssl.key.password") or password or ""
    try:
        store = JavaKeystore.read(data, password)
        certificates, pieces = store.trusted, list[bytes]()
        if family == _KEYSTORE and store.keys:
            protected, certificates = store.keys[0]
            pieces.append(pem("PRIVATE KEY", unprotected(protected, key_password)))
    except KeystoreError as error:
        raise settings.refusal(
            f"{family}.location", f"must be a store that its passwords open: {error}"
        ) from None
    return b"".join([*pieces, *(pem("CERTIFICATE", one) for one in certificates)])


def _pem_of_pkcs12(settings: ListenerSettings, family: str, data: bytes) -> bytes:
    try:
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
            pkcs12,
        )
    except ImportError:
        raise ConfigError(
            f"{family}.type", settings.text(f"{family}.type"),
            "must be PEM where the extra `tls` is not installed",
        ) from None  # fmt: skip
    password = settings.text(f"{family}.password")
    try:
        found = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        raise settings.refusal(
            f"{family}.location", f"must be PKCS12 that {family}.password opens"
        ) from None
    pieces: list[bytes] = []
    if found.key is not None:
        pieces.append(found.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    certificates = [one for one in (found.cert, *found.additional_certs) if one is not None]
    pieces += [one.certificate.public_bytes(Encoding.PEM) for one in certificates]
    return b"".join(pieces)
