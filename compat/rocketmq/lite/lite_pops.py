"""
Pops of lite topics: what a client was given events of, in order (PopLiteMessageProcessor).

One answer may have messages of many lite topics. What a message says of itself tells which: a
client makes handles of that, for the answer speaks of times alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.groups.slow_readers import note_read
from logstore.compat.rocketmq.lite.lite_rules import bind_topic, is_parent
from logstore.compat.rocketmq.pop.handles import ORDER_REVIVE_QUEUE, PoppedQueues
from logstore.compat.rocketmq.pop.pop_requests import COUNT_MAX, LATE_MS_MAX, born_time
from logstore.compat.rocketmq.pop.pop_waits import Polling, PopWait
from logstore.compat.rocketmq.pop.queue_pops import first_offset
from logstore.compat.rocketmq.topics import names
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import as_fields, read_int, read_long, read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.compat.waiting import Later
from logstore.segments.rocketmq.reading.get_message import GetMessageStatus
from logstore.segments.rocketmq.tables.topics import PERM_READ

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command
    from logstore.segments.rocketmq.reading.get_message import GetMessageResult

_Status = GetMessageStatus
_WRONG_OFFSET = (
    _Status.OFFSET_TOO_SMALL,
    _Status.OFFSET_OVERFLOW_BADLY,
    _Status.OFFSET_FOUND_NULL,
    _Status.NO_MATCHED_MESSAGE,
    _Status.MESSAGE_WAS_REMOVING,
    _Status.NO_MATCHED_LOGIC_QUEUE,
)
#: the fields that Java's header of an answer always has
_NO_POP = as_fields(popTime=0, invisibleTime=0, reviveQid=0)
#: a group that never was there begins with the last message, or the first where there are few
_FROM_LAST = 1


@attrs.frozen
class LitePop:
    """One pop, read; times are those of a wall clock."""

    client: str
    group: str
    topic: str
    count_max: int
    invisible_ms: int
    poll_ms: int
    born_ms: int
    attempt_id: str | None


@attrs.define
class _Found:
    """What a pop has found so far."""

    records: list[bytes] = attrs.field(factory=list[bytes])
    times: list[str] = attrs.field(factory=list[str])

    @property
    def count(self) -> int:
        """How many messages."""
        return len(self.times)


def answer_lite_pop(
    broker: Broker, channel: Channel, request: Command
) -> Response | Later[Response]:
    """
    Return what a pop gets, or a promise of it.

    Raises:
        RefusedError: it may not be served.

    """
    pop = _read(broker, request.ext_fields)
    later: Later[Response] = Later()
    answer = _pop(broker, channel, pop, later)
    return later if answer is None else answer


def _read(broker: Broker, fields: Mapping[str, str]) -> LitePop:
    return LitePop(
        read_text(fields, "clientId"),
        read_text(fields, "consumerGroup"),
        read_text(fields, "topic"),
        read_int(fields, "maxMsgNum"),
        read_long(fields, "invisibleTime"),
        read_long(fields, "pollTime"),
        born_time(broker, fields),
        fields.get("attemptId"),
    )


def _check(broker: Broker, pop: LitePop) -> None:
    """
    Look whether a pop may be served, in Java's order.

    Raises:
        RefusedError: it comes too late, wants too much, or what it wants is no lite topic of its.

    """
    ip = broker.settings.ip1
    if broker.host.clock.wall_ms() - pop.born_ms - pop.poll_ms > LATE_MS_MAX:
        remark = f"the broker[{ip}] pop message is timeout too much"
        raise RefusedError(ResponseCode.POLLING_TIMEOUT, remark, _NO_POP)
    if not broker.settings.permission & PERM_READ:
        remark = f"the broker[{ip}] pop message is forbidden"
        raise RefusedError(ResponseCode.NO_PERMISSION, remark, _NO_POP)
    if pop.count_max > COUNT_MAX:
        remark = f"the broker[{ip}] pop message's num is greater than {COUNT_MAX}"
        raise RefusedError(ResponseCode.INVALID_PARAMETER, remark, _NO_POP)
    config = broker.topics.get(pop.topic)
    if config is None:
        remark = f"topic [{pop.topic}] not exist, apply first please! {names.SEE_FAQ}"
        raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, remark, _NO_POP)
    if not config.perm & PERM_READ:
        remark = f"the topic [{pop.topic}] peeking message is forbidden"
        raise RefusedError(ResponseCode.NO_PERMISSION, remark, _NO_POP)
    if not is_parent(config):
        remark = f"the topic [{pop.topic}] message type not match"
        raise RefusedError(ResponseCode.INVALID_PARAMETER, remark, _NO_POP)
    group = broker.groups.find(pop.group)
    if group is None:
        remark = f"subscription group [{pop.group}] not exist, {names.SEE_FAQ}"
        raise RefusedError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark, _NO_POP)
    if not group.is_consume_enabled:
        remark = f"subscription group no permission, {pop.group}"
        raise RefusedError(ResponseCode.NO_PERMISSION, remark, _NO_POP)
    if bind_topic(group) != pop.topic:
        remark = f"subscription bind topic not match, {pop.group}"
        raise RefusedError(ResponseCode.INVALID_PARAMETER, remark, _NO_POP)


def _pop(broker: Broker, channel: Channel, pop: LitePop, later: Later[Response]) -> Response | None:
    """Return the answer; None where it will be told to `later`."""
    _check(broker, pop)
    broker.catch_up()
    pop_time_ms = broker.host.clock.wall_ms()
    found = _Found()
    seen: set[str] = set()
    for queue in broker.lite.events.taken_by(pop.client):
        if queue not in seen:  # what comes up again waits for the next pop
            seen.add(queue)
            _pop_queue(broker, pop, queue, pop_time_ms, found)
        if found.count >= pop.count_max:
            break
    if found.count:
        return _answer(pop, pop_time_ms, found, ResponseCode.SUCCESS, "FOUND")
    polling = _wait(broker, channel, pop, later)
    if polling is Polling.WAITS:
        return None
    is_full = polling is Polling.FULL
    code = ResponseCode.POLLING_FULL if is_full else ResponseCode.POLLING_TIMEOUT
    return _answer(pop, pop_time_ms, found, code, "NO_MESSAGE_IN_QUEUE")


def _pop_queue(broker: Broker, pop: LitePop, queue: str, pop_time_ms: int, found: _Found) -> None:
    """Pop what may be had of one light queue."""
    lite = broker.lite
    if not broker.settings.has_lite_events and not lite.queues.exists(queue):
        return
    if lite.orders.is_blocked(pop.attempt_id, queue, pop.group, 0, pop.invisible_ms):
        return
    result = _get(broker, pop, queue, pop.count_max - found.count)
    if result is None or result.status is not _Status.FOUND:
        return
    end = result.next_begin_offset
    queue_offsets = range(end - result.count, end)  # records tell those in the parent's queue
    times = PoppedQueues()
    lite.orders.popped(pop, queue, 0, pop_time_ms, queue_offsets, times)
    found.records.append(result.read())
    found.times += _times_of_each(times.counts, len(queue_offsets))
    broker.stats.count_pulled(pop.group, pop.topic, result.count, result.size_bytes)
    if broker.settings.collects_lite_lags:
        is_full = found.count >= pop.count_max
        lite.lags.popped(pop.group, pop.topic, queue, end, is_full=is_full)


def _get(broker: Broker, pop: LitePop, queue: str, count_max: int) -> GetMessageResult | None:
    """Read where the group is; where that is no place, from the nearest one on."""
    store = broker.store
    offset = _begin(broker, pop.group, queue)
    result: GetMessageResult | None = store.get_message(pop.group, queue, 0, offset, count_max)
    if result is not None and result.status in _WRONG_OFFSET:
        offset = result.next_begin_offset
        store.consumer_offsets.commit(pop.group, queue, 0, offset)
        result = store.get_message(pop.group, queue, 0, offset, count_max)
    note_read(broker, pop.group, queue, 0, result)
    return result


def _begin(broker: Broker, group: str, queue: str) -> int:
    """Return where the group goes on; a reset is taken now, and counts for all it popped."""
    offsets = broker.store.consumer_offsets
    offset: int = offsets.query(group, queue, 0)
    if offset < 0:
        offset = first_offset(broker, queue, 0, _FROM_LAST)
        offsets.commit(group, queue, 0, offset)
    reset = offsets.take_reset(queue, group, 0)
    if reset is None:
        return offset
    broker.lite.orders.clear(queue, group, 0)
    offsets.commit(group, queue, 0, reset)
    return int(reset)


def _times_of_each(counts: Sequence[str], count: int) -> list[str]:
    """Return how often each message was popped, of what is told of some and of the queue."""
    if len(counts) > 1:
        return list(counts[:-1])  # the last one is that of the queue
    return [counts[0].rpartition(" ")[2]] * count


def _wait(broker: Broker, channel: Channel, pop: LitePop, later: Later[Response]) -> Polling:
    def wake() -> None:
        try:
            answer = _pop(broker, channel, pop, later)
        except RefusedError as refusal:
            later.fail(refusal)
            return
        if answer is not None:
            later.answer(answer)

    # a client has one line, whatever its group
    wait = PopWait(pop.client, "", 0, pop.born_ms + pop.poll_ms, wake, channel)
    return broker.lite.waits.hold(wait, pop.poll_ms)


def _answer(pop: LitePop, pop_time_ms: int, found: _Found, code: int, remark: str) -> Response:
    fields = as_fields(
        popTime=pop_time_ms,
        invisibleTime=pop.invisible_ms,
        reviveQid=ORDER_REVIVE_QUEUE,
        orderCountInfo=";".join(found.times),
    )
    return Response(code, remark, fields, b"".join(found.records))
