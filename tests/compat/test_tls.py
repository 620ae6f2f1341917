"""TLS over a connection that knows nothing of it: every byte, in pieces of every size."""

from __future__ import annotations

import os
import socket
import ssl
import struct
import tempfile
from pathlib import Path

import pytest

from logstore.compat.connection import Chunk, Connection
from logstore.compat.running import Entrance, ServerThread
from logstore.compat.tls import TlsServer, load_chain
from logstore.errors import LogStoreError
from logstore.os_host import SystemFileSystem
from logstore.segment import Extent
from tests.compat.scripted_service import (
    SECONDS_MAX,
    Answer,
    ScriptedConnection,
    ScriptedService,
    always,
    echo,
)
from tests.compat.server_stage import MIB, Client, Stage
from tests.compat.tls_peers import TlsClient, authority, client_context, server_context


def framed(payload: bytes) -> bytes:
    """Return a frame."""
    return struct.pack(">i", len(payload)) + payload


class Pair:
    """A script behind TLS, and its client."""

    def __init__(
        self, directory: Path, answer: Answer = echo, piece_bytes: int = 1 << 20, name: str = "",
        asks: ssl.VerifyMode = ssl.CERT_NONE,
    ) -> None:  # fmt: skip
        self.inner = ScriptedConnection(ScriptedService(answer))
        self.names: list[str] = []
        server = TlsServer(server_context(directory, asks=asks))
        self.connection = server.wrap(self.inner, self._know)
        self.client = TlsClient(self.connection, client_context(directory, name), piece_bytes)

    def _know(self, tls: ssl.SSLObject) -> None:
        self.names.append(repr(tls.getpeercert()))
        if "eve" in self.names[-1]:
            raise LogStoreError("nobody likes eve")


@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 5, 100, 16_384, 16_406, 1 << 20])
def test_frames_in_pieces_of_every_size(tmp_path: Path, piece_bytes: int) -> None:
    """However the ciphertext is cut, the frames come whole, and so do the answers."""
    pair = Pair(tmp_path, piece_bytes=piece_bytes)
    pair.client.shake_hands()
    sizes = [0, 1, 100, 16_380, 16_384, 16_385] + ([70_000, 600_000] if piece_bytes > 99 else [])
    for size in sizes:
        payload = bytes(range(251)) * (size // 251 + 1)
        pair.client.send(framed(payload[:size]))
        assert pair.client.receive() == framed(payload[:size])
    pair.client.send(b"".join(framed(b"x" * size) for size in range(300)))
    assert pair.client.receive() == b"".join(framed(b"x" * size) for size in range(300))


def test_requests_come_with_the_end_of_the_handshake(tmp_path: Path) -> None:
    """A client may send before the server has seen that it is through."""
    pair = Pair(tmp_path)
    with pytest.raises(ssl.SSLWantReadError):
        pair.client.tls.do_handshake()
    pair.client.exchange()
    pair.client.tls.do_handshake()
    pair.client.tls.write(framed(b"early"))
    pair.client.exchange()
    assert pair.client.receive() == framed(b"early")


def test_runs_of_files_are_sealed_a_piece_at_a_time(tmp_path: Path) -> None:
    """Six megabytes are never there as a whole, and nothing of a file goes out as it stands."""
    data = b"".join(struct.pack(">I", number) for number in range(MIB // 2))
    (tmp_path / "log").write_bytes(data)
    extent = Extent(SystemFileSystem().open(str(tmp_path / "log")), 0, len(data))
    answer: list[Chunk] = [b"head", extent, b"", bytearray(b"between"), extent, memoryview(b"end")]
    pair = Pair(tmp_path, always(*answer))
    pair.client.shake_hands()
    pair.client.tls.write(framed(b"go"))
    sealed: list[int] = []
    take = pair.client.take

    def watched() -> None:
        sealed.append(sum(len(c) for c in pair.connection.output if not isinstance(c, Extent)))
        take()

    pair.client.take = watched  # type: ignore[method-assign]
    pair.client.exchange()
    assert max(sealed) <= 300 * 1024
    assert pair.client.receive() == b"head" + data + b"between" + data + b"end"


def test_a_file_that_is_too_short_ends_the_connection(tmp_path: Path) -> None:
    """What was promised of it cannot be kept."""
    (tmp_path / "log").write_bytes(b"x" * 10)
    extent = Extent(SystemFileSystem().open(str(tmp_path / "log")), 0, 20)
    pair = Pair(tmp_path, always(b"head", extent))
    pair.client.shake_hands()
    pair.client.send(framed(b"go"))
    assert pair.connection.is_closing
    assert not pair.connection.output


def test_an_answer_that_comes_later(tmp_path: Path) -> None:
    """The driver is told of it; what the client sent meanwhile is served after it."""

    def answer(connection: ScriptedConnection, payload: bytes) -> list[Chunk]:
        if payload == b"wait":
            connection.is_waiting = True
            return []
        return [framed(payload)]

    pair = Pair(tmp_path, answer)
    told: list[int] = []
    pair.connection.on_output = lambda: told.append(1)
    pair.client.shake_hands()
    pair.client.send(framed(b"wait") + framed(b"next"))
    assert pair.connection.is_waiting
    assert pair.client.receive() == b""
    pair.inner.come_back([framed(b"at last")])
    assert told == [1]
    pair.client.take()
    assert pair.client.receive() == framed(b"at last") + framed(b"next")


def test_a_certificate_says_who_the_client_is(tmp_path: Path) -> None:
    """Whoever is asked for it shows it; a client that is not let in hears an alert."""
    pair = Pair(tmp_path, name="alice", asks=ssl.CERT_REQUIRED)
    pair.client.shake_hands()
    assert "alice" in pair.names[0]
    pair = Pair(tmp_path, name="eve", asks=ssl.CERT_REQUIRED)
    pair.client.shake_hands()
    assert pair.connection.is_closing
    pair = Pair(tmp_path, asks=ssl.CERT_REQUIRED)
    pair.client.shake_hands()
    with pytest.raises(ssl.SSLError, match=r"(?i)certificate required"):
        pair.client.receive()
    assert pair.connection.is_closing
    assert pair.names == []


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n\r\n", struct.pack(">ihhi", 8, 18, 0, 1), bytes(100), b"\x16\x03"]
)
def test_what_is_no_tls(tmp_path: Path, data: bytes) -> None:
    """A client that does not speak TLS is hung up on; the connection within never hears of it."""
    pair = Pair(tmp_path)
    pair.connection.writable()[: len(data)] = data
    pair.connection.received(len(data))
    assert pair.connection.is_closing == (len(data) > 2)
    assert not pair.inner.frames.pending()


def test_damaged_records_end_the_connection(tmp_path: Path) -> None:
    """A byte that was altered on the way is not taken for one that was sent."""
    pair = Pair(tmp_path)
    pair.client.shake_hands()
    pair.client.tls.write(framed(b"x" * 100))
    data = bytearray(pair.client.outgoing.read())
    data[50] ^= 1
    pair.connection.writable()[: len(data)] = data
    pair.connection.received(len(data))
    assert pair.connection.is_closing
    assert pair.inner.service.handled == 0


def test_both_sides_say_goodbye(tmp_path: Path) -> None:
    """A server that hangs up says so first; a client that says it is not read any more."""

    def answer(connection: ScriptedConnection, payload: bytes) -> list[Chunk]:
        connection.is_closing = True
        return [framed(payload)]

    pair = Pair(tmp_path, answer)
    pair.client.shake_hands()
    pair.client.send(framed(b"the last"))
    assert pair.client.receive() == framed(b"the last")
    assert pair.client.is_told_goodbye()
    assert not pair.connection.output
    pair = Pair(tmp_path)
    pair.client.shake_hands()
    with pytest.raises(ssl.SSLWantReadError):
        pair.client.tls.unwrap()
    pair.client.exchange()
    assert pair.connection.is_closing
    pair.connection.lost()
    assert pair.inner.is_lost


# over sockets


class SecureStage(Stage):
    """A script that is served over TLS."""

    def serve_tls(self, directory: Path, answer: Answer) -> None:
        """Start to serve it."""
        service = ScriptedService(answer)
        server = TlsServer(server_context(directory))
        ports: list[int] = []

        def connect(host: str, port: int) -> Connection:
            return server.wrap(service.connect(host, port))

        entrance = Entrance("127.0.0.1", 0, connect, ports.append)
        self.thread = ServerThread(service, lambda _: None, listens=False, entrances=[entrance])
        self.thread.start("127.0.0.1", 0)
        self._exits.callback(self.thread.stop)
        self.port = ports[0]

    def secure_client(self, directory: Path, *, receive_buffer_bytes: int = 0) -> Client:
        """Connect by TLS."""
        client = self.client(receive_buffer_bytes=receive_buffer_bytes)
        secure = client_context(directory).wrap_socket(client.socket, server_hostname="localhost")
        secure.settimeout(SECONDS_MAX)
        client.socket = secure
        self._exits.callback(secure.close)
        return client


def test_over_sockets_a_slow_reader_gets_every_byte(tmp_path: Path) -> None:
    """Runs of files and bytes between them, through a few KiB of buffer at a time."""
    data = b"".join(struct.pack(">I", number) for number in range(MIB // 2))
    (tmp_path / "log").write_bytes(data)
    extent = Extent(SystemFileSystem().open(str(tmp_path / "log")), 0, len(data))
    stage = SecureStage()
    try:
        stage.serve_tls(tmp_path, always(b"head", extent, b"middle", extent))
        client = stage.secure_client(tmp_path, receive_buffer_bytes=4096)
        client.send(b"all of it")
        expected = b"head" + data + b"middle" + data
        assert client.take(len(expected), step_bytes=50_000) == expected
        client.send(b"once more")
        assert client.take(len(expected)) == expected
    finally:
        stage.close()


def test_over_sockets_large_requests_and_many_clients(tmp_path: Path) -> None:
    """Each gets its own echo, in order; who speaks in plain is hung up on, and nobody else."""
    stage = SecureStage()
    try:
        stage.serve_tls(tmp_path, echo)
        clients = [stage.secure_client(tmp_path) for _ in range(5)]
        plain = socket.create_connection(("127.0.0.1", stage.port), SECONDS_MAX)
        plain.sendall(framed(bytes(100)))
        while plain.recv(1000):
            pass  # an alert
        plain.close()
        for size in (10, 5_000_000):
            for number, client in enumerate(clients):
                client.send(bytes([number]) * size)
                assert client.receive() == bytes([number]) * size
    finally:
        stage.close()


@pytest.mark.parametrize("has_memory_files", [True, False])
def test_a_key_in_memory_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_memory_files: bool
) -> None:
    """Key and certificates are taken from memory, also where a file must carry them over."""
    if not has_memory_files:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    issued = authority().server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_chain(context, (issued.key + issued.certificate).encode(), None, "ssl.key.password")
    with pytest.raises(ssl.SSLError):
        load_chain(context, b"no key", None, "ssl.key.password")
    assert not list(tmp_path.iterdir())
