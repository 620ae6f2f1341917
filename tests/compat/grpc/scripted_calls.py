"""Calls that do what their path says, and a client of an HTTP/2 library of others' making."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

import attrs
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)

from logstore.compat.connection import Chunk
from logstore.compat.grpc.call import Call, Handling
from logstore.compat.grpc.connection import GrpcConnection, GrpcService
from logstore.compat.grpc.status import CallError, GrpcCode

BYTES_MAX = 8 * 1024 * 1024


class _Scripted:
    """Answers with what it was told."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.name = call.path.rpartition("/")[2]
        self.heard: list[bytes] = []
        self.is_cancelled = False

    def message(self, data: bytes) -> None:
        """Do what the name says about messages."""
        self.heard.append(data)
        if self.name == "Echo":
            self.call.tell(data)
        elif self.name == "Refuse":
            raise CallError(GrpcCode.INVALID_ARGUMENT, "100% größer\n")
        elif self.name == "Fail":
            raise ValueError("out of luck")
        elif self.name == "Hasty":
            self.call.answer(b"enough")

    def half_closed(self) -> None:
        """Do what the name says about the end."""
        if self.name == "Join":
            self.call.answer(b"".join(self.heard))
        elif self.name == "Each":
            for data in self.heard:
                self.call.tell(data)
            self.call.end()
        elif self.name == "Echo":
            self.call.end()

    def cancelled(self) -> None:
        """Take note."""
        self.is_cancelled = True


class ScriptedService:
    """Implements :class:`logstore.compat.grpc.connection.GrpcService`."""

    def __init__(self) -> None:
        self.message_bytes_max = BYTES_MAX
        self.begun: list[_Scripted] = []

    def begin(self, call: Call) -> Handling | None:
        """Serve what is below /test/."""
        if not call.path.startswith("/test/"):
            return None
        self.begun.append(_Scripted(call))
        return self.begun[-1]

    def send(self, on_output: Callable[[], None]) -> None:
        """Send at once."""
        on_output()


@attrs.define
class Heard:
    """What a client was answered on one stream."""

    headers: dict[str, str] = attrs.Factory(dict[str, str])
    data: bytearray = attrs.Factory(bytearray)
    trailers: dict[str, str] = attrs.Factory(dict[str, str])
    is_ended: bool = False
    reset: int | None = None

    @property
    def status(self) -> str | None:
        """Return the status of gRPC, wherever it stands."""
        return self.trailers.get("grpc-status", self.headers.get("grpc-status"))

    @property
    def messages(self) -> list[bytes]:
        """Return the messages."""
        found: list[bytes] = []
        start = 0
        while start < len(self.data):
            compressed, length = struct.unpack_from(">BL", self.data, start)
            assert not compressed
            found.append(bytes(self.data[start + 5 : start + 5 + length]))
            start += 5 + length
        return found


def framed(message: bytes, *, is_compressed: bool = False) -> bytes:
    """Return a message as gRPC has it."""
    return struct.pack(">BL", is_compressed, len(message)) + message


class ClientPeer:
    """A client of a connection; its bytes arrive `cut_bytes` at a time."""

    def __init__(self, service: GrpcService | None = None, cut_bytes: int = 10_000) -> None:
        #: what serves it, unless somebody else does
        self.service = ScriptedService()
        self.connection = GrpcConnection(service or self.service, "192.0.2.1", 4711)
        self.connection.on_output = self._exchange_soon
        self.heard: dict[int, Heard] = {}
        self.goaway: int | None = None
        #: whether what arrives is acknowledged, so that more may come
        self.is_reading = True
        self._cut_bytes = cut_bytes
        self.h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.exchange()

    def _exchange_soon(self) -> None:
        """Leave it to the next exchange: the connection may be in the middle of something."""

    def feed(self, data: bytes) -> None:
        """Let bytes arrive."""
        while data and not self.connection.is_closing:
            target = self.connection.writable()
            count = min(self._cut_bytes, len(data), len(target))
            target[:count] = data[:count]
            self.connection.received(count)
            data = data[count:]

    def exchange(self) -> None:
        """Say what there is to say, and hear what there is to hear, until there is no more."""
        while True:
            said = self.h2.data_to_send()
            self.feed(said)
            heard, self.connection.output = self.connection.output, []
            if not said and not heard:
                return
            self._take(b"".join(_bytes_of(chunk) for chunk in heard))

    def _take(self, data: bytes) -> None:
        for event in self.h2.receive_data(data):
            if isinstance(event, ConnectionTerminated):
                self.goaway = event.error_code
            stream = self.heard.setdefault(getattr(event, "stream_id", 0) or 0, Heard())
            if isinstance(event, ResponseReceived):
                stream.headers = _headers_of(event.headers)
            elif isinstance(event, DataReceived):
                stream.data += event.data or b""
                if self.is_reading:
                    self.h2.acknowledge_received_data(
                        event.flow_controlled_length or 0, event.stream_id or 0
                    )
            elif isinstance(event, TrailersReceived):
                stream.trailers = _headers_of(event.headers)
            elif isinstance(event, StreamReset):
                stream.reset = event.error_code
            elif isinstance(event, StreamEnded):
                stream.is_ended = True

    def begin(self, path: str, **headers: str) -> int:
        """Begin a call; return its stream."""
        number: int = self.h2.get_next_available_stream_id()
        told = {
            ":method": "POST", ":scheme": "http", ":path": path, ":authority": "proxy",
            "content-type": "application/grpc", "te": "trailers",
        }  # fmt: skip
        told.update({name.replace("_", "-"): value for name, value in headers.items()})
        self.h2.send_headers(number, list(told.items()))
        self.exchange()
        return number

    def say(self, number: int, data: bytes, *, is_last: bool = False) -> None:
        """Say something on a stream, as fast as it may be said, until its answer is over."""
        while data and not self._is_over(number):
            count = min(
                len(data),
                self.h2.local_flow_control_window(number),
                self.h2.max_outbound_frame_size,
            )
            assert count > 0, "the window does not open"
            self.h2.send_data(number, data[:count])
            data = data[count:]
            self.exchange()
        if is_last and not self._is_over(number):
            self.h2.end_stream(number)
            self.exchange()

    def _is_over(self, number: int) -> bool:
        return self.heard.setdefault(number, Heard()).is_ended

    def ask(self, path: str, *messages: bytes, **headers: str) -> Heard:
        """Make a call of some messages; return what is heard."""
        number = self.begin(path, **headers)
        self.say(number, b"".join(map(framed, messages)), is_last=True)
        return self.heard[number]


def _bytes_of(chunk: Chunk) -> bytes:
    assert isinstance(chunk, bytes)
    return chunk


def _headers_of(found: Iterable[Any] | None) -> dict[str, str]:
    return {str(name): str(value) for name, value in found or ()}
