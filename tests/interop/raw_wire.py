"""Bytes on a socket: what no client library would send."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Self

API_VERSIONS = 18
PRODUCE = 0
METADATA = 3
OFFSET_COMMIT = 8
TIMEOUT_SECONDS = 10
CLOSED = "closed"


class Wire:
    """One connection to a broker; used as a context."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), TIMEOUT_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data: bytes) -> None:
        """Send bytes as they are; a peer that has hung up already is fine."""
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return

    def send_frame(self, payload: bytes) -> None:
        """Send a payload with its size in front."""
        self.send(struct.pack(">i", len(payload)) + payload)

    def finish(self) -> None:
        """Send no more; the other direction stays open."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def receive_frame(self) -> bytes | None:
        """Return the next response's payload, or None once the broker has closed the connection."""
        size = self._receive(4)
        return None if size is None else self._receive(struct.unpack(">i", size)[0])

    def _receive(self, size_bytes: int) -> bytes | None:
        data = b""
        while len(data) < size_bytes:
            try:
                piece = self._socket.recv(size_bytes - len(data))
            except ConnectionResetError:
                return None
            if not piece:
                return None
            data += piece
        return data

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def request(api_key: int, version: int, body: bytes, correlation_id: int = 7) -> bytes:
    """Return a request's payload with header version 1 (no tags): API, version, id, client id."""
    return struct.pack(">hhih4s", api_key, version, correlation_id, 4, b"test") + body


def ask(bootstrap: str, payload: bytes) -> bytes | None:
    """Send one frame on a connection of its own; return the answer, or None if it is closed."""
    with Wire(bootstrap) as wire:
        wire.send_frame(payload)
        return wire.receive_frame()


def produce_request(topic: str, records: bytes, acks: int = -1, partition: int = 0) -> bytes:
    """Return a Produce v3 request with these bytes as the records of one partition."""
    name = topic.encode()
    body = struct.pack(">hhii", -1, acks, 10_000, 1) + struct.pack(">h", len(name)) + name
    body += struct.pack(">iii", 1, partition, len(records)) + records
    return request(PRODUCE, 3, body)


def produce_error(bootstrap: str, payload: bytes) -> int | str:
    """Send a Produce v3 request; return the partition's error code, or CLOSED."""
    answer = ask(bootstrap, payload)
    if answer is None:
        return CLOSED
    correlation_id, topics, name_bytes = struct.unpack_from(">iih", answer)
    assert (correlation_id, topics) == (7, 1)
    partitions, _, code = struct.unpack_from(">iih", answer, 10 + name_bytes)
    assert partitions == 1
    return int(code)


def commit_request(group: str, topic: str, partition: int, offset: int) -> bytes:
    """Return an OffsetCommit v2 request by nobody in particular, as admin tools send it."""
    name = topic.encode()
    body = struct.pack(f">h{len(group)}sihq", len(group), group.encode(), -1, 0, -1)
    body += struct.pack(f">ih{len(name)}s", 1, len(name), name)
    body += struct.pack(">iiqh", 1, partition, offset, -1)
    return request(OFFSET_COMMIT, 2, body)


def is_committed(answer: bytes | None) -> bool:
    """Tell whether the answer to `commit_request` says that the offset is kept."""
    return answer is not None and answer.endswith(struct.pack(">h", 0))


def answers(bootstrap: str) -> bool:
    """Tell whether the broker says on a new connection which APIs it has."""
    answer = ask(bootstrap, request(API_VERSIONS, 0, b""))
    return answer is not None and struct.unpack_from(">ih", answer) == (7, 0)
