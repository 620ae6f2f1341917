"""
Half messages whose producers never said what became of them (TransactionalMessageServiceImpl).

Every so often the half topic is gone through from where the last check ended. What an op message
names is done. What is young is left for later, what was checked too often or is too old goes to a
topic of its own, and for all else the half message is put again, with a count, and one of its
producer group's clients is asked.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.redelivery.redrafts import redraft
from logstore.compat.rocketmq.topics import names
from logstore.compat.rocketmq.transactions.op_messages import REMOVE_TAG
from logstore.compat.rocketmq.transactions.transactions import half_at, immunity_ms
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.compat.rocketmq.wire.fields import as_fields
from logstore.segments.rocketmq.messages.message import decode_message, encode_message
from logstore.segments.rocketmq.messages.message_id import offset_message_id
from logstore.segments.rocketmq.messages.properties import (
    CHECK_IMMUNITY_TIME,
    HASH_MAP_CAPACITY_5,
    PRODUCER_GROUP,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TRANSACTION_CHECK_TIMES,
    TRANSACTION_PREPARED_QUEUE_OFFSET,
    UNIQUE_KEY,
    WAIT,
    encode_properties,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from logstore.compat.rocketmq.broker import Broker
    from logstore.segments.rocketmq.messages.message import Message
    from logstore.segments.rocketmq.putting.put_result import PutResult

_log = logging.getLogger(__name__)

#: a pass holds up everybody else for no longer than this; the next one goes on where it ended
_PASS_MS_MAX = 100
_READ_COUNT = 32
_HOUR_MS = 3_600_000


class TransactionChecks:
    """Goes through the half topic of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def check(self) -> bool:
        """
        Check every queue of the half topic; tell whether all of it was gone through.

        As in 5.x an end that is not in an op message yet is not known here: a timeout shorter than
        the time between op messages asks about transactions that are over, and what the producer
        answers is done.
        """
        self._broker.catch_up()
        config = self._broker.topics.get(names.HALF_TOPIC)
        queue_count = 1 if config is None else config.read_queue_count
        results = [self._check_queue(queue_id) for queue_id in range(queue_count)]
        self._broker.requests_served()
        return all(results)

    def _check_queue(self, queue_id: int) -> bool:
        start = self._progress(names.HALF_TOPIC, queue_id)
        ops = _Ops(self._progress(names.OP_HALF_TOPIC, queue_id))
        for op in self._messages(names.OP_HALF_TOPIC, queue_id, ops.start):
            ops.add(op, start)
        position = start
        clock = self._broker.host.clock
        started_ms, deadline_ms = clock.wall_ms(), clock.monotonic_ms() + _PASS_MS_MAX
        is_done = True
        for half in self._messages(names.HALF_TOPIC, queue_id, start):
            if clock.monotonic_ms() > deadline_ms:
                is_done = False
                break
            if not ops.take(half.queue_offset) and not self._check_half(half, ops, started_ms):
                break
            position = half.queue_offset + 1
        self._note_progress(names.HALF_TOPIC, queue_id, start, position)
        self._note_progress(names.OP_HALF_TOPIC, queue_id, ops.start, ops.next_start())
        return is_done

    def _check_half(self, half: Message, ops: _Ops, started_ms: int) -> bool:
        """Deal with one half message that is not done; False if it is too early for it."""
        settings = self._broker.settings
        age_ms = self._broker.host.clock.wall_ms() - half.born_timestamp_ms
        times = _number(half.properties.get(TRANSACTION_CHECK_TIMES))
        is_old = age_ms > settings.file_reserved_hours * _HOUR_MS
        if is_old or times >= settings.transaction_check_max:
            return self._discard(half)
        if half.store_timestamp_ms >= started_ms:
            return False
        immunity = half.properties.get(CHECK_IMMUNITY_TIME)
        spared_ms = settings.transaction_timeout_ms
        if immunity is not None:
            spared_ms = immunity_ms(immunity, spared_ms)
            if age_ms <= spared_ms:
                return self._put_off(half, ops)
        elif 0 <= age_ms <= spared_ms:
            return False
        return self._ask(half, times + 1)

    def _put_off(self, half: Message, ops: _Ops) -> bool:
        """Put a half message again that is to be left alone for some time, unless it is done."""
        first = half.properties.get(TRANSACTION_PREPARED_QUEUE_OFFSET)
        if first is not None and first.isdigit() and ops.take(int(first)):
            return True
        place = first if first is not None else str(half.queue_offset)
        properties = {**half.properties, TRANSACTION_PREPARED_QUEUE_OFFSET: place}
        return self._put_again(half, properties).is_ok

    def _ask(self, half: Message, times: int) -> bool:
        """Put a half message again, and ask a producer what became of it."""
        properties = {**half.properties, TRANSACTION_CHECK_TIMES: str(times)}
        result = self._put_again(half, properties)
        if not result.is_ok:
            return False
        channel = self._broker.producers.any_channel(properties.get(PRODUCER_GROUP, ""))
        if channel is None:
            _log.warning("nobody of %s to ask", properties.get(PRODUCER_GROUP))
            return True
        unique_key = properties.get(UNIQUE_KEY)
        fields = as_fields(
            topic=half.topic,
            tranStateTableOffset=result.queue_offset,
            commitLogOffset=result.physical_offset,
            msgId=unique_key,
            transactionId=unique_key,
            offsetMsgId=offset_message_id(half.store_host, result.physical_offset),
            bname=self._broker.settings.broker_name,
        )
        body = self._body_for_producer(result.physical_offset)
        if body is not None:
            channel.tell(RequestCode.CHECK_TRANSACTION_STATE, fields, body)
        return True

    def _body_for_producer(self, physical_offset: int) -> bytes | None:
        """
        Return the half message as it will be once it is committed, for the producer to see.

        It bears the mark that nobody waited for it: Java puts that one into a map that what it has
        read shares with what it puts again, after it has written the latter.
        """
        half = half_at(self._broker, physical_offset)
        if half is None:
            return None
        properties = half.properties
        topic = properties.get(REAL_TOPIC, half.topic)
        queue_id = _number(properties.get(REAL_QUEUE_ID))
        text = encode_properties({**properties, WAIT: "false"}, capacity=HASH_MAP_CAPACITY_5)
        shown = attrs.evolve(half, topic=topic, queue_id=queue_id, properties_text=text)
        return encode_message(shown)

    def _put_again(self, half: Message, properties: dict[str, str]) -> PutResult:
        result = self._broker.store.put_message(
            redraft(half, half.topic, half.queue_id, properties)
        )
        if not result.is_ok:
            _log.error("a half message was not put again: %s", result.reason)
        return result

    def _discard(self, half: Message) -> bool:
        """Give up on a half message; it is kept where an administrator can find it."""
        self._broker.topics.ensure(names.CHECK_MAX_TIME_TOPIC, 1)
        draft = redraft(half, names.CHECK_MAX_TIME_TOPIC, 0, half.properties)
        result = self._broker.store.put_message(draft)
        if not result.is_ok:
            _log.error("a half message was not set aside: %s", result.reason)
        return result.is_ok

    def _messages(self, topic: str, queue_id: int, start: int) -> Iterator[Message]:
        """Yield what stands in a queue from `start` on, up to what stands there now."""
        store = self._broker.store
        end = store.max_queue_offset(topic, queue_id)
        position = start
        while position < end:
            result = store.get_message(
                names.TRANSACTION_GROUP, topic, queue_id, position, _READ_COUNT
            )
            if result is None or not result.count:
                if result is None or result.next_begin_offset <= position:
                    return
                position = result.next_begin_offset  # what was there has been deleted
                continue
            data = result.read()
            at = 0
            while at < len(data):
                message = decode_message(data, at, verify_crc=False)
                at += message.size_bytes
                if message.queue_offset < end:
                    yield message
            position = result.next_begin_offset

    def _progress(self, topic: str, queue_id: int) -> int:
        store = self._broker.store
        found = store.consumer_offsets.query(names.TRANSACTION_GROUP, topic, queue_id)
        return store.min_queue_offset(topic, queue_id) if found < 0 else found

    def _note_progress(self, topic: str, queue_id: int, before: int, after: int) -> None:
        if after != before:
            offsets = self._broker.store.consumer_offsets
            offsets.commit(names.TRANSACTION_GROUP, topic, queue_id, after)


class _Ops:
    """The op messages that were read: which half messages are done, and which ops are used up."""

    def __init__(self, start: int) -> None:
        self.start = start
        #: op messages that may be forgotten
        self._used: set[int] = set()
        self._named: dict[int, int] = {}
        self._left: dict[int, set[int]] = {}

    def add(self, op: Message, half_start: int) -> None:
        """Read one op message; half messages before `half_start` are over already."""
        named: set[int] = set()
        if op.tags == REMOVE_TAG:
            for text in op.body.decode("utf-8", "replace").split(","):
                if text.isdigit() and int(text) >= half_start:
                    named.add(int(text))
                    self._named[int(text)] = op.queue_offset
        if named:
            self._left[op.queue_offset] = named
        else:
            self._used.add(op.queue_offset)

    def take(self, half_queue_offset: int) -> bool:
        """Tell whether a half message is done; if so, what says so is used up by that much."""
        op = self._named.pop(half_queue_offset, None)
        if op is None:
            return False
        left = self._left.get(op, set())
        left.discard(half_queue_offset)
        if not left:
            self._left.pop(op, None)
            self._used.add(op)
        return True

    def next_start(self) -> int:
        """Return the first op message that is still needed."""
        position = self.start
        while position in self._used:
            position += 1
        return position


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else 0
