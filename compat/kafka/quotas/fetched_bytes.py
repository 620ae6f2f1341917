"""What an answer with records counts for: its bytes, but those that are not sent, and its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.quotas.client_quotas import CONSUMER_BYTE_RATE, ClientQuotas, Limit
from logstore.segment import Extent

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.quotas.stopwatch import Stopwatch


def throttle_of_answer(
    quotas: ClientQuotas, limit: Limit | None, stopwatch: Stopwatch | None, chunks: list[Chunk]
) -> int:
    """Count an answer; return for how long its client must keep still, and gets nothing of it."""
    time_ms = 0 if stopwatch is None else stopwatch.throttle_ms()
    if limit is None:
        return time_ms
    size_bytes = sum(
        chunk.size_bytes if isinstance(chunk, Extent) else len(chunk) for chunk in chunks
    )
    throttle_ms = max(time_ms, quotas.record(CONSUMER_BYTE_RATE, limit, size_bytes))
    if throttle_ms > 0:
        quotas.take_back(CONSUMER_BYTE_RATE, limit, size_bytes)
    return throttle_ms
