"""Asking a broker over a socket with messages that are our own."""

from __future__ import annotations

import struct
from typing import TypeVar

from logstore.segments.kafka.internal_topics.codec import decode_message, encode_message
from logstore.segments.kafka.internal_topics.schema import Message
from tests.interop.raw_wire import Wire

MessageT = TypeVar("MessageT", bound=Message)


def ask_own(wire: Wire, key: int, version: int, request: Message, kind: type[MessageT]) -> MessageT:
    """Send a request of an API and return its answer."""
    tags = b"\0" if request.is_flexible(version) else b""
    header = struct.pack(">hhih", key, version, 7, 4) + b"test" + tags
    wire.send_frame(header + encode_message(request, version))
    answer = wire.receive_frame()
    assert answer is not None, "the connection is closed"
    start = b"\0\0\0\7" + tags
    assert answer.startswith(start), "the answer to something else"
    return decode_message(kind, answer, version, len(start))
