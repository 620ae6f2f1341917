"""What ``logstore serve`` does whatever it serves: settings, directory, signals, the ready line."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import click

from logstore.compat.bridge.beside import MARKER
from logstore.compat.strange_settings import strange_settings
from logstore.host import Host
from logstore.os_host import system_host

if TYPE_CHECKING:
    from logstore.tools.commands.serve_control import ServedControl

#: where everybody listens who asks for nothing else
HOME = "127.0.0.1"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - only where the user asks for it


class ServeRequest(NamedTuple):
    """What the command line asks for; None and empty where it does not say."""

    directory: str | None
    host: str | None
    port: int | None
    settings: Mapping[str, str]
    is_json: bool
    #: Kafka: whose metadata version a new directory gets, and whose APIs are served
    release_version: str | None = None
    emulated_release: str | None = None
    #: makes requests, files and time fail, if somebody may ask for that
    control: ServedControl | None = None
    #: RocketMQ: where gRPC clients find it; None if they do not
    proxy_port: int | None = None
    #: Kafka: how many brokers clients see
    node_count: int = 1

    @property
    def world(self) -> Host:
        """Files, clock and chance of the brokers."""
        return system_host() if self.control is None else self.control.host


class DataDirectory(NamedTuple):
    """Where the data stands; a temporary one goes away."""

    path: str
    is_temporary: bool


@contextmanager
def data_directory(given: str | None) -> Generator[DataDirectory]:
    """Yield the directory that is given, or a temporary one that is there until the end."""
    if given is not None:
        yield DataDirectory(os.path.abspath(given), is_temporary=False)
        return
    import tempfile  # not where the directory is given: a start is short

    with tempfile.TemporaryDirectory(prefix="logstore-", ignore_cleanup_errors=True) as path:
        yield DataDirectory(path, is_temporary=True)


def read_settings(properties_path: str | None, assignments: tuple[str, ...]) -> dict[str, str]:
    """
    Return the settings of a properties file, with what ``--set`` says over them.

    Raises:
        PropertiesError: the file cannot be understood.
        click.BadParameter: an assignment is none.

    """
    settings: dict[str, str] = {}
    if properties_path is not None:
        from logstore.segments.kafka.java_properties import PropertiesError, parse_properties

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


def raise_file_limit() -> None:
    """Allow as many open files as the system lets this user have: one per partition and more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def stop_asked() -> asyncio.Event:
    """Return an event that Ctrl-C, SIGTERM and a terminal that goes away set from now on."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # under nohup it is to be ignored
        loop.add_signal_handler(signal.SIGHUP, stopping.set)
    return stopping


def warn_of_strange(protocols: Collection[str], settings: Mapping[str, str]) -> None:
    """
    Say on stderr which settings nobody knows, and which name was meant, perhaps.

    Raises:
        ConfigError: one that there is has a value that it cannot have.

    """
    for setting in strange_settings(protocols, settings):
        click.echo(f"logstore: warning: {setting.text}", err=True)


def settle() -> None:
    """Collect from now on, but nothing of what lives now: it lives until the end."""
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)
    gc.enable()


@contextmanager
def controlled(request: ServeRequest) -> Generator[None]:
    """Answer on the control port of `request`, if there is to be one, until the end."""
    if request.control is None:
        yield
        return
    with request.control.listening(request.host or HOME):
        yield


def say_ready(ready: Mapping[str, object], sentence: str, request: ServeRequest) -> None:
    """Print the one line that says that clients are answered from now on."""
    if request.control is not None:
        ready = {**ready, "control": request.control.address}
        sentence = f"{sentence}, control at {request.control.address}"
    if request.is_json:
        import json

        click.echo(json.dumps({**ready, "pid": os.getpid()}))
    else:
        click.echo(f"{sentence}; Ctrl-C stops it")


def is_bridged(layout: str, protocols: Collection[str], directory: str | None) -> bool:
    """
    Tell whether a broker of the layout's own protocol alone would not do.

    That is also so where another one was served before, and has left something beside the data.
    """
    if set(protocols) != {layout}:
        return True
    other = "kafka" if layout == "rocketmq" else "rocketmq"
    marker = f"{os.path.abspath(directory or '')}.{other}/{MARKER}"
    return directory is not None and os.path.exists(marker)
