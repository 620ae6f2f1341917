"""``logstore serve``: a broker process."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import resource
import signal
import sys
import tempfile

import click

from logstore.compat.kafka.broker import Broker
from logstore.compat.running import listen, run_in_loop
from logstore.compat.server import Server
from logstore.os_host import system_host
from logstore.segments.kafka.broker_config import BrokerConfig
from logstore.segments.kafka.java_properties import parse_properties

_KAFKA_PORT = 9092


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--layout", type=click.Choice(["kafka"]), default="kafka", show_default=True,
              help="How the data stands on disk.")  # fmt: skip
@click.option("--data", "directory", metavar="DIR",
              help="Data directory; without it a temporary one that goes away.")  # fmt: skip
@click.option("--host", "address", default="127.0.0.1", show_default=True,
              help="Address to listen on and to advertise.")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), default=_KAFKA_PORT, show_default=True,
              help="Port to listen on; 0 takes a free one.")  # fmt: skip
@click.option("--set", "assignments", metavar="KEY=VALUE", multiple=True,
              help="A setting of server.properties; repeatable.")  # fmt: skip
@click.option("-c", "--config", "properties_path", metavar="FILE",
              type=click.Path(exists=True, dir_okay=False),
              help="A server.properties file; --set wins over it.")  # fmt: skip
@click.option("--json", "is_json", is_flag=True, help="Print the ready line as JSON.")
@click.option("-v", "--verbose", count=True, help="Log more to stderr; twice for debugging.")
def serve(
    layout: str,
    directory: str | None,
    address: str,
    port: int,
    assignments: tuple[str, ...],
    properties_path: str | None,
    is_json: bool,
    verbose: int,
) -> None:
    """
    Serve a data directory to Kafka clients until Ctrl-C or SIGTERM.

    Prints one line with the bootstrap address once it answers.

    \b
    Examples:
      logstore serve
      logstore serve --data DIR --port 0 --json
      logstore serve --set num.partitions=6 --set log.segment.bytes=1048576
    """
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    logging.basicConfig(level=level, format="%(levelname)s %(message)s", stream=sys.stderr)
    settings = _settings(properties_path, assignments)
    for key in BrokerConfig(settings).unknown():
        click.echo(f"logstore: warning: {key}: no such setting in Kafka; ignored", err=True)
    _raise_file_limit()
    if directory is not None:
        broker = Broker.open(system_host(), os.path.abspath(directory), settings)
        try:
            run_in_loop(_run(broker, layout, address, port, is_json))
        finally:
            broker.close()
        return
    with tempfile.TemporaryDirectory(prefix="logstore-", ignore_cleanup_errors=True) as temporary:
        broker = Broker.open(system_host(), temporary, settings)
        try:
            run_in_loop(_run(broker, layout, address, port, is_json))
        finally:
            broker.abandon()


def _settings(properties_path: str | None, assignments: tuple[str, ...]) -> dict[str, str]:
    settings: dict[str, str] = {}
    if properties_path is not None:
        with open(properties_path, encoding="latin-1") as file:  # Java's encoding of such files
            settings.update(parse_properties(file.read()))
    for assignment in assignments:
        key, separator, value = assignment.partition("=")
        if not separator or not key:
            raise click.BadParameter(f"{assignment!r} is not KEY=VALUE", param_hint="--set")
        settings[key.strip()] = value
    return settings


def _raise_file_limit() -> None:
    """Allow as many open files as the system lets this user have: one per partition and more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _run(broker: Broker, layout: str, address: str, port: int, is_json: bool) -> None:
    server = Server(broker)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    broker.advertised_host = address
    broker.advertised_port = await listen(server, address, port)
    broker.start_housekeeping()
    # What lives now lives until the end: collections need not look at it again and again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)
    bootstrap, directory = f"{address}:{broker.advertised_port}", broker.store.directory
    if is_json:
        ready = {"bootstrap": bootstrap, "data": directory, "layout": layout, "pid": os.getpid()}
        click.echo(json.dumps(ready))
    else:
        click.echo(f"Kafka broker at {bootstrap}, data in {directory}; Ctrl-C stops it")
    await stopping.wait()
    await server.stop()
