"""
CONSUMER_SEND_MSG_BACK: a message that a consumer could not deal with.

It comes again later, from the group's retry topic, or goes to its dead letters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.redelivery.retries import NULL, SendBack, send_back
from logstore.compat.rocketmq.sending.sending import SAYS_RECONSUME_MAX_SINCE
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_flag, read_int, read_long, read_text
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    fields = request.ext_fields
    says_max = request.version >= SAYS_RECONSUME_MAX_SINCE and "maxReconsumeTimes" in fields
    back = SendBack(
        group=read_text(fields, "group"),
        physical_offset=read_long(fields, "offset"),
        delay_level=read_int(fields, "delayLevel"),
        reconsume_times_max=read_int(fields, "maxReconsumeTimes") if says_max else None,
        is_unit_mode=read_flag(fields, "unitMode", default=False),
        origin_topic=fields.get("originTopic", NULL),
        owner=fields.get("Owner", NULL),
    )
    send_back(broker, back)
    return Response(ResponseCode.SUCCESS)
