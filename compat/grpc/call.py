"""
One call: what a client asks on one stream, and what it is told there, as fast as it takes it.

What the client does not take yet stays with the call; how many messages have left in full is
known, so that whoever hung up in the middle need not lose the others.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

from logstore.compat.grpc.frames import (
    END_HEADERS,
    END_STREAM,
    PAYLOAD_BYTES_MAX,
    WINDOW_BYTES_MAX,
    ErrorCode,
    FrameType,
    Http2Error,
    frame,
    head,
)
from logstore.compat.grpc.headers import ANSWER_BLOCK, OK_BLOCK, status_block, timeout_ms_of
from logstore.compat.grpc.messages import MessageReader, framed
from logstore.compat.grpc.status import GrpcCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logstore.compat.grpc.connection import GrpcConnection

_LAST_HEADERS = END_HEADERS | END_STREAM


class Handling(Protocol):
    """What a service does about one call; a CallError that it raises ends the call."""

    def message(self, data: bytes) -> None:
        """Take one message of the client."""
        ...

    def half_closed(self) -> None:
        """Take note that the client says no more."""
        ...

    def cancelled(self) -> None:
        """Take note that the client does not listen any more; nothing follows."""
        ...


class Call:
    """
    One call of one client, from `connection.host` and `port`.

    `metadata` are its headers, `path` says what is called, as ``/package.Service/Method``.
    """

    __slots__ = (
        "_connection",
        "_is_answered",
        "_pending",
        "_status",
        "consumed_bytes",
        "handling",
        "is_ended",
        "is_half_closed",
        "metadata",
        "number",
        "path",
        "reader",
        "send_window",
        "told_count",
    )

    def __init__(
        self, connection: GrpcConnection, number: int, metadata: Mapping[str, str], bytes_max: int
    ) -> None:
        self._connection = connection
        #: the stream's
        self.number = number
        self.metadata = metadata
        self.path = metadata.get(":path", "")
        self.handling: Handling | None = None
        self.reader = MessageReader(metadata.get("grpc-encoding", "identity"), bytes_max)
        #: so much more the client takes; negative after it has thought better of it
        self.send_window: int = connection.call_window
        #: so much came that the client has not been told to be gone
        self.consumed_bytes = 0
        #: the client says no more
        self.is_half_closed = False
        #: nothing more can be told
        self.is_ended = False
        #: messages that have left in full
        self.told_count = 0
        self._is_answered = False
        #: messages of which something has to be sent yet
        self._pending: deque[memoryview] = deque()
        #: what is to be said behind them
        self._status: bytes | None = None

    @property
    def host(self) -> str:
        """Where the client is."""
        return self._connection.host

    @property
    def port(self) -> int:
        """From which port it comes."""
        return self._connection.port

    @property
    def timeout_ms(self) -> float | None:
        """How long the client said, when it called, that it waits; None for ever."""
        return timeout_ms_of(self.metadata.get("grpc-timeout"))

    def tell(self, message: bytes) -> None:
        """Send one message of the answer; nobody hears what follows the end."""
        if self.is_ended or self._status is not None:
            return
        self._pending.append(memoryview(framed(message)))
        self._connection.pump(self)

    def answer(self, message: bytes) -> None:
        """Send the only message of the answer, and that all went well."""
        connection, data = self._connection, framed(message)
        size_bytes = len(data)
        if (
            self.is_ended
            or self._is_answered
            or self._pending
            or size_bytes > min(self.send_window, connection.send_window, PAYLOAD_BYTES_MAX)
        ):
            self.tell(message)
            self.end()
            return
        self.is_ended = True
        self.told_count = 1
        connection.send_window -= size_bytes
        number = self.number
        connection.say(
            frame(FrameType.HEADERS, END_HEADERS, number, ANSWER_BLOCK)
            + head(FrameType.DATA, 0, number, size_bytes)
            + data
            + frame(FrameType.HEADERS, _LAST_HEADERS, number, OK_BLOCK)
        )
        connection.ended(self)

    def end(self, code: int = GrpcCode.OK, text: str = "") -> None:
        """Say how the call went, behind all that was told."""
        if self.is_ended or self._status is not None:
            return
        self._status = status_block(code, text)
        self._connection.pump(self)

    def next_output(self, room_bytes: int) -> bytes:
        """
        Take what is to be sent next, at most `room_bytes` of messages; nothing if it has to wait.

        The last of it ends the call.
        """
        pieces: list[bytes | memoryview] = []
        number, pending = self.number, self._pending
        room_bytes = min(room_bytes, self.send_window)
        if pending and not self._is_answered:
            self._is_answered = True
            pieces.append(frame(FrameType.HEADERS, END_HEADERS, number, ANSWER_BLOCK))
        while pending and room_bytes > 0:
            data = pending[0]
            size_bytes = min(len(data), room_bytes, PAYLOAD_BYTES_MAX)
            pieces += (head(FrameType.DATA, 0, number, size_bytes), data[:size_bytes])
            room_bytes -= size_bytes
            self.send_window -= size_bytes
            self._connection.send_window -= size_bytes
            if size_bytes < len(data):
                pending[0] = data[size_bytes:]
            else:
                pending.popleft()
                self.told_count += 1
        if not pending and self._status is not None:
            block = self._status if self._is_answered else ANSWER_BLOCK + self._status
            pieces.append(frame(FrameType.HEADERS, _LAST_HEADERS, number, block))
            self.is_ended = True
        return b"".join(pieces)

    @property
    def is_blocked(self) -> bool:
        """Tell whether something has to wait until the client takes more."""
        return bool(self._pending)

    def widen(self, increment: int) -> None:
        """Take note that the client takes so much more, or less. Raises Http2Error: too much."""
        self.send_window += increment
        if self.send_window > WINDOW_BYTES_MAX:
            raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, "a window above 2^31-1")

    def cancel(self) -> None:
        """Take note that the client does not listen any more."""
        if self.is_ended:
            return
        self.is_ended = True
        self._pending.clear()
        if self.handling is not None:
            self.handling.cancelled()
