"""``logstore serve``, Kafka's layout: one broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from logstore.compat.kafka.broker import Broker
from logstore.compat.running import listen, open_entrance, run_in_loop
from logstore.compat.server import Server
from logstore.segments.kafka.cluster_metadata.release import parse_release
from logstore.segments.kafka.config_keys import ConfigError
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
from logstore.tools.listeners import Listener, find_listener

if TYPE_CHECKING:
    import asyncio

    from logstore.compat.kafka.security.end_points import EndPoint
    from logstore.compat.kafka.security.opening import OpenedListener

PORT = 9092


def serve_kafka(request: ServeRequest) -> None:
    """
    Serve until told to stop.

    Raises:
        LogStoreError: it cannot be served; the text says why and what to do.

    """
    settings = request.settings
    warn_of_strange(("kafka",), settings)
    release = None if request.release_version is None else parse_release(request.release_version)
    points = _end_points(request)
    addresses = None if points else kafka_addresses(settings, request.host, request.port)
    with data_directory(request.directory or kafka_directory(settings)) as directory:
        broker = Broker.open(
            request.world,
            directory.path,
            settings,
            is_parallel=not directory.is_temporary,
            release=release,
            emulated_release=request.emulated_release,
            node_count=request.node_count,
        )
        if request.control is not None:
            request.control.take_kafka(broker)
        try:
            if addresses is None:
                run_in_loop(_run_listeners(broker, _opened(broker, points), request))
            elif request.node_count > 1:
                run_in_loop(_run_nodes(broker, addresses[0], request))
            else:
                run_in_loop(_run(broker, *addresses, request))
        finally:
            if directory.is_temporary:
                broker.abandon()
            else:
                broker.close()


def kafka_addresses(
    settings: Mapping[str, str], host: str | None, port: int | None
) -> tuple[Listener, Listener | None]:
    """Return where to listen, and what clients are told if that is something else."""
    named = find_listener(settings, "listeners")
    listener = Listener(
        (HOME if named is None else named.host) if host is None else host,
        (PORT if named is None else named.port) if port is None else port,
    )
    return listener, find_listener(settings, "advertised.listeners")


def kafka_directory(settings: Mapping[str, str]) -> str | None:
    """Return the directory that the settings name; None without one."""
    for key in ("log.dirs", "log.dir"):
        text = settings.get(key, "")
        directories = [name.strip() for name in text.split(",") if name.strip()]
        if len(directories) > 1:
            raise ConfigError(key, text, "must be one directory; name it with --data")
        if directories:
            return directories[0]
    return None


def _end_points(request: ServeRequest) -> list[EndPoint]:
    """Return the listeners of the settings; nothing where there is only a plain one."""
    settings = request.settings
    # What is advertised is a simple matter where there is one node.
    is_told_elsewhere = request.node_count > 1 and bool(settings.get("advertised.listeners"))
    if not settings.get("listeners"):
        if not is_told_elsewhere and not settings.get("listener.security.protocol.map"):
            return []
        settings = {**settings, "listeners": f"PLAINTEXT://{HOME}:{PORT}"}
    from logstore.compat.kafka.security.end_points import SecurityProtocol
    from logstore.compat.kafka.security.opening import listened_at

    first, *more = listened_at(settings)
    if not more and first.protocol is SecurityProtocol.PLAINTEXT and not is_told_elsewhere:
        return []
    host = first.host if request.host is None else request.host
    port = first.port if request.port is None else request.port
    return [first._replace(host=host, port=port), *more]


def _opened(broker: Broker, points: list[EndPoint]) -> list[OpenedListener]:
    from logstore.compat.kafka.security.opening import open_listeners, open_node_listeners

    settings = broker.config.given.settings
    opened = open_listeners(broker, points, settings)
    return opened + open_node_listeners(broker, points, settings)


async def _run_listeners(
    broker: Broker, opened: list[OpenedListener], request: ServeRequest
) -> None:
    server = Server(broker, is_alone=True)
    stopping = stop_asked()
    server.drive()
    try:
        await _serve_listeners(server, broker, opened, request, stopping)
    finally:
        await server.stop()


async def _serve_listeners(
    server: Server,
    broker: Broker,
    opened: list[OpenedListener],
    request: ServeRequest,
    stopping: asyncio.Event,
) -> None:
    from logstore.compat.kafka.security.entrances import entrances

    for entrance in entrances(opened, EVERYWHERE):
        await open_entrance(server, entrance)
    broker.nodes.doors = server
    broker.start_housekeeping()
    settle()
    addresses = {
        one.name: ",".join(node.listener_like(one).address for node in broker.nodes.by_id.values())
        for one in broker.listeners
    }
    named = ", ".join(f"{name}://{address}" for name, address in addresses.items())
    directory = broker.store.directory
    kind = "broker" if broker.nodes.is_alone else "brokers"
    with controlled(request):
        say_ready(
            {**_told_nodes(broker), "listeners": addresses,
             "data": directory, "layout": "kafka"},
            f"Kafka {kind} at {named}, data in {directory}",
            request,
        )  # fmt: skip
        await stopping.wait()


def _told_nodes(broker: Broker) -> dict[str, object]:
    """Return where clients begin, and where each node is if there are several."""
    nodes = broker.nodes
    if nodes.is_alone:
        return {"bootstrap": broker.listener.address}
    addresses = {one.node_id: one.listeners[0].address for one in nodes.by_id.values()}
    return {"bootstrap": ",".join(addresses.values()), "nodes": addresses}


async def _run_nodes(broker: Broker, first: Listener, request: ServeRequest) -> None:
    from logstore.compat.kafka.nodes.entrances import node_entrances

    server = Server(broker, is_alone=True)
    stopping = stop_asked()
    server.drive()
    ports = [first.port + number if first.port else 0 for number in range(request.node_count)]
    try:
        for entrance in node_entrances(broker, first.host or EVERYWHERE, ports):
            await open_entrance(server, entrance)
        broker.nodes.doors = server
        broker.start_housekeeping()
        settle()
        told, directory = _told_nodes(broker), broker.store.directory
        with controlled(request):
            say_ready(
                {**told, "data": directory, "layout": "kafka"},
                f"Kafka brokers at {told['bootstrap']}, data in {directory}",
                request,
            )
            await stopping.wait()
    finally:
        await server.stop()


async def _run(
    broker: Broker, listener: Listener, advertised: Listener | None, request: ServeRequest
) -> None:
    server = Server(broker, is_alone=True)
    stopping = stop_asked()
    host = listener.host or EVERYWHERE
    port = await listen(server, host, listener.port)
    # Who listens everywhere is found at home.
    found = advertised or Listener(HOME if host in (EVERYWHERE, "::") else host, port)
    broker.advertised_host, broker.advertised_port = found.host, found.port or port
    broker.start_housekeeping()
    settle()
    bootstrap = Listener(broker.advertised_host, broker.advertised_port).text
    directory = broker.store.directory
    with controlled(request):
        say_ready(
            {"bootstrap": bootstrap, "data": directory, "layout": "kafka"},
            f"Kafka broker at {bootstrap}, data in {directory}",
            request,
        )
        await stopping.wait()
    await server.stop()
