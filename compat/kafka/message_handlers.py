"""Asking any handler with a message as the library has it, also those that read by themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeGuard

from logstore.compat.kafka.framing import RESPONSE_PREFIX, MalformedRequestError, framed
from logstore.compat.kafka.library_messages import decoded, library_class
from logstore.compat.kafka.null_fields import find_null
from logstore.compat.kafka.registry import Api, RawRequest
from logstore.compat.waiting import Later
from logstore.segments.kafka.internal_topics.codec import decode_message, encode_message

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.segments.kafka.internal_topics.schema import Message


def read_message(api: Api, raw: RawRequest) -> Any:
    """
    Return a request as the library has it.

    Raises:
        MalformedRequestError: it is none.

    """
    try:
        message = decoded(api, raw)
    except Exception as error:
        raise MalformedRequestError(
            f"{api.name} v{raw.version} cannot be decoded: {error!r}"
        ) from error
    null = find_null(message, raw.version)
    if null is not None:
        raise MalformedRequestError(f"{api.name} v{raw.version}: {null} must not be null")
    return message


def ask_handler(api: Api, broker: Broker, client: Client, raw: RawRequest, message: Any) -> Any:
    """Return an API's answer to a message, decoded, or a promise of it; `raw` is how it came."""
    if api.handle is not None:
        return api.handle(broker, client, message)
    message._header = None  # only what the library has made itself has one
    body: bytes = message.encode(version=raw.version)
    data = memoryview(bytearray(body))  # batches are stamped where they stand
    assert api.handle_raw is not None
    answer = api.handle_raw(
        broker, client, RawRequest(raw.version, raw.correlation_id, data, 0, raw.is_flexible)
    )

    def read(chunks: list[Chunk]) -> Any:
        frame = b"".join(chunk for chunk in chunks if isinstance(chunk, bytes))
        kind = library_class(api, "Response")
        found = kind.decode(frame, version=raw.version, header=True, framed=True)
        found._header = None  # the library would write a request's version into it
        return found

    return None if answer is None else changed(answer, read)


def ask_declared(
    api: Api,
    broker: Broker,
    client: Client,
    raw: RawRequest,
    message: Message,
    response_class: type[Message],
) -> Any:
    """Return what a handler that answers at once says to a message of ours instead of `raw`."""
    assert api.handle_raw is not None
    data = memoryview(bytearray(encode_message(message, raw.version)))
    chunks = api.handle_raw(broker, client, raw._replace(data=data, position=0))
    assert isinstance(chunks, list), "it is answered at once"
    frame = b"".join(chunk for chunk in chunks if isinstance(chunk, bytes))
    return decode_message(response_class, frame, raw.version, RESPONSE_PREFIX.size + 1)


def write_answer(raw: RawRequest, answer: Any) -> list[Chunk]:
    """Return the frame of an answer."""
    body: bytes = answer.encode(version=raw.version)
    return [framed(raw.correlation_id, body, has_tags=raw.is_flexible)]


def changed(answer: Any, change: Callable[[Any], Any]) -> Any:
    """Return what `change` makes of an answer, or a promise of it where it is one."""
    return answer.changed(change) if _is_later(answer) else change(answer)


def _is_later(answer: Any) -> TypeGuard[Later[Any]]:
    return isinstance(answer, Later)
