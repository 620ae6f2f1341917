"""
GET_ALL_TOPIC_CONFIG: all topics with the version of their table; slaves ask for it.

With `topicSeq` and `maxTopicNum` (5.x) only a part of them, in the order of their names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.name_server.registration import version_fields
from logstore.compat.rocketmq.wire.bodies import object_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import as_fields
from logstore.compat.rocketmq.wire.pages import page_of
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    table = broker.topics.table
    names = page_of(request.ext_fields, sorted(table.topics), "topicSeq", "maxTopicNum")
    body = object_body(
        dataVersion=version_fields(table.data_version),
        mappingDataVersion={"counter": 0, "stateVersion": 0, "timestamp": broker.started_ms},
        topicConfigTable={name: table.topics[name].to_json() for name in names},
        topicQueueMappingDetailMap={},
        topicQueueMappingInfoMap={},
    )
    known = as_fields(totalTopicNum=len(table.topics))
    return Response(ResponseCode.SUCCESS, None, known, body)
