"""
SEND_BATCH_MESSAGE: many messages for one queue; each is stored as a message of its own.

In topics whose queues keep batches (``queue.type=BatchCQ``) they stay one. A request that does not
say that it is a batch (``m``) is one message, as SEND_MESSAGE_V2 is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.sending.sending import answer_send

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Answer, Command
    from logstore.compat.waiting import Later


def handle_raw(broker: Broker, channel: Channel, request: Command) -> Answer | Later[Answer] | None:
    """Serve one request."""
    return answer_send(broker, channel, request, request.ext_fields)
