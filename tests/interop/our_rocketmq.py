"""`logstore serve --layout rocketmq` as a process of its own, the way a user runs it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from logstore.tools.dev.free_ports import free_port
from tests.interop.our_broker import OurBroker


class OurRocketMQ(OurBroker):
    """
    Our name server and broker on `data`, restartable on the same two ports.

    It bears the same names as a :class:`~logstore.tools.dev.rocketmq_peer.RocketMQPeer`. With
    `name_server` (host:port) the broker registers there, and has none of its own. `layout` is that
    of the data.
    """

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, object] | None = None,
        data: Path | None = None,
        broker_port: int | None = None,
        name_server: str | None = None,
        layout: str = "rocketmq",
    ) -> None:
        broker_port = broker_port or free_port(-2, 1)
        assert broker_port is not None, "no port is free"
        named = {"brokerName": "broker-a", "brokerClusterName": "DefaultCluster"}
        super().__init__(
            directory,
            named | dict(settings or {}),
            data,
            ("--layout", layout, "--broker-port", str(broker_port))
            + (() if layout == "rocketmq" else ("--protocol", "rocketmq")),
        )
        self.broker_port = broker_port
        self._name_server = name_server

    def command(self) -> list[str]:
        """Return the command line; the port of somebody else's name server is not ours to say."""
        command = super().command()
        if self._name_server is not None:
            at = command.index("--port")
            command[at : at + 2] = ["-n", self._name_server]
        return command

    @property
    def broker_address(self) -> str:
        """The broker's own address, which mqadmin is given for some commands."""
        return f"127.0.0.1:{self.broker_port}"
