"""Topics made, changed and deleted by administrators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.lite.lite_rules import is_parent
from logstore.compat.rocketmq.topics.attributes import Number, OneOf, Rules, changed_attributes
from logstore.compat.rocketmq.topics.names import LMQ_PREFIX, check_topic
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_flag, read_int, read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.segments.rocketmq.messages.java_strings import java_hash_map_order
from logstore.segments.rocketmq.tables.topics import TopicConfig

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker

_FILTER_TYPES = ("SINGLE_TAG", "MULTI_TAG")

#: what topics can be told (TopicAttributes)
_ATTRIBUTES: Rules = {
    "queue.type": OneOf(java_hash_map_order(("BatchCQ", "SimpleCQ"), 3), is_changeable=False),
    "cleanup.policy": OneOf(java_hash_map_order(("DELETE", "COMPACTION"), 3), is_changeable=False),
    "message.type": OneOf(
        java_hash_map_order(
            ("UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "PRIORITY", "LITE", "MIXED"),
            11,
        )
    ),
    "reserve.time": Number(-1),
    "lite.topic.expiration": Number(-1, 30 * 24 * 60),
}


def parse_attributes(text: str) -> dict[str, str]:
    """
    Return changes of attributes by name, sign included: ``+a=1,-b`` (AttributeParser).

    Raises:
        RefusedError: SYSTEM_ERROR; the text is not of that form.

    """
    changes: dict[str, str] = {}
    for item in filter(None, text.split(",")):
        name, has_value, value = item.partition("=")
        if not name.startswith("+" if has_value else "-") or not name:
            raise RefusedError(
                ResponseCode.SYSTEM_ERROR,
                f"add/alter attribute format is wrong: {item}"
                if has_value
                else f"delete attribute format is wrong: {item}",
            )
        if name in changes:
            raise RefusedError(ResponseCode.SYSTEM_ERROR, f"key duplication: {name}")
        changes[name] = value
    return changes


def read_topic(broker: Broker, fields: Mapping[str, str]) -> TopicConfig:
    """
    Return the topic that a request's fields describe; its `attributes` are changes.

    Raises:
        RefusedError: there can be no such topic, or none that an administrator may ask for.

    """
    filter_type = read_text(fields, "topicFilterType")
    if filter_type not in _FILTER_TYPES:
        remark = f"topicFilterType = [{filter_type}] value invalid"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    topic = read_text(fields, "topic")
    check_topic(topic)
    check_not_system(broker, topic)
    return TopicConfig(
        topic,
        read_int(fields, "readQueueNums"),
        read_int(fields, "writeQueueNums"),
        read_int(fields, "perm"),
        filter_type,
        read_int(fields, "topicSysFlag", 0),
        read_flag(fields, "order"),
        parse_attributes(fields.get("attributes") or ""),
    )


def check_not_system(broker: Broker, topic: str) -> None:
    """
    Refuse a topic of the broker's own, unless ``validateSystemTopicWhenUpdateTopic`` is off.

    Raises:
        RefusedError: INVALID_PARAMETER.

    """
    if broker.settings.protects_system_topics and broker.topics.is_system(topic):
        raise RefusedError(
            ResponseCode.INVALID_PARAMETER, f"The topic[{topic}] is conflict with system topic."
        )


def check_change(broker: Broker, wanted: TopicConfig) -> None:
    """
    Refuse what no administrator may ask for; see :func:`put_topic`.

    Raises:
        RefusedError: it is one of the broker's own, or is to take messages of all types.

    """
    check_not_system(broker, wanted.topic_name)
    is_mixed = wanted.attributes.get("+message.type") == "MIXED"
    if is_mixed and not broker.settings.allows_mixed_messages:
        raise RefusedError(ResponseCode.INVALID_PARAMETER, "MIXED message type is not supported.")


def put_topic(broker: Broker, wanted: TopicConfig) -> None:
    """
    Make or change a topic; its `attributes` are changes with a sign in front of their names.

    Raises:
        RefusedError: it is one of the broker's own, or an attribute cannot be what it is told.

    """
    check_change(broker, wanted)
    known = broker.topics.get(wanted.topic_name)
    current: Mapping[str, str] = {} if known is None else known.attributes
    attributes = changed_attributes(current, wanted.attributes, _ATTRIBUTES, is_new=known is None)
    changed = attrs.evolve(wanted, attributes=attributes)
    if changed != known:
        broker.topics.put(changed)


def delete_topic(broker: Broker, topic: str) -> None:
    """
    Delete a topic: its settings, what groups committed in it, and its queues.

    That nothing is committed any more is on the disk at once: groups of a topic of the same name
    would begin behind its first messages.

    Raises:
        OSError, StorageError: the disk refused, and the topic may be deleted in part; once more.

    """
    broker.catch_up()  # or what comes into a queue that is gone would make it anew
    if is_parent(broker.topics.get(topic)):
        broker.lite.expiry.parent_is_going(topic)
    broker.topics.remove(topic)
    broker.static_topics.delete(topic)
    broker.store.consumer_offsets.remove_topic(topic)
    if broker.has_popped:
        broker.popping.in_flight.forget_topic(topic)
    queues = [(topic, queue_id) for queue_id in broker.store.topics().get(topic, {})]
    broker.store.delete_topics({topic})
    if (wheel := broker.timed_delivery.timer_store) is not None:
        wheel.metrics.forget(topic)
    if queues and broker.settings.forgets_unused_stats and not topic.startswith(LMQ_PREFIX):
        broker.stats.forget_topic(topic)
    broker.held_pulls.wake_all(queues)
    broker.store.commit_log.commit()
    broker.store.commit_log.flush()
    broker.store.consumer_offsets.persist_if_dirty()
