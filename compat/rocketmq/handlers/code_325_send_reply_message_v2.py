"""SEND_REPLY_MESSAGE_V2: the same as SEND_REPLY_MESSAGE, its fields named by letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.sending.replies import answer_reply

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Answer, Command
    from logstore.compat.waiting import Later


def handle_raw(broker: Broker, channel: Channel, request: Command) -> Answer | Later[Answer]:
    """Serve one request."""
    return answer_reply(broker, channel, request, request.ext_fields)
