"""RESUME_CHECK_HALF_MESSAGE: a half message that was given up on is to be checked again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.redelivery.redrafts import redraft
from logstore.compat.rocketmq.topics import names
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.segments.rocketmq.messages.message_id import MessageIdError, java_offset_in
from logstore.segments.rocketmq.messages.own_properties import OwnProperties
from logstore.segments.rocketmq.messages.properties import (
    HASH_MAP_CAPACITY_5,
    TRANSACTION_CHECK_TIMES,
    WAIT,
)

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command

#: whatever is wrong with the id
_NO_MESSAGE = "Exception was thrown when putting message back to RMQ_SYS_TRANS_HALF_TOPIC."


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    try:
        physical_offset = java_offset_in(request.ext_fields.get("msgId", ""))
    except MessageIdError as error:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, _NO_MESSAGE) from error
    message = broker.store.message_at(physical_offset)
    if message is None:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, _NO_MESSAGE)
    properties = {**message.properties, TRANSACTION_CHECK_TIMES: "0"}
    draft = redraft(message, names.HALF_TOPIC, 0, properties)
    # Whatever is written anew of it, for it is not for now, says that it has not been waited for.
    draft.own_properties = OwnProperties({**properties, WAIT: "false"}, HASH_MAP_CAPACITY_5)
    result = broker.store.put_message(draft)
    if not result.is_ok:
        raise RefusedError(
            ResponseCode.SYSTEM_ERROR, "Put message back to RMQ_SYS_TRANS_HALF_TOPIC failed."
        )
    return Response(ResponseCode.SUCCESS)
