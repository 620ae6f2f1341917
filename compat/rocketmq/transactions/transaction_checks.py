"""
Half messages whose producers never said what became of them (TransactionalMessageServiceImpl).

Every so often there is a round: the half topic is gone through from where the last one ended up to
where it ends now, slice by slice. What an op message names is done. What is young is left for
later, what was checked too often or is too old goes to a topic of its own, and for all else the
half message is put again, with a count, and one of its producer group's clients is asked.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
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
    from logstore.compat.rocketmq.broker import Broker
    from logstore.segments.rocketmq.messages.message import Message
    from logstore.segments.rocketmq.putting.put_result import PutResult

_log = logging.getLogger(__name__)

#: a slice holds up everybody else for no longer than this; the next one goes on where it ended
_SLICE_MS_MAX = 5
_READ_COUNT = 32
_HOUR_MS = 3_600_000


@attrs.define
class _Round:
    """
    One walk through a queue of the half topic.

    What is put again on the way stands behind its end: nobody is asked twice in one round, however
    many slices it takes.
    """

    queue_id: int
    started_ms: int
    halves: Iterator[Message]
    ops: _Ops
    #: the half messages before are dealt with
    position: int
    #: groups of which nobody is there to be asked, and how often that would have been
    unheard: Counter[str] = attrs.field(factory=Counter[str])


class TransactionChecks:
    """Goes through the half topic of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        #: queues that the round has not gone through yet
        self._left: list[_Round] = []

    def check(self) -> bool:
        """
        Begin a round, or go on with it for a moment; tell whether it is over.

        As in 5.x an end that is not in an op message yet is not known here: a timeout shorter than
        the time between op messages asks about transactions that are over, and what the producer
        answers is done.
        """
        self._broker.catch_up()
        deadline_ms = self._broker.host.clock.monotonic_ms() + _SLICE_MS_MAX
        left, self._left = self._left or self._begin(), []  # an error ends the round
        while left and self._go_on(left[0], deadline_ms):
            del left[0]
        self._left = left
        self._broker.requests_served()
        return not left

    def _begin(self) -> list[_Round]:
        """Return a round for each queue of the half topic."""
        config = self._broker.topics.get(names.HALF_TOPIC)
        now_ms = self._broker.host.clock.wall_ms()
        found: list[_Round] = []
        for queue_id in range(1 if config is None else config.read_queue_count):
            start = self._progress(names.HALF_TOPIC, queue_id)
            halves = self._messages(names.HALF_TOPIC, queue_id, start)
            ops = _Ops(self._progress(names.OP_HALF_TOPIC, queue_id))
            found.append(_Round(queue_id, now_ms, halves, ops, start))
        return found

    def _go_on(self, walk: _Round, deadline_ms: float) -> bool:
        """Go on with a queue until `deadline_ms`; tell whether it is gone through."""
        queue_id, ops = walk.queue_id, walk.ops
        found = list(self._messages(names.OP_HALF_TOPIC, queue_id, ops.end))
        self._count(found)
        for op in found:
            ops.add(op, walk.position)
        start, op_start = walk.position, ops.start
        clock = self._broker.host.clock
        is_over = True
        for half in walk.halves:
            if not ops.take(half.queue_offset):
                self._count([half])
                if not self._check_half(half, walk):
                    break
            walk.position = half.queue_offset + 1
            if clock.monotonic_ms() > deadline_ms:
                is_over = False
                break
        self._note_progress(names.HALF_TOPIC, queue_id, start, walk.position)
        self._note_progress(names.OP_HALF_TOPIC, queue_id, op_start, ops.forget_used())
        if is_over:
            for group, count in walk.unheard.items():
                _log.warning("nobody of %s to ask about %s transactions", group, count)
        return is_over

    def _check_half(self, half: Message, walk: _Round) -> bool:
        """Deal with one half message that is not done; False if it is too early for it."""
        settings = self._broker.settings
        age_ms = self._broker.host.clock.wall_ms() - half.born_timestamp_ms
        times = _number(half.properties.get(TRANSACTION_CHECK_TIMES))
        is_old = age_ms > settings.file_reserved_hours * _HOUR_MS
        if times >= settings.transaction_check_max:
            return self._discard(half, half.properties)
        if is_old:
            return self._discard(half, {**half.properties, TRANSACTION_CHECK_TIMES: str(times + 1)})
        if half.store_timestamp_ms >= walk.started_ms:
            return False
        immunity = half.properties.get(CHECK_IMMUNITY_TIME)
        spared_ms = settings.transaction_timeout_ms
        if immunity is not None:
            spared_ms = immunity_ms(immunity, spared_ms)
            if age_ms <= spared_ms:
                return self._put_off(half, times + 1, walk.ops)
        elif 0 <= age_ms <= spared_ms:
            return False
        return self._ask(half, times + 1, walk)

    def _put_off(self, half: Message, times: int, ops: _Ops) -> bool:
        """
        Put a half message again that is to be left alone for some time, unless it is done.

        Java counts it as a check.
        """
        first = half.properties.get(TRANSACTION_PREPARED_QUEUE_OFFSET)
        if first is not None and first.isdigit() and ops.take(int(first)):
            return True
        place = first if first is not None else str(half.queue_offset)
        properties = {
            **half.properties,
            TRANSACTION_CHECK_TIMES: str(times),
            WAIT: "false",
            TRANSACTION_PREPARED_QUEUE_OFFSET: place,
        }
        return self._put_again(half, properties).is_ok

    def _ask(self, half: Message, times: int, walk: _Round) -> bool:
        """Put a half message again, and ask a producer what became of it."""
        properties = {**half.properties, TRANSACTION_CHECK_TIMES: str(times)}
        result = self._put_again(half, properties)
        if not result.is_ok:
            return False
        group = properties.get(PRODUCER_GROUP, "")
        channel = self._broker.producers.any_channel(group)
        if channel is None:
            walk.unheard[group] += 1
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

    def _discard(self, half: Message, properties: Mapping[str, str]) -> bool:
        """Give up on a half message; it is kept where an administrator can find it."""
        self._broker.topics.ensure(names.CHECK_MAX_TIME_TOPIC, 1)
        draft = redraft(half, names.CHECK_MAX_TIME_TOPIC, 0, properties)
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

    def _count(self, found: list[Message]) -> None:
        """Take note of messages that were read; of half messages those that are not done."""
        if found:
            size_bytes = sum(message.size_bytes for message in found)
            stats, topic = self._broker.stats, found[0].topic
            stats.count_pulled(names.TRANSACTION_GROUP, topic, len(found), size_bytes)

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
        #: the first that is still needed, and behind the last that was read
        self.start = self.end = start
        #: op messages that may be forgotten
        self._used: set[int] = set()
        self._named: dict[int, int] = {}
        self._left: dict[int, set[int]] = {}

    def add(self, op: Message, half_start: int) -> None:
        """Read one op message; half messages before `half_start` are over already."""
        self.end = op.queue_offset + 1
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

    def forget_used(self) -> int:
        """Return the first op message that is still needed from now on."""
        while self.start in self._used:
            self._used.remove(self.start)
            self.start += 1
        return self.start


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else 0
