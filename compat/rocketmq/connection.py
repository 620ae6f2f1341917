"""
One remoting connection without its socket: frames in, answers out in whatever order they come.

Requests do not wait for each other: a pull that is held does not stop what comes after it on the
same connection; the peer matches answers to requests by their opaque number. What many frames of
one read give goes out in one write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from logstore.compat.connection import Chunk, FrameBuffer
from logstore.compat.rocketmq.outbox import Outbox
from logstore.compat.rocketmq.registry import Handlers
from logstore.compat.rocketmq.remoting import FRAME_BYTES_MAX, Command
from logstore.compat.waiting import Later, Timers


class RemotingService(Protocol):
    """What a connection needs of the broker or name server behind it."""

    #: which codes are served
    handlers: Handlers
    timers: Timers
    #: gathers what is said to many connections at a time
    outbox: Outbox

    def requests_served(self) -> None:
        """Take note that all requests of one read have been handed out (dispatch, wake pulls)."""
        ...

    def disconnected(self, channel: Channel) -> None:
        """Take note that a peer is gone."""
        ...


class Channel:
    """
    A connection as handlers see it: who the peer is, and how to speak to it unasked.

    `address` is ``ip:port`` (IPv6 in brackets), `host` and `port` its parts.
    """

    __slots__ = ("_connection", "address", "host", "port")

    def __init__(self, connection: RemotingConnection, host: str, port: int) -> None:
        self._connection = connection
        self.host = host
        self.port = port
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def is_open(self) -> bool:
        """Tell whether the peer can still be reached."""
        raise NotImplementedError

    def tell(self, code: int, fields: Mapping[str, str] | None = None, body: bytes = b"") -> None:
        """Send a one-way request; a peer that is gone is no error."""
        raise NotImplementedError

    def ask(
        self,
        code: int,
        fields: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        timeout_ms: int,
    ) -> Later[Command]:
        """
        Send a request; return its answer to come, whose body is kept.

        The promise fails with :class:`PeerGoneError` or :class:`AnswerTimeoutError`.
        """
        raise NotImplementedError

    def hang_up(self) -> None:
        """Close the connection once what is to be sent is sent."""
        raise NotImplementedError


class RemotingConnection:
    """Implements :class:`logstore.compat.connection.Connection` for the remoting protocol."""

    def __init__(self, service: RemotingService, peer_host: str, peer_port: int) -> None:
        self.service = service
        self.channel = Channel(self, peer_host, peer_port)
        self.output: list[Chunk] = []
        self.is_closing = False
        self.is_waiting = False  # never: requests do not wait for each other
        self.on_output: Callable[[], None] | None = None
        self._frames = FrameBuffer(FRAME_BYTES_MAX - 4)
