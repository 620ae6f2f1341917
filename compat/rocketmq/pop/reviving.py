"""
Popped messages that nobody acknowledged in time come again (PopReviveService).

Each queue of the revive topic is read on and on: checkpoints are kept, acknowledgements struck off
them. Two seconds after its messages have become visible all acknowledgements of a checkpoint have
been read; what is left is put into the retry topic of group and topic, and the queue's offset is
committed. Whatever happens before that, the checkpoint is read again.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.pop.checkpoints import (
    ACK_TAG,
    BATCH_ACK_TAG,
    CHECKPOINT_TAG,
    Checkpoint,
    CheckpointError,
    decode_ack,
    decode_checkpoint,
)
from logstore.compat.rocketmq.pop.retry_queues import retry_queue
from logstore.compat.rocketmq.pop.retry_topics import normal_topic, pop_retry_topic
from logstore.compat.rocketmq.pop.revive_log import AHEAD_MS, REVIVE_GROUP
from logstore.compat.rocketmq.redelivery.redrafts import redraft
from logstore.compat.rocketmq.redelivery.timed_delivery import HOPELESS
from logstore.compat.rocketmq.topics.names import RETRY_PREFIX
from logstore.errors import LogStoreError
from logstore.segments.rocketmq.messages.java_int import as_java_int
from logstore.segments.rocketmq.messages.message import Message, decode_message
from logstore.segments.rocketmq.messages.own_properties import (
    DEFAULT_CAPACITY,
    OwnProperties,
    capacity_for,
)
from logstore.segments.rocketmq.messages.properties import CRC32, FIRST_POP_TIME, ORIGIN_GROUP, TAGS
from logstore.segments.rocketmq.putting.multi_dispatch import queue_offset_in
from logstore.segments.rocketmq.putting.put_result import PutMessageStatus
from logstore.segments.rocketmq.reading.get_message import GetMessageStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.waiting import Timer
    from logstore.segments.rocketmq.putting.put_result import PutResult

_log = logging.getLogger(__name__)

#: somebody else has a turn between two looks, whatever ``reviveInterval`` says
_LOOK_INTERVAL_MS_MIN = 10
#: an acknowledgement counts that is so much too late
LATE_MS_MAX = AHEAD_MS + 1000
_READ_COUNT = 32
#: of so many pops a queue remembers acknowledgements that came without their checkpoint
_EARLY_COUNT_MAX = 1000
#: each of a look's (eight) queues holds up everybody else for few more messages than these
_RUN_COUNT_MAX = 32


class Reviving:
    """Looks at the queues of the revive topic, once a second (``reviveInterval``)."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._queues: dict[int, _ReviveQueue] = {}
        self._timer: Timer | None = None
        #: where the log ended at a look that found not all of it in the queues, when that was, and
        #: up to when all that was due had been put into the log by then
        self._mark: tuple[int, int, int] | None = None
        self._readable_until_ms = 0

    def start(self) -> None:
        """Begin to look."""
        if self._timer is None and not self._broker.settings.is_slave:
            self._sleep(self._interval_ms)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    @property
    def _interval_ms(self) -> int:
        return max(self._broker.settings.revive_interval_ms, _LOOK_INTERVAL_MS_MIN)

    def _sleep(self, delay_ms: float) -> None:
        self._timer = self._broker.timers.after(delay_ms, self._look)

    def _look(self) -> None:
        broker = self._broker
        if not broker.store.is_open:
            return
        self._sleep(self._interval_ms)
        if not broker.timed_delivery.is_enabled or broker.settings.is_slave:
            return
        try:
            with broker.outbox.gathering():
                is_done = self._revive()
                broker.requests_served()
        except (LogStoreError, OSError) as error:  # the next look may have more luck
            _log.error("%s: %s", broker.store.directory, error)
            return
        if not is_done and self._timer is not None:
            self._timer.cancel()
            self._sleep(0)

    def _revive(self) -> bool:
        """Read and revive, a few messages a queue; tell whether that was all."""
        broker = self._broker
        delivered_until_ms = self._find_readable()
        config = broker.topics.get(broker.revive_topic)
        is_done = True
        for queue_id in range(0 if config is None else config.read_queue_count):
            queue = self._queues.get(queue_id)
            if queue is None:
                queue = self._queues[queue_id] = _ReviveQueue(broker, queue_id)
            is_done = queue.read() and is_done
            is_done = queue.revive(delivered_until_ms) and is_done
        return is_done

    def _find_readable(self) -> int | None:
        """
        Return up to when all that was due can be read here; None where nothing ever waited.

        What the log has taken is in no queue while it waits in the transient store pool or for the
        disk. An acknowledgement may wait so twice: for the time wheel, and behind it.
        """
        broker = self._broker
        store, timed_delivery = broker.store, broker.timed_delivery
        store.commit_log.commit()
        broker.catch_up()
        end, reached = store.commit_log.wrote_where, store.dispatching.reput_from
        if reached >= end:
            self._mark = None
            return timed_delivery.delivered_until_ms
        now_ms = broker.host.clock.wall_ms()
        if self._mark is None:
            self._mark = end, now_ms, self._readable_until_ms
        elif reached >= self._mark[0]:
            _, marked_ms, self._readable_until_ms = self._mark
            delivered_ms = timed_delivery.delivered_until_ms
            until_ms = marked_ms if delivered_ms is None else min(marked_ms, delivered_ms)
            self._mark = end, now_ms, until_ms
        return self._readable_until_ms


class _ReviveQueue:
    """One queue of the revive topic, with the checkpoints that were read and not settled."""

    def __init__(self, broker: Broker, queue_id: int) -> None:
        self._broker = broker
        self._queue_id = queue_id
        offsets = broker.store.consumer_offsets
        self._next_offset: int = offsets.query(REVIVE_GROUP, broker.revive_topic, queue_id) + 1
        #: in the order in which they stand in the queue
        self._open: dict[tuple[str, str, int, int, int], Checkpoint] = {}
        #: queue offsets of acknowledgements that came before their checkpoint, by its key: the
        #: wheel hands out at once what comes to it late, and what it has already bit by bit
        self._early: dict[tuple[str, str, int, int, int], set[int]] = {}
        self._is_read_up = False
        #: when the last message that was read was due
        self._read_until_ms = 0

    def read(self) -> bool:
        """Read what is new; tell whether that was all."""
        store, topic = self._broker.store, self._broker.revive_topic
        count = 0
        self._is_read_up = False
        while count < _RUN_COUNT_MAX:
            result = store.get_message(
                REVIVE_GROUP, topic, self._queue_id, self._next_offset, _READ_COUNT
            )
            if result is None:
                return True
            if result.status is GetMessageStatus.FOUND:
                stats = self._broker.stats
                stats.count_pulled(REVIVE_GROUP, topic, result.count, result.size_bytes)
                self._take_all(result.read())
                count += result.count
            elif result.status not in (
                GetMessageStatus.OFFSET_TOO_SMALL,
                GetMessageStatus.OFFSET_FOUND_NULL,
                GetMessageStatus.MESSAGE_WAS_REMOVING,
                GetMessageStatus.OFFSET_OVERFLOW_BADLY,
            ):
                self._is_read_up = True
                return True
            if result.next_begin_offset == self._next_offset:
                return True
            self._next_offset = result.next_begin_offset
        return False

    def _take_all(self, records: bytes) -> None:
        position = 0
        while position < len(records):
            message = decode_message(records, position)
            position += message.size_bytes
            try:
                self._take(message)
            except CheckpointError as error:
                _log.error("revive queue %s@%s: %s", self._queue_id, message.queue_offset, error)
            self._read_until_ms = max(self._read_until_ms, message.store_timestamp_ms)

    def _take(self, message: Message) -> None:
        tag = message.tags
        if tag == CHECKPOINT_TAG:
            checkpoint = decode_checkpoint(message.body)
            checkpoint.revive_offset = message.queue_offset
            self._open.pop(checkpoint.key, None)
            self._open[checkpoint.key] = checkpoint
            for queue_offset in self._early.pop(checkpoint.key, ()):
                checkpoint.ack(queue_offset)
        elif tag in (ACK_TAG, BATCH_ACK_TAG):
            ack = decode_ack(message.body, is_batch=tag == BATCH_ACK_TAG)
            known = self._open.get(ack.key)
            if known is not None:
                for queue_offset in ack.queue_offsets:
                    known.ack(queue_offset)
                return
            self._early.setdefault(ack.key, set()).update(ack.queue_offsets)
            if len(self._early) > _EARLY_COUNT_MAX:  # mostly it came too late
                del self._early[next(iter(self._early))]

    def revive(self, delivered_until_ms: int | None) -> bool:
        """Settle the checkpoints whose time is over, in their order; tell whether that was all."""
        broker = self._broker
        now_ms = broker.host.clock.wall_ms()
        settled, count, is_done = -1, 0, True
        for key, checkpoint in list(self._open.items()):
            due_ms = checkpoint.revive_time_ms + LATE_MS_MAX
            is_read = self._is_read_up or self._read_until_ms > due_ms
            is_delivered = delivered_until_ms is None or (
                delivered_until_ms >= checkpoint.revive_time_ms
            )
            if now_ms <= due_ms or not is_read or not is_delivered:
                break
            if count >= _RUN_COUNT_MAX:
                is_done = False
                break
            if not self._settle(checkpoint):
                break  # the disk refused: the next look tries again
            count += len(checkpoint.differences)
            settled = checkpoint.revive_offset
            del self._open[key]
        if settled >= 0:
            broker.store.consumer_offsets.commit(
                REVIVE_GROUP, broker.revive_topic, self._queue_id, settled
            )
        return is_done

    def _settle(self, checkpoint: Checkpoint) -> bool:
        """Have what is left of a checkpoint come again; False if it cannot be put."""
        broker, group = self._broker, checkpoint.group
        queue_offsets = checkpoint.open_offsets()
        if not queue_offsets:
            return True
        topic = normal_topic(checkpoint.topic, group)
        if broker.topics.get(topic) is None or broker.groups.find(group) is None:
            return True  # nobody can want it any more
        for queue_offset in queue_offsets:
            message = self._message(checkpoint, queue_offset)
            if message is not None:
                if not self._put_again(checkpoint, message):
                    return False
                broker.popping.in_flight.finished(
                    checkpoint.topic, group, checkpoint.queue_id, checkpoint.pop_time_ms
                )
            checkpoint.ack(queue_offset)
        broker.popping.arrived(topic, 0)
        return True

    def _message(self, checkpoint: Checkpoint, queue_offset: int) -> Message | None:
        """Return a message that was popped, None if it is gone."""
        result = self._broker.store.get_message(
            REVIVE_GROUP, checkpoint.topic, checkpoint.queue_id, queue_offset, 1
        )
        if result is None or result.status is not GetMessageStatus.FOUND:
            return None
        message = decode_message(result.read())
        found = queue_offset_in(checkpoint.topic, message)
        return message if found == queue_offset else None

    def _put_again(self, checkpoint: Checkpoint, message: Message) -> bool:
        broker, group, topic = self._broker, checkpoint.group, checkpoint.topic
        if not topic.startswith(RETRY_PREFIX):
            topic = pop_retry_topic(topic, group, is_v2=broker.settings.has_retry_topic_v2)
        queue_id = retry_queue(broker, topic, group, message.queue_id)
        properties = _properties(message, checkpoint)
        times = as_java_int(message.reconsume_times + (not checkpoint.is_suspended))
        result = self._put(message, topic, queue_id, properties, times)
        if result.status is PutMessageStatus.PROPERTIES_SIZE_EXCEEDED:
            result = self._put(message, topic, queue_id, message.properties, times)
        if not result.is_ok:
            _log.error("%s@%s: not put again: %s", topic, message.queue_offset, result.reason)
        return bool(result.is_ok) or result.status in HOPELESS

    def _put(
        self,
        message: Message,
        topic: str,
        queue_id: int,
        properties: Mapping[str, str] | OwnProperties,
        reconsume_times: int,
    ) -> PutResult:
        host = self._broker.store_host
        draft = redraft(
            message,
            topic,
            queue_id,
            properties,
            born_host=host,
            store_host=host,
            reconsume_times=reconsume_times,
        )
        # As with a real broker, what says a delay level waits for it once more.
        result = self._broker.store.put_message(draft)
        if result.status is PutMessageStatus.UNKNOWN_ERROR:  # it says one that is none
            result = self._broker.store.put_message(draft, is_delivery=True)
        return result


def _properties(message: Message, checkpoint: Checkpoint) -> OwnProperties:
    """Return what a message says that comes again, in the order of the map of ``reviveRetry``."""
    found = {name: value for name, value in message.properties.items() if name != CRC32}
    entries, capacity = dict(found), capacity_for(len(found))
    if TAGS in found:
        entries, capacity = {TAGS: found[TAGS], **found}, DEFAULT_CAPACITY
    if message.reconsume_times == 0 or FIRST_POP_TIME not in found:
        entries[FIRST_POP_TIME] = str(checkpoint.pop_time_ms)
    entries[ORIGIN_GROUP] = checkpoint.group
    return OwnProperties(entries, capacity)
