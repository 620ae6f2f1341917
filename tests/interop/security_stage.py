"""Two brokers with the same listeners, users and certificates: the real one, and ours."""

from __future__ import annotations

import importlib
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from logstore.compat.certificates import CertificateAuthority
from logstore.tools.dev.free_ports import free_port
from logstore.tools.dev.kafka_peer import KafkaPeer
from logstore.tools.dev.maven import PeerUnavailable
from tests.interop.clients import settings
from tests.interop.conftest import SETTINGS, missing
from tests.interop.eventually import eventually
from tests.interop.our_broker import OurBroker
from tests.interop.raw_wire import Wire

kafka_admin: Any = importlib.import_module("confluent_kafka.admin")  # carries few types

#: every listener by its name, with its protocol; MUTUAL asks for certificates, SHORT for passwords
#: again and again
PROTOCOLS = {
    "PLAIN": "PLAINTEXT",
    "SASL": "SASL_PLAINTEXT",
    "SHORT": "SASL_PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "BOTH": "SASL_SSL",
}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
PASSWORDS = {"alice": "alice-secret", 'b,o=b "x"': "pass word"}
SHORT_MS = 2000
_LOGIN = "org.apache.kafka.common.security"
_JAAS = {
    "PLAIN": f"{_LOGIN}.plain.PlainLoginModule required "
    'user_alice="alice-secret" "user_b,o=b \\"x\\""="pass word";',
    "SCRAM-SHA-256": f"{_LOGIN}.scram.ScramLoginModule required;",
    "SCRAM-SHA-512": f"{_LOGIN}.scram.ScramLoginModule required;",
    "OAUTHBEARER": f"{_LOGIN}.oauthbearer.OAuthBearerLoginModule required "
    'unsecuredLoginStringClaim_sub="broker" unsecuredValidatorAllowableClockSkewMs="1000";',
}


@attrs.frozen
class Certificates:
    """Files that both brokers and their clients use."""

    ca: Path
    server: Path
    alice: Path
    stranger: Path

    @classmethod
    def made_in(cls, directory: Path) -> Certificates:
        """Make an authority, what it issues, and a client of another authority."""
        ours, other = CertificateAuthority(), CertificateAuthority()
        issued = {
            "server": ours.server(),
            "alice": ours.client("alice"),
            "stranger": other.client("alice"),
        }
        found = {"ca": directory / "ca.pem"}
        found["ca"].write_text(ours.certificate)
        for name, one in issued.items():
            found[name] = directory / f"{name}.pem"
            found[name].write_text(one.key + one.certificate)
        return cls(**found)


def security_settings(
    ports: dict[str, int], certificates: Certificates, more: Mapping[str, Any] = {}
) -> dict[str, Any]:
    """Return what ``server.properties`` says of the listeners, and what more it shall say."""
    found: dict[str, Any] = SETTINGS | {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in PROTOCOLS.items()
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": certificates.server,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": certificates.ca,
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.short.connections.max.reauth.ms": SHORT_MS,
        "delegation.token.secret.key": "what tokens are made with",
    }
    for name, protocol in PROTOCOLS.items():
        if protocol.startswith("SASL"):
            prefix = f"listener.name.{name.lower()}."
            found[f"{prefix}sasl.enabled.mechanisms"] = ",".join(MECHANISMS)
            for mechanism, jaas in _JAAS.items():
                found[f"{prefix}{mechanism.lower()}.sasl.jaas.config"] = jaas
    return {**found, **more}


@attrs.frozen
class Secured:
    """One of the brokers: the addresses of its listeners, and the files of its clients."""

    name: str
    listeners: dict[str, str]
    certificates: Certificates
    broker: KafkaPeer | OurBroker

    def client(self, listener: str, user: str = "", **more: str) -> dict[str, Any]:
        """Return librdkafka's settings for a listener; a user logs in by SCRAM-SHA-256."""
        protocol = PROTOCOLS[listener]
        found = settings(self.listeners[listener]) | {"security.protocol": protocol}
        if "SSL" in protocol:
            found["ssl.ca.location"] = str(self.certificates.ca)
        if user:
            found |= {
                "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.username": user,
                "sasl.password": PASSWORDS.get(user, ""),
            }
        return found | {key.replace("_", "."): value for key, value in more.items()}


@contextmanager
def real_secured(
    directory: Path, certificates: Certificates, more: Mapping[str, Any] = {}
) -> Generator[Secured]:
    """Run a real Kafka, or end the test as `missing` says."""
    ports: dict[str, int] = {}
    while len(ports) < len(PROTOCOLS):
        port = free_port(1)
        if port is not None and not {port, port + 1} & {*ports.values()}:
            ports[[*PROTOCOLS][len(ports)]] = port
    given = security_settings(ports, certificates, more)
    controller = f"127.0.0.1:{ports['PLAIN'] + 1}"
    given["advertised.listeners"] = given["listeners"]
    given["listeners"] = f"{given['listeners']},CONTROLLER://{controller}"
    given["listener.security.protocol.map"] = (
        f"{given['listener.security.protocol.map']},CONTROLLER:PLAINTEXT"
    )
    given["inter.broker.listener.name"] = "PLAIN"
    # a properties file has backslashes of its own
    given = {key: str(value).replace("\\", "\\\\") for key, value in given.items()}
    peer = KafkaPeer("4", directory, port=ports["PLAIN"], settings=given)
    try:
        peer.start()
    except PeerUnavailable as reason:
        missing(str(reason))
    try:
        addresses = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
        wait_for_all(addresses)
        yield Secured("real", addresses, certificates, peer)
    finally:
        peer.stop()


def wait_for_all(addresses: Mapping[str, str]) -> None:
    """Wait until a real broker listens everywhere: it opens one listener after the other."""
    for address in addresses.values():
        eventually(partial(is_open, address), what=address)


def is_open(address: str) -> bool:
    """Tell whether somebody accepts connections."""
    try:
        Wire(address).close()
    except ConnectionRefusedError:
        return False
    return True


@contextmanager
def our_secured(
    directory: Path,
    certificates: Certificates,
    data: Path | None = None,
    more: Mapping[str, Any] = {},
) -> Generator[Secured]:
    """Run `logstore serve` with the same settings, on ports that the system chooses."""
    given = security_settings(dict.fromkeys(PROTOCOLS, 0), certificates, more)
    with OurBroker(directory, given, data) as broker:
        yield Secured("ours", broker.listeners, certificates, broker)


@contextmanager
def both_secured(directory: Path, more: Mapping[str, Any] = {}) -> Generator[list[Secured]]:
    """Run the real one and ours, with users who can log in by SCRAM."""
    for name in ("real", "ours"):
        (directory / name).mkdir()
    certificates = Certificates.made_in(directory)
    with ExitStack() as stack:
        found = [
            stack.enter_context(real_secured(directory / "real", certificates, more)),
            stack.enter_context(our_secured(directory / "ours", certificates, more=more)),
        ]
        for one in found:
            enter_users(one.listeners["PLAIN"])
        yield found


def enter_users(bootstrap: str) -> None:
    """Let the users log in by both kinds of SCRAM, and wait until the broker knows them."""
    admin = kafka_admin.AdminClient(settings(bootstrap))
    kinds = (kafka_admin.ScramMechanism.SCRAM_SHA_256, kafka_admin.ScramMechanism.SCRAM_SHA_512)
    for kind in kinds:
        asked = [
            kafka_admin.UserScramCredentialUpsertion(
                user, kafka_admin.ScramCredentialInfo(kind, 4096), password.encode()
            )
            for user, password in PASSWORDS.items()
        ]
        for done in admin.alter_user_scram_credentials(asked).values():
            done.result(30)
    everybody = dict.fromkeys(PASSWORDS, 2)
    eventually(lambda: scram_users(admin) == everybody, what="users")


def scram_users(admin: Any) -> dict[str, int]:
    """Return how many SCRAM credentials each user has."""
    found = admin.describe_user_scram_credentials().result(30)
    return {user: len(one.scram_credential_infos) for user, one in found.items()}
