"""
The real Apache RocketMQ, fetched through Maven and run beside us: a name server and a broker.

Interop tests and benchmarks ask it what the original does::

    with RocketMQPeer("5", directory) as rocketmq:
        rocketmq.mqadmin("topicList", "-n", rocketmq.bootstrap)
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from logstore.tools.dev.free_ports import free_port
from logstore.tools.dev.maven import PeerToolError, PeerUnavailable
from logstore.tools.dev.remoting_request import (
    UPDATE_BROKER_CONFIG,
    ask,
    is_broker_up,
    lists_broker,
)
from logstore.tools.dev.rocketmq_jars import MQADMIN, VERSIONS, class_archive, java

#: Each server would spend two to three seconds of CPU time on a certificate of its own.
_NO_TLS = "-Dtls.server.mode=disabled"
_LIGHTLY = "-XX:TieredStopAtLevel=1"
#: Small heaps, and compiled once and lightly: what a test wants. ``ROCKETMQ_JVM`` wins. A broker
#: of which much is asked is compiled as Java does it by itself, for it walks through all of its
#: time wheel whenever it tells of itself; and says what is null however often that happens.
BUSY_BROKER_JVM = (
    "-Xmx512m -Xms128m -XX:MaxDirectMemorySize=512m -XX:+UseSerialGC "
    f"-XX:-OmitStackTraceInFastThrow {_NO_TLS}"
)
BROKER_JVM = f"{BUSY_BROKER_JVM} {_LIGHTLY}"
NAME_SERVER_JVM = f"-Xmx128m -Xms64m -XX:+UseSerialGC {_LIGHTLY}"
#: Settings that tests give a broker. One of 5.x asks the clock without a pause until the first
#: interval is over, by itself ten seconds (TransactionMetricsFlushService); another one it waits
#: between two comparisons of all 37 MB of the timer wheel, by itself one second. And once a
#: transaction has ended it asks the clock for good, from the moment when the last decision is
#: older than the interval by which it gathers them (TransactionalOpBatchService): with an interval
#: that never ends each is written at once, for it is larger than what may be gathered. And it
#: refuses what a busy machine has let wait for a fifth of a second.
CALM: Mapping[str, object] = {
    "transactionMetricFlushInterval": 100,
    "timerFlushIntervalMs": 10_000,
    "transactionOpBatchInterval": 3_600_000,
    "transactionOpMsgMaxSize": 1,
    "brokerFastFailureEnable": "false",
}
START_SECONDS_MAX = 120
STOP_SECONDS_MAX = 60

_NAME_SERVER = "org.apache.rocketmq.namesrv.NamesrvStartup"
_BROKER = "org.apache.rocketmq.broker.BrokerStartup"


class RocketMQPeer:
    """
    One real name server with one real broker; restartable, with its data left in place.

    `directory` gets ``store/`` (the broker's ``storePathRootDir``), ``broker.conf``,
    ``broker.log`` and more. `settings` are entries of ``broker.conf`` and win over ours. `as_is`
    is a store that somebody else wrote, served in place of ``store/``. `jvm` replaces the broker's
    JVM flags, and lets the name server offer TLS, as both do by themselves. `broker_port` is wanted
    where message ids, which hold it, are to stay good.

    With `name_server` (host:port) the broker registers there, and none is started here.

    A broker of 5.x registers itself only ten seconds after its start, mostly. Where `is_urged` is
    set it is made to by a change of configuration that changes nothing. `is_busy`: much will be
    asked of it.
    """

    def __init__(
        self,
        version: str,
        directory: str | os.PathLike[str],
        settings: Mapping[str, object] | None = None,
        as_is: str | os.PathLike[str] | None = None,
        jvm: str | None = None,
        *,
        broker_port: int | None = None,
        is_urged: bool = True,
        is_busy: bool = False,
        name_server: str | None = None,
    ) -> None:
        self.version = VERSIONS.get(version, version)
        self.directory = Path(directory).resolve()
        self.data = self.directory / "store" if as_is is None else Path(as_is).resolve()
        self.log = self.directory / "broker.log"
        self.port, self.broker_port = _port(), broker_port or _port(-2, 1)
        self._others_name_server = name_server
        self._settings = dict(settings or {})
        self._name_server_jvm = NAME_SERVER_JVM if jvm else f"{NAME_SERVER_JVM} {_NO_TLS}"
        self._jvm = jvm or os.environ.get("ROCKETMQ_JVM", "")
        self._archive = class_archive(self.version)
        self._is_urged = is_urged
        self._own_jvm = BUSY_BROKER_JVM if is_busy else BROKER_JVM
        self._may_move = broker_port is None
        self._name_server: subprocess.Popen[bytes] | None = None
        self._broker: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """The name server's address, which clients are given."""
        return self._others_name_server or f"127.0.0.1:{self.port}"

    @property
    def broker_address(self) -> str:
        """The broker's own address, which mqadmin is given for some commands."""
        return f"127.0.0.1:{self.broker_port}"

    @property
    def pids(self) -> list[int]:
        """The process ids of name server and broker, of those that run."""
        return [one.pid for one in (self._name_server, self._broker) if one is not None]

    def start(self) -> Self:
        """
        Start both, the name server only if it does not run; return once clients are served.

        Raises :class:`PeerUnavailable` with the end of the log where they do not come up.
        """
        assert self._broker is None, "the broker runs already"
        self.directory.mkdir(parents=True, exist_ok=True)
        atexit.register(self._reap)
        for last in (False, False, True):
            if self._launch():
                self._may_move = False  # clients know the ports now
                return self
            text = self.log.read_text(errors="replace") if self.log.exists() else ""
            self.stop(kill=True)
            if last or not self._may_move or "already in use" not in text:
                raise PeerUnavailable(
                    f"RocketMQ {self.version} did not start; the end of {self.log}:\n{text[-3000:]}"
                )
            self.port, self.broker_port = _port(), _port(-2, 1)
        raise AssertionError("the last attempt returns or raises")

    def stop(self, kill: bool = False) -> None:
        """End both with SIGTERM and wait (a clean shutdown), or with SIGKILL, as a crash would."""
        self.stop_broker(kill=kill)
        process, self._name_server = self._name_server, None
        _end(process, signal.SIGKILL)  # it keeps nothing that a clean end would save
        atexit.unregister(self._reap)

    def stop_broker(self, kill: bool = False) -> None:
        """End the broker alone, so that the next start finds its name server."""
        process, self._broker = self._broker, None
        _end(process, signal.SIGKILL if kill else signal.SIGTERM)

    def mqadmin(self, *args: str, check: bool = True) -> str:
        """Run mqadmin; return its stdout. PeerToolError with both outputs where it fails."""
        command = java(self.version, MQADMIN, *args)
        done = subprocess.run(command, text=True, capture_output=True, check=False)
        if check and done.returncode:
            raise PeerToolError(
                f"mqadmin {' '.join(args)} ended with {done.returncode}:\n"
                f"{done.stdout}\n{done.stderr}"
            )
        return done.stdout

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop(kill=True)  # a clean end takes ten seconds: call stop() where it matters

    def _launch(self) -> bool:
        """Start what does not run; tell whether clients came to be served before time was up."""
        deadline = time.monotonic() + START_SECONDS_MAX
        if self._name_server is None and self._others_name_server is None:
            jvm = self._name_server_jvm
            if not self._jvm:
                jvm = f"{jvm} {self._archive.flags(may_write=False)}"
            properties = {"listenPort": self.port}
            self._name_server = self._spawn("namesrv", _NAME_SERVER, properties, jvm)
        host, _, port = self.bootstrap.rpartition(":")
        name_server, broker = (host, int(port)), ("127.0.0.1", self.broker_port)
        jvm = self._jvm or f"{self._own_jvm} {self._archive.flags(may_write=True)}"
        self._broker = self._spawn("broker", _BROKER, self._properties(), jvm)
        if not self._wait(lambda: is_broker_up(broker), deadline):
            return False
        self._archive.write(self._broker.pid)
        if self._is_urged:
            with contextlib.suppress(OSError, ValueError):
                ask(broker, UPDATE_BROKER_CONFIG, body=b"brokerPermission=6\n")
        return self._wait(lambda: lists_broker(name_server, self.broker_address), deadline)

    def _properties(self) -> dict[str, object]:
        return {
            "brokerClusterName": "DefaultCluster",
            "brokerName": "broker-a",
            "brokerId": 0,
            "brokerIP1": "127.0.0.1",
            "brokerIP2": "127.0.0.1",
            "listenPort": self.broker_port,
            "namesrvAddr": self.bootstrap,
            "storePathRootDir": self.data,
            "storePathCommitLog": self.data / "commitlog",
            "diskMaxUsedSpaceRatio": 95,
            **self._settings,
        }

    def _spawn(
        self, name: str, main: str, properties: Mapping[str, object], jvm: str
    ) -> subprocess.Popen[bytes]:
        file = self.directory / f"{name}.conf"
        file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        home = self.directory / "home"
        command = java(self.version, main, "-c", str(file), jvm=jvm, level="INFO", home=home)
        with open(self.directory / f"{name}.log", "ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                env={**os.environ, "ROCKETMQ_HOME": str(home)},
                start_new_session=True,  # Ctrl-C in a terminal is ours to pass on
            )

    def _wait(self, question: Callable[[], bool], deadline: float) -> bool:
        while time.monotonic() < deadline:
            processes = [self._broker]
            if self._others_name_server is None:
                processes.append(self._name_server)
            if any(one is None or one.poll() is not None for one in processes):
                return False
            if question():
                return True
            time.sleep(0.02)
        return False

    def _reap(self) -> None:
        """Leave no process behind when the interpreter ends without a stop."""
        self.stop(kill=True)


def _end(process: subprocess.Popen[bytes] | None, number: signal.Signals) -> None:
    if process is None:
        return
    process.send_signal(number)
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _port(*neighbours: int) -> int:
    found = free_port(*neighbours)
    if found is None:
        raise PeerUnavailable("no free ports between 12000 and 32000")
    return found
