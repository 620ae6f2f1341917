"""Whoever wants to know whether there is something to pop (NotificationProcessor)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.pop.pop_requests import (
    NO_REMARK,
    asked_filter,
    born_time,
    check_target,
    wanted_queue,
)
from logstore.compat.rocketmq.pop.pop_waits import Polling, PopWait
from logstore.compat.rocketmq.pop.retry_topics import pop_retry_topic
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import (
    as_fields,
    read_flag,
    read_long,
    read_text,
)
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.compat.waiting import Later
from logstore.segments.rocketmq.reading.get_message import GetMessageStatus
from logstore.segments.rocketmq.reading.message_filter import TagFilter
from logstore.segments.rocketmq.tables.topics import PERM_READ

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command
    from logstore.segments.rocketmq.reading.message_filter import MessageFilter


@attrs.frozen
class Question:
    """What somebody wants to be told of (NotificationRequestHeader)."""

    group: str
    topic: str
    queue_id: int
    poll_ms: int
    born_ms: int
    is_ordered: bool
    attempt_id: str | None
    filter_kind: str | None = None
    expression: str | None = None


def check_readable(broker: Broker, what: str) -> None:
    """
    Refuse where nothing of the broker may be read.

    Raises:
        RefusedError: NO_PERMISSION.

    """
    if not broker.settings.permission & PERM_READ:
        remark = f"the broker[{broker.settings.ip1}] {what} is forbidden"
        raise RefusedError(ResponseCode.NO_PERMISSION, remark)


def answer_question(
    broker: Broker, channel: Channel, request: Command
) -> Response | Later[Response]:
    """
    Tell whether there are messages, as soon as there are some or the time is over.

    Raises:
        RefusedError: the group may not read the topic, or one of them is missing.

    """
    fields = request.ext_fields
    question = Question(
        read_text(fields, "consumerGroup"),
        read_text(fields, "topic"),
        wanted_queue(fields),
        read_long(fields, "pollTime", 0),
        born_time(broker, fields),
        read_flag(fields, "order", default=False),
        fields.get("attemptId"),
        fields.get("expType"),
        fields.get("exp"),
    )
    later: Later[Response] = Later()
    answer = _answer(broker, channel, question, later)
    return later if answer is None else answer


def _answer(
    broker: Broker,
    channel: Channel,
    question: Question,
    later: Later[Response],
    *,
    is_by_message: bool = False,
) -> Response | None:
    check_readable(broker, "peeking message")
    check_target(broker, channel, question.topic, question.group, question.queue_id)
    message_filter: MessageFilter | None = None
    is_filtered = broker.settings.filters_notices
    if is_filtered and question.filter_kind and question.expression:
        message_filter = asked_filter(
            broker, question.group, question.topic, question.filter_kind, question.expression
        )
    # Whoever asks is told of messages by their tags alone; woken by messages is who would have one
    # of those that arrived, whatever the filter looks at.
    if not isinstance(message_filter, TagFilter) and not is_by_message:
        message_filter = None
    broker.catch_up()
    if _has_messages(broker, question, message_filter):
        return _told(has_messages=True)

    def wake() -> None:
        try:
            answer = _answer(broker, channel, question, later, is_by_message=wait.is_by_message)
        except RefusedError as refusal:
            later.fail(refusal)
            return
        if answer is not None:
            later.answer(answer)

    wait = PopWait(
        question.topic,
        question.group,
        question.queue_id,
        question.born_ms + question.poll_ms,
        wake,
        channel,
    )
    polling = broker.popping.notices.hold(wait, question.poll_ms)
    if polling is Polling.WAITS:
        return None
    return _told(has_messages=False, is_full=polling is Polling.FULL)


def _has_messages(broker: Broker, question: Question, message_filter: MessageFilter | None) -> bool:
    """Look at the queues that were asked for, and at those of messages that come back."""
    topic, group = question.topic, question.group
    settings = broker.settings
    kinds = [settings.has_retry_topic_v2]
    if settings.has_retry_topic_v2 and settings.reads_retry_topic_v1:
        kinds.append(False)
    queues = [(topic, question.queue_id)] if question.queue_id >= 0 else _queues(broker, topic)
    if any(_has_messages_in(broker, question, *queue, message_filter) for queue in queues):
        return True
    queues.clear()
    for is_v2 in kinds:
        queues += _queues(broker, pop_retry_topic(topic, group, is_v2=is_v2))
    return any(_has_messages_in(broker, question, *queue) for queue in queues)


def _queues(broker: Broker, topic: str) -> list[tuple[str, int]]:
    config = broker.topics.get(topic)
    count = 0 if config is None else config.read_queue_count
    return [(topic, queue_id) for queue_id in range(count)]


def _has_messages_in(
    broker: Broker,
    question: Question,
    topic: str,
    queue_id: int,
    message_filter: MessageFilter | None = None,
) -> bool:
    if question.is_ordered and broker.popping.orders.is_blocked(
        question.attempt_id, question.topic, question.group, queue_id, 0
    ):
        return False
    store = broker.store
    begin = store.consumer_offsets.query(question.group, topic, queue_id)
    if begin < 0:
        begin = store.min_queue_offset(topic, queue_id)
    count = int(store.max_queue_offset(topic, queue_id) - begin)
    if message_filter is None or not 0 < count < broker.settings.notice_filtered_max:
        return count > 0  # where more wait, some will be for whoever asks
    found = store.get_message(
        question.group, topic, queue_id, begin, 1, message_filter=message_filter
    )
    return found is None or found.status is not GetMessageStatus.NO_MATCHED_MESSAGE


def _told(*, has_messages: bool, is_full: bool = False) -> Response:
    fields = as_fields(hasMsg=has_messages, pollingFull=is_full)
    return Response(ResponseCode.SUCCESS, NO_REMARK, fields)
