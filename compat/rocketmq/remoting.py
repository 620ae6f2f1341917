"""
Remoting commands: what a frame holds once it is read, and what becomes a frame.

A frame is ``length i32 | serializer u8, header length u24 | header | body``. The header stands in
one of two forms, :mod:`~logstore.compat.rocketmq.json_header` and
:mod:`~logstore.compat.rocketmq.binary_header`; an answer takes the form of its request.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import Buffer

    from logstore.compat.connection import Chunk

#: the largest frame, its length included (``com.rocketmq.remoting.frameMaxLength``)
FRAME_BYTES_MAX = 16 * 1024 * 1024

#: what answers and our own requests call themselves: release 5.5.0, written in Java; there are
#: clients whose reader dies of any other language
VERSION = 513
LANGUAGE = "JAVA"

RESPONSE_FLAG = 1
ONEWAY_FLAG = 2


class MalformedFrameError(LogStoreError):
    """The bytes of a frame are no remoting command; the connection cannot go on."""


class Serializer(IntEnum):
    """How a header is written; the number is the high byte of the header length."""

    JSON = 0
    ROCKETMQ = 1


class Command:
    """
    One request or answer that came from a peer.

    `body` is a view of the connection's memory, valid only until the handler returns: whoever
    waits must copy what is needed later. `ext_fields` are always text, as Java reads them,
    whatever the peer wrote; see :mod:`logstore.compat.rocketmq.fields` for typed reading.
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
        code: a :class:`~logstore.compat.rocketmq.codes.ResponseCode`
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


def decode_command(frame: memoryview) -> Command:
    """
    Read one frame, without its length field.

    Raises:
        MalformedFrameError: it is no remoting command.

    """
    raise NotImplementedError


def encode_response(request: Command, response: Response) -> list[Chunk]:
    """Return the frame that answers `request`, in the form that the request came in."""
    raise NotImplementedError


def encode_request(
    code: int,
    opaque: int,
    ext_fields: Mapping[str, str] | None = None,
    body: Buffer = b"",
    *,
    is_oneway: bool = False,
) -> bytes:
    """Return the frame of a request of ours, with a JSON header as Java's servers write it."""
    raise NotImplementedError
