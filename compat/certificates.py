"""
A certificate authority that lives for one test broker, and what it issues. Needs the extra ``tls``.

Keys are of the curve P-256: they are made in a millisecond, and every client takes them.
"""

from __future__ import annotations

import datetime
import ipaddress
from typing import TYPE_CHECKING, NamedTuple

from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, GeneralName, KeyUsage, Name

_DAYS = 365
_HOSTS = ("localhost", "127.0.0.1", "::1")


class MissingTlsError(LogStoreError):
    """The extra ``tls`` is not installed."""


class KeyAndCertificate(NamedTuple):
    """A private key and its certificate, both as PEM."""

    key: str
    certificate: str


class CertificateAuthority:
    """
    Issues certificates that whoever trusts :attr:`certificate` takes.

    Raises:
        MissingTlsError: ``cryptography`` is not there.

    """

    def __init__(self) -> None:
        try:
            from cryptography.hazmat.primitives.asymmetric import ec
        except ImportError as error:
            raise MissingTlsError(
                "certificates need cryptography: pip install 'logstore-segments[tls]'"
            ) from error
        self._now = datetime.datetime.now(datetime.UTC)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("logstore test authority", organization=None)
        self._root = self._issue(self._name, self._key, self._key, hosts=None)
        #: what clients trust, as PEM
        self.certificate = _pem_of(self._root)

    def server(self) -> KeyAndCertificate:
        """Return what a server on this machine shows."""
        return self._issued(_name("localhost"), _HOSTS)

    def client(self, name: str) -> KeyAndCertificate:
        """Return what a client of that name shows; its whole name is ``CN=<name>,O=logstore``."""
        return self._issued(_name(name), ())

    def _issued(self, name: Name, hosts: tuple[str, ...]) -> KeyAndCertificate:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
        )

        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._issue(name, key, self._key, hosts)
        text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        return KeyAndCertificate(text, _pem_of(certificate))

    def _issue(
        self,
        name: Name,
        key: EllipticCurvePrivateKey,
        issuer_key: EllipticCurvePrivateKey,
        hosts: tuple[str, ...] | None,
    ) -> Certificate:
        """Return a certificate; the authority's own has no hosts at all."""
        from cryptography import x509
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.x509.oid import ExtendedKeyUsageOID

        public = key.public_key()
        is_root = hosts is None
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - datetime.timedelta(days=1))
            .not_valid_after(self._now + datetime.timedelta(days=_DAYS))
            .add_extension(x509.BasicConstraints(is_root, 0 if is_root else None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
                critical=False,
            )
            .add_extension(_usage(is_root=is_root), critical=True)
        )
        if hosts:
            names = x509.SubjectAlternativeName([_host(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        if not is_root:
            kind = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
            builder = builder.add_extension(x509.ExtendedKeyUsage([kind]), critical=False)
        return builder.sign(issuer_key, SHA256())


def _name(name: str, organization: str | None = "logstore") -> Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    parts = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    if organization is not None:
        parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(parts)


def _host(host: str) -> GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, is_root: bool) -> KeyUsage:
    from cryptography.x509 import KeyUsage

    return KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, key_cert_sign=is_root, crl_sign=is_root,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _pem_of(certificate: Certificate) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM).decode()
