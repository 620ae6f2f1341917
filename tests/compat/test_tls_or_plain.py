"""A port at which peers may speak TLS or not: all is passed on, both ways, whole."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop

from logstore.compat.listener import Address
from logstore.compat.tls_or_plain import TlsOrPlain
from logstore.errors import LogStoreError
from tests.compat.tls_peers import client_context, server_context

HOST = "127.0.0.1"
LARGE = bytes(range(256)) * 20_000

Use = Callable[[TlsOrPlain, int], Awaitable[None]]


def run(make_context: Callable[[], ssl.SSLContext], use: Use) -> list[Address | None]:
    """
    Let `use` come to a port before a server that answers with what it hears, twice, and hangs up.

    Returns who the server was told its peers are.
    """
    origins: list[Address | None] = []

    async def main() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"hello ")  # before a word was heard, as HTTP/2's servers
            count = int.from_bytes(await reader.readexactly(4))
            origins.append(front.origin(writer.get_extra_info("peername")[1]))
            heard = await reader.readexactly(count)
            writer.write(heard * 2)
            writer.close()

        server = await asyncio.start_server(serve, HOST, 0)
        front = TlsOrPlain(server.sockets[0].getsockname()[1], make_context)
        try:
            await asyncio.wait_for(use(front, await front.start(HOST, 0)), 60)
        finally:
            front.stop()
            server.close()

    uvloop.run(main())
    return origins


async def asked(port: int, said: bytes, context: ssl.SSLContext | None = None) -> tuple[bytes, int]:
    """Return what comes back until the server hangs up, and from which port that was asked."""
    name = None if context is None else "localhost"
    reader, writer = await asyncio.open_connection(HOST, port, ssl=context, server_hostname=name)
    writer.write(len(said).to_bytes(4) + said)
    told = await reader.read()
    own: int = writer.get_extra_info("sockname")[1]
    writer.close()
    return told, own


def no_context() -> ssl.SSLContext:
    """Make none."""
    raise LogStoreError("there is no certificate")


def test_either_is_passed_on(tmp_path: Path) -> None:
    """Megabytes to and fro, in the clear and by TLS; the server can learn who it is."""
    ports: list[int] = []

    async def use(_: TlsOrPlain, port: int) -> None:
        secure = client_context(tmp_path)
        told = await asyncio.gather(
            asked(port, LARGE), asked(port, LARGE, secure), asked(port, b"x", secure)
        )
        assert [answer for answer, _ in told] == [
            b"hello " + LARGE * 2, b"hello " + LARGE * 2, b"hello xx"
        ]  # fmt: skip
        ports.extend(own for _, own in told)

    origins = run(lambda: server_context(tmp_path), use)
    assert sorted(origins, key=str) == sorted(((HOST, port) for port in ports), key=str)


def test_without_a_certificate_the_plain_are_served() -> None:
    """Who speaks TLS is hung up on; nothing is loaded for the others."""

    async def use(_: TlsOrPlain, port: int) -> None:
        try:
            await asked(port, b"x", ssl.create_default_context())
        except (ssl.SSLError, ConnectionError):
            pass
        else:
            raise AssertionError("it was answered")
        assert (await asked(port, b"y"))[0] == b"hello yy"

    assert len(run(no_context, use)) == 1


def test_who_hangs_up_is_forgotten(tmp_path: Path) -> None:
    """Without a word, in the middle of a handshake, or of a request."""

    async def use(front: TlsOrPlain, port: int) -> None:
        for said in (b"", b"\x16\x03\x01", b"\0\0\0\xff"):
            with socket.create_connection((HOST, port)) as peer:
                peer.sendall(said)
        told, own = await asked(port, b"x")
        assert told == b"hello xx"
        while front.open_count:
            await asyncio.sleep(0)
        assert own
        assert [front.origin(one) for one in range(1024, 65536)] == [None] * (65536 - 1024)

    run(lambda: server_context(tmp_path), use)


def test_a_stop_hangs_up_on_everybody(tmp_path: Path) -> None:
    """Those who have said nothing yet, too; and nobody comes any more."""

    async def use(front: TlsOrPlain, port: int) -> None:
        silent, _ = await asyncio.open_connection(HOST, port)
        talking, writer = await asyncio.open_connection(HOST, port)
        writer.write(b"\0")
        assert await talking.readexactly(6) == b"hello "
        front.stop()
        assert await silent.read() == await talking.read() == b""
        try:
            await asyncio.open_connection(HOST, port)
        except ConnectionRefusedError:
            return
        raise AssertionError("somebody was let in")

    run(lambda: server_context(tmp_path), use)
