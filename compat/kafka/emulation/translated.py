"""Asking the handler of a served version what came in an older one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from logstore.compat.kafka.connection import message_class
from logstore.compat.kafka.framing import RESPONSE_PREFIX, framed
from logstore.compat.kafka.registry import APIS, Api, RawRequest
from logstore.compat.waiting import Later

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

#: from the body of a served version's response to that of the old one's
Rewrite = Callable[[memoryview], bytes]


def ask_raw(
    broker: Broker,
    client: Client,
    api_key: int,
    version: int,
    correlation_id: int,
    body: bytes,
    rewrite: Rewrite,
) -> list[Chunk] | Later[list[Chunk]] | None:
    """
    Ask with the `body` of a version that is not flexible; `rewrite` what is answered.

    For handlers that read by themselves, and answer in memory.
    """
    handle = _served_by(broker, api_key).handle_raw
    assert handle is not None, f"API {api_key} reads by itself"
    data = memoryview(bytearray(body))  # batches are stamped where they stand
    answer = handle(broker, client, RawRequest(version, correlation_id, data, 0, False))

    def rewritten(chunks: list[Chunk]) -> list[Chunk]:
        frame = b"".join(chunk for chunk in chunks if isinstance(chunk, bytes))
        old = rewrite(memoryview(frame)[RESPONSE_PREFIX.size :])
        return [framed(correlation_id, old, has_tags=False)]

    if answer is None or isinstance(answer, list):
        return None if answer is None else rewritten(answer)
    return answer.changed(rewritten)


def ask_decoded(
    broker: Broker,
    client: Client,
    api_key: int,
    version: int,
    correlation_id: int,
    body: bytes,
    rewrite: Rewrite,
) -> list[Chunk]:
    """Ask as :func:`ask_raw` does, for handlers of decoded messages that answer at once."""
    api = _served_by(broker, api_key)
    assert api.handle is not None, f"{api.name} takes a decoded message"
    message = message_class(api, "Request").decode(body, version=version)
    answer = api.handle(broker, client, message)
    old = rewrite(memoryview(answer.encode(version=version)))
    return [framed(correlation_id, old, has_tags=False)]


def _served_by(broker: Broker, api_key: int) -> Api:
    """Return who serves it now, and looks at what the client may do if there are rules."""
    api = APIS[api_key]
    return api if broker.guarded_apis is None else broker.guarded_apis.guarded(api)
