"""The listening sockets: everybody who waits is taken at once, shortages pass."""

from __future__ import annotations

import asyncio
import errno
import socket
from contextlib import ExitStack

import pytest
import uvloop

from logstore.compat.connection import HeldBackError, TurnedAwayError
from logstore.compat.listener import Address, Listener

TURNS = 8


class Noted:
    """Counts those who were connected, and lets them go."""

    def __init__(self) -> None:
        self.connected = 0
        #: set with the first of them
        self.somebody = asyncio.Event()

    def __call__(self, plain: socket.socket, address: Address) -> None:
        """Take note."""
        assert plain.getpeername() == address
        assert not plain.getblocking()
        self.connected += 1
        self.somebody.set()
        plain.close()


def test_all_who_wait_are_taken_in_one_go() -> None:
    """Fifty clients that came while the loop was busy are connected within a few of its turns."""

    async def main() -> int:
        noted = Noted()
        listener = await Listener.open("127.0.0.1", 0, noted)
        with ExitStack() as stack:
            for _ in range(50):
                stack.enter_context(socket.create_connection(("127.0.0.1", listener.port)))
            for _ in range(TURNS):
                await asyncio.sleep(0)
            listener.close()
        return noted.connected

    assert uvloop.run(main()) == 50


def test_every_address_of_a_name_has_the_same_port() -> None:
    """A client of `localhost` finds the broker whichever address it tries."""

    async def main() -> set[int]:
        listener = await Listener.open("localhost", 0, Noted())
        reached: set[int] = set()
        for info in socket.getaddrinfo("localhost", listener.port, type=socket.SOCK_STREAM):
            with socket.socket(info[0], info[1]) as client:
                client.connect(info[4])
                reached.add(client.getpeername()[1])
        listener.close()
        return reached | {listener.port}

    assert len(uvloop.run(main())) == 1


def test_a_taken_address_leaves_nothing_open() -> None:
    """The system's error is passed on."""

    async def main() -> None:
        first = await Listener.open("127.0.0.1", 0, Noted())
        try:
            with pytest.raises(OSError, match="in use") as caught:
                await Listener.open("127.0.0.1", first.port, Noted())
            assert caught.value.errno == errno.EADDRINUSE
        finally:
            first.close()

    uvloop.run(main())


def test_out_of_descriptors_the_others_are_served_on_and_new_ones_come_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A shortage does not end the server: who waits in the backlog is taken once it is over."""
    monkeypatch.setattr("logstore.compat.listener._SHORTAGE_SECONDS", 0.0)
    real, failures = socket.socket.accept, [errno.EMFILE, errno.ENFILE]

    def accept(self: socket.socket) -> tuple[socket.socket, object]:
        if failures:
            raise OSError(failures.pop(), "out of descriptors")
        return real(self)

    monkeypatch.setattr(socket.socket, "accept", accept)

    async def main() -> int:
        noted = Noted()
        listener = await Listener.open("127.0.0.1", 0, noted)
        with socket.create_connection(("127.0.0.1", listener.port)):
            async with asyncio.timeout(20):
                await noted.somebody.wait()
        listener.close()
        return noted.connected

    assert uvloop.run(main()) == 1
    assert not failures


class Doorkeeper:
    """Answers as it is told: how long those wait who come next, or that they are turned away."""

    def __init__(self, *answers: Exception | None) -> None:
        self.answers = list(answers)
        self.let_in: list[socket.socket] = []
        self.done = asyncio.Event()

    def __call__(self, plain: socket.socket, address: Address) -> None:
        """Give the next answer."""
        assert plain.getpeername() == address
        answer = self.answers.pop(0)
        if not self.answers:
            self.done.set()
        if answer is not None:
            raise answer
        self.let_in.append(plain)


def test_who_is_held_back_is_asked_for_again_and_others_wait_behind() -> None:
    """The one who was told to wait comes first, however often he is told so."""

    async def main() -> list[bytes]:
        keeper = Doorkeeper(HeldBackError(1), HeldBackError(1), None, None)
        listener = await Listener.open("127.0.0.1", 0, keeper)
        with ExitStack() as stack:
            for name in (b"first", b"second"):
                client = stack.enter_context(socket.create_connection(("127.0.0.1", listener.port)))
                client.sendall(name)
            async with asyncio.timeout(20):
                await keeper.done.wait()
            for plain in keeper.let_in:
                plain.setblocking(True)
            said = [plain.recv(10) for plain in keeper.let_in]
            for plain in keeper.let_in:
                plain.close()
            listener.close()
        return said

    assert uvloop.run(main()) == [b"first", b"second"]


def test_who_is_turned_away_is_hung_up_on_and_the_next_one_comes_in() -> None:
    """At once or later; a listener that closes hangs up on all whom it has let wait."""

    async def main() -> list[bytes]:
        keeper = Doorkeeper(
            TurnedAwayError(0, "no"), TurnedAwayError(5, "no"), None, HeldBackError(60_000)
        )
        listener = await Listener.open("127.0.0.1", 0, keeper)
        clients = [socket.create_connection(("127.0.0.1", listener.port)) for _ in range(4)]
        async with asyncio.timeout(20):
            await keeper.done.wait()
            for client in clients[:2]:
                client.setblocking(False)
                assert await asyncio.get_running_loop().sock_recv(client, 1) == b""
        listener.close()
        keeper.let_in[0].sendall(b"welcome")
        keeper.let_in[0].close()
        heard: list[bytes] = []
        for client in clients[2:]:
            client.setblocking(True)
            heard.append(client.recv(10))
        for client in clients:
            client.close()
        return heard

    assert uvloop.run(main()) == [b"welcome", b""]
