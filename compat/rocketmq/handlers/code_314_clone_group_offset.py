"""
CLONE_GROUP_OFFSET: a group is given what another has committed.

In one topic, or where none is named in all (a real 5.5.0 does nothing then).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.groups.consume_stats import topics_of_group
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_flag, read_text
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    fields = request.ext_fields
    source, target = read_text(fields, "srcGroup"), read_text(fields, "destGroup")
    topic = (fields.get("topic") or "").strip()
    is_offline = read_flag(fields, "offline", default=False)
    offsets = broker.store.consumer_offsets
    if is_offline:  # what the group subscribes to does not count
        topics = [topic] if topic else sorted(offsets.topics_of(source))
    else:
        topics = topics_of_group(broker, source, topic or None)
    for name in topics:
        if broker.topics.get(name) is not None:
            offsets.clone(source, target, name)
    return Response(ResponseCode.SUCCESS)
