"""
One HTTP/2 connection that carries gRPC, without its socket.

Streams that have ended are forgotten; what a client still sends on them is dropped, as it may have
been under way. Whoever breaks the rules gets a GOAWAY that says which one, and is hung up on.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from logstore.compat.grpc.call import Call, Handling
from logstore.compat.grpc.frames import (
    ACK,
    END_HEADERS,
    END_STREAM,
    PADDED,
    PREFACE,
    PRIORITY,
    WINDOW_BYTES_INITIAL,
    WINDOW_BYTES_MAX,
    ErrorCode,
    FrameInbox,
    FrameType,
    Http2Error,
    Setting,
    check_priority,
    check_setting,
    frame,
    goaway_frame,
    number_of,
    reset_frame,
    settings_frame,
    settings_of,
    unpadded,
    window_frame,
)
from logstore.compat.grpc.header_blocks import HEADER_BYTES_MAX, BlockReader
from logstore.compat.grpc.headers import (
    MalformedHeadersError,
    check_trailers,
    http_status_block,
    metadata_of,
)
from logstore.compat.grpc.messages import is_encoding
from logstore.compat.grpc.status import CallError, GrpcCode

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk, Connection

_log = logging.getLogger(__name__)

#: so much a client may send on one stream, and on all, before it is told that it has arrived
_CALL_WINDOW_BYTES = 4 * 1024 * 1024
_WINDOW_BYTES = 16 * 1024 * 1024
_BLOCK_BYTES_MAX = 2 * HEADER_BYTES_MAX
_HTTP_METHOD_NOT_ALLOWED, _HTTP_UNSUPPORTED_MEDIA_TYPE = 405, 415
_PING_BYTES = 8
#: so many streams that have ended may have something under way
_LET_GO_MAX = 256


class GrpcService(Protocol):
    """What a connection needs of whoever serves its calls."""

    #: of one message of a client
    message_bytes_max: int

    def begin(self, call: Call) -> Handling | None:
        """Return what serves a call, None if nobody knows what is called."""
        ...

    def send(self, on_output: Callable[[], None]) -> None:
        """Call `on_output`, now or together with others."""
        ...


class GrpcConnection:
    """Implements :class:`logstore.compat.connection.Connection` for gRPC."""

    def __init__(
        self,
        service: GrpcService,
        host: str,
        port: int,
        find_heir: Callable[[bytes], Connection | None] | None = None,
        *,
        is_plain_refused: bool = False,
    ) -> None:
        self.service = service
        self.host, self.port = host, port
        self.output: list[Chunk] = []
        self.is_closing = False
        self.is_waiting = False  # never: calls do not wait for each other
        self.on_output: Callable[[], None] | None = None
        #: who goes on with a peer that does not begin as one who speaks HTTP/2
        self.heir: Connection | None = None
        #: so much more the peer takes, of all calls; of one that begins
        self.send_window: int = WINDOW_BYTES_INITIAL
        self.call_window: int = WINDOW_BYTES_INITIAL
        self._find_heir = find_heir
        self._is_plain_refused = is_plain_refused
        self._inbox = FrameInbox()
        self._blocks = BlockReader()
        self._calls: dict[int, Call] = {}
        self._last_number = 0
        #: those who wait for a window, in their order
        self._blocked: dict[int, Call] = {}
        #: streams that we ended before their clients did: what comes there was under way
        self._let_go: deque[int] = deque(maxlen=_LET_GO_MAX)
        #: headers whose rest is to come: stream, flags of the first frame, what there is of it
        self._open_block: tuple[int, int, bytearray] | None = None
        self._consumed_bytes = 0
        self._is_greeted = False
        self._is_serving = False
        self._take: dict[int, Callable[[int, int, memoryview], None]] = {
            FrameType.DATA: self._data,
            FrameType.HEADERS: self._headers_frame,
            FrameType.PRIORITY: self._priority,
            FrameType.RST_STREAM: self._reset,
            FrameType.SETTINGS: self._settings,
            FrameType.PUSH_PROMISE: self._unexpected,
            FrameType.PING: self._ping,
            FrameType.GOAWAY: self._goaway,
            FrameType.WINDOW_UPDATE: self._window,
            FrameType.CONTINUATION: self._continuation,
        }

    # the driver's side

    def writable(self) -> memoryview:
        """Return where to put the next bytes."""
        return self._inbox.writable()

    def received(self, count: int) -> None:
        """Serve every whole frame that has arrived."""
        self._inbox.received(count)
        self._is_serving = True
        try:
            if self._is_greeted or self._greet():
                self._serve_frames()
        except Http2Error as error:
            _log.info("closing the connection of %s:%s: %s", self.host, self.port, error)
            self.say(goaway_frame(self._last_number, error.code, str(error)))
            self._close()
        finally:
            self._is_serving = False

    def lost(self) -> None:
        """Take note that the peer is gone."""
        self._close()

    def hang_up(self) -> None:
        """Tell the peer that no call is served any more, and close once that is sent."""
        self.say(goaway_frame(self._last_number, ErrorCode.NO_ERROR, ""))
        self._close()
        self._tell_driver()

    def _close(self) -> None:
        self.is_closing = True
        calls, self._calls = self._calls, {}
        self._blocked.clear()
        for call in calls.values():
            call.cancel()

    def _tell_driver(self) -> None:
        if not self._is_serving and self.on_output is not None:
            self.service.send(self.on_output)

    # the calls' side

    def say(self, data: bytes) -> None:
        """Send some frames, with what else there is to say."""
        if not self.is_closing:
            self.output.append(data)
            self._tell_driver()

    def pump(self, call: Call) -> None:
        """Send what a call has to say, as far as the peer takes it."""
        data = call.next_output(self.send_window)
        if data:
            self.say(data)
        if call.is_ended:
            self.ended(call)
        elif call.is_blocked:
            self._blocked[call.number] = call

    def ended(self, call: Call) -> None:
        """Forget a call whose answer is out; its client need not say the rest of it."""
        self._blocked.pop(call.number, None)
        if self._calls.pop(call.number, None) is not None and not call.is_half_closed:
            self._let_go.append(call.number)
            self.say(reset_frame(call.number, ErrorCode.NO_ERROR))

    # frames

    def _greet(self) -> bool:
        """Tell whether the peer has begun as it should; say then what we can do."""
        pending = self._inbox.pending()
        if self._is_plain_refused or not PREFACE.startswith(pending[: len(PREFACE)]):
            self.is_closing = True
            if self._find_heir is not None:
                self.heir = self._find_heir(pending)
            return False
        if self._inbox.take(len(PREFACE)) is None:
            return False
        self._is_greeted = True
        told = {
            Setting.INITIAL_WINDOW_SIZE: _CALL_WINDOW_BYTES,
            Setting.MAX_HEADER_LIST_SIZE: HEADER_BYTES_MAX,
        }
        self.say(settings_frame(told) + window_frame(0, _WINDOW_BYTES - WINDOW_BYTES_INITIAL))
        return True

    def _serve_frames(self) -> None:
        inbox, take = self._inbox, self._take
        while not self.is_closing:
            found = inbox.next_frame()
            if found is None:
                return
            kind, flags, number, payload = found
            if self._open_block is not None and kind != FrameType.CONTINUATION:
                raise Http2Error(ErrorCode.PROTOCOL_ERROR, "headers are not continued")
            taking = take.get(kind)
            if taking is not None:
                taking(flags, number, payload)

    def _headers_frame(self, flags: int, number: int, payload: memoryview) -> None:
        if not number & 1:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"headers of stream {number}")
        block = unpadded(payload, flags, has_priority=True)
        if flags & PRIORITY:
            start = 1 if flags & PADDED else 0
            check_priority(number, payload[start : start + 5])
        if flags & END_HEADERS:
            self._heard(number, flags, bytes(block))
        else:
            self._open_block = number, flags, bytearray(block)

    def _continuation(self, flags: int, number: int, payload: memoryview) -> None:
        if self._open_block is None or self._open_block[0] != number:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "nothing is to be continued")
        number, first_flags, block = self._open_block
        block += payload
        if len(block) > _BLOCK_BYTES_MAX:
            raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, f"headers above {_BLOCK_BYTES_MAX} bytes")
        if flags & END_HEADERS:
            self._open_block = None
            self._heard(number, first_flags, bytes(block))

    def _heard(self, number: int, flags: int, block: bytes) -> None:
        """Begin a call, or end the client's part of one that has begun."""
        fields = self._blocks.read(block)
        call = self._calls.get(number)
        try:
            if call is None and number > self._last_number:
                self._last_number = number
                call = self._begin(number, metadata_of(fields))
            elif call is None:
                self._check_is_let_go(number)
            elif not flags & END_STREAM:
                raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"headers within stream {number}")
            else:
                check_trailers(fields)
        except MalformedHeadersError as error:
            _log.info("a request of %s:%s is none: %s", self.host, self.port, error)
            self._reset_peer(number, ErrorCode.PROTOCOL_ERROR)
            return
        if call is not None and flags & END_STREAM:
            self._half_close(call)

    def _begin(self, number: int, headers: dict[str, str]) -> Call | None:
        """Return a call that is served; answer one that cannot be."""
        call = Call(self, number, headers, self.service.message_bytes_max)
        self._calls[number] = call
        status = _http_status(headers)
        if status is not None:
            block = http_status_block(status)
            self.say(frame(FrameType.HEADERS, END_HEADERS | END_STREAM, number, block))
            call.is_ended = True
            self.ended(call)
            return None
        encoding = headers.get("grpc-encoding", "identity")
        if not is_encoding(encoding):
            text = f"Can't find decompressor for {encoding}"
            call.end(GrpcCode.UNIMPLEMENTED, text)
            return None
        call.handling = self.service.begin(call)
        if call.handling is None:
            call.end(GrpcCode.UNIMPLEMENTED, f"Method not found: {call.path[1:]}")
            return None
        return call

    def _half_close(self, call: Call) -> None:
        call.is_half_closed = True
        if call.reader.is_within:
            call.end(GrpcCode.INTERNAL, "Encountered end-of-stream mid-frame")
        elif call.handling is not None and not call.is_ended:
            self._guarded(call, call.handling.half_closed)

    def _guarded(self, call: Call, work: Callable[[], None]) -> None:
        """Do what a call asks for; its end is no other one's."""
        try:
            work()
        except CallError as error:
            call.end(error.code, str(error))
        except Exception as error:  # noqa: BLE001 - the others of this connection must go on
            _log.exception("%s of %s:%s failed", call.path, self.host, self.port)
            call.end(GrpcCode.UNKNOWN, f"{type(error).__name__}: {error}")

    def _data(self, flags: int, number: int, payload: memoryview) -> None:
        if not number or number > self._last_number:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"data of stream {number}")
        self._consumed_bytes += len(payload)
        if self._consumed_bytes > _WINDOW_BYTES // 2:
            self.say(window_frame(0, self._consumed_bytes))
            self._consumed_bytes = 0
        data = unpadded(payload, flags)
        call = self._calls.get(number)
        if call is None:
            self._check_is_let_go(number)
            return
        if call.is_half_closed:
            self._reset_peer(number, ErrorCode.STREAM_CLOSED)
            return
        if len(data):
            self._guarded(call, lambda: self._read(call, data))
        if call.is_ended:
            return
        if flags & END_STREAM:
            self._half_close(call)
            return
        call.consumed_bytes += len(payload)
        if call.consumed_bytes > _CALL_WINDOW_BYTES // 2:
            self.say(window_frame(number, call.consumed_bytes))
            call.consumed_bytes = 0

    def _read(self, call: Call, data: memoryview) -> None:
        assert call.handling is not None, "nobody else is sent data"
        for message in call.reader.read(data):
            call.handling.message(message)

    def _check_is_let_go(self, number: int) -> None:
        """Insist that what comes on a stream that has ended may have been under way."""
        if number not in self._let_go:
            text = f"something follows the end of stream {number}"
            raise Http2Error(ErrorCode.STREAM_CLOSED, text)

    def _reset_peer(self, number: int, code: ErrorCode) -> None:
        """End a stream at once, since its client broke the rules."""
        call = self._calls.pop(number, None)
        self._blocked.pop(number, None)
        self._let_go.append(number)
        self.say(reset_frame(number, code))
        if call is not None:
            call.cancel()

    def _reset(self, flags: int, number: int, payload: memoryview) -> None:
        del flags
        number_of(payload)
        if not number or number > self._last_number:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"reset of stream {number}")
        call = self._calls.pop(number, None)
        self._blocked.pop(number, None)
        if call is not None:
            call.cancel()

    def _settings(self, flags: int, number: int, payload: memoryview) -> None:
        if number:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"settings of stream {number}")
        if flags & ACK:
            if payload:
                raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, "an acknowledgement that says more")
            return
        for key, value in settings_of(payload):
            check_setting(key, value)
            if key == Setting.INITIAL_WINDOW_SIZE:
                increment, self.call_window = value - self.call_window, value
                for call in self._calls.values():
                    call.widen(increment)
        self.say(frame(FrameType.SETTINGS, ACK, 0))
        self._go_on()

    def _priority(self, flags: int, number: int, payload: memoryview) -> None:
        del flags
        check_priority(number, payload)  # and that is all about it: nobody has precedence

    def _goaway(self, flags: int, number: int, payload: memoryview) -> None:
        del flags, payload
        if number:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"the end of stream {number} alone")

    def _ping(self, flags: int, number: int, payload: memoryview) -> None:
        if number:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"a ping of stream {number}")
        if len(payload) != _PING_BYTES:
            raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, f"a ping of {len(payload)} bytes")
        if not flags & ACK:
            self.say(frame(FrameType.PING, ACK, 0, bytes(payload)))

    def _window(self, flags: int, number: int, payload: memoryview) -> None:
        del flags
        increment = number_of(payload)
        if number > self._last_number:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"a window of stream {number}")
        call = self._calls.get(number)
        if not number:
            self.send_window += increment
            if not increment or self.send_window > WINDOW_BYTES_MAX:
                code = ErrorCode.FLOW_CONTROL_ERROR if increment else ErrorCode.PROTOCOL_ERROR
                raise Http2Error(
                    code, f"{increment} bytes more than {self.send_window - increment}"
                )
        elif call is not None:
            if not increment:
                self._reset_peer(number, ErrorCode.PROTOCOL_ERROR)
                return
            try:
                call.widen(increment)
            except Http2Error as error:
                self._reset_peer(number, error.code)
                return
        self._go_on()

    def _go_on(self) -> None:
        """Send what has waited for a window."""
        blocked, self._blocked = self._blocked, {}
        for call in blocked.values():
            self.pump(call)

    def _unexpected(self, flags: int, number: int, payload: memoryview) -> None:
        del flags, payload
        raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"a client pushes stream {number}")


def _http_status(headers: dict[str, str]) -> int | None:
    """Return what somebody is answered who does not speak gRPC, None to the others."""
    if headers.get(":method") != "POST":
        return _HTTP_METHOD_NOT_ALLOWED
    if not headers.get("content-type", "").startswith("application/grpc"):
        return _HTTP_UNSUPPORTED_MEDIA_TYPE
    return None
