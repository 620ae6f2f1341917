"""
GET_ALL_SUBSCRIPTIONGROUP_CONFIG: all groups with the version of their table.

With `groupSeq` and `maxGroupNum` (5.x) only a part of them, in the order of their names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.name_server.registration import version_fields
from logstore.compat.rocketmq.wire.bodies import object_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import as_fields
from logstore.compat.rocketmq.wire.pages import Paging
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command

_PAGING = Paging("groupSeq", "maxGroupNum")


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    table = broker.groups.table
    groups = sorted(table.groups)
    names = _PAGING.page_of(request.ext_fields, groups, table.data_version, broker.settings)
    is_whole = names is groups  # no page: what is closed to groups that are not there is told, too
    body = object_body(
        dataVersion=version_fields(table.data_version),
        forbiddenTable={
            name: dict(topics)
            for name, topics in table.forbidden.items()
            if is_whole or name in names
        },
        subscriptionGroupTable={name: table.groups[name].to_json() for name in names},
    )
    known = as_fields(totalGroupNum=len(table.groups))
    return Response(ResponseCode.SUCCESS, None, known, body)
