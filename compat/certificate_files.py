"""Files with the certificates of a broker for tests: what clients trust, and what they show."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from logstore.compat.own_folder import OwnFolder

if TYPE_CHECKING:
    from logstore.compat.certificates import CertificateAuthority, KeyAndCertificate


class CertificateFiles:
    """Made when they are asked for, the same over restarts; :meth:`close` removes the files."""

    def __init__(self) -> None:
        self._files: OwnFolder | None = None
        self._authority: CertificateAuthority | None = None
        self._server: KeyAndCertificate | None = None

    @property
    def authority(self) -> CertificateAuthority:
        """Who issues certificates, made when somebody needs one. Raises MissingTlsError."""
        if self._authority is None:
            from logstore.compat.certificates import CertificateAuthority

            self._authority = CertificateAuthority()
        return self._authority

    @property
    def server(self) -> KeyAndCertificate:
        """What the broker shows. Raises MissingTlsError."""
        if self._server is None:
            self._server = self.authority.server()
        return self._server

    def ca_file(self) -> str:
        """Return the file of the certificate that clients are to trust."""
        return self.file("ca.pem", self.authority.certificate)

    def client_file(self, name: str) -> str:
        """Return a file with key and certificate of a client of that name."""
        issued = self.authority.client(name)
        return self.file(f"client-{name.encode().hex()}.pem", issued.key + issued.certificate)

    def file(self, name: str, text: str) -> str:
        """Return a file of that name; its text stays what it was first."""
        if self._files is None:
            self._files = OwnFolder("logstore-tls-")
        path = os.path.join(self._files.name, name)
        if not os.path.exists(path):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
        return path

    def close(self) -> None:
        """Remove the files."""
        if self._files is not None:
            self._files.remove()
            self._files = None
