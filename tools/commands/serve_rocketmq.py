"""``logstore serve``, RocketMQ's layout: name server and broker, or a broker for others' ones."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping

import attrs
import click

from logstore.compat.rocketmq.machine import Machine
from logstore.compat.rocketmq.second_door import SecondDoor
from logstore.compat.rocketmq.standalone import Standalone
from logstore.compat.running import AddressError, listen, open_door, run_in_loop
from logstore.compat.server import Server
from logstore.segments.rocketmq.settings.java_config import ConfigError
from logstore.tools.commands.serve_process import (
    EVERYWHERE,
    HOME,
    ServeRequest,
    controlled,
    data_directory,
    say_ready,
    settle,
    stop_asked,
    warn_of_strange,
)

NAME_SERVER_PORT = 9876
BROKER_PORT = 10911
_PORT_MAX = 65535
_LOOK_SECONDS = 0.01
#: Java's brokers listen a second time, so many ports below the first
_SECOND_PORT_BELOW = 2


@attrs.frozen
class RocketMQAddresses:
    """Where to listen, what clients are told, and the name servers of others."""

    host: str
    port: int
    broker_port: int
    advertised_host: str
    name_servers: tuple[tuple[str, int], ...]
    #: ports for clients: those that follow from the broker's must not be in their way
    spoken_for: frozenset[int]


def serve_rocketmq(
    request: ServeRequest, broker_port: int | None, name_servers: str | None
) -> None:
    """
    Serve until told to stop; `name_servers` is a list like ``host:port;host:port``.

    Raises:
        LogStoreError: it cannot be served; the text says why and what to do.

    """
    settings = dict(request.settings)
    warn_of_strange(("rocketmq",), settings)
    addresses = rocketmq_addresses(request, broker_port, name_servers)
    with data_directory(request.directory or settings.get("storePathRootDir")) as directory:
        standalone = Standalone.open(
            request.world,
            directory.path,
            settings,
            name_servers=addresses.name_servers,
            machine=_machine(),
        )
        if request.control is not None:
            request.control.take_rocketmq(standalone)
        try:
            run_in_loop(_run(standalone, addresses, directory.path, request))
        finally:
            if directory.is_temporary:
                standalone.abandon()
            else:
                standalone.close()


def _machine() -> Machine:
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Machine(os.getpid(), memory_bytes if memory_bytes > 0 else None)


def rocketmq_addresses(
    request: ServeRequest, broker_port: int | None, name_servers: str | None
) -> RocketMQAddresses:
    """Return the addresses that command line and settings ask for. Raises ConfigError."""
    settings = request.settings
    if name_servers is not None and request.port is not None:
        raise click.UsageError("--port is that of a name server here; -n names another one")
    # A name server here is asked for by its port, whatever a broker.conf says.
    named = (
        name_servers if request.port is not None else (name_servers or settings.get("namesrvAddr"))
    )
    host = request.host
    if host is None:
        host = settings.get("bindAddress", HOME)
    host = host or EVERYWHERE
    # Who listens everywhere is found at home.
    found = HOME if host in (EVERYWHERE, "::") else host
    port = NAME_SERVER_PORT if request.port is None else request.port
    return RocketMQAddresses(
        host,
        port,
        _port_of(settings, "listenPort", BROKER_PORT) if broker_port is None else broker_port,
        settings.get("brokerIP1", found),
        tuple(_host_and_port(text.strip()) for text in (named or "").split(";") if text.strip()),
        frozenset((port, request.proxy_port or 0)),
    )


def _port_of(settings: Mapping[str, str], key: str, default: int) -> int:
    text = settings.get(key, str(default))
    if not text.isdecimal() or int(text) > _PORT_MAX:
        raise ConfigError(key, text, "a port")
    return int(text)


def _host_and_port(text: str) -> tuple[str, int]:
    host, separator, port = text.rpartition(":")
    if not separator or not host or not port.isdecimal() or int(port) > _PORT_MAX:
        raise ConfigError("namesrvAddr", text, "HOST:PORT, several with ; between them")
    return host.strip("[]"), int(port)


async def serve_proxy(
    standalone: Standalone,
    addresses: RocketMQAddresses,
    servers: contextlib.AsyncExitStack,
    port: int | None,
) -> dict[str, str]:
    """Open a proxy on `port`, if there is to be one; return what the ready line says of it."""
    if port is None:
        return {}
    from logstore.compat.rocketmq.proxy_door import proxy_door

    door = proxy_door(standalone.broker, addresses.advertised_host, port, lambda _: None)
    found = await open_door(servers, addresses.host, door)
    return {"proxy": address_text(addresses.advertised_host, found)}


async def _run(
    standalone: Standalone, addresses: RocketMQAddresses, directory: str, request: ServeRequest
) -> None:
    stopping = stop_asked()
    async with contextlib.AsyncExitStack() as servers:
        broker_server = Server(standalone.broker, is_alone=True)
        broker_port = await listen(broker_server, addresses.host, addresses.broker_port)
        servers.push_async_callback(broker_server.stop)
        standalone.advertise(addresses.advertised_host, broker_port)
        await listen_for_brokers(standalone, addresses, servers)
        bootstrap = ";".join(f"{host}:{port}" for host, port in addresses.name_servers)
        if standalone.name_server is not None:
            server = Server(standalone.name_server)
            port = await listen(server, addresses.host, addresses.port)
            servers.push_async_callback(server.stop)
            standalone.name_server.config.listen_on(port)
            bootstrap = address_text(addresses.advertised_host, port)
        standalone.start(broker_server.reach)
        more = await serve_proxy(standalone, addresses, servers, request.proxy_port)
        servers.enter_context(controlled(request))
        settle()
        if not await is_listed(standalone, stopping):
            return
        broker = address_text(addresses.advertised_host, broker_port)
        where = "at" if standalone.name_server is not None else "elsewhere at"
        say_ready(
            {
                "bootstrap": bootstrap,
                "broker": broker,
                "data": directory,
                "layout": "rocketmq",
                **more,
            },
            f"RocketMQ name server {where} {bootstrap}, broker at {broker}, "
            + "".join(f"{name} at {address}, " for name, address in more.items())
            + f"data in {directory}",
            request,
        )
        await stopping.wait()
        standalone.stop()


async def listen_for_brokers(
    standalone: Standalone, addresses: RocketMQAddresses, servers: contextlib.AsyncExitStack
) -> None:
    """Listen for slaves, and at the second port, two below, where they ask for topics."""
    server = Server(standalone.broker.replication)
    wanted = standalone.ha_port_wanted(addresses.broker_port)
    is_derived = wanted == addresses.broker_port + 1
    if is_derived and wanted in addresses.spoken_for:
        wanted = 0
    try:
        port = await listen(server, addresses.host, wanted)
    except AddressError as error:
        if not is_derived:
            raise
        click.echo(f"logstore: warning: no slaves there: {error}", err=True)
        port = await listen(server, addresses.host, 0)
    servers.push_async_callback(server.stop)
    standalone.advertise_ha(port)
    second_port = addresses.broker_port - _SECOND_PORT_BELOW
    if second_port <= 0 or second_port in addresses.spoken_for:
        return
    second = Server(SecondDoor(standalone.broker))
    try:
        await listen(second, addresses.host, second_port)
    except AddressError as error:
        click.echo(f"logstore: warning: only real slaves miss it: {error}", err=True)
    else:
        servers.push_async_callback(second.stop)


async def is_listed(standalone: Standalone, stopping: asyncio.Event) -> bool:
    """Wait until a name server lists the broker; False if told to stop before."""
    while not standalone.registrar.is_registered:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), _LOOK_SECONDS)
            return False
    return True


def address_text(host: str, port: int) -> str:
    """Return an address as clients are given it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
