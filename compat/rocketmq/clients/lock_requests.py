"""The body of a request to lock or unlock queues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from logstore.compat.rocketmq.wire.bodies import objects_in, read_object
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.message_queue import MessageQueue
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.segments.rocketmq.tables.json_fields import as_int32, as_text


def _is_nameless(queue: Mapping[str, Any]) -> bool:
    return queue.get("topic") is None or queue.get("brokerName") is None


def _named(data: Mapping[str, Any], name: str) -> str:
    if data.get(name) is None:
        raise KeyError(name)
    return str(data[name])


def read_lock_request(
    body: bytes | memoryview, *, is_lock: bool
) -> tuple[str, str, list[MessageQueue]]:
    """
    Return group, client id and queues.

    Where there is no queue nobody need say who asks, and only who locks one needs an id.

    Raises:
        RefusedError: SYSTEM_ERROR; the body is not of that form.

    """
    data = read_object(body)
    try:
        queues = [
            MessageQueue(
                as_text(item["topic"]),
                as_text(item["brokerName"]),
                as_int32(item.get("queueId") or 0),
            )
            for item in objects_in(data, "mqSet")
            # Nobody can hold a queue without a topic, so it can be let go of.
            if is_lock or not _is_nameless(item)
        ]
        if not queues:
            return str(data.get("consumerGroup") or ""), "", []
        # A set in Java: who names a queue twice is told of it once.
        client_id = _named(data, "clientId") if is_lock else str(data.get("clientId") or "")
        return _named(data, "consumerGroup"), client_id, list(dict.fromkeys(queues))
    except (ValueError, KeyError, TypeError) as error:
        raise RefusedError(
            ResponseCode.SYSTEM_ERROR, f"the body does not say what to lock: {error}"
        ) from error
