"""
Users, mechanisms and certificates of a broker for tests, as the settings that a real one needs.

::

    Arrangement(users={"alice": "secret"}, mechanisms=("PLAIN",), has_tls=True)

is a listener ``SASL_SSL`` on a free port, with a certificate that was made for it. Listeners that
the settings name get what they need of it, and whatever else is set wins.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from logstore.compat.certificate_files import CertificateFiles
from logstore.compat.kafka.security.end_points import LISTENERS, end_points
from logstore.compat.kafka.security.sasl.plain import PLAIN
from logstore.compat.kafka.security.sasl.scram_mechanism import SCRAM_MECHANISMS

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker

#: what users may log in by where nothing else is said
USUAL_MECHANISMS = (PLAIN, *SCRAM_MECHANISMS)
_MODULES = "org.apache.kafka.common.security"


class Arrangement(CertificateFiles):
    """What is arranged stays the same over restarts; :meth:`close` removes the files."""

    def __init__(
        self, users: Mapping[str, str], mechanisms: Collection[str], *, has_tls: bool
    ) -> None:
        super().__init__()
        self.users = dict(users)
        self.mechanisms = tuple(mechanisms) or (USUAL_MECHANISMS if users else ())
        self.has_tls = has_tls

    def settings(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return `given` with what makes them whole."""
        protocol = "SASL_" if self.mechanisms else ""
        protocol += "SSL" if self.has_tls else "PLAINTEXT"
        found = {LISTENERS: f"{protocol}://:0", **given}
        for point in end_points(found, LISTENERS):
            prefix = f"listener.name.{point.name.lower()}."
            if point.protocol.has_sasl and self.mechanisms:
                found.setdefault(f"{prefix}sasl.enabled.mechanisms", ",".join(self.mechanisms))
                for mechanism in self.mechanisms:
                    key = f"{prefix}{mechanism.lower()}.sasl.jaas.config"
                    found.setdefault(key, self._jaas(mechanism))
            if point.protocol.has_tls and self.has_tls:
                self._add_certificates(found, prefix)
        return found

    def _jaas(self, mechanism: str) -> str:
        if mechanism == PLAIN:
            users = "".join(
                f' "user_{_quoted(name)}"="{_quoted(password)}"'
                for name, password in self.users.items()
            )
            return f"{_MODULES}.plain.PlainLoginModule required{users};"
        if mechanism in SCRAM_MECHANISMS:
            return f"{_MODULES}.scram.ScramLoginModule required;"
        return f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;"

    def _add_certificates(self, settings: dict[str, str], prefix: str) -> None:
        for key in ("ssl.keystore.location", "ssl.keystore.key"):
            if key in settings or prefix + key in settings:
                return
        arranged = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": self.server.key,
            "ssl.keystore.certificate.chain": self.server.certificate,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": self.authority.certificate,
        }
        for key, value in arranged.items():
            settings.setdefault(prefix + key, value)

    def enter_users(self, broker: Broker) -> None:
        """Let the users log in by SCRAM, those who cannot by their password yet."""
        known = broker.store.metadata.image.scram
        fresh = [
            mechanism.credential_of(name, password, broker.host.rng)
            for mechanism in (SCRAM_MECHANISMS.get(one) for one in self.mechanisms)
            if mechanism is not None
            for name, password in self.users.items()
            if (before := known.get((mechanism, name))) is None
            or not mechanism.is_of(before, password)
        ]
        if fresh:
            broker.store.metadata.change_users([], fresh)


def _quoted(text: str) -> str:
    """Return text for between double quotes in a JAAS configuration."""
    return text.replace("\\", "\\\\").replace('"', '\\"')
