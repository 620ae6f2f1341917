"""What a pop asks for, and what it may be refused for (PopMessageProcessor, first half)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.clients.subscriptions import (
    TAG,
    SubscriptionError,
    subscription_to,
)
from logstore.compat.rocketmq.groups.consumer_filters import build_filter, filter_of
from logstore.compat.rocketmq.pop.allocation import ALL_QUEUES
from logstore.compat.rocketmq.pop.retry_topics import pop_retry_topic
from logstore.compat.rocketmq.topics import names
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import (
    as_fields,
    read_flag,
    read_int,
    read_long,
    read_text,
)
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.segments.rocketmq.filters.sql_filter import SqlFilter
from logstore.segments.rocketmq.tables.topics import PERM_READ

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.segments.rocketmq.reading.message_filter import MessageFilter, TagFilter
    from logstore.segments.rocketmq.tables.topics import TopicConfig

COUNT_MAX = 32
#: a pop that comes so long after its time is not served any more
LATE_MS_MAX = 500
#: what Java says where nobody said anything
NO_REMARK = "not set any response code"
#: the fields that Java's header of an answer always has
NO_POP = as_fields(popTime=0, invisibleTime=0, reviveQid=0, restNum=0)


@attrs.define(eq=False)
class PopRequest:
    """One pop, read; times are those of a wall clock."""

    group: str
    topic: str
    queue_id: int
    count_max: int
    invisible_ms: int
    poll_ms: int
    born_ms: int
    init_mode: int
    expression_type: str | None
    expression: str | None
    is_ordered: bool
    attempt_id: str | None


def born_time(broker: Broker, fields: Mapping[str, str]) -> int:
    """Return when a request that may wait was made: now, if it does not say."""
    return read_long(fields, "bornTime", 0) or broker.host.clock.wall_ms()


def wanted_queue(fields: Mapping[str, str]) -> int:
    """Return the queue that is asked for: any number below zero stands for all, as -1 does."""
    return max(ALL_QUEUES, read_int(fields, "queueId"))


def read_pop(broker: Broker, fields: Mapping[str, str]) -> PopRequest:
    """
    Read the fields of a pop.

    Raises:
        RefusedError: one that must be there is missing, or no number.

    """
    return PopRequest(
        read_text(fields, "consumerGroup"),
        read_text(fields, "topic"),
        wanted_queue(fields),
        read_int(fields, "maxMsgNums"),
        read_long(fields, "invisibleTime"),
        read_long(fields, "pollTime"),
        born_time(broker, fields),
        read_int(fields, "initMode", 0),
        fields.get("expType"),
        fields.get("exp"),
        read_flag(fields, "order", default=False),
        fields.get("attemptId"),
    )


def check_pop(broker: Broker, channel: Channel, pop: PopRequest) -> TopicConfig:
    """
    Return the topic of a pop.

    Raises:
        RefusedError: it comes too late, wants too much, or may not be served.

    """
    settings = broker.settings
    ip = settings.ip1
    if broker.host.clock.wall_ms() - pop.born_ms - pop.poll_ms > LATE_MS_MAX:
        remark = f"the broker[{ip}] pop message is timeout too much"
        raise _refused(ResponseCode.POLLING_TIMEOUT, remark)
    if not settings.permission & PERM_READ:
        raise _refused(ResponseCode.NO_PERMISSION, f"the broker[{ip}] pop message is forbidden")
    if pop.count_max > COUNT_MAX:
        remark = f"the broker[{ip}] pop message's num is greater than {COUNT_MAX}"
        raise _refused(ResponseCode.INVALID_PARAMETER, remark)
    if not broker.timed_delivery.is_enabled:
        raise _refused(
            ResponseCode.SYSTEM_ERROR,
            f"the broker[{ip}] pop message is forbidden because timerWheelEnable is false",
        )
    try:
        return check_target(broker, channel, pop.topic, pop.group, pop.queue_id)
    except RefusedError as refusal:
        raise _refused(refusal.code, refusal.remark) from None


_NOT_PARSED = "parse the consumer's subscription failed"


def check_target(
    broker: Broker, channel: Channel, topic: str, group: str, queue_id: int
) -> TopicConfig:
    """
    Return a topic that a group may read.

    Raises:
        RefusedError: topic, queue or group are missing, or reading is forbidden.

    """
    config = broker.topics.get(topic)
    if config is None:
        raise RefusedError(
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic[{topic}] not exist, apply first please! {names.SEE_FAQ}",
        )
    if not config.perm & PERM_READ:
        raise RefusedError(
            ResponseCode.NO_PERMISSION, f"the topic[{topic}] peeking message is forbidden"
        )
    if queue_id >= config.read_queue_count:
        raise RefusedError(ResponseCode.INVALID_PARAMETER, illegal_queue(channel, config, queue_id))
    found = broker.groups.find(group)
    if found is None:
        raise RefusedError(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            f"subscription group [{group}] does not exist, {names.SEE_FAQ}",
        )
    if not found.is_consume_enabled:
        raise RefusedError(ResponseCode.NO_PERMISSION, f"subscription group no permission, {group}")
    return config


def check_count(count_max: int) -> None:
    """
    Look whether so many messages can be wanted: Java's list of them has no room for less than none.

    Raises:
        RefusedError: SYSTEM_ERROR; the number is negative.

    """
    if count_max < 0:
        raise RefusedError(
            ResponseCode.SYSTEM_ERROR,
            f"the custom field <maxMsgNums> is {count_max}: nobody can have less than no message",
        )


def illegal_queue(channel: Channel, config: TopicConfig, queue_id: int) -> str:
    """Return the remark about a queue that is not there."""
    return (
        f"queueId[{queue_id}] is illegal, topic:[{config.topic_name}] "
        f"topicConfig.readQueueNums:[{config.read_queue_count}] consumer:[/{channel.address}]"
    )


def filter_of_pop(broker: Broker, pop: PopRequest) -> MessageFilter | None:
    """
    Return what messages must match, None where all are wanted, and remember what the group wants.

    Raises:
        RefusedError: the expression cannot be understood.

    """
    try:
        kind = pop.expression_type if pop.expression else TAG
        wanted = subscription_to(pop.topic, pop.expression or "*", kind)
    except SubscriptionError as error:
        raise _refused(ResponseCode.SUBSCRIPTION_PARSE_FAILED, _NOT_PARSED) from error
    retry_topic = pop_retry_topic(pop.topic, pop.group, is_v2=broker.settings.has_retry_topic_v2)
    now_ms = broker.host.clock.wall_ms()
    for subscription in (wanted, subscription_to(retry_topic, "*", kind)):
        broker.consumers.note_pulled(pop.group, subscription, now_ms)
    if wanted.is_by_tag:
        return wanted.tag_filter
    found = build_filter(broker, pop.group, wanted)
    if found is None:
        raise _refused(ResponseCode.SUBSCRIPTION_PARSE_FAILED, _NOT_PARSED)
    return filter_of(broker, found, pop.topic)


def asked_filter(
    broker: Broker, group: str, topic: str, kind: str, expression: str
) -> TagFilter | SqlFilter | None:
    """
    Return what an expression lets through, of a group that is not remembered for it; None for all.

    Raises:
        RefusedError: SUBSCRIPTION_PARSE_FAILED; it cannot be understood.

    """
    try:
        wanted = subscription_to(topic, expression, kind)
    except SubscriptionError as error:
        raise RefusedError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, _NOT_PARSED) from error
    if wanted.is_by_tag:
        return wanted.tag_filter
    found = build_filter(broker, group, wanted)
    if found is None:
        raise RefusedError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, _NOT_PARSED)
    return SqlFilter(found)


def _refused(code: int, remark: str) -> RefusedError:
    return RefusedError(code, remark, NO_POP)
