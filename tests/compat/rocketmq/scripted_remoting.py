"""A remoting service whose handlers a test writes, and what its clients see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from logstore.compat.rocketmq.connection import Channel, RemotingConnection
from logstore.compat.rocketmq.registry import Handler, Handlers
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.compat.rocketmq.wire.outbox import Outbox
from logstore.compat.rocketmq.wire.remoting import Command
from logstore.compat.waiting import Timers
from logstore.testing.manual_clock import ManualClock

PEER_HOST, PEER_PORT = "192.0.2.7", 40123

Handle = Callable[[Any, Channel, Command], Any]


class ScriptedRemoting:
    """Implements the service behind remoting connections."""

    def __init__(
        self,
        handles: Mapping[RequestCode, Handle] | None = None,
        raw_handles: Mapping[RequestCode, Handle] | None = None,
    ) -> None:
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.outbox = Outbox()
        self.send_run = None
        self.handlers: Handlers = {}
        #: how often all requests of a read had been handed out
        self.reads = 0
        self.gone: list[Channel] = []
        for code, handle in (handles or {}).items():
            self.handlers[code] = Handler(code, "scripted")
            self.handlers[code].handle = handle
        for code, handle in (raw_handles or {}).items():
            self.handlers[code] = Handler(code, "scripted")
            self.handlers[code].handle_raw = handle

    def requests_served(self) -> None:
        """Count."""
        self.reads += 1

    def disconnected(self, channel: Channel) -> None:
        """Remember."""
        self.gone.append(channel)

    def connect(self) -> RemotingConnection:
        """Return a new connection."""
        return RemotingConnection(self, PEER_HOST, PEER_PORT)
