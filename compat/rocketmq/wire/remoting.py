"""
Remoting commands: what a frame holds once it is read, and what becomes a frame.

A frame is ``length i32 | serializer u8, header length u24 | header | body``. The header stands in
one of two forms, :mod:`~logstore.compat.rocketmq.wire.json_header` and
:mod:`~logstore.compat.rocketmq.wire.binary_header`; an answer takes the form of its request.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias, cast

from logstore.compat.rocketmq.wire.binary_header import read_binary_header, write_binary_header
from logstore.compat.rocketmq.wire.json_header import read_json_header, write_json_header
from logstore.errors import LogStoreError
from logstore.segment import Extent
from logstore.segments.rocketmq.messages.java_strings import java_hash_map_order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import Buffer

    from logstore.compat.connection import Chunk

    #: what handlers give: raw ones whole frames, or what the frame of an answer holds
    Answer: TypeAlias = "Response | list[Chunk]"

#: the largest frame, its length included (``com.rocketmq.remoting.frameMaxLength``)
FRAME_BYTES_MAX = 16 * 1024 * 1024

#: what answers and our own requests call themselves: release 5.5.0, written in Java; there are
#: clients whose reader dies of any other language
VERSION = 513
LANGUAGE = "JAVA"

#: what the header of a SEND_MESSAGE_V2 begins with as Java writes it; others may write it otherwise
SEND_PREFIX = b'{"code":310,'
#: the same of a SEND_BATCH_MESSAGE
BATCH_PREFIX = b'{"code":320,'
#: that of an acknowledgement of a popped message
ACK_PREFIX = b'{"code":200051,'

RESPONSE_FLAG = 1
ONEWAY_FLAG = 2

_WORD = struct.Struct(">I")
_HEAD = struct.Struct(">iI")
_unpack_word = _WORD.unpack_from
_pack_head = _HEAD.pack
_HEADER_BYTES_MAX = 0xFFFFFF
#: bodies up to this size are copied behind their header; it costs less than a chunk of their own
_JOINED_BYTES_MAX = 16 * 1024

#: sizes of the hash maps that Java keeps fields in, which decide about the order of the fields:
#: as ``makeCustomHeaderToNet`` makes them, and as ``addExtField`` does in 5.x
_CAPACITY = 16
_EXTRA_CAPACITY = 256


class MalformedFrameError(LogStoreError):
    """The bytes of a frame are no remoting command; the connection cannot go on."""


class Serializer(IntEnum):
    """How a header is written; the number is the high byte of the header length."""

    JSON = 0
    ROCKETMQ = 1
    #: never in a frame: command and answer are handed over as they are, within the process
    WITHIN = -1


class Command:
    """
    One request or answer that came from a peer.

    `body` is a view of the connection's memory, valid only until the handler returns: whoever
    waits must copy what is needed later. `ext_fields` are always text, as Java reads them,
    whatever the peer wrote; see :mod:`logstore.compat.rocketmq.wire.fields` for typed reading.
    """

    __slots__ = (
        "body",
        "code",
        "ext_fields",
        "flag",
        "language",
        "opaque",
        "remark",
        "serializer",
        "version",
    )

    def __init__(
        self,
        code: int,
        opaque: int,
        flag: int,
        language: str,
        version: int,
        remark: str | None,
        ext_fields: dict[str, str],
        body: memoryview,
        serializer: int,
    ) -> None:
        self.code = code
        self.opaque = opaque
        self.flag = flag
        self.language = language
        self.version = version
        self.remark = remark
        self.ext_fields = ext_fields
        self.body = body
        self.serializer = serializer

    @property
    def is_response(self) -> bool:
        """Tell whether this answers a request of ours."""
        return bool(self.flag & RESPONSE_FLAG)

    @property
    def is_oneway(self) -> bool:
        """Tell whether the peer wants no answer."""
        return bool(self.flag & ONEWAY_FLAG)


class Response:
    """
    What a handler answers.

    Args:
        code: a :class:`~logstore.compat.rocketmq.wire.codes.ResponseCode`
        remark: left out where None
        ext_fields: the fields of Java's custom header that are not null; None where Java answers
            without a header object, which leaves the whole map out
        body: bytes, or several chunks (runs of files among them) that follow each other
        extra_fields: what Java adds with ``addExtField`` before the custom header; their presence
            changes the order in which all fields are written

    """

    __slots__ = ("body", "code", "ext_fields", "extra_fields", "remark")

    def __init__(
        self,
        code: int,
        remark: str | None = None,
        ext_fields: Mapping[str, str] | None = None,
        body: Buffer | Sequence[Chunk] = b"",
        extra_fields: Mapping[str, str] | None = None,
    ) -> None:
        self.code = code
        self.remark = remark
        self.ext_fields = ext_fields
        self.body = body
        self.extra_fields = extra_fields


def json_header_of(frame: memoryview) -> bytes:
    """Return the JSON header of a frame, its length field left out; empty if it has none."""
    if len(frame) < _WORD.size:
        return b""
    word: int = _unpack_word(frame)[0]
    return b"" if word > _HEADER_BYTES_MAX else bytes(frame[4 : 4 + word])


def decode_command(frame: memoryview) -> Command:
    """
    Read one frame, without its length field.

    Raises:
        MalformedFrameError: it is no remoting command.

    """
    try:
        word: int = _unpack_word(frame)[0]
        end = 4 + (word & _HEADER_BYTES_MAX)
        if end > len(frame):
            raise ValueError(f"a header of {end - 4} bytes in a frame of {len(frame)}")
        serializer = word >> 24
        if serializer == 0:
            header = read_json_header(frame[4:end])
        elif serializer == 1:
            header = read_binary_header(frame[4:end])
        else:
            raise ValueError(f"there is no serializer {serializer}")
    except (ValueError, struct.error) as error:
        raise MalformedFrameError(f"no remoting command: {error}") from error
    return Command(*header, frame[end:], serializer)


def as_frame(request: Command, answer: Answer) -> list[Chunk]:
    """Return the frame that answers `request`, which a raw handler has written already."""
    return answer if isinstance(answer, list) else encode_response(request, answer)


def encode_response(request: Command, response: Response) -> list[Chunk]:
    """Return the frame that answers `request`, in the form that the request came in."""
    body = response.body
    chunks: list[Chunk]
    if isinstance(body, bytes):
        chunks = [body]
        body_bytes = len(body)
    elif isinstance(body, list | tuple):
        chunks = list(body)
        body_bytes = sum(map(size_of, chunks))
    else:
        chunks = [memoryview(cast("Buffer", body))]
        body_bytes = size_of(chunks[0])
    head = encode_head(
        request,
        response.code,
        response.remark,
        response.ext_fields,
        response.extra_fields,
        body_bytes,
    )
    if not body_bytes:
        return [head]
    if body_bytes <= _JOINED_BYTES_MAX and isinstance(body, bytes):
        return [head + body]
    return [head, *chunks]


def encode_head(
    request: Command,
    code: int,
    remark: str | None,
    ext_fields: Mapping[str, str] | None,
    extra_fields: Mapping[str, str] | None,
    body_bytes: int,
) -> bytes:
    """
    Return the first part of the frame that answers `request`; `body_bytes` of body must follow.

    For raw handlers.
    """
    if request.serializer == 1:
        fields = ext_fields if extra_fields is None else {**(ext_fields or {}), **extra_fields}
        header = write_binary_header(
            code, request.opaque, RESPONSE_FLAG, LANGUAGE, VERSION, remark, fields
        )
        return _pack_head(4 + len(header) + body_bytes, 1 << 24 | len(header)) + header
    fields = ext_fields
    if extra_fields is not None:
        fields = _in_java_order({**extra_fields, **(ext_fields or {})}, _EXTRA_CAPACITY)
    elif fields is not None and len(fields) > 1:
        fields = _in_java_order(fields, _CAPACITY)
    header = write_json_header(
        code, request.opaque, RESPONSE_FLAG, LANGUAGE, VERSION, remark, fields
    )
    return _pack_head(4 + len(header) + body_bytes, len(header)) + header


def encode_request(
    code: int,
    opaque: int,
    ext_fields: Mapping[str, str] | None = None,
    body: bytes = b"",
    *,
    is_oneway: bool = False,
) -> bytes:
    """Return the frame of a request of ours, with a JSON header as Java's servers write it."""
    fields = ext_fields
    if fields is not None and len(fields) > 1:
        fields = _in_java_order(fields, _CAPACITY)
    flag = ONEWAY_FLAG if is_oneway else 0
    header = write_json_header(code, opaque, flag, LANGUAGE, VERSION, None, fields)
    return _pack_head(4 + len(header) + len(body), len(header)) + header + body


def size_of(chunk: Chunk) -> int:
    """Return how many bytes of a frame a chunk is."""
    return chunk.size_bytes if isinstance(chunk, Extent) else len(chunk)


def _in_java_order(fields: Mapping[str, str], capacity: int) -> dict[str, str]:
    return {name: fields[name] for name in java_hash_map_order(tuple(fields), capacity)}
