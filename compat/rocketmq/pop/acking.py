"""Popped messages that were consumed (AckMessageProcessor)."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.lite.lite_acks import ack_lite
from logstore.compat.rocketmq.pop.checkpoints import Ack
from logstore.compat.rocketmq.pop.handles import Handle, handle_in
from logstore.compat.rocketmq.pop.order_book import ILLEGAL
from logstore.compat.rocketmq.pop.pop_requests import illegal_queue
from logstore.compat.rocketmq.pop.retry_topics import topic_of_kind
from logstore.compat.rocketmq.replication.stored_wait import when_stored
from logstore.compat.rocketmq.topics import names
from logstore.compat.rocketmq.wire.bodies import objects_in, read_object
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_int, read_long, read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.compat.waiting import Later
from logstore.segments.rocketmq.tables.json_fields import (
    JsonTypeError,
    as_int,
    as_int32,
    as_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command

#: a batch has a bit for each message from its start offset on
_BIT_COUNT_MAX = 1 << 16


def ack(broker: Broker, channel: Channel, request: Command) -> Response | Later[Response]:
    """
    Take note that one message is consumed.

    Raises:
        RefusedError: there is no such queue or message, or the handle cannot be read.

    """
    fields = request.ext_fields
    topic, queue_id = read_text(fields, "topic"), read_int(fields, "queueId")
    queue_offset = read_long(fields, "offset")
    low, high = queue_bounds(broker, channel, topic, queue_id, queue_offset)
    if fields.get("liteTopic", "").strip():
        broker.catch_up()
        return ack_lite(broker, fields)
    if not low <= queue_offset <= high:
        raise RefusedError(
            ResponseCode.NO_MESSAGE,
            f"offset is illegal, key:{topic}@{queue_id}, commit:{queue_offset}, store:{low}~{high}",
        )
    handle = handle_in(fields)
    group = read_text(fields, "consumerGroup")
    if handle.is_ordered:
        _ack_in_order(broker, channel, (topic, group, queue_id), queue_offset, handle.pop_time_ms)
        return Response(ResponseCode.SUCCESS)
    end = put_ack(broker, _ack_of(handle, topic, group, queue_id, [queue_offset]), handle)
    broker.popping.in_flight.finished(topic, group, queue_id, handle.pop_time_ms)
    return answered_when_stored(broker, end, Response(ResponseCode.SUCCESS))


def ack_batch(broker: Broker, channel: Channel, request: Command) -> Response | Later[Response]:
    """
    Take note that many messages are consumed, of several pops maybe.

    What is refused of them, of which the last is answered, does not keep the others.

    Raises:
        RefusedError: the body cannot be understood.

    """
    content = read_object(request.body) if len(request.body) else {}
    entries = objects_in(content, "acks")
    if not entries:
        return Response(ResponseCode.NO_MESSAGE)
    try:
        batches = [_BatchAck(entry, str(content.get("brokerName") or "")) for entry in entries]
    except (JsonTypeError, ValueError) as error:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"{error}") from error
    refusals: list[RefusedError] = []
    ends = [_ack_entry(broker, channel, batch, refusals) for batch in batches]
    answer = Response(ResponseCode.SUCCESS)
    if refusals:
        answer = Response(refusals[-1].code, refusals[-1].remark)
    return answered_when_stored(broker, max(ends), answer)


def _ack_entry(
    broker: Broker, channel: Channel, batch: _BatchAck, refusals: list[RefusedError]
) -> int:
    """Return where the log must be durable up to; what is refused comes to `refusals`."""
    store, handle = broker.store, batch.handle
    low = store.min_queue_offset(batch.topic, batch.queue_id)
    high = store.max_queue_offset(batch.topic, batch.queue_id)
    found = [queue_offset for queue_offset in batch.queue_offsets() if low <= queue_offset <= high]
    if handle.is_ordered:
        queue = batch.topic, batch.group, batch.queue_id
        for queue_offset in found:
            try:
                _ack_in_order(broker, channel, queue, queue_offset, handle.pop_time_ms)
            except RefusedError as refusal:
                refusals.append(refusal)
        return -1
    if not found:
        return -1
    done = _ack_of(handle, batch.topic, batch.group, batch.queue_id, found, is_batch=True)
    end = put_ack(broker, done, handle)
    queue = batch.topic, batch.group, batch.queue_id
    broker.popping.in_flight.finished(*queue, handle.pop_time_ms, len(found))
    return end


class _BatchAck:
    """One entry of a batch: messages of one pop from one queue, a bit for each (BatchAck)."""

    def __init__(self, entry: Mapping[str, Any], broker_name: str) -> None:
        def found(short: str, name: str) -> Any:
            value = entry.get(short)
            return entry.get(name, 0) if value is None else value

        self.group = as_text(found("c", "consumerGroup"))
        topic, kind = as_text(found("t", "topic")), as_text(found("r", "retry"))
        self.topic = topic_of_kind(topic, self.group, kind)
        self.queue_id = as_int32(found("q", "queueId"))
        self.handle = Handle(
            as_int(found("so", "startOffset")),
            as_int(found("pt", "popTime")),
            as_int(found("it", "invisibleTime")),
            as_int32(found("rq", "reviveQueueId")),
            broker_name,
        )
        self._bits = base64.b64decode(as_text(found("b", "bitSet") or ""), validate=True)

    def queue_offsets(self) -> Iterator[int]:
        """Yield the queue offsets of the messages."""
        for place in range(min(len(self._bits) * 8, _BIT_COUNT_MAX)):
            if self._bits[place >> 3] >> (place & 7) & 1:
                yield self.handle.start_offset + place


def queue_bounds(
    broker: Broker, channel: Channel, topic: str, queue_id: int, queue_offset: int
) -> tuple[int, int]:
    """
    Return the first queue offset and the one behind the last, for whoever names `queue_offset`.

    For one that is in the queue already, as nearly all are, what waits for its queue may wait on.

    Raises:
        RefusedError: there is no such topic or queue.

    """
    config = broker.topics.get(topic)
    if config is None:
        raise RefusedError(
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic[{topic}] not exist, apply first please! {names.SEE_FAQ}",
        )
    if not 0 <= queue_id < config.read_queue_count:
        remark = illegal_queue(channel, config, queue_id)
        raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, remark)
    store = broker.store
    if queue_offset >= store.max_queue_offset(topic, queue_id):
        broker.catch_up()
    return store.min_queue_offset(topic, queue_id), store.max_queue_offset(topic, queue_id)


def _ack_of(
    handle: Handle,
    topic: str,
    group: str,
    queue_id: int,
    queue_offsets: list[int],
    *,
    is_batch: bool = False,
) -> Ack:
    return Ack(
        topic,
        group,
        queue_id,
        handle.start_offset,
        handle.pop_time_ms,
        handle.broker_name,
        queue_offsets,
        is_batch,
    )


def ack_origin(
    broker: Broker, handle: Handle, topic: str, group: str, queue_id: int, queue_offset: int
) -> int:
    """Have a message not come back by the pop that it came with; see :func:`put_ack`."""
    return put_ack(broker, _ack_of(handle, topic, group, queue_id, [queue_offset]), handle)


def put_ack(broker: Broker, done: Ack, handle: Handle) -> int:
    """
    Put an acknowledgement into the revive topic; return where the log must be durable up to.

    One that cannot be put is answered as any other, as real brokers do: the message comes again.
    """
    result = broker.popping.revive_log.put_ack(
        done, handle.revive_queue_id, handle.pop_time_ms + handle.invisible_ms
    )
    return result.next_physical_offset if result.is_ok else -1


def answered_when_stored(
    broker: Broker, next_physical_offset: int, answer: Response
) -> Response | Later[Response]:
    """Return the answer once what it speaks of is on the disk and on slaves, if that is wanted."""
    if not broker.awaits_puts or next_physical_offset < 0:
        return answer
    later: Later[Response] = Later()
    when_stored(broker, next_physical_offset, lambda _: later.answer(answer))
    return later


def _ack_in_order(
    broker: Broker,
    channel: Channel,
    queue: tuple[str, str, int],
    queue_offset: int,
    pop_time_ms: int,
) -> None:
    """Take note that a message is consumed that locks its queue (ackOrderly)."""
    topic, group, queue_id = queue
    offsets, popping = broker.store.consumer_offsets, broker.popping
    committed = offsets.query(group, topic, queue_id)
    if queue_offset < committed:
        return
    following = popping.orders.commit(topic, group, queue_id, queue_offset, pop_time_ms)
    if following == ILLEGAL:
        raise RefusedError(
            ResponseCode.MESSAGE_ILLEGAL,
            f"offset is illegal, key:{topic}@{group}@{queue_id}, old:{committed}, "
            f"commit:{queue_offset}, next:{following}, /{channel.address}",
        )
    popping.in_flight.finished(topic, group, queue_id, pop_time_ms)
    if following < 0:
        return
    if not (broker.settings.resets_on_server and offsets.has_reset(topic, group, queue_id)):
        offsets.commit(group, topic, queue_id, following)
    if not popping.orders.is_blocked(None, topic, group, queue_id, 0):
        popping.waits.wake_soon(topic, group, queue_id)
