"""OffsetFetch (9), version 0: from ZooKeeper once, here from the group, as version 1 has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.emulation.translated import ask_raw
from logstore.compat.kafka.registry import RawRequest
from logstore.compat.waiting import Later

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_KEY, _SERVED = 9, 1


def handle(
    broker: Broker, client: Client, request: RawRequest
) -> list[Chunk] | Later[list[Chunk]] | None:
    """Tell the group's offsets."""
    body = bytes(request.data[request.position :])
    return ask_raw(broker, client, _KEY, _SERVED, request.correlation_id, body, bytes)
