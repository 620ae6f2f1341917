"""The proxies that are measured, each with name server and broker: ours, and the real one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from logstore.tools.bench.frames import BenchError
from logstore.tools.bench.rocketmq_targets import (
    OursInstance,
    RealInstance,
    RocketMQInstance,
    RocketMQTarget,
)
from logstore.tools.bench.targets import OURS
from logstore.tools.dev.free_ports import free_port
from logstore.tools.dev.rocketmq_jars import VERSION_5
from logstore.tools.dev.rocketmq_proxy_peer import RocketMQProxyPeer

#: Java's own choice of everything but the heap, which is half of a broker's.
PROXY_JVM = "-server -Xms512m -Xmx512m -XX:+UseG1GC"


class OursWithProxy(OursInstance):
    """``logstore serve --layout rocketmq --proxy-port``: all in one process."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._proxy_port = free_port()
        if self._proxy_port is None:
            raise BenchError("no free port is found")

    @property
    def endpoints(self) -> str:
        """Where gRPC clients find it."""
        return f"127.0.0.1:{self._proxy_port}"

    def options(self) -> list[str]:
        """Return what `serve` is told."""
        return [*super().options(), "--proxy-port", str(self._proxy_port)]


class RealWithProxy(RealInstance):
    """The real name server and broker, and the real proxy in cluster mode beside them."""

    def __init__(self, directory: Path) -> None:
        super().__init__(VERSION_5, directory)
        self._proxy_directory = directory / "proxy"
        self._proxy_directory.mkdir()
        self._proxy: RocketMQProxyPeer | None = None

    @property
    def endpoints(self) -> str:
        """Where gRPC clients find it."""
        assert self._proxy is not None, "it runs"
        return self._proxy.endpoints

    def start(self) -> None:
        """Start all three; PeerUnavailable where they do not come up."""
        super().start()
        self._proxy = RocketMQProxyPeer(self.bootstrap, self._proxy_directory, jvm=PROXY_JVM)
        self._proxy.start()

    def stop(self, *, kill: bool = False) -> None:
        """End all three and wait."""
        if self._proxy is not None:
            self._proxy.stop()
        super().stop(kill=kill)


class ProxyTarget(RocketMQTarget):
    """One contestant: "ours", or the real one."""

    kinds: Sequence[str] = (OURS, VERSION_5)

    def made(self, directory: Path) -> RocketMQInstance:
        """Return an instance of this kind on an empty directory, not started yet."""
        return OursWithProxy(directory) if self.name == OURS else RealWithProxy(directory)

    def foreign(self, address: tuple[str, int], pid: int) -> RocketMQInstance:
        """Refuse: of a proxy at an address nobody knows the broker."""
        del pid
        raise BenchError(f"{address[0]}:{address[1]}: say {' or '.join(self.kinds)}")

    @property
    def endpoints(self) -> str:
        """Where gRPC clients find the main instance, started when it is first asked for."""
        main = self.instance
        assert isinstance(main, OursWithProxy | RealWithProxy), "every instance made here is one"
        return main.endpoints
