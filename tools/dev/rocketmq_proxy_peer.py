"""
The real proxy of Apache RocketMQ, to which clients of 5.x speak gRPC, beside a real broker.

::

    with RocketMQPeer("5", directory) as broker:
        with RocketMQProxyPeer(broker.bootstrap, directory / "proxy") as proxy:
            client = connect(proxy.endpoints)
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from logstore.tools.dev.class_archive import ClassArchive
from logstore.tools.dev.free_ports import free_port
from logstore.tools.dev.maven import PeerUnavailable, class_path
from logstore.tools.dev.rocketmq_jars import VERSION_5, java, peers_directory

_MAIN = "org.apache.rocketmq.proxy.ProxyStartup"
_JVM = "-Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
START_SECONDS_MAX = 120


class RocketMQProxyPeer:
    """
    One real proxy in cluster mode, for the brokers that `name_server` (host:port) knows.

    `settings` are entries of ``rmq-proxy.json`` and win over ours.
    """

    def __init__(
        self,
        name_server: str,
        directory: str | os.PathLike[str],
        settings: Mapping[str, object] | None = None,
        jvm: str = _JVM,
    ) -> None:
        self._jvm = jvm
        self.directory = Path(directory).resolve()
        self._name_server = name_server
        self._settings = dict(settings or {})
        ports = free_port(1)
        if ports is None:
            raise PeerUnavailable("no free ports between 12000 and 32000")
        self.port = ports
        self._archive = ClassArchive(peers_directory(f"{VERSION_5}-proxy"), "proxy")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoints(self) -> str:
        """Where gRPC clients find it."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> Self:
        """
        Start it; return once it listens.

        Raises:
            PeerUnavailable: it does not come up; with the end of its log.

        """
        home, log_path = self.directory / "home", self.directory / "proxy.log"
        command = java(
            "5", _MAIN, "-pm", "cluster", "-n", self._name_server,
            jvm=f"{self._jvm} {self._archive.flags(may_write=True)}", level="WARN", classes=_jars(),
            home=home,
        )  # fmt: skip
        settings = {
            "rocketMQClusterName": "DefaultCluster",
            "grpcServerPort": self.port,
            "remotingListenPort": self.port + 1,
            "namesrvAddr": self._name_server,
            **self._settings,
        }
        (home / "conf" / "rmq-proxy.json").write_text(json.dumps(settings))
        atexit.register(self.stop)
        with open(log_path, "ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                env={**os.environ, "RMQ_PROXY_HOME": str(home), "ROCKETMQ_HOME": str(home)},
                start_new_session=True,  # Ctrl-C in a terminal is ours to pass on
            )
        if not self._is_up():
            self.stop()
            text = log_path.read_text(errors="replace")[-3000:]
            raise PeerUnavailable(f"RocketMQ's proxy did not start; the end of its log:\n{text}")
        self._archive.write(self._process.pid)
        return self

    def _is_up(self) -> bool:
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline and self._process is not None:
            if self._process.poll() is not None:
                return False
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", self.port)) == 0:
                    return True
            time.sleep(0.05)
        return False

    def stop(self) -> None:
        """End it."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGKILL)  # it keeps nothing
            process.wait()
        atexit.unregister(self.stop)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def client_jars() -> str:
    """Return the class path of the official Java client that speaks gRPC."""
    pom = Path(__file__).with_name("rocketmq_grpc_client.xml")
    return class_path("RocketMQ's gRPC client", pom, [], peers_directory("grpc-client"))


def _jars() -> str:
    """Return the proxy's class path; Maven is asked only while a jar is not on disk."""
    pom = Path(__file__).with_name("rocketmq_proxy_peer.xml")
    options = [f"-Drocketmq.version={VERSION_5}"]
    name = f"{VERSION_5}-proxy"
    return class_path(f"RocketMQ's proxy {VERSION_5}", pom, options, peers_directory(name))
