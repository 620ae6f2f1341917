"""
A connection to the broker in the same process: remoting commands that go from hand to hand.

What is asked, and most answers, are handed over as they are. Frames that somebody has written by
himself (raw answers, what the broker asks) are read as if they had come from afar.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from logstore.compat.rocketmq.connection import Channel, RemotingConnection, RemotingService
from logstore.compat.rocketmq.wire.outbox import Outbox
from logstore.compat.rocketmq.wire.remoting import (
    LANGUAGE,
    ONEWAY_FLAG,
    RESPONSE_FLAG,
    VERSION,
    Command,
    Response,
    Serializer,
)
from logstore.segment import Extent

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.registry import Handlers
    from logstore.compat.waiting import Later

_TIMEOUT_MS = 3_000


class BrokerLink:
    """
    Asks a broker, and serves what the broker asks by `handlers`.

    It is the client's side of a connection, whose address the broker knows as `host` and `port`.
    """

    def __init__(self, broker: Broker, handlers: Handlers, host: str, port: int) -> None:
        self.handlers = handlers
        self.timers = broker.timers
        self.outbox = Outbox()
        self.send_run = None
        self.on_lost: Callable[[], None] | None = None
        self._near = _NearConnection(self, host, port)
        self._far = broker.connect_within(host, port)
        #: answers that are handed over, with the numbers of their requests
        self._answers: list[tuple[int, Response]] = []
        self._far.channel.is_trusted = True  # the proxy has seen who asks
        self._is_moving = False
        self._near.on_output = self._far.on_output = self._move
        self._far.on_answer = self._answered

    @property
    def is_open(self) -> bool:
        """Tell whether the broker still listens."""
        return not (self._near.is_closing or self._far.is_closing)

    def ask(
        self,
        code: int,
        fields: Mapping[str, str],
        body: bytes = b"",
        *,
        timeout_ms: int = _TIMEOUT_MS,
    ) -> Later[Command]:
        """
        Send a request; return its answer to come.

        The promise fails with ``PeerGoneError`` or ``AnswerTimeoutError``.
        """
        return self._near.channel.ask(code, fields, body, timeout_ms=timeout_ms)

    def tell(self, code: int, fields: Mapping[str, str], body: bytes = b"") -> None:
        """Send a request that nobody answers."""
        self._near.channel.tell(code, fields, body)

    def close(self) -> None:
        """Hang up."""
        if not self._near.is_closing:
            self._near.lost()
            self._far.lost()

    def requests_served(self) -> None:
        """Do nothing: every request of the broker ends with its answer."""

    def disconnected(self, channel: Channel) -> None:
        """Do nothing: whoever asked was told."""

    def _answered(self, opaque: int, answer: Response) -> None:
        self._answers.append((opaque, answer))
        self._far.say([])

    def _move(self) -> None:
        """Carry what either side has to say to the other one, until both are silent."""
        if self._is_moving:
            return
        self._is_moving = True
        try:
            while self._hand_over() or any(
                (self._carry(self._near, self._far), self._carry(self._far, self._near))
            ):
                pass
        finally:
            self._is_moving = False
        if self._far.is_closing and not self._near.is_closing:
            self.close()
            if self.on_lost is not None:
                self.on_lost()

    def _hand_over(self) -> bool:
        """Hand requests and answers over; tell whether there were any."""
        requests, self._near.requests = self._near.requests, []
        if requests:
            self._far.serve(requests)
        answers, self._answers = self._answers, []
        for opaque, answer in answers:
            self._near.channel.answered(_as_command(opaque, answer))
        return bool(requests or answers)

    @staticmethod
    def _carry(source: RemotingConnection, target: RemotingConnection) -> bool:
        if not source.output:
            return False
        chunks, source.output[:] = list(source.output), []
        for chunk in chunks:
            data = memoryview(chunk.read() if isinstance(chunk, Extent) else chunk).cast("B")
            while data:
                room = target.writable()
                count = min(len(room), len(data))
                room[:count] = data[:count]
                target.received(count)
                data = data[count:]
        return True


class _NearConnection(RemotingConnection):
    """The side of who asks: keeps requests as they are, for who hands them over."""

    def __init__(self, service: RemotingService, peer_host: str, peer_port: int) -> None:
        super().__init__(service, peer_host, peer_port)
        self.requests: list[Command] = []

    def request(
        self,
        code: int,
        opaque: int,
        fields: Mapping[str, str] | None,
        body: bytes,
        *,
        is_oneway: bool = False,
    ) -> None:
        """Ask the broker."""
        flag = ONEWAY_FLAG if is_oneway else 0
        content = memoryview(body)
        self.requests.append(
            Command(
                code, opaque, flag, LANGUAGE, VERSION, None, dict(fields or {}), content,
                Serializer.WITHIN,
            )
        )  # fmt: skip
        self.say([])


def _as_command(opaque: int, answer: Response) -> Command:
    """Return what would be read of an answer that had come in a frame."""
    fields = {**(answer.extra_fields or {}), **(answer.ext_fields or {})}
    body = memoryview(cast("bytes", answer.body))
    return Command(
        answer.code, opaque, RESPONSE_FLAG, LANGUAGE, VERSION, answer.remark, fields, body,
        Serializer.WITHIN,
    )  # fmt: skip
