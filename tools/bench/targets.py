"""What is measured: our own broker, the real Kafka, or whatever answers at an address."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from logstore.tools.bench.frames import BenchError
from logstore.tools.bench.processes import cpu_seconds
from logstore.tools.bench.serve_process import ServeProcess
from logstore.tools.dev.kafka_peer import VERSION_4, KafkaPeer, answers, free_port_pair

OURS = "ours"
KAFKA = "kafka"
#: 1 GiB of heap, all of it at once; the other flags are those of Kafka's own start script.
KAFKA_JVM = (
    "-Xmx1g -Xms1g -server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 "
    "-XX:InitiatingHeapOccupancyPercent=35 -XX:+ExplicitGCInvokesConcurrent "
    "-Djava.awt.headless=true"
)
#: The only setting that is not the default: deleted topics go at once and not after a minute, so
#: that what one cell wrote does not fill the disk under the next one.
SETTINGS = {"log.segment.delete.delay.ms": 1000}


class Instance(ABC):
    """One broker that is, or can be, running. `pid` is 0 where it is not known or not running."""

    address: tuple[str, int]
    pid: int

    @abstractmethod
    def start(self) -> None:
        """Start the process; return once it answers Metadata."""

    @abstractmethod
    def stop(self, *, kill: bool = False) -> None:
        """End it, cleanly or with SIGKILL; its data stays. Fine if it does not run."""

    @property
    def bootstrap(self) -> str:
        """Host and port as clients write them."""
        return f"{self.address[0]}:{self.address[1]}"


class OursInstance(Instance):
    """``logstore serve`` on a data directory, in a process of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.address = ("127.0.0.1", free_port_pair())
        self.pid = 0
        self._process = ServeProcess(directory / "serve.log")

    def options(self) -> list[str]:
        """Return what `serve` is told, but for settings."""
        return ["--data", str(self._directory / "data"), "--port", str(self.address[1])]

    def start(self) -> None:
        """Start it; BenchError with what it said where it ends or does not answer."""
        options = self.options()
        for key, value in SETTINGS.items():
            options += ["--set", f"{key}={value}"]
        self.pid = self._process.start(
            options, lambda: answers(self.address[1]), look_every_s=0.001
        )

    def stop(self, *, kill: bool = False) -> None:
        """End it with SIGTERM or SIGKILL and wait."""
        self.pid = 0
        self._process.stop(kill=kill)


class KafkaInstance(Instance):
    """The real Kafka in KRaft mode with a heap of 1 GiB; formatted beforehand."""

    def __init__(self, directory: Path) -> None:
        self._peer = KafkaPeer(VERSION_4, directory, settings=SETTINGS, jvm=KAFKA_JVM)
        self._peer.prepare()
        self.address = ("127.0.0.1", self._peer.port)
        self.pid = 0

    def start(self) -> None:
        """Start it; PeerUnavailable where it does not come up."""
        self._peer.start()
        self.address = ("127.0.0.1", self._peer.port)
        self.pid = self._peer.pid

    def stop(self, *, kill: bool = False) -> None:
        """End it with SIGTERM or SIGKILL and wait."""
        self.pid = 0
        self._peer.stop(kill=kill)


class ForeignInstance(Instance):
    """A broker that somebody else runs: never started, never stopped."""

    def __init__(self, address: tuple[str, int], pid: int) -> None:
        self.address = address
        self.pid = pid

    def start(self) -> None:
        """Make sure that something listens there."""
        if not answers(self.address[1], self.address[0]):
            raise BenchError(f"{self.bootstrap}: no broker answers there")

    def stop(self, *, kill: bool = False) -> None:
        """Leave it alone."""


class Target:
    """
    One contestant: a main instance that lives as long as the run, and fresh ones on demand.

    `can_start` tells whether fresh instances can be had. Data lies below `directory` and goes away
    with :meth:`close`.
    """

    #: names of those that can be started here
    kinds: Sequence[str] = (OURS, KAFKA)

    def __init__(self, name: str, directory: str | None = None) -> None:
        self.name = name
        self.can_start = name in self.kinds
        self.topics: set[str] = set()
        self._foreign = None if self.can_start else parse_address(name, self.kinds)
        self._directory = Path(
            tempfile.mkdtemp(prefix=f"logstore-bench-{_safe(name)}-", dir=directory)
        )
        self._instances: list[Instance] = []
        self._main: Instance | None = None

    @property
    def main(self) -> Instance:
        """The instance that is loaded by most scenarios; started when it is first asked for."""
        if self._main is None:
            main = self.fresh() if self._foreign is None else self.foreign(*self._foreign)
            main.start()
            self._main = main
        return self._main

    @property
    def is_running(self) -> bool:
        """Whether the main instance was asked for and started."""
        return self._main is not None

    def fresh(self) -> Instance:
        """Return a further instance with an empty directory, not started yet."""
        assert self.can_start, "a broker at an address cannot be started from here"
        directory = self._directory / str(len(self._instances))
        directory.mkdir()
        instance = self.made(directory)
        self._instances.append(instance)
        return instance

    def made(self, directory: Path) -> Instance:
        """Return an instance of this kind on an empty directory, not started yet."""
        return OursInstance(directory) if self.name == OURS else KafkaInstance(directory)

    def foreign(self, address: tuple[str, int], pid: int) -> Instance:
        """Return the instance that somebody else runs at this address."""
        return ForeignInstance(address, pid)

    def answers(self, address: tuple[str, int]) -> bool:
        """Tell whether a broker answers there now."""
        return answers(address[1], address[0])

    def forget_if_dead(self) -> None:
        """Let the next use of :attr:`main` start a new one where the old one has ended."""
        main = self._main
        if main is not None and not self.answers(main.address):
            main.stop(kill=True)
            self._main = None
            self.topics.clear()

    def last_words(self) -> str:
        """Return the last line that an instance started here has written, "" if there is none."""
        logs = sorted(
            (path for path in self._directory.glob("*/*.log") if path.is_file()),
            key=lambda path: path.stat().st_mtime_ns,
        )
        lines = logs[-1].read_text(errors="replace").splitlines() if logs else []
        return lines[-1] if lines else ""

    def discard(self, instance: Instance) -> None:
        """Kill a fresh instance and remove its data."""
        instance.stop(kill=True)
        shutil.rmtree(self._directory / str(self._instances.index(instance)), ignore_errors=True)

    def cpu_seconds(self) -> float | None:
        """Return what the main instance has used so far, None where its pid is not known."""
        return cpu_seconds(self.main.pid) if self.main.pid else None

    def close(self) -> None:
        """Kill every instance that was started here and remove all data."""
        for instance in self._instances:
            with contextlib.suppress(OSError):
                instance.stop(kill=True)
        shutil.rmtree(self._directory, ignore_errors=True)


def parse_address(text: str, kinds: Sequence[str] = Target.kinds) -> tuple[tuple[str, int], int]:
    """
    Return host and port, and the process id or 0, of ``HOST:PORT[,PID]``.

    Raises :class:`BenchError` where it is something else.
    """
    address, _, pid = text.partition(",")
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or (pid and not pid.isdecimal()):
        raise BenchError(f"{text!r} is no target: say {', '.join(kinds)} or HOST:PORT[,PID]")
    if pid and not os.path.exists(f"/proc/{pid}"):
        raise BenchError(f"{text!r}: there is no process {pid} here")
    return (host, int(port)), int(pid or 0)


def settle(targets: list[Target], seconds_max: float = 3) -> None:
    """Wait until none of the targets that have started is busy with what is behind it."""
    deadline = time.monotonic() + seconds_max
    while time.monotonic() < deadline:
        before = _used(targets)
        time.sleep(0.1)
        if _used(targets) - before <= 0.02:
            return


def _used(targets: list[Target]) -> float:
    return sum(target.cpu_seconds() or 0.0 for target in targets if target.is_running)


def _safe(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)
