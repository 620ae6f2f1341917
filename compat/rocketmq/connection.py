"""
One remoting connection without its socket: frames in, answers out in whatever order they come.

Requests do not wait for each other: a pull that is held does not stop what comes after it on the
same connection; the peer matches answers to requests by their opaque number. What many frames of
one read give goes out in one write.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from logstore.compat.connection import Chunk, FrameBuffer, FrameError
from logstore.compat.rocketmq.registry import OTHERS, Handlers
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.outbox import Outbox
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import (
    ACK_PREFIX,
    BATCH_PREFIX,
    FRAME_BYTES_MAX,
    ONEWAY_FLAG,
    RESPONSE_FLAG,
    SEND_PREFIX,
    Command,
    MalformedFrameError,
    Response,
    as_frame,
    decode_command,
    encode_request,
    json_header_of,
)
from logstore.compat.waiting import Later, Timer, Timers
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from logstore.compat.connection import Connection
    from logstore.compat.rocketmq.secure_ports import OptionalTls
    from logstore.compat.rocketmq.sending.send_run import SendRun
    from logstore.compat.rocketmq.wire.remoting import Answer

_log = logging.getLogger(__name__)
_NOTHING = memoryview(b"")
_LENGTH_BYTES = 4


#: returns the fields of a request (and its body) with a signature
Sign = Callable[[Mapping[str, str], bytes], Mapping[str, str]]


class PeerGoneError(LogStoreError):
    """The peer hung up before it answered a request of ours."""


class AnswerTimeoutError(LogStoreError):
    """The peer did not answer a request of ours in time."""


class RemotingService(Protocol):
    """What a connection needs of the broker or name server behind it."""

    #: which codes are served
    handlers: Handlers
    timers: Timers
    #: gathers what is said to many connections at a time
    outbox: Outbox

    @property
    def send_run(self) -> SendRun | None:
        """Gathers sends; None where nobody sends."""
        ...

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

    __slots__ = (
        "_asked",
        "_connection",
        "_give_ups",
        "_opaque",
        "address",
        "host",
        "is_trusted",
        "port",
        "sign",
    )

    def __init__(self, connection: RemotingConnection, host: str, port: int) -> None:
        self._connection = connection
        self._opaque = itertools.count()
        #: requests of ours that are not answered yet, by opaque, and when we give up
        self._asked: dict[int, Later[Command]] = {}
        self._give_ups: dict[int, Timer] = {}
        self.host = host
        self.port = port
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        #: whether its requests come from within, and are not looked at once more
        self.is_trusted = False
        #: adds to the fields of our requests who asks, where the peer wants to know
        self.sign: Sign | None = None

    @property
    def is_open(self) -> bool:
        """Tell whether the peer can still be reached."""
        return not self._connection.is_closing

    def tell(self, code: int, fields: Mapping[str, str] | None = None, body: bytes = b"") -> None:
        """Send a one-way request; a peer that is gone is no error."""
        fields = self._signed(fields, body)
        self._connection.request(code, self._next_opaque(), fields, body, is_oneway=True)

    def _signed(self, fields: Mapping[str, str] | None, body: bytes) -> Mapping[str, str] | None:
        return fields if self.sign is None else self.sign(fields or {}, body)

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
        later: Later[Command] = Later()
        if not self.is_open:
            later.fail(PeerGoneError(f"{self.address} is not connected any more"))
            return later
        opaque = self._next_opaque()

        def give_up() -> None:
            self._asked.pop(opaque, None)
            self._give_ups.pop(opaque, None)
            later.fail(
                AnswerTimeoutError(
                    f"{self.address} did not answer request {code} within {timeout_ms} ms"
                )
            )

        self._asked[opaque] = later
        fields = self._signed(fields, body)
        self._connection.request(code, opaque, fields, body)
        if opaque in self._asked:  # a peer within has answered already
            self._give_ups[opaque] = self._connection.service.timers.after(timeout_ms, give_up)
        return later

    def _next_opaque(self) -> int:
        return next(self._opaque) & 0x7FFFFFFF

    def answered(self, answer: Command) -> None:
        """Hand an answer to whoever asked; one that nobody waits for is dropped."""
        later = self._asked.pop(answer.opaque, None)
        if later is None:
            _log.info("%s: an answer to no request of ours (%s)", self.address, answer.opaque)
            return
        answer.body = memoryview(bytes(answer.body))
        give_up = self._give_ups.pop(answer.opaque, None)
        if give_up is not None:
            give_up.cancel()
        later.answer(answer)

    def lost(self) -> None:
        """Tell whoever waits for an answer that there will be none."""
        asked, self._asked = self._asked, {}
        give_ups, self._give_ups = self._give_ups, {}
        for give_up in give_ups.values():
            give_up.cancel()
        for later in asked.values():
            later.fail(PeerGoneError(f"{self.address} hung up"))

    def hang_up(self) -> None:
        """Close the connection once what is to be sent is sent."""
        self._connection.hang_up()


class RemotingConnection:
    """Implements :class:`logstore.compat.connection.Connection` for the remoting protocol."""

    def __init__(self, service: RemotingService, peer_host: str, peer_port: int) -> None:
        self.service = service
        self.channel = Channel(self, peer_host, peer_port)
        self.output: list[Chunk] = []
        self.is_closing = False
        self.is_waiting = False  # never: requests do not wait for each other
        self.on_output: Callable[[], None] | None = None
        #: takes answers as they are, by the number of the request, from a peer within
        self.on_answer: Callable[[int, Response], None] | None = None
        #: what a peer who speaks TLS goes on with, and who has been asked for it
        self.heir: Connection | None = None
        self.tls: OptionalTls | None = None
        self._frames = FrameBuffer(FRAME_BYTES_MAX - _LENGTH_BYTES)
        self._is_lost = False
        self._is_serving = False

    def writable(self) -> memoryview:
        """Return where to put the next bytes."""
        return self._frames.writable()

    def received(self, count: int) -> None:
        """Serve every whole frame that has arrived."""
        self._frames.received(count)
        self._attend(self._serve)
        if self.is_closing:
            if self.tls is not None and not self._is_lost:
                self._hand_over(self.tls)
            self._frames.clear()

    def refuse_plain(self) -> None:
        """Take no frame that comes as it is: they are all too large."""
        self._frames.frame_bytes_max = -1

    def _hand_over(self, tls: OptionalTls) -> None:
        """Leave a peer who speaks TLS to a connection that does."""
        self.heir = tls.heir(self.channel.host, self.channel.port, self._frames.pending())
        if self.heir is not None:
            self.lost()

    def _attend(self, serve: Callable[[], None]) -> None:
        """Serve what one read brought: all that it gives goes out together."""
        outbox = self.service.outbox
        outbox.hold()
        self._is_serving = True
        try:
            serve()
            self.service.requests_served()
        except Exception as error:  # noqa: BLE001 - logged with its traceback
            self._break_off(error)
        finally:
            self._is_serving = False
            outbox.release()

    def feed(self, data: bytes) -> list[Chunk]:
        """Receive `data` and take out what is to be sent: for tests, which have no socket."""
        while data:
            target = self.writable()
            count = min(len(target), len(data))
            target[:count] = data[:count]
            self.received(count)
            data = data[count:]
        output, self.output = self.output, []
        return output

    def lost(self) -> None:
        """Take note that the peer is gone."""
        self._is_lost = True
        self.is_closing = True
        self.channel.lost()
        self.service.disconnected(self.channel)

    def serve(self, requests: Iterable[Command]) -> None:
        """Serve what a peer within asks, as if it had been one read."""

        def serve() -> None:
            for request in requests:
                if not self.is_closing:
                    self._handle(request)

        self._attend(serve)

    def request(
        self,
        code: int,
        opaque: int,
        fields: Mapping[str, str] | None,
        body: bytes,
        *,
        is_oneway: bool = False,
    ) -> None:
        """Ask the peer."""
        self.say([encode_request(code, opaque, fields, body, is_oneway=is_oneway)])

    def say(self, chunks: list[Chunk]) -> None:
        """Send, with what else there is to say; nothing reaches a peer that is gone."""
        if self._is_lost:
            return
        self.output += chunks
        if not self._is_serving and self.on_output is not None:
            self.service.outbox.send(self.on_output)

    def hang_up(self) -> None:
        """Close once what is to be sent is sent."""
        self.is_closing = True
        self.say([])

    def _serve(self) -> None:
        send_run = self.service.send_run
        try:
            self._serve_frames(send_run)
        except (FrameError, MalformedFrameError) as error:
            _log.info("closing the connection of %s: %s", self.channel.address, error)
            self.is_closing = True
        finally:
            if send_run is not None and send_run.is_filled:
                self.output += send_run.finish()

    def _serve_frames(self, send_run: SendRun | None) -> None:
        frames = self._frames
        while not self.is_closing:
            frame = frames.next_frame()
            if frame is None:
                break
            if send_run is not None:
                header = json_header_of(frame)
                if header.startswith(SEND_PREFIX) and send_run.take(
                    self.channel, header, frame[4 + len(header) :]
                ):
                    continue
                if header.startswith(ACK_PREFIX) and send_run.take_ack(header):
                    continue
                if send_run.is_filled:
                    self.output += send_run.finish()
                if header.startswith(BATCH_PREFIX):
                    answer = send_run.batches.answer(self.channel, header, frame[4 + len(header) :])
                    if answer is not None:
                        self.output += answer
                        continue
            self._serve_command(decode_command(frame))

    def _serve_command(self, command: Command) -> None:
        if command.flag & RESPONSE_FLAG:
            self.channel.answered(command)
        else:
            self._handle(command)

    def _handle(self, request: Command) -> None:
        handlers = self.service.handlers
        handler = handlers.get(request.code) or handlers.get(OTHERS)
        if handler is None:
            self._refuse(
                request,
                ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
                f" request type {request.code} not supported",
            )
            return
        try:
            if handler.handle_raw is not None:
                answer: Any = handler.handle_raw(self.service, self.channel, request)
            else:
                if handler.handle is None:
                    handler.load()
                    self._handle(request)
                    return
                answer = handler.handle(self.service, self.channel, request)
        except Exception as error:  # noqa: BLE001 - the others of this connection must go on
            self._failed(request, error)
            return
        if answer is None:
            return
        if isinstance(answer, Later):
            self._wait(request, answer)  # pyright: ignore[reportUnknownArgumentType]
        elif not request.flag & ONEWAY_FLAG:
            self._answer(request, answer)

    def _answer(self, request: Command, answer: Answer) -> None:
        """Send what answers `request`, in whatever way it was found."""
        is_whole = isinstance(answer, list) or not isinstance(answer.body, bytes)
        if self.on_answer is None or is_whole:
            self.say(as_frame(request, answer))
        else:
            self.on_answer(request.opaque, cast("Response", answer))

    def _wait(self, request: Command, later: Later[Answer]) -> None:
        request.body = _NOTHING  # its memory is for the next frames

        def answered(answer: Answer) -> None:
            if self._is_lost or request.flag & ONEWAY_FLAG:
                return
            try:
                self._answer(request, answer)
            except Exception as error:  # noqa: BLE001 - whoever answers is not to blame
                self._failed(request, error)

        later.then(answered, lambda error: self._failed(request, error))

    def _failed(self, request: Command, error: Exception) -> None:
        """Answer with what went wrong."""
        if isinstance(error, RefusedError):
            self._refuse(request, error.code, error.remark, error.ext_fields)
            return
        _log.error("request %s of %s failed", request.code, self.channel.address, exc_info=error)
        self._refuse(request, ResponseCode.SYSTEM_ERROR, f"{type(error).__name__}: {error}")

    def _refuse(
        self,
        request: Command,
        code: int,
        remark: str,
        ext_fields: Mapping[str, str] | None = None,
    ) -> None:
        if not request.flag & ONEWAY_FLAG:
            self._answer(request, Response(code, remark, ext_fields))

    def _break_off(self, error: Exception) -> None:
        """Close: a fault of ours must not take the broker down with it."""
        _log.error("closing the connection of %s", self.channel.address, exc_info=error)
        self.is_closing = True


#: makes the sans-IO side of a connection: of which service, to which host and port
MakeConnection = Callable[[RemotingService, str, int], RemotingConnection]
