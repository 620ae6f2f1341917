"""One connection to one broker: questions go out by name, answers come back as dicts."""

from __future__ import annotations

import select
import socket
import struct
import time
from typing import Any

from tests.interop.drawn.codec import decode, encode, tags_of
from tests.interop.drawn.schemas import apis

CLIENT_ID = b"drawn"
#: What stands in place of an answer.
CLOSED, SILENT = "closed", "silent"
API_VERSIONS = "ApiVersions"
#: How a question is put on the wire, besides its fields: the client's id (also none), tags in its
#: header, and what follows the last field (a number: so many bytes of it are missing).
CLIENT, HEADER_TAGS, END = WIRE = "+client", "+header tags", "+end"


class Line:
    """A connection on which one question is open at a time, or several that went together."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._address = (host, int(port))
        self._socket = socket.create_connection(self._address, 10)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""
        self._correlation_id = 0
        #: api, version and number of what is asked
        self._asked: list[tuple[str, int, int]] = []

    def send(self, api: str, version: int, body: dict[str, Any] | bytes) -> None:
        """Send a question, or the bytes that are said to be one."""
        self._asked.clear()
        self._put(self.frame(api, version, body))

    def send_together(self, questions: list[tuple[str, int, dict[str, Any]]]) -> None:
        """Send questions as one; each of them has an answer."""
        self._asked.clear()
        self._put(b"".join(self.frame(*question) for question in questions))

    def send_frame(self, data: bytes) -> None:
        """Send bytes that are no question, after their length."""
        self._asked.clear()
        self._put(struct.pack(">i", len(data)) + data)

    def _put(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return

    def frame(self, api: str, version: int, body: dict[str, Any] | bytes) -> bytes:
        """Return the bytes of a question whose answer is waited for."""
        found = apis()[api]
        self._correlation_id += 1
        self._asked.append((api, version, self._correlation_id))
        wire: dict[str, Any] = {}
        if not isinstance(body, bytes):
            wire = {name: body[name] for name in WIRE if name in body}
            body = {name: value for name, value in body.items() if name not in WIRE}
        client_id = wire.get(CLIENT, CLIENT_ID)
        size = -1 if client_id is None else len(client_id)
        header = struct.pack(">hhih", found.key, version, self._correlation_id, size)
        header += client_id or b""
        if found.request.is_flexible(version):
            header += tags_of(wire.get(HEADER_TAGS, []))
        data = body if isinstance(body, bytes) else encode(found.request, version, body)
        end = wire.get(END, b"")
        data = data + end if isinstance(end, bytes) else data[:-end]
        return struct.pack(">i", len(header) + len(data)) + header + data

    def receive(self, seconds: float) -> dict[str, Any] | str:
        """Return the answer, CLOSED if the broker hung up, or SILENT if there is none in time."""
        frame = self.receive_frame(seconds)
        return frame if isinstance(frame, str) else self._decoded(frame)

    def receive_frame(self, seconds: float) -> bytes | str:
        """Return the next bytes that have a length, CLOSED or SILENT."""
        deadline = time.monotonic() + seconds
        while not self._is_whole():
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self._socket], [], [], left)[0]:
                return SILENT
            try:
                piece = self._socket.recv(1 << 20)
            except ConnectionResetError:
                piece = b""
            if not piece:
                return CLOSED
            self._received += piece
        (size,) = struct.unpack_from(">i", self._received)
        frame, self._received = self._received[4 : 4 + size], self._received[4 + size :]
        return frame

    def _is_whole(self) -> bool:
        if len(self._received) < 4:
            return False
        (size,) = struct.unpack_from(">i", self._received)
        return len(self._received) >= 4 + int(size)

    def _decoded(self, frame: bytes) -> dict[str, Any] | str:
        api, version, number = self._asked.pop(0)
        schema = apis()[api].response
        (correlation_id,) = struct.unpack_from(">i", frame)
        if correlation_id != number:
            return f"the answer to {correlation_id - number}"
        has_tags = schema.is_flexible(version) and api != API_VERSIONS
        try:
            return decode(schema, version, frame, 5 if has_tags else 4)
        except ValueError as error:
            return f"cannot be read: {error}: {frame.hex()}"

    def close(self) -> None:
        """Hang up."""
        self._socket.close()
