"""Messages shown without being handed out (PeekMessageProcessor)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.groups.slow_readers import note_read
from logstore.compat.rocketmq.pop.notices import check_readable
from logstore.compat.rocketmq.pop.pop_requests import NO_POP, check_count, check_target
from logstore.compat.rocketmq.pop.retry_topics import pop_retry_topic
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_int, read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.segments.rocketmq.reading.get_message import GetMessageStatus

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command

_CHANCES = 100
#: one look of so many begins with messages that come back
_RETRY_FIRST = 5


@attrs.define(eq=False)
class _Peek:
    """What one look has shown so far."""

    broker: Broker
    group: str
    count_max: int
    bodies: list[bytes] = attrs.field(factory=list[bytes])
    count: int = 0
    rest_count: int = 0

    def look_at_topic(self, topic: str, start: int) -> None:
        """Look at every queue of a topic; a topic that is not there has none."""
        config = self.broker.topics.get(topic)
        queue_count = 0 if config is None else config.read_queue_count
        for number in range(queue_count):
            self.look_at(topic, (start + number) % queue_count)

    def look_at(self, topic: str, queue_id: int) -> None:
        """Show what stands in one queue behind what the group has popped."""
        store = self.broker.store
        offset = store.consumer_offsets.query(self.group, topic, queue_id)
        if offset < 0:
            offset = store.min_queue_offset(topic, queue_id)
        self.rest_count += store.max_queue_offset(topic, queue_id) - offset
        left = self.count_max - self.count
        if left <= 0:
            return
        result = store.get_message(self.group, topic, queue_id, offset, left)
        if result is not None and result.status in (
            GetMessageStatus.OFFSET_TOO_SMALL,
            GetMessageStatus.OFFSET_OVERFLOW_BADLY,
        ):
            result = store.get_message(self.group, topic, queue_id, result.next_begin_offset, left)
        note_read(self.broker, self.group, topic, queue_id, result)
        if result is not None and result.count:
            self.bodies.append(result.read())
            self.count += result.count
            self.broker.stats.count_pulled(self.group, topic, result.count, result.size_bytes)


def peek(broker: Broker, channel: Channel, request: Command) -> Response:
    """
    Show messages.

    Raises:
        RefusedError: the group may not read the topic, or one of them is missing.

    """
    fields = request.ext_fields
    topic, group = read_text(fields, "topic"), read_text(fields, "consumerGroup")
    queue_id, count_max = read_int(fields, "queueId"), read_int(fields, "maxMsgNums")
    try:
        check_readable(broker, "peeking message")
        check_target(broker, channel, topic, group, queue_id)
    except RefusedError as refusal:
        raise RefusedError(refusal.code, refusal.remark, NO_POP) from None
    check_count(count_max)
    broker.catch_up()
    look = _Peek(broker, group, count_max)
    chance = broker.host.rng.randrange(_CHANCES)
    retry_topic = pop_retry_topic(topic, group, is_v2=broker.settings.has_retry_topic_v2)
    comes_first = chance % _RETRY_FIRST == 0
    if comes_first:
        look.look_at_topic(retry_topic, chance)
    if queue_id < 0:
        look.look_at_topic(topic, chance)
    else:
        look.look_at(topic, queue_id)
    if not comes_first and look.count < count_max:
        look.look_at_topic(retry_topic, chance)
    code, remark = ResponseCode.SUCCESS, "FOUND"
    if not look.count:
        code, remark = ResponseCode.PULL_NOT_FOUND, "NO_MESSAGE_IN_QUEUE"
    return Response(
        code, remark, {**NO_POP, "restNum": str(look.rest_count)}, b"".join(look.bodies)
    )
