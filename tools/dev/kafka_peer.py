"""
The real Apache Kafka, fetched through Maven and run as one node beside us.

Interop tests and benchmarks ask it what the original does::

    with KafkaPeer("4.3.1", directory) as kafka:
        kafka.tool("TopicCommand", "--bootstrap-server", kafka.bootstrap, "--list")

It needs Java 17 and Maven on the PATH and nothing of Python beyond the standard library. The jars
go where Maven keeps its own; what is remembered here is only the class path, below
``$XDG_CACHE_HOME/logstore/peers/kafka``.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import os
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import time
import uuid
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from logstore.tools.dev import java_classes
from logstore.tools.dev.class_archive import ClassArchive
from logstore.tools.dev.free_ports import free_port
from logstore.tools.dev.maven import PeerToolError, PeerUnavailable, class_path

#: The newest 4.x and 3.9.x whose artifacts are complete (4.4.0 lacks its tools jars).
VERSION_4 = "4.3.1"
VERSION_3 = "3.9.2"
VERSIONS = {"4": VERSION_4, "3.9": VERSION_3}

#: A small heap, and compiled once and lightly: what a test wants. ``KAFKA_JVM`` in the environment
#: wins; benchmarks give what Kafka's own start script passes.
BROKER_JVM = "-Xmx512m -Xms128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.awt.headless=true"
TOOL_JVM = "-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
START_SECONDS_MAX = 120
STOP_SECONDS_MAX = 60

_POM = Path(__file__).with_name("kafka_peer.xml")
_PARTS = {
    part: Path(__file__).with_name(f"kafka_{part}.xml") for part in ("streams", "connect", "suite")
}
_TOOL_PACKAGES = ("org/apache/kafka/tools/", "kafka/tools/", "kafka/admin/")
_LOG4J2 = """\
<Configuration status="error"><Appenders><Console name="out" target="SYSTEM_ERR">
<PatternLayout pattern="[%d{ISO8601}] %p %m (%c)%n"/></Console></Appenders>
<Loggers><Root level="LEVEL"><AppenderRef ref="out"/></Root></Loggers></Configuration>
"""
_LOG4J1 = """\
log4j.rootLogger=LEVEL, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.target=System.err
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d{ISO8601}] %p %m (%c)%n
"""


def fetch(version: str) -> str:
    """
    Return the class path of that Kafka; Maven is asked only while a jar is not on disk.

    Raises :class:`PeerUnavailable` where Maven is missing or cannot reach the artifacts.
    """
    version = VERSIONS.get(version, version)
    profile = "log4j2" if _logs_with_log4j2(version) else "reload4j"
    options = [f"-Dkafka.version={version}", "-P", profile]
    return class_path(f"Kafka {version}", _POM, options, _cache_directory(version))


def fetch_part(part: Literal["streams", "connect", "suite"], version: str) -> str:
    """Return the class path of a part that a broker does without; raises as `fetch`."""
    version = VERSIONS.get(version, version)
    options = [f"-Dkafka.version={version}"]
    cache = _cache_directory(version) / part
    return class_path(f"Kafka {part.capitalize()} {version}", _PARTS[part], options, cache)


def free_port_pair() -> int:
    """Return a port P such that P and P + 1 are free now; PeerUnavailable if none is found."""
    port = free_port(1)
    if port is None:
        raise PeerUnavailable("no two neighbouring ports are free between 12000 and 32000")
    return port


class KafkaPeer:
    """
    One real single-node broker in KRaft mode; restartable, with its data left in place.

    `directory` gets ``data/`` (Kafka's ``log.dirs``), ``server.properties`` and ``broker.log``.
    The client port is `port`, the controller listens on the next one. `settings` are entries of
    ``server.properties`` and win over ours. `as_is` is a log directory that somebody else wrote:
    it is served in place of ``data/`` and never formatted. `jvm` replaces all flags of the JVM.
    `cluster_id` is that of the cluster which a new directory is to belong to, if it is known.
    """

    def __init__(
        self,
        version: str,
        directory: str | os.PathLike[str],
        port: int | None = None,
        settings: Mapping[str, object] | None = None,
        as_is: str | os.PathLike[str] | None = None,
        jvm: str | None = None,
        cluster_id: str | None = None,
    ) -> None:
        self._cluster_id = cluster_id or _drawn_cluster_id()
        self.version = VERSIONS.get(version, version)
        self.directory = Path(directory).resolve()
        self.data = self.directory / "data" if as_is is None else Path(as_is).resolve()
        self.log = self.directory / "broker.log"
        self.port = free_port_pair() if port is None else port
        self._may_move = port is None
        self._formats = as_is is None
        self._settings = dict(settings or {})
        self._jvm = jvm or os.environ.get("KAFKA_JVM", "")
        self._archive = class_archive(self.version)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """The address that clients are given."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The broker's process id, 0 while it is down."""
        return 0 if self._process is None else self._process.pid

    def prepare(self) -> None:
        """Write server.properties, and format the storage where it is new and ours."""
        controller = f"127.0.0.1:{self.port + 1}"
        plaintext = f"PLAINTEXT://{self.bootstrap}"
        properties: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{plaintext},CONTROLLER://{controller}",
            "advertised.listeners": plaintext,
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": self.data,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
        }
        if _release(self.version) >= (4, 0):
            properties |= {
                "share.coordinator.state.topic.replication.factor": 1,
                "share.coordinator.state.topic.min.isr": 1,
            }
        lines = [f"{key}={value}\n" for key, value in (properties | self._settings).items()]
        file = self.directory / "server.properties"
        file.write_text("".join(lines))
        if self._formats and not (self.data / "meta.properties").exists():
            command = ("format", "-t", self._cluster_id, "-c", str(file))
            self.tool("kafka.tools.StorageTool", *command)

    def start(self) -> Self:
        """
        Format new storage (never an `as_is` one), start, return once the broker answers.

        Raises :class:`PeerUnavailable` with the end of the log where it does not come up.
        """
        assert self._process is None, "the peer runs already"
        self.directory.mkdir(parents=True, exist_ok=True)
        for last in (False, False, True):
            self.prepare()
            if self._launch():
                self._may_move = False  # clients know the port now
                return self
            text = self.log.read_text(errors="replace")
            self.stop(kill=True)
            if last or not self._may_move or "Address already in use" not in text:
                raise PeerUnavailable(
                    f"Kafka {self.version} did not start; the end of {self.log}:\n{text[-3000:]}"
                )
            self.port = free_port_pair()
        raise AssertionError("the last attempt returns or raises")

    def stop(self, kill: bool = False) -> None:
        """End it with SIGTERM and wait (a clean shutdown), or with SIGKILL, as a crash would."""
        process, self._process = self._process, None
        if process is None:
            return
        atexit.unregister(self._reap)
        process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def tool(self, name: str, *args: str, check: bool = True, stdin: str | None = None) -> str:
        """
        Run one of Kafka's tools, named in full or by its short name; return its stdout.

        Raises :class:`PeerToolError` with both outputs where it fails and `check` is set.
        """
        jvm = f"{TOOL_JVM} {self._archive.flags(may_write=False)}"
        done = subprocess.run(
            java(self.version, name, *args, jvm=jvm),
            text=True,
            capture_output=True,
            input=stdin,
            check=False,
        )
        if check and done.returncode:
            raise PeerToolError(
                f"{name} {' '.join(args)} ended with {done.returncode}:\n"
                f"{done.stdout}\n{done.stderr}"
            )
        return done.stdout

    def memory_mib(self) -> int:
        """Return the resident memory of the broker now."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) // 1024

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _launch(self) -> bool:
        """Start the process; tell whether it came to answer before it ended or time was up."""
        file = self.directory / "server.properties"
        jvm = self._jvm or f"{BROKER_JVM} {self._archive.flags(may_write=True)}"
        command = java(self.version, "kafka.Kafka", str(file), jvm=jvm, level="INFO")
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C in a terminal is ours to pass on
            )
        atexit.register(self._reap)
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline and self._process.poll() is None:
            if answers(self.port):
                if self._process.poll() is not None:
                    return False  # somebody else's broker answered
                self._archive.write(self.pid)
                return True
            time.sleep(0.02)
        return False

    def _reap(self) -> None:
        """Leave no broker behind when the interpreter ends without a stop."""
        self.stop(kill=True)


def _drawn_cluster_id() -> str:
    drawn = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # The tool would take a hyphen in front for an option.
    return f"A{drawn[1:]}" if drawn.startswith("-") else drawn


def java(
    version: str,
    main: str,
    *args: str,
    jvm: str = TOOL_JVM,
    level: str = "WARN",
    classes: str = "",
    behind: str | os.PathLike[str] = "",
) -> list[str]:
    """
    Return the command line that runs one main class with that Kafka's jars.

    `classes` is more class path, put before the jars, `behind` put behind them, where an archive of
    classes stays good: then `main` is a class in there. `level` is the log level, on stderr.
    """
    if shutil.which("java") is None:
        raise PeerUnavailable(f"Kafka {version}: no `java` on the PATH; install a JDK, 17 or later")
    path = fetch(version)
    is_xml = _logs_with_log4j2(version)
    text = (_LOG4J2 if is_xml else _LOG4J1).replace("LEVEL", level)
    config = _cache_directory(version) / f"log4j-{level}.{'xml' if is_xml else 'properties'}"
    if not config.exists() or config.read_text() != text:
        fresh = config.with_name(f"{config.name}.{os.getpid()}.new")
        fresh.write_text(text)
        os.replace(fresh, config)
    option = "-Dlog4j2.configurationFile=" if is_xml else "-Dlog4j.configuration=file:"
    return [
        *("java", *shlex.split(jvm), f"{option}{config}"),
        *("-cp", ":".join(str(one) for one in (classes, path, behind) if one)),
        *(main if behind else _main_class(version, main), *args),
    ]


def compiled(version: str, sources: Sequence[Path], more: str = "") -> Path:
    """
    Return the classes of these sources, compiled against that release once; see `java_classes`.

    `more` is what they need of class path beyond the release's own.
    """
    version = VERSIONS.get(version, version)
    path = f"{fetch(version)}:{more}" if more else fetch(version)
    return java_classes.compiled(f"Kafka {version}", sources, path, _cache_directory(version))


def class_archive(version: str) -> ClassArchive:
    """Return the archive of classes for that Kafka, its broker's and so most of its tools'."""
    return ClassArchive(_cache_directory(version), "broker")


@cache
def _main_class(version: str, name: str) -> str:
    """Full name of a tool's class: tools move between packages from release to release."""
    if "." in name:
        return name
    for jar in fetch(version).split(":"):
        if "/org/apache/kafka/" not in jar:
            continue
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.namelist():
                if entry.endswith(f"/{name}.class") and entry.startswith(_TOOL_PACKAGES):
                    return entry.removesuffix(".class").replace("/", ".")
    raise PeerToolError(f"Kafka {version} has no tool named {name}")


def _cache_directory(version: str) -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "logstore" / "peers" / "kafka" / VERSIONS.get(version, version)


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in VERSIONS.get(version, version).split(".")[:2])


def _logs_with_log4j2(version: str) -> bool:
    return _release(version) >= (4, 0)


def answers(port: int, host: str = "127.0.0.1") -> bool:
    """Tell whether Metadata v1 on this port names a broker (it names none while starting)."""
    request = struct.pack(">hhihi", 3, 1, 7, -1, 0)
    with (
        contextlib.suppress(OSError),
        socket.create_connection((host, port), 1) as connection,
    ):
        connection.settimeout(2)
        connection.sendall(struct.pack(">i", len(request)) + request)
        reply = connection.recv(12, socket.MSG_WAITALL)
        return len(reply) == 12 and struct.unpack(">iii", reply)[2] >= 1
    return False
