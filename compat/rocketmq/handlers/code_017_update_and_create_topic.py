"""
UPDATE_AND_CREATE_TOPIC: a new topic, or other settings of one that is there.

`attributes` are changes: ``+name=value`` sets one, ``-name`` removes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.topics.topic_changes import put_topic, read_topic
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    put_topic(broker, read_topic(broker, request.ext_fields))
    # Java forgets to take back what it says of an answer before it is one.
    return Response(ResponseCode.SUCCESS, "not set any response code")
