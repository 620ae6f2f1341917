"""
Users and certificates of a RocketMQ broker for tests, as the settings that it needs.

Users sign, and may do everything unless the settings say ``authorizationEnabled``. With TLS both
ports, and the proxy's, speak nothing else. Whatever else is set wins.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from logstore.compat.certificate_files import CertificateFiles
from logstore.compat.rocketmq.auth.settings import LOCAL_PROVIDERS
from logstore.segments.rocketmq.tables.access import User

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker


class Arrangement(CertificateFiles):
    """What is arranged stays the same over restarts; :meth:`close` removes the files."""

    def __init__(self, users: Mapping[str, str], *, has_tls: bool) -> None:
        super().__init__()
        self.users = dict(users)
        self.has_tls = has_tls

    def settings(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return `given` with what makes them whole."""
        found: dict[str, str] = {}
        if self.users:
            found |= {"authenticationEnabled": "true", **LOCAL_PROVIDERS}
        if self.has_tls:
            found |= {
                "tls.server.mode": "enforcing",
                "tls.test.mode.enable": "false",
                "tls.config.file": os.devnull,
                "tls.server.keyPath": self.file("server-key.pem", self.server.key),
                "tls.server.certPath": self.file("server.pem", self.server.certificate),
                "tls.server.authClient": "true",
                "tls.server.trustCertPath": self.ca_file(),
            }
        return found | dict(given)

    def enter_users(self, broker: Broker) -> None:
        """Let the users in by the passwords that they have now; what else they are stays."""
        for name, password in self.users.items():
            known = broker.access.table.users.get(name)
            if known is None or known.password != password:
                kept = () if known is None else (known.user_type, known.user_status)
                broker.access.put_user(User(name, password, *kept))
