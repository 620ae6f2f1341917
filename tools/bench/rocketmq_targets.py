"""The RocketMQ brokers that are measured: ours, the real ones, or one at an address."""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from logstore.tools.bench.frames import BenchError
from logstore.tools.bench.processes import anonymous_mib, resident_mib
from logstore.tools.bench.serve_process import START_SECONDS_MAX, ServeProcess
from logstore.tools.bench.targets import OURS, Instance, Target
from logstore.tools.dev.free_ports import free_port
from logstore.tools.dev.remoting_request import ask, broker_address, lists_broker
from logstore.tools.dev.rocketmq_jars import VERSION_4, VERSION_5
from logstore.tools.dev.rocketmq_peer import RocketMQPeer

#: The flags of RocketMQ's own start script, with 1 GiB of heap instead of 8.
BROKER_JVM = (
    "-server -Xms1g -Xmx1g -XX:MaxDirectMemorySize=1g -XX:+UseG1GC -XX:G1HeapRegionSize=16m "
    "-XX:G1ReservePercent=25 -XX:InitiatingHeapOccupancyPercent=30 -XX:SoftRefLRUPolicyMSPerMB=0 "
    "-XX:-OmitStackTraceInFastThrow -XX:-UseLargePages"
)
_UPDATE_AND_CREATE_TOPIC = 17
_GET_ROUTE = 105
_DELETE_TOPIC_IN_BROKER = 215
_WRITE_AND_READ = 6


class RocketMQInstance(Instance, ABC):
    """A broker and the name server whose `address` clients are given."""

    broker: tuple[str, int]

    @property
    @abstractmethod
    def pids(self) -> list[int]:
        """All processes that were started for it; empty where they are not known."""

    def resident_mib(self) -> float:
        """Return the resident memory of all its processes."""
        return sum(resident_mib(pid) for pid in self.pids)

    def anonymous_mib(self) -> float:
        """Return the part of it that no file stands behind."""
        return sum(anonymous_mib(pid) for pid in self.pids)

    def create_topic(self, topic: str, queue_count: int) -> None:
        """Create a topic; return once the name server knows its route."""
        fields = {
            "topic": topic, "defaultTopic": "TBW102", "readQueueNums": queue_count,
            "writeQueueNums": queue_count, "perm": _WRITE_AND_READ,
            "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false",
        }  # fmt: skip
        answer = ask(self.broker, _UPDATE_AND_CREATE_TOPIC, fields, timeout_seconds=20)
        if answer.code:
            raise BenchError(f"{topic} cannot be created: {answer.code} {answer.remark}")
        deadline = time.monotonic() + START_SECONDS_MAX
        while ask(self.address, _GET_ROUTE, {"topic": topic}).code:
            if time.monotonic() > deadline:
                raise BenchError(f"{topic} was created and never shown by the name server")
            time.sleep(0.005)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic at the broker, so that its queues are not looked after any more."""
        with contextlib.suppress(OSError, ValueError):
            ask(self.broker, _DELETE_TOPIC_IN_BROKER, {"topic": topic}, timeout_seconds=20)


class OursInstance(RocketMQInstance):
    """``logstore serve --layout rocketmq`` in a process of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.address = ("127.0.0.1", _port())
        self.broker = ("127.0.0.1", _port(-2, 1))
        self.pid = 0
        self._process = ServeProcess(directory / "serve.log")

    @property
    def pids(self) -> list[int]:
        """The one process."""
        return [self.pid] if self.pid else []

    def options(self) -> list[str]:
        """Return what `serve` is told."""
        options = ["--layout", "rocketmq", "--data", str(self._directory / "store")]
        options += ["--port", str(self.address[1]), "--broker-port", str(self.broker[1])]
        return options

    def start(self) -> None:
        """Start it; BenchError with what it said where it ends or does not answer."""
        self.pid = self._process.start(
            self.options(), lambda: lists_broker(self.address), look_every_s=0.002
        )

    def stop(self, *, kill: bool = False) -> None:
        """End it with SIGTERM or SIGKILL and wait."""
        self.pid = 0
        self._process.stop(kill=kill)


class RealInstance(RocketMQInstance):
    """The real name server and broker, at their default settings."""

    def __init__(self, version: str, directory: Path) -> None:
        self._peer = RocketMQPeer(version, directory, jvm=BROKER_JVM, is_urged=False)
        self._note_ports()
        self.pid = 0

    @property
    def pids(self) -> list[int]:
        """Name server and broker."""
        return self._peer.pids

    def start(self) -> None:
        """Start both; PeerUnavailable where they do not come up."""
        self._peer.start()
        self._note_ports()
        self.pid = self._peer.pids[-1]

    def stop(self, *, kill: bool = False) -> None:
        """End both and wait."""
        self.pid = 0
        self._peer.stop(kill=kill)

    def _note_ports(self) -> None:
        self.address = ("127.0.0.1", self._peer.port)
        self.broker = ("127.0.0.1", self._peer.broker_port)


class ForeignInstance(RocketMQInstance):
    """A name server, with a broker, that somebody else runs: never started, never stopped."""

    def __init__(self, address: tuple[str, int], pid: int) -> None:
        self.address = address
        self.pid = pid

    @property
    def pids(self) -> list[int]:
        """What was named with the address."""
        return [self.pid] if self.pid else []

    def start(self) -> None:
        """Make sure that a broker is listed there."""
        found = broker_address(self.address)
        if found is None:
            raise BenchError(f"{self.bootstrap}: no name server lists a broker there")
        self.broker = found

    def stop(self, *, kill: bool = False) -> None:
        """Leave it alone."""


class RocketMQTarget(Target):
    """One contestant: "ours", a release of the real one, or the address of a name server."""

    kinds: Sequence[str] = (OURS, VERSION_5, VERSION_4)

    def made(self, directory: Path) -> RocketMQInstance:
        """Return an instance of this kind on an empty directory, not started yet."""
        return OursInstance(directory) if self.name == OURS else RealInstance(self.name, directory)

    def foreign(self, address: tuple[str, int], pid: int) -> RocketMQInstance:
        """Return the instance that somebody else runs at this address."""
        return ForeignInstance(address, pid)

    def answers(self, address: tuple[str, int]) -> bool:
        """Tell whether the name server there lists a broker now."""
        return lists_broker(address)

    @property
    def instance(self) -> RocketMQInstance:
        """The main instance, started when it is first asked for."""
        main = self.main
        assert isinstance(main, RocketMQInstance), "every instance made here is one"
        return main

    def fresh_instance(self) -> RocketMQInstance:
        """Return a further instance with an empty directory, not started yet."""
        made = self.fresh()
        assert isinstance(made, RocketMQInstance), "every instance made here is one"
        return made


def _port(*neighbours: int) -> int:
    found = free_port(*neighbours)
    if found is None:
        raise BenchError("no free port is found")
    return found
