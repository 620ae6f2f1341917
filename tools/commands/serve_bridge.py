"""``logstore serve --protocol``: either protocol, or both, on one store of either layout."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Mapping

import attrs

from logstore.compat.bridge.bridge import Bridge
from logstore.compat.running import listen, run_in_loop
from logstore.compat.server import Server
from logstore.tools.commands.serve_kafka import kafka_addresses, kafka_directory
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
from logstore.tools.commands.serve_rocketmq import (
    RocketMQAddresses,
    address_text,
    is_listed,
    listen_for_brokers,
    rocketmq_addresses,
    serve_proxy,
)
from logstore.tools.listeners import Listener

#: what a temporary directory has within, so that what stands beside the data goes away with it
_WITHIN = "data"


@attrs.frozen
class _Plan:
    """Who is served, and where; None where a protocol is not."""

    kafka: tuple[Listener, Listener | None] | None
    rocketmq: RocketMQAddresses | None
    name_servers: tuple[tuple[str, int], ...]


def serve_bridge(
    request: ServeRequest,
    layout: str,
    protocols: Collection[str],
    ports: Mapping[str, int | None],
    name_servers: str | None,
) -> None:
    """
    Serve until told to stop; `ports` are those of ``namesrv`` and ``broker``.

    Raises:
        LogStoreError: it cannot be served; the text says why and what to do.

    """
    settings = request.settings
    warn_of_strange(("kafka", "rocketmq"), settings)  # the layout's count, whoever is served
    plan = _plan(request, protocols, ports, name_servers)
    named = kafka_directory(settings) if layout == "kafka" else settings.get("storePathRootDir")
    with data_directory(request.directory or named) as directory:
        path = os.path.join(directory.path, _WITHIN) if directory.is_temporary else directory.path
        bridge = Bridge.open(
            request.world,
            path,
            layout,
            settings,
            name_servers=plan.name_servers,
            is_parallel=not directory.is_temporary,
        )
        if request.control is not None:
            request.control.take_kafka(bridge.kafka, leads=layout == "kafka")
            request.control.take_rocketmq(bridge.standalone)
        try:
            run_in_loop(_run(bridge, plan, path, request))
        finally:
            if directory.is_temporary:
                bridge.abandon()
            else:
                bridge.close()


def _plan(
    request: ServeRequest,
    protocols: Collection[str],
    ports: Mapping[str, int | None],
    name_servers: str | None,
) -> _Plan:
    kafka = rocketmq = None
    if "kafka" in protocols:
        kafka = kafka_addresses(request.settings, request.host, request.port)
    if "rocketmq" in protocols:
        is_alone = kafka is None
        port = request.port if is_alone and ports["namesrv"] is None else ports["namesrv"]
        rocketmq = rocketmq_addresses(request._replace(port=port), ports["broker"], name_servers)
    return _Plan(kafka, rocketmq, () if rocketmq is None else rocketmq.name_servers)


async def _run(bridge: Bridge, plan: _Plan, directory: str, request: ServeRequest) -> None:
    stopping = stop_asked()
    async with contextlib.AsyncExitStack() as servers:
        ready: dict[str, object] = {}
        await _start_rocketmq(bridge, plan.rocketmq, servers, ready)
        if plan.rocketmq is not None:
            ready |= await serve_proxy(
                bridge.standalone, plan.rocketmq, servers, request.proxy_port
            )
        await _start_kafka(bridge, plan.kafka, servers, ready)
        servers.enter_context(controlled(request))
        settle()
        if not await is_listed(bridge.standalone, stopping):
            return
        named = [f"{name} at {ready[name]}" for name in ("kafka", "namesrv", "broker", "proxy")
                 if name in ready]  # fmt: skip
        first = ready["kafka"] if "kafka" in ready else ready["namesrv"]
        say_ready(
            {"bootstrap": first, **ready, "data": directory, "layout": bridge.layout},
            f"{', '.join(named)}, data in {directory} ({bridge.layout}'s layout)",
            request,
        )
        await stopping.wait()
        bridge.stop()


async def _start_rocketmq(
    bridge: Bridge,
    addresses: RocketMQAddresses | None,
    servers: contextlib.AsyncExitStack,
    ready: dict[str, object],
) -> None:
    standalone = bridge.standalone
    broker_server = Server(standalone.broker, is_alone=True)
    servers.push_async_callback(broker_server.stop)
    if addresses is None:
        broker_server.drive()
        bridge.start_rocketmq(broker_server.reach)
        return
    broker_port = await listen(broker_server, addresses.host, addresses.broker_port)
    standalone.advertise(addresses.advertised_host, broker_port)
    if bridge.layout == "rocketmq":
        await listen_for_brokers(standalone, addresses, servers)
    ready["namesrv"] = ";".join(f"{host}:{port}" for host, port in addresses.name_servers)
    if standalone.name_server is not None:
        server = Server(standalone.name_server)
        port = await listen(server, addresses.host, addresses.port)
        servers.push_async_callback(server.stop)
        standalone.name_server.config.listen_on(port)
        ready["namesrv"] = address_text(addresses.advertised_host, port)
    bridge.start_rocketmq(broker_server.reach)
    ready["broker"] = address_text(addresses.advertised_host, broker_port)


async def _start_kafka(
    bridge: Bridge,
    addresses: tuple[Listener, Listener | None] | None,
    servers: contextlib.AsyncExitStack,
    ready: dict[str, object],
) -> None:
    server = Server(bridge.kafka, is_alone=True)
    servers.push_async_callback(server.stop)
    if addresses is None:
        server.drive()
        bridge.start_kafka(HOME, 0)
        return
    listener, advertised = addresses
    host = listener.host or EVERYWHERE
    port = await listen(server, host, listener.port)
    # Who listens everywhere is found at home.
    found = advertised or Listener(HOME if host in (EVERYWHERE, "::") else host, port)
    bridge.start_kafka(found.host, found.port or port)
    ready["kafka"] = Listener(bridge.kafka.advertised_host, bridge.kafka.advertised_port).text
