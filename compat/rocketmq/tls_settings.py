"""
RocketMQ's ``tls.*`` settings as an ``ssl.SSLContext`` (``TlsHelper``).

They are properties of the JVM there, and settings like all others here; a file that
``tls.config.file`` names wins over them. In the test mode, which is on unless it is switched off,
the certificate is made on the spot (extra ``tls``).
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING

from logstore.compat.certificates import CertificateAuthority, MissingTlsError
from logstore.compat.cipher_suites import offer_suites
from logstore.compat.tls import load_chain
from logstore.segments.rocketmq.settings.java_config import ConfigError, JavaConfig
from logstore.segments.rocketmq.settings.network_config_keys import TLS_KEYS

if TYPE_CHECKING:
    from logstore.compat.certificates import KeyAndCertificate

_KEYS = {key.name: key for key in TLS_KEYS}
_TEST_MODE, _FILE = "tls.test.mode.enable", "tls.config.file"
_KEY, _CERTIFICATE = "tls.server.keyPath", "tls.server.certPath"
_PASSWORD, _TRUSTED = "tls.server.keyPassword", "tls.server.trustCertPath"
_VERSIONS = {
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_CLIENT_AUTH = {"optional": ssl.CERT_OPTIONAL, "require": ssl.CERT_REQUIRED}
#: what the file of its own does not say
_OF_PROCESS = ("tls.server.mode", "tls.enable", _FILE)


def tls_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    """
    Return what the settings say of TLS.

    Raises:
        ConfigError: there is no certificate, or what there is cannot be read.

    """
    config = _config(settings)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION
    _limit(context, config)
    chain = key_and_certificate(settings)
    try:
        password = config.text(_PASSWORD) or None
        load_chain(context, f"{chain.key}\n{chain.certificate}\n".encode(), password, _PASSWORD)
    except (ssl.SSLError, ValueError) as error:
        raise _refusal(config, _KEY, f"a private key with its certificate: {error}") from None
    if not config.boolean(_TEST_MODE):
        _ask_for_certificates(context, config)
    return context


def key_and_certificate(settings: Mapping[str, str]) -> KeyAndCertificate:
    """Return what a server shows, as PEM; made for it in the test mode. Raises ConfigError."""
    config = _config(settings)
    if config.boolean(_TEST_MODE):
        try:
            return CertificateAuthority().server()
        except MissingTlsError as error:
            raise ConfigError(_TEST_MODE, "true", str(error)) from None
    from logstore.compat.certificates import KeyAndCertificate

    return KeyAndCertificate(_read(config, _KEY), _read(config, _CERTIFICATE))


def _config(settings: Mapping[str, str]) -> JavaConfig:
    config = JavaConfig(_KEYS, {name: settings[name] for name in _KEYS if name in settings})
    try:
        with open(config.text(_FILE), encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError:
        return config
    found = dict(line.split("=", 1) for line in lines if "=" in line and line[:1] not in "#!")
    stripped = {name.strip(): value.strip() for name, value in found.items()}
    config.update({name: value for name, value in stripped.items() if name not in _OF_PROCESS})
    return config


def _read(config: JavaConfig, key: str) -> str:
    path = config.text(key)
    if not path:
        raise ConfigError(key, "", f"a file (PEM), since {_TEST_MODE}=false")
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise _refusal(config, key, f"a file (PEM) that can be read: {error}") from None


def _limit(context: ssl.SSLContext, config: JavaConfig) -> None:
    """Offer only what is named of versions and suites."""
    names = [name for name in config.text("tls.protocols").split(",") if name]
    wanted = [_VERSIONS[name] for name in names if name in _VERSIONS]
    if len(wanted) < len(names):
        raise _refusal(config, "tls.protocols", ", ".join(_VERSIONS))
    if wanted:
        context.minimum_version, context.maximum_version = min(wanted), max(wanted)
    try:
        offer_suites(context, [name for name in config.text("tls.ciphers").split(",") if name])
    except ssl.SSLError:
        raise _refusal(config, "tls.ciphers", "suites that OpenSSL knows") from None


def _ask_for_certificates(context: ssl.SSLContext, config: JavaConfig) -> None:
    """
    Ask clients for certificates if the settings do.

    Java may ask for one and trust whoever shows any; here who must show one must be trusted.
    """
    wanted = _CLIENT_AUTH.get(config.text("tls.server.need.client.auth").strip().lower())
    if wanted is None or (
        wanted is ssl.CERT_OPTIONAL and not config.boolean("tls.server.authClient")
    ):
        return
    context.verify_mode = wanted
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if not config.text(_TRUSTED):
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
        return
    try:
        context.load_verify_locations(cadata=_read(config, _TRUSTED))
    except ssl.SSLError as error:
        raise _refusal(config, _TRUSTED, f"certificates: {error}") from None


def _refusal(config: JavaConfig, key: str, expected: str) -> ConfigError:
    return ConfigError(key, config.text(key), expected)
