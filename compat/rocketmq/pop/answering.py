"""The answer to a pop: messages, a wait for them, or that there are none (PopMessageProcessor)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.pop.pop_requests import (
    check_count,
    check_pop,
    filter_of_pop,
    read_pop,
)
from logstore.compat.rocketmq.pop.pop_waits import Polling, PopWait
from logstore.compat.rocketmq.pop.queue_pops import QueuePops, revive_queue_of
from logstore.compat.rocketmq.pop.retry_topics import pop_retry_topic
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import as_fields
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.compat.waiting import Later

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.pop.pop_requests import PopRequest
    from logstore.compat.rocketmq.wire.remoting import Command
    from logstore.segments.rocketmq.tables.topics import TopicConfig

#: chances are out of so many
_CHANCES = 100


def answer_pop(broker: Broker, channel: Channel, request: Command) -> Response | Later[Response]:
    """
    Return what a pop gets, or a promise of it.

    Raises:
        RefusedError: it may not be served.

    """
    pop = read_pop(broker, request.ext_fields)
    later: Later[Response] = Later()
    answer = _pop(broker, channel, pop, later)
    return later if answer is None else answer


def _pop(
    broker: Broker, channel: Channel, pop: PopRequest, later: Later[Response]
) -> Response | None:
    """Return the answer; None where it will be told to `later`."""
    config = check_pop(broker, channel, pop)
    message_filter = filter_of_pop(broker, pop)
    check_count(pop.count_max)
    broker.catch_up()
    pops = QueuePops(
        broker,
        pop,
        message_filter,
        broker.host.clock.wall_ms(),
        revive_queue_of(broker, pop),
    )
    chance = broker.host.rng.randrange(_CHANCES)
    is_by_priority = _is_by_priority(broker, config, pop, chance)
    settings = broker.settings
    retry_percent = (
        settings.pop_priority_retry_percent if is_by_priority else settings.pop_retry_percent
    )
    comes_first = chance < retry_percent
    retry_topic = pop_retry_topic(pop.topic, pop.group, is_v2=_reads_v2(broker, chance))
    if is_by_priority:
        chance = 0
    if comes_first and not pop.is_ordered:
        pops.pop_topic(retry_topic, chance)
    if pop.queue_id < 0:
        pops.pop_topic(config.topic_name, chance)
    else:
        pops.pop_queue(config.topic_name, pop.queue_id)
    if not comes_first and not pop.is_ordered and pops.count < pop.count_max:
        pops.pop_topic(retry_topic, chance)
    answer: Response | None
    if pops.count:
        answer = _answer(pops, ResponseCode.SUCCESS, "FOUND")
    else:
        polling = _wait(broker, channel, pop, later)
        code = {
            Polling.FULL: ResponseCode.POLLING_FULL,
            Polling.WAITS: None,
        }.get(polling, ResponseCode.POLLING_TIMEOUT)
        answer = None if code is None else _answer(pops, code, "NO_MESSAGE_IN_QUEUE")
    if pops.rest_count > 0 and (pops.count or answer is None):
        broker.popping.waits.wake_soon(pop.topic, pop.group, pop.queue_id)
    return answer


def _is_by_priority(broker: Broker, config: TopicConfig, pop: PopRequest, chance: int) -> bool:
    """Tell whether queues are taken in their order this time: so often as the group wants it."""
    if pop.is_ordered or config.attributes.get("message.type") != "PRIORITY":
        return False
    group = broker.groups.find(pop.group)
    factor = "" if group is None else group.attributes.get("priority.factor", "")
    return chance < (int(factor) if factor.isascii() and factor.isdigit() else _CHANCES)


def _reads_v2(broker: Broker, chance: int) -> bool:
    """Tell which retry topic it is this time: where there are new ones, old ones may hold some."""
    settings = broker.settings
    if not settings.has_retry_topic_v2:
        return False
    return not (settings.reads_retry_topic_v1 and chance % 2 == 0)


def _wait(broker: Broker, channel: Channel, pop: PopRequest, later: Later[Response]) -> Polling:
    def wake() -> None:
        try:
            answer = _pop(broker, channel, pop, later)
        except RefusedError as refusal:
            later.fail(refusal)
            return
        if answer is not None:
            later.answer(answer)

    expires_ms = pop.born_ms + pop.poll_ms
    wait = PopWait(pop.topic, pop.group, pop.queue_id, expires_ms, wake, channel)
    return broker.popping.waits.hold(wait, pop.poll_ms)


def _answer(pops: QueuePops, code: int, remark: str) -> Response:
    fields = as_fields(
        popTime=pops.pop_time_ms,
        invisibleTime=pops.pop.invisible_ms,
        reviveQid=pops.revive_queue_id,
        restNum=pops.rest_count,
    )
    fields |= pops.queues.fields(is_ordered=pops.pop.is_ordered)
    return Response(code, remark, fields, b"".join(pops.bodies))
