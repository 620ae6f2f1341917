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
from logstore.compat.rocketmq.wire.pages import Paging
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.segments.rocketmq.tables.java_json import format_json
from logstore.segments.rocketmq.tables.java_maps import in_concurrent_map_order

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command

_PAGING = Paging("topicSeq", "maxTopicNum")


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    table = broker.topics.table
    names = _PAGING.page_of(
        request.ext_fields, sorted(table.topics), table.data_version, broker.settings
    )
    mappings = broker.static_topics.table
    shown = {name: mappings.details[name] for name in names if name in mappings.details}
    details = {name: one.to_json() for name, one in in_concurrent_map_order(shown).items()}
    body = object_body(
        dataVersion=version_fields(table.data_version),
        mappingDataVersion=version_fields(mappings.data_version),
        topicConfigTable={name: table.topics[name].to_json() for name in names},
        topicQueueMappingDetailMap=format_json(details),
        topicQueueMappingInfoMap={},
    )
    known = as_fields(totalTopicNum=len(table.topics))
    return Response(ResponseCode.SUCCESS, None, known, body)
