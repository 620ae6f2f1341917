"""A request that speaks of a logic queue, and where that queue stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.auth.signatures import ACCESS_KEY, SIGNATURE
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.registry import AnyHandler
    from logstore.compat.rocketmq.wire.remoting import Command
    from logstore.segments.rocketmq.tables.queue_mappings import (
        Items,
        LogicQueueMappingItem,
        TopicQueueMappingDetail,
    )

#: who signs a request of ours is this broker
_NOT_PASSED_ON = (ACCESS_KEY, SIGNATURE)


@attrs.frozen
class MappedRequest:
    """
    A request of a client (TopicQueueMappingContext).

    `handle` is who serves it where its queue is one of this broker.
    """

    broker: Broker
    channel: Channel
    command: Command
    detail: TopicQueueMappingDetail
    handle: AnyHandler

    def items_of(self, queue_id: int, what: str = "does not exit") -> Items:
        """
        Return the stretches of a logic queue that is this broker's now.

        Raises:
            RefusedError: NOT_LEADER_FOR_QUEUE; it is another one's.

        """
        detail = self.detail
        if not detail.leads(queue_id):
            remark = (
                f"{detail.topic}-{queue_id} {what} in request process of current broker "
                f"{detail.broker_name}"
            )
            raise RefusedError(ResponseCode.NOT_LEADER_FOR_QUEUE, remark)
        return detail.hosted_queues[queue_id]

    def is_here(self, item: LogicQueueMappingItem) -> bool:
        """Tell whether a stretch stands on this broker."""
        return item.broker_name == self.detail.broker_name

    def fields_for(self, item: LogicQueueMappingItem, **changes: str) -> dict[str, str]:
        """Return the fields of the request to the broker that has a stretch."""
        fields = {**self.command.ext_fields, **changes}
        for name in _NOT_PASSED_ON:
            fields.pop(name, None)
        fields |= {"bname": item.broker_name, "lo": "false", "queueId": str(item.queue_id)}
        return fields
