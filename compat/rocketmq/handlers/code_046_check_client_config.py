"""CHECK_CLIENT_CONFIG: whether a client can filter by this expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.clients.subscriptions import is_tag_type
from logstore.compat.rocketmq.groups.consumer_filters import ExpressionError, check_expression
from logstore.compat.rocketmq.wire.bodies import object_in, read_object
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    if not request.body or bytes(request.body) == b"null":
        return Response(ResponseCode.SUCCESS)  # nothing is wanted, and that can be had
    data = object_in(read_object(request.body), "subscriptionData")
    kind = str(data.get("expressionType") or "")
    if is_tag_type(kind):
        return Response(ResponseCode.SUCCESS)
    if not broker.settings.has_property_filter:
        raise RefusedError(
            ResponseCode.SYSTEM_ERROR,
            f"The broker does not support consumer to filter message by {kind}",
        )
    try:
        check_expression(kind, str(data.get("subString") or ""))
    except ExpressionError as error:
        raise RefusedError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, str(error)) from error
    return Response(ResponseCode.SUCCESS)
