"""
Requests and answers whose messages are declared here, because the library does not have them.

Source: Kafka's message schemas; see :mod:`logstore.segments.kafka.internal_topics.schema`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

import attrs

from logstore.compat.kafka.framing import MalformedRequestError, framed
from logstore.segments.kafka.internal_topics.codec import (
    MessageError,
    decode_message,
    encode_message,
)
from logstore.segments.kafka.internal_topics.schema import Message

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.registry import RawRequest

MessageT = TypeVar("MessageT", bound=Message)


def read_request(kind: type[MessageT], request: RawRequest) -> MessageT:
    """
    Return a request as a message.

    Raises:
        MalformedRequestError: it cannot be read.

    """
    try:
        found = decode_message(kind, bytes(request.data), request.version, request.position)
        _check_text(attrs.astuple(found))
    except (MessageError, UnicodeEncodeError) as error:
        raise MalformedRequestError(f"{kind.__name__}: {error}") from error
    return found


def _check_text(value: object) -> None:
    """Refuse text that is no UTF-8: it has come as lone surrogates, which nobody could read."""
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, tuple):
        for part in cast("tuple[object, ...]", value):
            _check_text(part)


def answered(message: Message, request: RawRequest) -> list[Chunk]:
    """Return the frame that answers a request."""
    body = encode_message(message, request.version)
    return [framed(request.correlation_id, body, has_tags=request.is_flexible)]
