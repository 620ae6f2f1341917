"""NOTIFICATION: whether there is something to pop, told when there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.pop.notices import answer_question
from logstore.compat.rocketmq.wire.fields import as_fields
from logstore.compat.rocketmq.wire.refusals import RefusedError

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command, Response
    from logstore.compat.waiting import Later

_NOTHING = as_fields(hasMsg=False, pollingFull=False)


def handle(broker: Broker, channel: Channel, request: Command) -> Response | Later[Response]:
    """Serve one request."""
    try:
        return answer_question(broker, channel, request)
    except RefusedError as refusal:
        raise RefusedError(refusal.code, refusal.remark, _NOTHING) from None
