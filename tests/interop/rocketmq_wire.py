"""RocketMQ's remoting protocol by hand: many requests under way on one connection."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

SEND_MESSAGE_V2 = 310
SEND_BATCH_MESSAGE = 320
PULL_MESSAGE = 11
GET_MAX_OFFSET = 30
GET_MIN_OFFSET = 31
SUCCESS, FLUSH_DISK_TIMEOUT, PULL_NOT_FOUND = 0, 10, 19

_SIZES = struct.Struct(">II")
#: a record up to its body's length, hosts in IPv4: see the reference of the commit log
_RECORD = struct.Struct(">iiiiiqqiq8sq8siqi")
_BATCH_ITEM = struct.Struct(">iiiii")
CLOSED_ERRORS = (ConnectionError, socket.timeout)


@attrs.frozen
class Answer:
    """One answer: to which request, its code, fields and body."""

    opaque: int
    code: int
    fields: Mapping[str, Any]
    body: bytes
    remark: str | None = None


class Wire:
    """A connection to a broker."""

    def __init__(self, address: str, seconds: float = 20) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), seconds)
        self._replies = self._socket.makefile("rb")
        self._opaque = 0

    def send(self, code: int, fields: Mapping[str, object], body: bytes = b"") -> int:
        """Send one request; return the number that its answer will bear."""
        self._opaque += 1
        header = json.dumps(
            {
                "code": code, "flag": 0, "language": "JAVA", "version": 401,
                "opaque": self._opaque, "serializeTypeCurrentRPC": "JSON",
                "extFields": {key: str(value) for key, value in fields.items()},
            }
        ).encode()  # fmt: skip
        frame = _SIZES.pack(4 + len(header) + len(body), len(header)) + header + body
        self._socket.sendall(frame)
        return self._opaque

    def receive(self) -> Answer:
        """Return the next answer; ConnectionError at the end of the connection."""
        sizes = self._replies.read(_SIZES.size)
        if len(sizes) < _SIZES.size:
            raise ConnectionError("the broker closed")
        size, header_size = _SIZES.unpack(sizes)
        rest = self._replies.read(size - 4)
        if len(rest) < size - 4:
            raise ConnectionError("the broker closed within an answer")
        header = json.loads(rest[: header_size & 0xFFFFFF])
        body = rest[header_size & 0xFFFFFF :]
        fields = header.get("extFields") or {}
        return Answer(header["opaque"], header["code"], fields, body, header.get("remark"))

    def ask(self, code: int, fields: Mapping[str, object], body: bytes = b"") -> Answer:
        """Send one request while no other is under way, and return its answer."""
        opaque = self.send(code, fields, body)
        answer = self.receive()
        assert answer.opaque == opaque, "an answer to something else"
        return answer

    def close(self) -> None:
        """Close the connection."""
        self._replies.close()
        self._socket.close()


def send_fields(topic: str, queue_id: int, properties: str) -> dict[str, object]:
    """Return the header of a send in its short form, SEND_MESSAGE_V2 or SEND_BATCH_MESSAGE."""
    return {
        "a": "wire_producers", "b": topic, "c": "TBW102", "d": 4, "e": queue_id, "f": 0,
        "g": 1_700_000_000_000, "h": 0, "i": properties, "j": 0, "k": "false", "m": "false",
    }  # fmt: skip


def batch_body(bodies: Sequence[bytes]) -> bytes:
    """Return what a client sends for several messages without properties."""
    pieces: list[bytes] = []
    for body in bodies:
        size = _BATCH_ITEM.size + len(body) + 2
        pieces += [_BATCH_ITEM.pack(size, 0, 0, 0, len(body)), body, b"\0\0"]
    return b"".join(pieces)


def pull_fields(topic: str, queue_id: int, queue_offset: int) -> dict[str, object]:
    """Return the header of a pull of everything from that offset on that does not wait."""
    return {
        "consumerGroup": "wire_readers", "topic": topic, "queueId": queue_id,
        "queueOffset": queue_offset, "maxMsgNums": 32, "sysFlag": 4, "commitOffset": 0,
        "suspendTimeoutMillis": 0, "subscription": "*", "subVersion": 0, "expressionType": "TAG",
    }  # fmt: skip


def pulled(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield queue offset and body of each record that a pull brought."""
    at = 0
    while at < len(body):
        fields = _RECORD.unpack_from(body, at)
        start = at + _RECORD.size
        yield fields[5], body[start : start + fields[14]]
        at += fields[0]
    assert at == len(body), "the records end where the answer ends"
