"""A server on an event loop of its own: in this thread until told to stop, or in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import uvloop

from logstore.compat.server import Connect, Server, Service
from logstore.errors import LogStoreError

ResultT = TypeVar("ResultT")

#: lower ones are the administrator's on most systems
_PORT_FOR_ALL_MIN = 1024


class AddressError(LogStoreError):
    """The address to listen on cannot be had."""


def run_in_loop(main: Coroutine[Any, Any, None]) -> None:
    """Run `main` to its end on a loop of its own."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


def call_in(loop: asyncio.AbstractEventLoop, work: Callable[[], ResultT]) -> ResultT:
    """
    Run `work` in the loop's thread; return what it returns, raise what it raises.

    To be called in any other thread.
    """

    async def run() -> ResultT:
        return work()

    return asyncio.run_coroutine_threadsafe(run(), loop).result()


async def listen(server: Server, host: str, port: int) -> int:
    """
    Start `server`; return its port.

    Raises:
        AddressError: the address is taken or not ours.

    """
    try:
        return await server.start(host, port)
    except OSError as error:
        raise AddressError(f"{host}:{port} {_refusal(error, port)}") from error


def _refusal(error: OSError, port: int) -> str:
    """Return why an address is not to be had, and what to name instead."""
    if error.errno == errno.EADDRINUSE:
        return "is taken by another program; name another port (0: any free one)"
    if error.errno == errno.EACCES and 0 < port < _PORT_FOR_ALL_MIN:
        return (
            f"cannot be listened on: ports below {_PORT_FOR_ALL_MIN} are the administrator's; name "
            "another port (0: any free one)"
        )
    # uvloop says the address once more, behind the reason.
    reason = (error.strerror or str(error)).partition(" (while attempting")[0]
    return f"cannot be listened on: {reason}; name an address of this machine (0.0.0.0: all)"


async def listen_within(
    servers: contextlib.AsyncExitStack, server: Server, host: str, port: int | None
) -> int:
    """Start `server` until `servers` are left; return its port, 0 without one."""
    found_port = 0
    if port is None:
        server.drive()
    else:
        found_port = await listen(server, host, port)
    servers.push_async_callback(server.stop)
    return found_port


class Entrance(NamedTuple):
    """
    An address of a service where connections are made by `connect`; `on_port` learns its port.

    `port` 0 is a free one.
    """

    host: str
    port: int
    connect: Connect
    on_port: Callable[[int], None]


async def open_entrance(server: Server, entrance: Entrance) -> None:
    """
    Let peers in by one more address of a server that is driven.

    Raises:
        AddressError: the address is taken or not ours.

    """
    host, port = entrance.host, entrance.port
    try:
        found = await server.listen(host, port, entrance.connect)
    except OSError as error:
        raise AddressError(f"{host}:{port} {_refusal(error, port)}") from error
    entrance.on_port(found)


class Served(NamedTuple):
    """
    One more service on the loop of another; `on_start` learns its server and port.

    One with the port None is driven, and nobody can connect to it.
    """

    service: Service
    port: int | None
    on_start: Callable[[Server, int], None]


class Door(Protocol):
    """Another way in to what is served on the same loop, with sockets of its own."""

    async def start(self, host: str, port: int) -> int:
        """Listen; return the port."""
        ...

    async def stop(self) -> None:
        """Hang up on everybody."""
        ...


class OpenDoor(NamedTuple):
    """A door that is open from `port` on; `on_start` learns which port it is."""

    door: Door
    port: int
    on_start: Callable[[int], None]


async def open_door(servers: contextlib.AsyncExitStack, host: str, opened: OpenDoor) -> int:
    """Open a door until `servers` are left; return its port."""
    port = await opened.door.start(host, opened.port)
    servers.push_async_callback(opened.door.stop)
    opened.on_start(port)
    return port


class ServerThread:
    """
    Serves from a thread of this process between :meth:`start` and :meth:`stop`.

    `on_port` learns the port before the first client can connect. The services in `more` are
    started after it, one after the other. One that does not listen is driven all the same, and may
    have `entrances` instead. `door` is opened when they are served.
    """

    def __init__(
        self,
        service: Service,
        on_port: Callable[[int], None],
        *more: Served,
        listens: bool = True,
        entrances: Sequence[Entrance] = (),
        door: OpenDoor | None = None,
    ) -> None:
        self._service = service
        self._entrances = entrances
        self._door = door
        self._listens = listens
        #: drives the first service, once it is started
        self.server: Server
        self._on_port = on_port
        self._more = more
        self._thread: threading.Thread | None = None
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None

    def start(self, host: str, port: int) -> None:
        """Return once connections are accepted; raise what kept that from happening."""
        self._thread = threading.Thread(
            target=self._run, args=(host, port), name="logstore-broker", daemon=True
        )
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            self._thread.join()
            self._thread = None
            raise self._failure

    def _run(self, host: str, port: int) -> None:
        try:
            run_in_loop(self._serve(host, port))
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits in start
            self._failure = error
        finally:
            self._started.set()

    async def _serve(self, host: str, port: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        async with contextlib.AsyncExitStack() as servers:
            server = self.server = Server(self._service)
            wanted = port if self._listens else None
            found = await listen_within(servers, server, host, wanted)
            for entrance in self._entrances:
                await open_entrance(server, entrance)
            self._on_port(found)
            for served in self._more:
                server = Server(served.service)
                found_port = await listen_within(servers, server, host, served.port)
                served.on_start(server, found_port)
            if self._door is not None:
                await open_door(servers, host, self._door)
            self._started.set()
            await self._stopping.wait()

    def call(self, work: Callable[[], ResultT]) -> ResultT:
        """
        Run `work` in the loop's thread; return what it returns, raise what it raises.

        It may be called in that thread, too.
        """
        assert self._loop is not None, "the server runs"
        if self.is_this:
            return work()  # whoever waited here for the loop would wait for himself
        return call_in(self._loop, work)

    @property
    def is_this(self) -> bool:
        """Whether the loop's thread is the one that asks."""
        return threading.current_thread() is self._thread

    def catch_up(self) -> None:
        """Make the calls of all services that are due after somebody pushed the clock."""
        services = self._service, *(served.service for served in self._more)

        def work() -> None:
            for service in services:
                service.timers.catch_up()

        self.call(work)

    def stop(self) -> None:
        """Hang up on everybody and end the thread; raise what ended it before, if anything."""
        if self._thread is None or self._loop is None or self._stopping is None:
            return
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        self._thread = None
        if self._failure is not None:
            raise self._failure
