"""``logstore serve``: a broker process."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from logstore.tools.commands.serve_process import (
    HOME,
    ServeRequest,
    is_bridged,
    raise_file_limit,
    read_settings,
)

if TYPE_CHECKING:
    from logstore.tools.commands.serve_control import ServedControl

_PORT_RANGE = click.IntRange(0, 65535)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--layout", type=click.Choice(["kafka", "rocketmq"]), default="kafka",
              show_default=True, help="How the data stands on disk.")  # fmt: skip
@click.option("--protocol", "protocol_names", metavar="NAME[,NAME]",
              help="Who is served: kafka, rocketmq, or both with a comma; without it the clients "
                   "of the layout. What a foreign protocol needs beside the data stands in "
                   "DIR.kafka or DIR.rocketmq.")  # fmt: skip
@click.option("--data", "directory", metavar="DIR",
              help="Data directory (log.dirs, storePathRootDir); without it that of FILE, or a "
                   "temporary one that goes away.")  # fmt: skip
@click.option("--host", metavar="HOST",
              help=f"Address to listen on; without it that of FILE, or {HOME}.")  # fmt: skip
@click.option("--port", type=_PORT_RANGE,
              help="Port that clients are given, 0 for a free one: the broker's with Kafka (that "
                   "of FILE, or 9092; of several listeners the first one's), the name server's "
                   "with RocketMQ alone (9876).")  # fmt: skip
@click.option("--namesrv-port", type=_PORT_RANGE,
              help="RocketMQ: port of the name server where --port is Kafka's.")  # fmt: skip
@click.option("--broker-port", type=_PORT_RANGE,
              help="RocketMQ: port of the broker, 0 for a free one; without it listenPort of "
                   "FILE, or 10911.")  # fmt: skip
@click.option("--proxy-port", type=_PORT_RANGE,
              help="RocketMQ: port of the proxy for gRPC clients of 5.x, 0 for a free one; without "
                   "it there is none.")  # fmt: skip
@click.option("-n", "--namesrv", "name_servers", metavar="HOST:PORT[;...]",
              help="RocketMQ: name servers to register with, instead of one here; without it "
                   "namesrvAddr of FILE.")  # fmt: skip
@click.option("--set", "assignments", metavar="KEY=VALUE", multiple=True,
              help="A setting of server.properties or broker.conf; repeatable. Listeners with TLS "
                   "and SASL are Kafka's own: listeners, listener.name.NAME.*, ssl.*.")  # fmt: skip
@click.option("-c", "--config", "properties_path", metavar="FILE",
              type=click.Path(exists=True, dir_okay=False),
              help="A server.properties or broker.conf file; --set wins over it.")  # fmt: skip
@click.option("--release-version", metavar="X.Y[-IVn]",
              help="Kafka release whose metadata version a new directory gets, so that a broker "
                   "of that release can start on it too; without it 4.3.")  # fmt: skip
@click.option("--emulate", "emulated_release", metavar="X.Y",
              help="Kafka: serve the APIs of this older release, as 3.9 or 0.10.2, and what its "
                   "clients send and expect.")  # fmt: skip
@click.option("--nodes", "node_count", type=click.IntRange(1, 100), metavar="N",
              help="Kafka: let clients see a cluster of N brokers, on --port and the ports behind "
                   "it, each of which leads its share of the partitions.")  # fmt: skip
@click.option("--control-port", type=_PORT_RANGE,
              help="Answer on this port of this machine, 0 for a free one, to `logstore fault` and "
                   "to HTTP: requests, files and time fail when they are told to.")  # fmt: skip
@click.option("--json", "is_json", is_flag=True, help="Print the ready line as JSON.")
@click.option("-v", "--verbose", count=True, help="Log more to stderr; twice for debugging.")
def serve(
    layout: str,
    protocol_names: str | None,
    namesrv_port: int | None,
    broker_port: int | None,
    proxy_port: int | None,
    name_servers: str | None,
    release_version: str | None,
    emulated_release: str | None,
    node_count: int | None,
    control_port: int | None,
    verbose: int,
    **given: Any,
) -> None:
    """
    Serve a data directory to Kafka or RocketMQ clients, or both, until Ctrl-C or SIGTERM.

    Prints one line with the address for clients once it answers.

    \b
    Examples:
      logstore serve
      logstore serve --data DIR --port 0 --json
      logstore serve --set num.partitions=6 --set log.segment.bytes=1048576
      logstore serve --data DIR --release-version 3.9
      logstore serve --emulate 0.10.2
      logstore serve --nodes 3 --control-port 9099
      logstore serve --layout rocketmq --port 0 --broker-port 0 --json
      logstore serve --layout rocketmq --proxy-port 8081
      logstore serve --layout rocketmq -c broker.conf -n namesrv.example:9876
      logstore serve --protocol kafka,rocketmq --layout rocketmq --data DIR
      logstore serve --protocol rocketmq --layout kafka --data DIR
    """
    _log_to_stderr(verbose)
    request = _request(**given)
    protocols = _protocols(layout, protocol_names)
    if (layout, protocols) != ("kafka", {"kafka"}):
        kinds = {"--release-version": release_version, "--emulate": emulated_release,
                 "--nodes": node_count}  # fmt: skip
        _refuse(kinds, "is for Kafka's layout, served to Kafka alone")
    if "rocketmq" not in protocols:
        places = {"--broker-port": broker_port, "--namesrv-port": namesrv_port,
                  "--proxy-port": proxy_port, "-n": name_servers}  # fmt: skip
        _refuse(places, "is for RocketMQ's clients: --protocol rocketmq or kafka,rocketmq")
    request = request._replace(
        release_version=release_version, emulated_release=emulated_release,
        proxy_port=proxy_port, control=_control(control_port), node_count=node_count or 1,
    )  # fmt: skip
    ports = {"namesrv": namesrv_port, "broker": broker_port}
    _serve(request, layout, protocols, ports, name_servers)


def _log_to_stderr(verbosity: int) -> None:
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbosity, 2)]
    logging.basicConfig(level=level, format="%(levelname)s %(message)s", stream=sys.stderr)


def _control(port: int | None) -> ServedControl | None:
    if port is None:
        return None
    from logstore.tools.commands.serve_control import ServedControl

    return ServedControl(port)


def _request(
    directory: str | None,
    host: str | None,
    port: int | None,
    assignments: tuple[str, ...],
    properties_path: str | None,
    is_json: bool,
) -> ServeRequest:
    settings = read_settings(properties_path, assignments)
    return ServeRequest(directory, host, port, settings, is_json)


def _refuse(options: Mapping[str, object], why: str) -> None:
    """Raise a usage error if one of the options was given."""
    for option, value in options.items():
        if value is not None:
            raise click.UsageError(f"{option} {why}")


def _protocols(layout: str, names: str | None) -> set[str]:
    """Return the protocols that are asked for."""
    found = {name.strip() for name in (names or layout).split(",")}
    if not found <= {"kafka", "rocketmq"}:
        raise click.BadParameter(f"{names!r}: kafka, rocketmq, or both", param_hint="--protocol")
    return found


def _serve(
    request: ServeRequest,
    layout: str,
    protocols: set[str],
    ports: Mapping[str, int | None],
    name_servers: str | None,
) -> None:
    """Hand on to what serves just this: importing the other protocol takes time."""
    raise_file_limit()
    if is_bridged(layout, protocols, request.directory):
        from logstore.tools.commands.serve_bridge import serve_bridge

        serve_bridge(request, layout, protocols, ports, name_servers)
    elif layout == "rocketmq":
        from logstore.tools.commands.serve_rocketmq import serve_rocketmq

        if request.port is None:
            request = request._replace(port=ports["namesrv"])
        serve_rocketmq(request, ports["broker"], name_servers)
    else:
        from logstore.tools.commands.serve_kafka import serve_kafka

        serve_kafka(request)
