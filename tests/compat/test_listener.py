"""The listening sockets: everybody who waits is taken at once, shortages pass."""

from __future__ import annotations

import asyncio
import errno
import socket
from contextlib import ExitStack

import pytest
import uvloop

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
