"""
One pop as it goes from queue to queue, and what it has found so far (popMsgFromQueue).

What is handed out has its checkpoint in the revive topic first; then the group's offset goes on. So
nothing is lost, whenever the broker stops.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.groups.slow_readers import note_read
from logstore.compat.rocketmq.pop.checkpoints import Checkpoint
from logstore.compat.rocketmq.pop.handles import ORDER_REVIVE_QUEUE, PoppedQueues, handle_text
from logstore.compat.rocketmq.topics.names import RETRY_PREFIX
from logstore.segments.rocketmq.messages.message import (
    MessageVersion,
    decode_message,
    encode_message,
)
from logstore.segments.rocketmq.messages.properties import (
    HASH_MAP_CAPACITY_5,
    POP_CHECK,
    encode_properties,
)
from logstore.segments.rocketmq.putting.multi_dispatch import queue_offset_in
from logstore.segments.rocketmq.queues.queue_offsets import is_lmq
from logstore.segments.rocketmq.reading.get_message import GetMessageStatus

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.pop.pop_requests import PopRequest
    from logstore.segments.rocketmq.reading.get_message import GetMessageResult
    from logstore.segments.rocketmq.reading.message_filter import MessageFilter

_Status = GetMessageStatus
#: the offset was wrong: it is set right, and asked again
_WRONG_OFFSET = (_Status.OFFSET_TOO_SMALL, _Status.OFFSET_OVERFLOW_BADLY, _Status.OFFSET_FOUND_NULL)
#: there is nothing for this group up to the next offset
_PASSED_BY = (
    _Status.NO_MATCHED_MESSAGE,
    _Status.OFFSET_FOUND_NULL,
    _Status.MESSAGE_WAS_REMOVING,
)
_SIZE = struct.Struct(">i")
_QUEUE_OFFSET = struct.Struct(">q")
_QUEUE_OFFSET_POSITION = 20
#: groups that never were here begin with the first message, or with the last one
FROM_FIRST = 0


def queue_offsets_of(records: bytes) -> list[tuple[int, int]]:
    """Return (position, queue offset) of the messages that follow each other."""
    found: list[tuple[int, int]] = []
    position = 0
    while position < len(records):
        (queue_offset,) = _QUEUE_OFFSET.unpack_from(records, position + _QUEUE_OFFSET_POSITION)
        found.append((position, queue_offset))
        position += _SIZE.unpack_from(records, position)[0]
    return found


@attrs.define(eq=False)
class QueuePops:
    """The reads of one pop: `bodies`, `queues` and `rest_count` are for its answer."""

    broker: Broker
    pop: PopRequest
    message_filter: MessageFilter | None
    pop_time_ms: int
    revive_queue_id: int
    bodies: list[bytes] = attrs.field(factory=list[bytes])
    queues: PoppedQueues = attrs.field(factory=PoppedQueues)
    count: int = 0
    rest_count: int = 0

    def pop_topic(self, topic: str, start: int) -> None:
        """
        Pop from each queue of a topic, mostly from the last to the first, which are priorities.

        `start` is how many are moved from the end to the front of that order, by chance, for
        topics without priorities. A topic that is not there has no queue.
        """
        config = self.broker.topics.get(topic)
        queue_count = 0 if config is None else config.read_queue_count
        numbers = range(queue_count)
        for number in reversed(numbers) if self.broker.settings.is_priority_ascending else numbers:
            self.pop_queue(topic, (start + number) % queue_count)

    def pop_queue(self, topic: str, queue_id: int) -> None:
        """Take what there is in one queue, as much as still fits."""
        pop, store = self.pop, self.broker.store
        orders, in_flight = self.broker.popping.orders, self.broker.popping.in_flight
        if in_flight.is_full(topic, pop.group, queue_id):
            place = self._place(topic, queue_id)
            self.rest_count += store.max_queue_offset(topic, queue_id) - place
            return
        offset = self._begin(topic, queue_id)
        if pop.is_ordered:
            if orders.is_blocked(pop.attempt_id, topic, pop.group, queue_id, pop.invisible_ms):
                return  # what waits behind it does not count: it could not be had
            in_flight.clear(topic, pop.group, queue_id)
        if self.count >= pop.count_max:
            self.rest_count += store.max_queue_offset(topic, queue_id) - offset
            return
        result = self._get(topic, queue_id, offset)
        if result is not None and result.status in _WRONG_OFFSET:
            offset = result.next_begin_offset
            store.consumer_offsets.commit(pop.group, topic, queue_id, offset)
            result = self._get(topic, queue_id, offset)
        if result is None:
            self.rest_count += store.max_queue_offset(topic, queue_id) - offset
            return
        if result.count:
            if not self._take(topic, queue_id, offset, result):
                return
        elif result.status in _PASSED_BY and result.next_begin_offset >= 0:
            store.consumer_offsets.commit(pop.group, topic, queue_id, result.next_begin_offset)
        self.rest_count += result.max_queue_offset - result.next_begin_offset

    def _get(self, topic: str, queue_id: int, offset: int) -> GetMessageResult | None:
        found: GetMessageResult | None = self.broker.store.get_message(
            self.pop.group,
            topic,
            queue_id,
            offset,
            self.pop.count_max - self.count,
            message_filter=self.message_filter,
        )
        note_read(self.broker, self.pop.group, topic, queue_id, found)
        return found

    def _place(self, topic: str, queue_id: int) -> int:
        """Return where the group stands, or would begin."""
        offset: int = self.broker.store.consumer_offsets.query(self.pop.group, topic, queue_id)
        if offset < 0:
            offset = first_offset(self.broker, topic, queue_id, self.pop.init_mode)
        return offset

    def _begin(self, topic: str, queue_id: int) -> int:
        """Return where the group goes on; a reset is taken now, and counts for all it popped."""
        broker, group = self.broker, self.pop.group
        offsets = broker.store.consumer_offsets
        if broker.settings.resets_on_server:
            reset = offsets.take_reset(topic, group, queue_id)
            if reset is not None:
                broker.popping.orders.clear(topic, group, queue_id)
                offsets.commit(group, topic, queue_id, reset)
                return int(reset)
        offset: int = offsets.query(group, topic, queue_id)
        if offset < 0:
            offset = first_offset(broker, topic, queue_id, self.pop.init_mode)
            offsets.commit(group, topic, queue_id, offset)
        return offset

    def _take(self, topic: str, queue_id: int, offset: int, result: GetMessageResult) -> bool:
        """Note what was found, and hand it out; False if that cannot be noted."""
        broker, pop = self.broker, self.pop
        records = result.read()
        found = queue_offsets_of(records)
        if is_lmq(topic):  # records tell those in the queue of their own topic
            found = [
                (position, queue_offset_in(topic, decode_message(records, position)))
                for position, _ in found
            ]
        queue_offsets = [queue_offset for _, queue_offset in found]
        offsets = broker.store.consumer_offsets
        if pop.is_ordered:
            orders = broker.popping.orders
            orders.popped(pop, topic, queue_id, self.pop_time_ms, queue_offsets, self.queues)
            offsets.commit(pop.group, topic, queue_id, offset)
        else:
            checkpoint = Checkpoint(
                topic,
                pop.group,
                queue_id,
                offset,
                self.pop_time_ms,
                pop.invisible_ms,
                broker.settings.broker_name,
                [queue_offset - offset for queue_offset in queue_offsets],
            )
            broker.stats.count_checkpoint(pop.group, pop.topic)
            put = broker.popping.revive_log.put_checkpoint(checkpoint, self.revive_queue_id)
            if not put.is_ok:
                self.rest_count += result.count
                return False
            offsets.commit(pop.group, topic, queue_id, result.next_begin_offset)
        broker.stats.count_pulled(pop.group, topic, result.count, result.size_bytes)
        broker.popping.in_flight.popped(topic, pop.group, queue_id, result.count)
        self.queues.add(topic, queue_id, offset, queue_offsets)
        self.count += len(found)
        if topic != pop.topic and not broker.settings.shows_retry_topics:
            records = self._under_their_topic(records, found, topic, offset)
        self.bodies.append(records)
        return True

    def _under_their_topic(
        self, records: bytes, found: list[tuple[int, int]], topic: str, offset: int
    ) -> bytes:
        """Return messages that came back as if they still stood in the topic that was popped."""
        pop = self.pop
        shown: list[bytes] = []
        for position, queue_offset in found:
            message = decode_message(records, position)
            handle = handle_text(
                offset,
                self.pop_time_ms,
                pop.invisible_ms,
                self.revive_queue_id,
                topic,
                self.broker.settings.broker_name,
                message.queue_id,
                queue_offset,
            )
            text = encode_properties(
                {**message.properties, POP_CHECK: message.properties.get(POP_CHECK, handle)},
                capacity=HASH_MAP_CAPACITY_5,
            )
            record = attrs.evolve(
                message, topic=pop.topic, properties_text=text, version=MessageVersion.V1
            )
            shown.append(encode_message(record))
        return b"".join(shown)


def first_offset(broker: Broker, topic: str, queue_id: int, init_mode: int) -> int:
    """Return where a group begins that never was here (``getInitOffset``)."""
    store = broker.store
    low: int = store.min_queue_offset(topic, queue_id)
    if init_mode == FROM_FIRST or topic.startswith(RETRY_PREFIX):
        return low
    checks_first = broker.settings.checks_first_message
    if checks_first and low <= 0 and store.is_first_recent(topic, queue_id):
        return 0
    return max(store.max_queue_offset(topic, queue_id) - 1, 0)


def revive_queue_of(broker: Broker, pop: PopRequest) -> int:
    """Return the queue for the checkpoints of a pop; in order there are none."""
    return ORDER_REVIVE_QUEUE if pop.is_ordered else broker.popping.revive_log.next_queue_id()
