"""
SEND_BATCH_MESSAGE: many messages for one queue; each is stored as a message of its own.

In topics whose queues keep batches (``queue.type=BatchCQ``) they stay one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.sending.sending import answer_send

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command
    from logstore.compat.waiting import Later


def handle_raw(
    broker: Broker, channel: Channel, request: Command
) -> list[Chunk] | Later[list[Chunk]] | None:
    """Serve one request."""
    fields = request.ext_fields
    if fields.get("m") != "true":
        fields = {**fields, "m": "true"}
    return answer_send(broker, channel, request, fields)
