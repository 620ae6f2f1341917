"""
Messages of gRPC clients as a broker stores them: their properties, and the queue they go to.

Source: ``SendMessageActivity``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.lite.lite_names import LITE_TOPIC
from logstore.compat.rocketmq.proxy.checks import (
    check_word,
    has_control_characters,
    lite_topic_of,
)
from logstore.compat.rocketmq.proxy.codes import GZIP, Code, MessageType
from logstore.compat.rocketmq.proxy.failures import ProxyError
from logstore.compat.rocketmq.proxy.reserved_names import RESERVED
from logstore.compat.rocketmq.proxy.times import is_time, seconds_of, time_ms_of
from logstore.segments.rocketmq.messages import properties as names
from logstore.segments.rocketmq.messages.java_strings import is_java_blank
from logstore.segments.rocketmq.messages.system_flags import COMPRESSED, TRANSACTION_PREPARED
from logstore.segments.rocketmq.settings.delay_levels import DelayLevels

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.proxy_settings import ProxySettings

SHARDING_KEY, TRACE_CONTEXT = names.SHARDING_KEY, names.TRACE_CONTEXT
BORN_HOST, BORN_TIMESTAMP = "__BORNHOST", names.BORN_TIMESTAMP
_TIMED = frozenset(
    (names.DELAY, names.TIMER_DELIVER_MS, names.TIMER_DELAY_SECONDS, names.TIMER_DELAY_MS)
)
_RECONSUME_TIME = "RECONSUME_TIME"


def check_body(body: bytes, limits: ProxySettings) -> None:
    """Raise ProxyError for a body that is empty or too large."""
    if not body and limits.refuses_empty_bodies:
        raise ProxyError(Code.MESSAGE_BODY_EMPTY, "message body cannot be empty")
    if len(body) > limits.body_bytes_max > 0:
        text = f"message body cannot exceed the max {limits.body_bytes_max}"
        raise ProxyError(Code.MESSAGE_BODY_TOO_LARGE, text)


def sys_flag_of(message: Any) -> int:
    """Return the flags of a stored message."""
    about = message.system_properties
    flag = COMPRESSED if about.body_encoding == GZIP else 0
    return flag | (TRANSACTION_PREPARED if about.message_type == MessageType.TRANSACTION else 0)


def properties_of(message: Any, peer: str, now_ms: int, limits: ProxySettings) -> dict[str, str]:
    """
    Return the properties that `message` is stored with.

    `peer` is the client's address.

    Raises:
        ProxyError: a broker cannot store them, or must not.

    """
    about = message.system_properties
    found = _user_properties(message, limits.property_count_max)
    size_bytes = sum([len(name.encode()) + len(value.encode()) for name, value in found.items()])
    tag, keys, message_id = about.tag, about.keys, about.message_id
    check_word(tag, Code.ILLEGAL_MESSAGE_TAG, "tag", forbidden="|")
    found[names.TAGS] = tag
    size_bytes += len(tag.encode())
    for key in keys:
        check_word(key, Code.ILLEGAL_MESSAGE_KEY, "key")
        size_bytes += len(key.encode())
    if keys:
        found[names.KEYS] = " ".join(keys)
    if size_bytes > limits.properties_bytes_max:
        text = f"the total size of user property is too large, max is {limits.properties_bytes_max}"
        raise ProxyError(Code.MESSAGE_PROPERTIES_TOO_LARGE, text)
    if is_java_blank(message_id):
        raise ProxyError(Code.ILLEGAL_MESSAGE_ID, "message id cannot be empty")
    found[names.UNIQUE_KEY] = message_id
    _add_transaction(found, about, limits.transaction_recovery_seconds_max)
    _add_delivery(found, about, now_ms, limits)
    found[_RECONSUME_TIME] = str(about.delivery_attempt)
    found[names.PRODUCER_GROUP] = message.topic.name
    _add_origin(found, about, peer, limits)
    return found


def _user_properties(message: Any, count_max: int) -> dict[str, str]:
    properties = message.user_properties
    found = dict(properties) if properties else {}
    if len(found) > count_max:
        text = f"too many user properties, max is {count_max}"
        raise ProxyError(Code.MESSAGE_PROPERTIES_TOO_LARGE, text)
    for name, value in found.items():
        if name in RESERVED:
            text = f"property is used by system: {name}"
            raise ProxyError(Code.ILLEGAL_MESSAGE_PROPERTY_KEY, text)
        for part, what in ((name, "key"), (value, "value")):
            if has_control_characters(part):
                text = f"the {what} of property cannot contain control character"
                raise ProxyError(Code.ILLEGAL_MESSAGE_PROPERTY_KEY, text)
    return found


def _add_transaction(found: dict[str, str], about: Any, seconds_max: int) -> None:
    if about.message_type != MessageType.TRANSACTION:
        return
    found[names.TRANSACTION_PREPARED] = "true"
    if about.HasField("orphaned_transaction_recovery_duration"):
        seconds = seconds_of(about.orphaned_transaction_recovery_duration)
        if seconds > seconds_max > 0:
            text = (
                f"the max transaction recovery time of message is too large, max is {seconds_max}"
            )
            raise ProxyError(Code.BAD_REQUEST, text)
        found[names.CHECK_IMMUNITY_TIME] = str(seconds)


def _add_delivery(found: dict[str, str], about: Any, now_ms: int, limits: ProxySettings) -> None:
    delay_ms_max = limits.delay_ms_max
    if about.HasField("delivery_timestamp"):
        due_ms = time_ms_of(about.delivery_timestamp)
        if due_ms - now_ms > delay_ms_max > 0:
            text = f"the max delay time of message is too large, max is {delay_ms_max}"
            raise ProxyError(Code.ILLEGAL_DELIVERY_TIME, text)
        if limits.uses_delay_levels:  # a broker goes by these where it is told both
            levels = DelayLevels.parse(limits.delay_levels)
            found[names.DELAY] = str(levels.level_of_delay(due_ms - now_ms))
        found[names.TIMER_DELIVER_MS] = str(due_ms)
    if about.HasField("priority"):
        if about.priority < 0:
            text = "The priority must be greater than or equal to 0"
            raise ProxyError(Code.INTERNAL_SERVER_ERROR, text)
        found[names.PRIORITY] = str(about.priority)


def _add_origin(found: dict[str, str], about: Any, peer: str, limits: ProxySettings) -> None:
    group, host, born = about.message_group, about.born_host, about.born_timestamp
    if group:
        what = "message group"
        check_word(group, Code.ILLEGAL_MESSAGE_GROUP, what)
        group_bytes_max = limits.message_group_bytes_max
        if len(group.encode()) >= group_bytes_max > 0:
            text = f"{what} exceed the max size {group_bytes_max}"
            raise ProxyError(Code.ILLEGAL_MESSAGE_GROUP, text)
        found[SHARDING_KEY] = group
    if about.lite_topic:
        found[LITE_TOPIC] = lite_topic_of(about.lite_topic, limits.lite_topic_bytes_max)
    if about.trace_context:
        found[TRACE_CONTEXT] = about.trace_context
    found[BORN_HOST] = peer if is_java_blank(host) else host
    if is_time(born):
        found[BORN_TIMESTAMP] = str(time_ms_of(born))


def type_of(properties: dict[str, str]) -> MessageType:
    """Return what kind of message these properties make (``TopicMessageType``)."""
    if properties.get(names.TRANSACTION_PREPARED) == "true":
        return MessageType.TRANSACTION
    if not _TIMED.isdisjoint(properties):
        return MessageType.DELAY
    if SHARDING_KEY in properties:
        return MessageType.FIFO
    if names.PRIORITY in properties:
        return MessageType.PRIORITY
    return MessageType.LITE if LITE_TOPIC in properties else MessageType.NORMAL
