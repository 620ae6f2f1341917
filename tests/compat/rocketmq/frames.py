"""Frames as a client writes them, and what is to be seen in those it gets back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from logstore.compat.connection import Chunk
from logstore.compat.rocketmq.wire.binary_header import read_binary_header, write_binary_header
from logstore.compat.rocketmq.wire.remoting import Command, decode_command
from logstore.segment import Extent

JSON, BINARY = 0, 1
VERSION = 513


def framed(header: bytes, body: bytes = b"", serializer: int = JSON) -> bytes:
    """Return a whole frame, its length included."""
    size = len(header).to_bytes(3, "big")
    length = (4 + len(header) + len(body)).to_bytes(4, "big")
    return length + bytes([serializer]) + size + header + body


def request(
    code: int,
    fields: Mapping[str, object] | None = None,
    body: bytes = b"",
    *,
    opaque: int = 1,
    flag: int = 0,
    version: int = VERSION,
    language: str = "JAVA",
    serializer: int = JSON,
) -> bytes:
    """Return the frame of a request."""
    if serializer == BINARY:
        texts = {name: str(value) for name, value in (fields or {}).items()}
        header = write_binary_header(code, opaque, flag, language, version, None, texts)
    else:
        content = {
            "code": code, "extFields": fields, "flag": flag, "language": language,
            "opaque": opaque, "serializeTypeCurrentRPC": "JSON", "version": version,
        }  # fmt: skip
        header = json.dumps(content, separators=(",", ":")).encode()
    return framed(header, body, serializer)


def joined(chunks: Iterable[Chunk]) -> bytes:
    """Return everything that a server sends, in order."""
    return b"".join(chunk.read() if isinstance(chunk, Extent) else bytes(chunk) for chunk in chunks)


def split(data: bytes) -> list[bytes]:
    """Return the frames of a stream, without their lengths; the stream must end with one."""
    frames: list[bytes] = []
    while data:
        end = 4 + int.from_bytes(data[:4], "big")
        assert len(data) >= end, "a frame is cut off"
        frames.append(data[4:end])
        data = data[end:]
    return frames


@attrs.frozen
class Answer:
    """One frame that a server sent, read by other means than the server's own."""

    code: int
    opaque: int
    flag: int
    remark: str | None
    fields: dict[str, str] | None
    body: bytes
    serializer: int
    header: bytes

    @property
    def content(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


def answers(data: bytes | Iterable[Chunk]) -> list[Answer]:
    """Return what stands in a stream of frames."""
    stream = data if isinstance(data, bytes) else joined(data)
    return [_answer(frame) for frame in split(stream)]


def _answer(frame: bytes) -> Answer:
    end = 4 + int.from_bytes(frame[1:4], "big")
    header, body = frame[4:end], frame[end:]
    if frame[0] == BINARY:
        code, opaque, flag, _, _, remark, fields = read_binary_header(header)
        return Answer(code, opaque, flag, remark, fields, body, BINARY, header)
    content = json.loads(header)
    return Answer(
        content["code"],
        content["opaque"],
        content["flag"],
        content.get("remark"),
        content.get("extFields"),
        body,
        JSON,
        header,
    )


def command(frame: bytes) -> Command:
    """Return a whole frame, its length included, as a server reads it."""
    return decode_command(memoryview(frame)[4:])
