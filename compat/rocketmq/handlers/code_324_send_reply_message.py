"""SEND_REPLY_MESSAGE: the answer to a message, for the client that sent that one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.handlers.code_010_send_message import LETTERS
from logstore.compat.rocketmq.sending.replies import answer_reply

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Answer, Command
    from logstore.compat.waiting import Later


def handle_raw(broker: Broker, channel: Channel, request: Command) -> Answer | Later[Answer]:
    """Serve one request."""
    fields = {LETTERS[name]: value for name, value in request.ext_fields.items() if name in LETTERS}
    return answer_reply(broker, channel, request, fields)
