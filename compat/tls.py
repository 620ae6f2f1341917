"""
TLS between a peer's socket and a connection, which knows nothing of it: bytes in, bytes out.

A :class:`TlsConnection` is a connection to the driver and a driver to the connection within. What
arrives goes through an ``ssl.SSLObject`` into the memory that the inner connection offers; what it
wants to send is sealed when the driver asks for it, some records at a time, so that a long answer
never stands in memory as a whole. Runs of files are read for it: who encrypts cannot leave
them to ``sendfile``. Plain connections are not touched by any of this.
"""

from __future__ import annotations

import contextlib
import logging
import os
import ssl
import tempfile
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, cast

from logstore.errors import LogStoreError
from logstore.segment import Extent

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk, Connection

_log = logging.getLogger(__name__)

#: so much ciphertext is received at a time
_LANDING_BYTES = 256 * 1024
#: so much is sealed before the driver has sent it
_SEALED_BYTES = 256 * 1024

#: learns of each peer whose handshake is done; a LogStoreError ends the connection
OnHandshake = Callable[[ssl.SSLObject], None]


def load_chain(
    context: ssl.SSLContext, pem: bytes, password: str | None, password_setting: str
) -> None:
    """
    Load key and certificates, which the library takes from files only, from memory.

    Raises:
        ssl.SSLError: that they are not.
        ValueError: the key is encrypted, and there is no password.

    """

    def no_password() -> str:
        raise ValueError(f"the key is encrypted, and {password_setting} is not set")

    with _short_lived_file(pem) as path:
        # without a password the library would ask for one at the terminal
        context.load_cert_chain(path, password=password if password is not None else no_password)


@contextlib.contextmanager
def _short_lived_file(content: bytes) -> Generator[str]:
    """Yield the path of a file that nobody else can read; where Linux is, of no disk either."""
    if not hasattr(os, "memfd_create"):
        with tempfile.NamedTemporaryFile(prefix="logstore-key") as file:
            file.write(content)
            file.flush()
            yield file.name
        return
    descriptor = os.memfd_create("logstore-key")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


class TlsServer:
    """What all TLS connections of one listener share; one thread serves them."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.context = context
        #: where ciphertext arrives; it is taken out of here before anything else happens
        self.landing = memoryview(bytearray(_LANDING_BYTES))

    def wrap(self, inner: Connection, on_handshake: OnHandshake | None = None) -> TlsConnection:
        """Return `inner` as it is to a peer who speaks TLS."""
        return TlsConnection(self, inner, on_handshake)


class TlsConnection:
    """
    Implements :class:`logstore.compat.connection.Connection` over another one.

    A peer who does not keep to TLS, or whose certificate is refused, gets the alert that says so
    and is hung up on; the inner connection never sees a byte of him.
    """

    __slots__ = (
        "_has_said_goodbye",
        "_incoming",
        "_inner",
        "_is_over",
        "_is_secure",
        "_landing",
        "_on_handshake",
        "_outgoing",
        "_sealed",
        "_tls",
        "on_output",
    )

    def __init__(
        self, server: TlsServer, inner: Connection, on_handshake: OnHandshake | None
    ) -> None:
        self.on_output: Callable[[], None] | None = None
        self._inner = inner
        inner.on_output = self._on_inner_output
        self._on_handshake = on_handshake
        self._landing = server.landing
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = server.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._sealed: list[Chunk] = []
        #: the handshake is done
        self._is_secure = False
        #: nothing more will be read
        self._is_over = False
        self._has_said_goodbye = False

    @property
    def is_closing(self) -> bool:
        """Tell whether nothing more will be read."""
        return self._is_over or self._inner.is_closing

    @property
    def is_waiting(self) -> bool:
        """Tell whether an answer is awaited."""
        return self._inner.is_waiting

    @property
    def output(self) -> list[Chunk]:
        """The next ciphertext to be sent; once it is gone there may be more."""
        if not self._sealed and self._is_secure:
            self._seal()
        return self._sealed

    def writable(self) -> memoryview:
        """Return where to put the next bytes."""
        return self._landing

    def received(self, count: int) -> None:
        """Decrypt what has arrived, and let the inner connection have it."""
        self._incoming.write(self._landing[:count])
        try:
            if self._is_secure or self._shake_hands():
                self._open()
        except (ssl.SSLError, LogStoreError) as error:
            _log.info("no TLS with a peer: %s", error)
            self._is_over = True
        if self._outgoing.pending:
            self._sealed.append(self._outgoing.read())

    def lost(self) -> None:
        """Take note that the peer is gone."""
        self._inner.lost()

    def _on_inner_output(self) -> None:
        if self.on_output is not None:
            self.on_output()

    def _shake_hands(self) -> bool:
        """Tell whether the handshake is done."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        self._is_secure = True
        if self._on_handshake is not None:
            self._on_handshake(self._tls)
        return True

    def _open(self) -> None:
        """
        Hand all that can be decrypted to the inner connection.

        That is so even while it awaits an answer: it is at most what came in one go, and waits
        there as it would in the kernel.
        """
        inner = self._inner
        while not inner.is_closing:
            target = inner.writable()
            count = self._fill(target)
            if count:
                inner.received(count)
            if count < len(target):
                return

    def _fill(self, target: memoryview) -> int:
        """Decrypt into `target`, record by record; return how many bytes there are."""
        filled = 0
        while filled < len(target):
            try:
                count = cast("int", self._tls.read(len(target) - filled, target[filled:]))
            except ssl.SSLWantReadError:
                break
            if not count:  # the peer has said goodbye
                self._is_over = True
                break
            filled += count
        return filled

    def _seal(self) -> None:
        """Encrypt the next piece of what the inner connection wants to send."""
        output = self._inner.output
        try:
            if output:
                data = _taken(output)
                if data:
                    self._tls.write(data)
            elif self.is_closing and not self._has_said_goodbye:
                self._has_said_goodbye = True
                self._say_goodbye()
        except (OSError, EOFError, LogStoreError) as error:
            # A file cannot be read, or TLS has broken down: what was promised cannot be kept.
            _log.info("hanging up on a peer: %s", error)
            output.clear()
            self._is_over = self._has_said_goodbye = True
            return
        if self._outgoing.pending:
            self._sealed.append(self._outgoing.read())

    def _say_goodbye(self) -> None:
        """Tell the peer that nothing follows, so that it need not suspect that it was cut off."""
        try:
            self._tls.unwrap()
        except ssl.SSLError:
            return  # its own goodbye is not waited for


def _taken(output: list[Chunk]) -> bytes:
    """Take from the front of `output` what is sealed in one go; of runs of files, a part."""
    pieces: list[bytes | bytearray | memoryview] = []
    room = _SEALED_BYTES
    while output and room > 0:
        chunk = output[0]
        if not isinstance(chunk, Extent):
            piece: bytes | bytearray | memoryview = chunk
            if len(chunk) > room:
                view = memoryview(chunk)
                piece, output[0] = view[:room], view[room:]
            else:
                del output[0]
        else:
            wanted = min(chunk.size_bytes, room)
            piece = chunk.file.read(chunk.position, wanted)
            if not piece:
                raise EOFError(f"{chunk.file.path} ends before what was promised of it")
            if len(piece) < chunk.size_bytes:
                output[0] = Extent(
                    chunk.file, chunk.position + len(piece), chunk.size_bytes - len(piece)
                )
            else:
                del output[0]
        pieces.append(piece)
        room -= len(piece)
    return b"".join(pieces)
