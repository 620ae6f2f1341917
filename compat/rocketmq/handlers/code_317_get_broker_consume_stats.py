"""GET_BROKER_CONSUME_STATS: how far every group is behind in every topic of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.groups.consume_stats import ConsumeStats, as_long, topics_of_group
from logstore.compat.rocketmq.wire.bodies import json_body, object_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_flag
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.segments.rocketmq.tables.java_maps import in_concurrent_map_order

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command

_TABLE_CAPACITY = 1024


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    broker.catch_up()
    is_order = read_flag(request.ext_fields, "isOrder", default=False)
    lag = in_flight = 0
    groups: list[bytes] = []
    for group in in_concurrent_map_order(broker.groups.table.groups, _TABLE_CAPACITY):
        pieces: list[bytes] = []
        for topic in topics_of_group(broker, group):
            config = broker.topics.get(topic)
            if config is None or (is_order and not config.is_order):
                continue
            stats = ConsumeStats(broker, group, [topic], is_of_all=True)
            pieces.append(stats.body())
            lag += stats.lag
            in_flight += stats.in_flight
        groups.append(b"{" + json_body(group) + b":[" + b",".join(pieces) + b"]}")
    body = object_body(
        brokerAddr=f"{broker.advertised_host}:{broker.advertised_port}",
        consumeStatsList=b"[" + b",".join(groups) + b"]",
        totalDiff=as_long(lag),
        totalInflightDiff=as_long(in_flight),
    )
    return Response(ResponseCode.SUCCESS, body=body)
