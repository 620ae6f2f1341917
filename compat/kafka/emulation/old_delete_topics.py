"""DeleteTopics (20), version 0: version 1 without the throttle time in front of its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.emulation.translated import ask_decoded
from logstore.compat.kafka.registry import RawRequest

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_KEY, _SERVED = 20, 1
_THROTTLE_BYTES = 4


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Delete every topic that can be deleted."""
    body = bytes(request.data[request.position :])

    def rewrite(answer: memoryview) -> bytes:
        return bytes(answer[_THROTTLE_BYTES:])

    return ask_decoded(broker, client, _KEY, _SERVED, request.correlation_id, body, rewrite)
