"""Messages that a consumer could not deal with: sent back, to be tried again later, or given up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.redelivery.redrafts import redraft
from logstore.compat.rocketmq.topics import names
from logstore.compat.rocketmq.topics.broker_topics import unit_sys_flag
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.segments.rocketmq.messages.java_int import as_java_int
from logstore.segments.rocketmq.messages.properties import (
    DELAY,
    ORIGIN_MESSAGE_ID,
    RETRY_TOPIC,
    WAIT,
)
from logstore.segments.rocketmq.tables.topics import PERM_WRITE

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.segments.rocketmq.messages.message_draft import MessageDraft
    from logstore.segments.rocketmq.tables.subscription_groups import SubscriptionGroupConfig

#: how Java prints what nobody has said
NULL = "null"
#: the delay level of the first try after the first failure
_FIRST_LEVEL = 3


@attrs.frozen
class SendBack:
    """What a consumer says of a message (ConsumerSendMsgBackRequestHeader)."""

    group: str
    physical_offset: int
    #: 0: as the broker finds right; negative: never again
    delay_level: int
    #: None: what the group's settings say
    reconsume_times_max: int | None = None
    is_unit_mode: bool = False
    #: for the statistics of dead letters: what the consumer calls the topic, and who owns it
    origin_topic: str = NULL
    owner: str = NULL


def send_back(broker: Broker, back: SendBack) -> None:
    """
    Put a message again, for later or as a dead letter.

    Raises:
        RefusedError: group or message are missing, or nothing can be written.

    """
    group = broker.groups.require(back.group)
    if not broker.settings.permission & PERM_WRITE:
        raise RefusedError(
            ResponseCode.NO_PERMISSION,
            f"the broker[{broker.settings.ip1}] sending message is forbidden",
        )
    if group.retry_queue_count <= 0:
        return
    topic = _retry_topic(broker, group, back)
    message = broker.store.message_at(back.physical_offset)
    if message is None:
        raise RefusedError(
            ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {back.physical_offset}"
        )
    properties = dict(message.properties)
    properties.setdefault(RETRY_TOPIC, message.topic)
    properties[WAIT] = "false"
    times_max = back.reconsume_times_max
    if times_max is None:
        times_max = group.retry_times_max
    queue_id = broker.host.rng.randrange(group.retry_queue_count)
    if message.reconsume_times >= times_max or back.delay_level < 0:
        topic = names.dlq_topic(back.group)
        broker.topics.ensure(topic, 1, is_order=False)
        queue_id = 0
        properties[DELAY] = "0"
    else:
        level = back.delay_level or as_java_int(_FIRST_LEVEL + message.reconsume_times)
        properties[DELAY] = str(level)
    if not properties.get(ORIGIN_MESSAGE_ID, "").strip():
        properties[ORIGIN_MESSAGE_ID] = message.offset_message_id
    draft = redraft(
        message,
        topic,
        queue_id,
        properties,
        store_host=broker.store_host,
        reconsume_times=as_java_int(message.reconsume_times + 1),
    )
    _put(broker, draft)
    _count(broker, back, topic, properties[RETRY_TOPIC])


def _count(broker: Broker, back: SendBack, topic: str, sent_from: str) -> None:
    broker.stats.count_sent_back(back.group, sent_from)
    if topic == names.dlq_topic(back.group):
        broker.stats.count_dead_letter(back.group, back.origin_topic, back.owner)


def _put(broker: Broker, draft: MessageDraft) -> None:
    result = broker.store.put_message(draft)
    if not result.is_ok:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, result.status.name)
    if draft.topic != names.SCHEDULE_TOPIC:  # a dead letter
        broker.stats.leave_out(draft.topic, result.size_bytes)


def _retry_topic(broker: Broker, group: SubscriptionGroupConfig, back: SendBack) -> str:
    topic = names.retry_topic(back.group)
    config = broker.topics.ensure(
        topic,
        group.retry_queue_count,
        is_order=False,
        sys_flag=unit_sys_flag(topic, is_unit_mode=back.is_unit_mode),
    )
    if not config.perm & PERM_WRITE:
        raise RefusedError(
            ResponseCode.NO_PERMISSION, f"the topic[{topic}] sending message is forbidden"
        )
    return topic
