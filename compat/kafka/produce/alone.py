"""
A plain produce request that comes alone: from its frame to its answer in one step.

A producer that waits for each answer, or hundreds that take turns, bring one small request at a
time. What such requests cost is calls, so this takes few; it begins as the one before
(:mod:`logstore.compat.kafka.produce.route`), and nothing in front of the partition number is read
again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.framing import REQUEST_HEADER
from logstore.compat.kafka.produce.batches import ZSTD_SINCE, has_transaction_bit, is_zstd
from logstore.compat.kafka.produce.run import LEAD_AT
from logstore.errors import LogStoreError
from logstore.flush import NEVER
from logstore.segments.kafka.record_batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.produce.route import ProduceRoute

_unpack_header = REQUEST_HEADER.unpack_from


def answer_alone(
    broker: Broker, client: Client, route: ProduceRoute, frame: memoryview
) -> bytes | None:
    """Serve a request that begins as the client's last; None if it does not, or is not plain."""
    lead = client.produce_lead
    start = LEAD_AT + len(lead)
    key, version, correlation_id = _unpack_header(frame)
    if key or version != route.version or bytes(frame[LEAD_AT:start]) != lead:
        return None
    return answer_by_route(broker, client, route, frame, start, correlation_id)


def answer_by_route(
    broker: Broker,
    client: Client,
    route: ProduceRoute,
    data: memoryview,
    start: int,
    correlation_id: int,
) -> bytes | None:
    """
    Append what a request brings whose first partition stands at `start`, and return the answer.

    None if the request must be read in full, which nothing here prevents.
    """
    parts = route.split(data, start)
    if parts is None or broker.flusher.due:
        return None
    partition, index, records = parts
    now_ms = broker.host.clock.wall_ms()
    try:
        base_offset = partition.append_usual(records, now_ms)
        client.sends_usual = base_offset >= 0
        if base_offset >= 0:
            return route.succeeded(
                correlation_id, index, base_offset, NO_TIMESTAMP, partition.start_offset
            )
        if (
            partition.config.flush_messages != NEVER
            or has_transaction_bit(records)
            or (route.version < ZSTD_SINCE and is_zstd(records))
        ):
            return None
        done = partition.append_produced(records, now_ms)
    except (LogStoreError, OSError) as error:
        # Told from here: the batch may be stamped by now, the long way would see another one.
        reply = route.reply()
        reply.refuse(partition, index, error)
        reply.close_topic()
        return reply.frame(correlation_id)
    return route.succeeded(
        correlation_id, index, done.base_offset, done.log_append_time_ms, partition.start_offset
    )
