"""Both sides of TLS in memory: certificates for tests, and a client that moves bytes by hand."""

from __future__ import annotations

import ssl
from functools import cache
from pathlib import Path

from logstore.compat.certificates import CertificateAuthority, KeyAndCertificate
from logstore.compat.connection import Connection
from logstore.segment import Extent


@cache
def authority() -> CertificateAuthority:
    """Return the authority of all tests of this process."""
    return CertificateAuthority()


def server_context(directory: Path, *, asks: ssl.VerifyMode = ssl.CERT_NONE) -> ssl.SSLContext:
    """Return what a server says of TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(written(directory / "server.pem", authority().server()))
    context.verify_mode = asks
    context.load_verify_locations(cadata=authority().certificate)
    return context


def client_context(directory: Path, name: str = "") -> ssl.SSLContext:
    """Return what a client says of TLS; one with a name shows a certificate."""
    context = ssl.create_default_context(cadata=authority().certificate)
    if name:
        context.load_cert_chain(written(directory / f"{name}.pem", authority().client(name)))
    return context


def written(path: Path, issued: KeyAndCertificate) -> str:
    """Write key and certificate into one file; return its name."""
    path.write_text(issued.key + issued.certificate)
    return str(path)


class TlsClient:
    """
    A client of a sans-IO connection; ciphertext goes over in pieces of at most `piece_bytes`.

    What the connection wants to send is taken as the driver takes it: until there is no more.
    """

    def __init__(
        self, connection: Connection, context: ssl.SSLContext, piece_bytes: int = 1 << 20
    ) -> None:
        self.connection = connection
        self._incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self.outgoing, server_hostname="localhost")
        self._piece_bytes = piece_bytes

    def shake_hands(self) -> None:
        """Do the handshake; raises ssl.SSLError if it fails."""
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                before = self._incoming.pending
                self.exchange()
                assert self._incoming.pending > before, "the server says nothing"
            else:
                self.exchange()
                return

    def send(self, data: bytes) -> None:
        """Send data."""
        self.tls.write(data)
        self.exchange()

    def exchange(self) -> None:
        """Move what both sides want to send."""
        data = self.outgoing.read()
        for start in range(0, len(data), self._piece_bytes):
            piece = data[start : start + self._piece_bytes]
            while piece:
                target = self.connection.writable()
                count = min(len(target), len(piece))
                target[:count] = piece[:count]
                self.connection.received(count)
                piece = piece[count:]
            self.take()
        self.take()

    def take(self) -> None:
        """Receive what the connection wants to send."""
        while output := self.connection.output:
            for chunk in output:
                assert not isinstance(chunk, Extent), "what is not encrypted must not go out"
                self._incoming.write(chunk)
            output.clear()

    def receive(self, limit_bytes: int = 1 << 30) -> bytes:
        """Return all that has come, decrypted."""
        pieces: list[bytes] = []
        while True:
            try:
                piece = self.tls.read(min(limit_bytes, 1 << 20))
            except ssl.SSLWantReadError:
                break
            if not piece:
                break
            pieces.append(piece)
        return b"".join(pieces)

    def is_told_goodbye(self) -> bool:
        """Tell whether the server has said that nothing follows."""
        try:
            return not self.tls.read(1)
        except ssl.SSLZeroReturnError:
            return True
        except ssl.SSLWantReadError:
            return False
