"""Topics made, changed and deleted by administrators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.topics.names import check_topic
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_flag, read_int, read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.segments.rocketmq.messages.java_strings import java_hash_map_order
from logstore.segments.rocketmq.tables.topics import TopicConfig

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker

_FILTER_TYPES = ("SINGLE_TAG", "MULTI_TAG")

#: what topics can be told, and what each takes (TopicAttributes), in the order of Java's sets
_ENUMS = {
    "queue.type": java_hash_map_order(("BatchCQ", "SimpleCQ"), 3),
    "cleanup.policy": java_hash_map_order(("DELETE", "COMPACTION"), 3),
    "message.type": java_hash_map_order(
        ("UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "PRIORITY", "LITE", "MIXED"),
        11,
    ),
}
#: from -1 on, up to these
_NUMBERS = {"reserve.time": 2**63 - 1, "lite.topic.expiration": 30 * 24 * 60}
#: these are settled when a topic is made
_UNCHANGEABLE = ("queue.type", "cleanup.policy")


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
    Refuse a topic of the broker's own.

    Raises:
        RefusedError: INVALID_PARAMETER.

    """
    if broker.topics.is_system(topic):
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
    if wanted.attributes.get("+message.type") == "MIXED":
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
    changed = attrs.evolve(
        wanted, attributes=_changed(current, wanted.attributes, is_new=known is None)
    )
    if changed != known:
        broker.topics.put(changed)


def _changed(
    current: Mapping[str, str], changes: Mapping[str, str], *, is_new: bool
) -> dict[str, str]:
    for signed_name in changes:
        _check_name(signed_name, current, is_new=is_new)
    attributes = dict(current)
    for signed_name, value in changes.items():
        name = signed_name[1:]
        _check_value(name, value, is_new=is_new, is_set=signed_name.startswith("+"))
        if signed_name.startswith("+"):
            attributes[name] = value
        else:
            attributes.pop(name, None)
    return attributes


def _check_name(signed_name: str, current: Mapping[str, str], *, is_new: bool) -> None:
    name = signed_name[1:]
    flaw = None
    if not name or "+" in name or "-" in name:
        flaw = "kv string format wrong."
    elif signed_name.startswith("+"):
        return
    elif is_new:
        flaw = f"only add attribute is supported while creating topic. key: {name}"
    elif not signed_name.startswith("-"):
        flaw = f"wrong format key: {name}"
    elif name not in current:
        flaw = f"attempt to delete a nonexistent key: {name}"
    if flaw is not None:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, flaw)


def _check_value(name: str, value: str, *, is_new: bool, is_set: bool) -> None:
    if name not in _ENUMS and name not in _NUMBERS:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"unsupported key: {name}")
    if not is_new and name in _UNCHANGEABLE:
        raise RefusedError(
            ResponseCode.SYSTEM_ERROR, f"attempt to update an unchangeable attribute. key: {name}"
        )
    if is_set and value not in _ENUMS.get(name, (value,)):
        raise RefusedError(
            ResponseCode.SYSTEM_ERROR, f"value is not in set: [{', '.join(_ENUMS[name])}]"
        )
    if is_set and name in _NUMBERS:
        if not value.lstrip("-").isdigit():
            raise RefusedError(ResponseCode.SYSTEM_ERROR, f'For input string: "{value}"')
        if not -1 <= int(value) <= _NUMBERS[name]:
            raise RefusedError(
                ResponseCode.SYSTEM_ERROR, f"value is not in range(-1, {_NUMBERS[name]})"
            )


def delete_topic(broker: Broker, topic: str) -> None:
    """
    Delete a topic: its settings, what groups committed in it, and its queues.

    That nothing is committed any more is on the disk at once: groups of a topic of the same name
    would begin behind its first messages.

    Raises:
        OSError, StorageError: the disk refused, and the topic may be deleted in part; once more.

    """
    broker.catch_up()  # or what comes into a queue that is gone would make it anew
    broker.topics.remove(topic)
    broker.static_topics.delete(topic)
    broker.store.consumer_offsets.remove_topic(topic)
    queues = [(topic, queue_id) for queue_id in broker.store.topics().get(topic, {})]
    broker.store.delete_topics({topic})
    broker.held_pulls.wake_all(queues)
    broker.store.commit_log.commit()
    broker.store.commit_log.flush()
    broker.store.consumer_offsets.persist_if_dirty()
