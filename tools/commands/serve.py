"""``logstore serve``: a broker process."""

from __future__ import annotations

import logging
import sys

import click

from logstore.tools.commands.serve_process import (
    HOME,
    ServeRequest,
    raise_file_limit,
    read_settings,
)

_PORT_RANGE = click.IntRange(0, 65535)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--layout", type=click.Choice(["kafka", "rocketmq"]), default="kafka",
              show_default=True, help="How the data stands on disk.")  # fmt: skip
@click.option("--data", "directory", metavar="DIR",
              help="Data directory (log.dirs, storePathRootDir); without it that of FILE, or a "
                   "temporary one that goes away.")  # fmt: skip
@click.option("--host", metavar="HOST",
              help=f"Address to listen on; without it that of FILE, or {HOME}.")  # fmt: skip
@click.option("--port", type=_PORT_RANGE,
              help="Port that clients are given, 0 for a free one: the broker's with Kafka (that "
                   "of FILE, or 9092), the name server's with RocketMQ (9876).")  # fmt: skip
@click.option("--broker-port", type=_PORT_RANGE,
              help="RocketMQ: port of the broker, 0 for a free one; without it listenPort of "
                   "FILE, or 10911.")  # fmt: skip
@click.option("-n", "--namesrv", "name_servers", metavar="HOST:PORT[;...]",
              help="RocketMQ: name servers to register with, instead of one here; without it "
                   "namesrvAddr of FILE.")  # fmt: skip
@click.option("--set", "assignments", metavar="KEY=VALUE", multiple=True,
              help="A setting of server.properties or broker.conf; repeatable.")  # fmt: skip
@click.option("-c", "--config", "properties_path", metavar="FILE",
              type=click.Path(exists=True, dir_okay=False),
              help="A server.properties or broker.conf file; --set wins over it.")  # fmt: skip
@click.option("--release-version", metavar="X.Y[-IVn]",
              help="Kafka release whose metadata version a new directory gets, so that a broker "
                   "of that release can start on it too; without it 4.3.")  # fmt: skip
@click.option("--json", "is_json", is_flag=True, help="Print the ready line as JSON.")
@click.option("-v", "--verbose", count=True, help="Log more to stderr; twice for debugging.")
def serve(
    layout: str,
    directory: str | None,
    host: str | None,
    port: int | None,
    broker_port: int | None,
    name_servers: str | None,
    assignments: tuple[str, ...],
    properties_path: str | None,
    release_version: str | None,
    is_json: bool,
    verbose: int,
) -> None:
    """
    Serve a data directory to Kafka or RocketMQ clients until Ctrl-C or SIGTERM.

    Prints one line with the address for clients once it answers.

    \b
    Examples:
      logstore serve
      logstore serve --data DIR --port 0 --json
      logstore serve --set num.partitions=6 --set log.segment.bytes=1048576
      logstore serve -c server.properties --port 0
      logstore serve --data DIR --release-version 3.9
      logstore serve --layout rocketmq --data DIR
      logstore serve --layout rocketmq --port 0 --broker-port 0 --json
      logstore serve --layout rocketmq -c broker.conf -n namesrv.example:9876
    """
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    logging.basicConfig(level=level, format="%(levelname)s %(message)s", stream=sys.stderr)
    settings = read_settings(properties_path, assignments)
    request = ServeRequest(directory, host, port, settings, is_json)
    if layout == "rocketmq":
        if release_version is not None:
            raise click.UsageError("--release-version is for Kafka's layout")
        from logstore.tools.commands.serve_rocketmq import serve_rocketmq

        raise_file_limit()
        serve_rocketmq(request, broker_port, name_servers)
        return
    for value, option in ((broker_port, "--broker-port"), (name_servers, "-n")):
        if value is not None:
            raise click.UsageError(f"{option} is for RocketMQ's layout: --layout rocketmq")
    from logstore.tools.commands.serve_kafka import serve_kafka

    raise_file_limit()
    serve_kafka(request, release_version)
