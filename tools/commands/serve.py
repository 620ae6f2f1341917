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
from typing import TYPE_CHECKING

import click

from logstore.compat.kafka.broker import Broker
from logstore.compat.running import listen, run_in_loop
from logstore.compat.server import Server
from logstore.os_host import system_host
from logstore.segments.kafka.broker_config import BrokerConfig
from logstore.segments.kafka.cluster_metadata.release import parse_release
from logstore.segments.kafka.config_keys import ConfigError
from logstore.segments.kafka.java_properties import PropertiesError, parse_properties
from logstore.tools.listeners import Listener, find_listener

if TYPE_CHECKING:
    from collections.abc import Mapping

_HOST, _PORT = "127.0.0.1", 9092
_EVERYWHERE = "0.0.0.0"  # noqa: S104 - only where the user asks for it


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--layout", type=click.Choice(["kafka"]), default="kafka", show_default=True,
              help="How the data stands on disk.")  # fmt: skip
@click.option("--data", "directory", metavar="DIR",
              help="Data directory; without it log.dirs of FILE, or a temporary one that goes "
                   "away.")  # fmt: skip
@click.option("--host", metavar="HOST",
              help=f"Address to listen on; without it that of FILE, or {_HOST}.")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535),
              help="Port to listen on, 0 for a free one; without it that of FILE, or "
                   f"{_PORT}.")  # fmt: skip
@click.option("--set", "assignments", metavar="KEY=VALUE", multiple=True,
              help="A setting of server.properties; repeatable.")  # fmt: skip
@click.option("-c", "--config", "properties_path", metavar="FILE",
              type=click.Path(exists=True, dir_okay=False),
              help="A server.properties file; --set wins over it.")  # fmt: skip
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
    assignments: tuple[str, ...],
    properties_path: str | None,
    release_version: str | None,
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
      logstore serve -c server.properties --port 0
      logstore serve --data DIR --release-version 3.9
    """
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    logging.basicConfig(level=level, format="%(levelname)s %(message)s", stream=sys.stderr)
    settings = _settings(properties_path, assignments)
    for key in BrokerConfig(settings).unknown():
        click.echo(f"logstore: warning: {key}: no such setting in Kafka; ignored", err=True)
    release = None if release_version is None else parse_release(release_version)
    addresses = _addresses(settings, host, port)
    directory = directory or _directory_of(settings)
    _raise_file_limit()
    if directory is not None:
        broker = Broker.open(
            system_host(), os.path.abspath(directory), settings, is_parallel=True, release=release
        )
        try:
            run_in_loop(_run(broker, layout, *addresses, is_json=is_json))
        finally:
            broker.close()
        return
    with tempfile.TemporaryDirectory(prefix="logstore-", ignore_cleanup_errors=True) as temporary:
        broker = Broker.open(system_host(), temporary, settings, release=release)
        try:
            run_in_loop(_run(broker, layout, *addresses, is_json=is_json))
        finally:
            broker.abandon()


def _settings(properties_path: str | None, assignments: tuple[str, ...]) -> dict[str, str]:
    settings: dict[str, str] = {}
    if properties_path is not None:
        with open(properties_path, encoding="latin-1") as file:  # Java's encoding of such files
            text = file.read()
        try:
            settings.update(parse_properties(text))
        except PropertiesError as error:
            raise PropertiesError(f"{properties_path}: {error}") from None
    for assignment in assignments:
        key, separator, value = assignment.partition("=")
        if not separator or not key:
            raise click.BadParameter(f"{assignment!r} is not KEY=VALUE", param_hint="--set")
        settings[key.strip()] = value
    return settings


def _addresses(
    settings: Mapping[str, str], host: str | None, port: int | None
) -> tuple[Listener, Listener | None]:
    """Return where to listen, and what clients are told if that is something else."""
    named = find_listener(settings, "listeners")
    listener = Listener(
        (_HOST if named is None else named.host) if host is None else host,
        (_PORT if named is None else named.port) if port is None else port,
    )
    return listener, find_listener(settings, "advertised.listeners")


def _directory_of(settings: Mapping[str, str]) -> str | None:
    """Return the directory that the settings name; None without one."""
    for key in ("log.dirs", "log.dir"):
        text = settings.get(key, "")
        directories = [name.strip() for name in text.split(",") if name.strip()]
        if len(directories) > 1:
            raise ConfigError(key, text, "must be one directory; name it with --data")
        if directories:
            return directories[0]
    return None


def _raise_file_limit() -> None:
    """Allow as many open files as the system lets this user have: one per partition and more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _run(
    broker: Broker, layout: str, listener: Listener, advertised: Listener | None, *, is_json: bool
) -> None:
    server = Server(broker)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    host = listener.host or _EVERYWHERE
    port = await listen(server, host, listener.port)
    # Who listens everywhere is found at home.
    found = advertised or Listener(_HOST if host in (_EVERYWHERE, "::") else host, port)
    broker.advertised_host, broker.advertised_port = found.host, found.port or port
    broker.start_housekeeping()
    # What lives now lives until the end: collections need not look at it again and again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)
    bootstrap = Listener(broker.advertised_host, broker.advertised_port).text
    directory = broker.store.directory
    if is_json:
        ready = {"bootstrap": bootstrap, "data": directory, "layout": layout, "pid": os.getpid()}
        click.echo(json.dumps(ready))
    else:
        click.echo(f"Kafka broker at {bootstrap}, data in {directory}; Ctrl-C stops it")
    await stopping.wait()
    await server.stop()
