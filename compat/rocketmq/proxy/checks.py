"""What may stand in requests (``GrpcValidator``, ``SendMessageActivity``)."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from logstore.compat.rocketmq.proxy.codes import Code
from logstore.compat.rocketmq.proxy.failures import ProxyError
from logstore.compat.rocketmq.proxy.times import milliseconds_of
from logstore.compat.rocketmq.topics import names
from logstore.segments.rocketmq.messages.java_strings import is_java_blank, java_length

_TOPIC_LENGTH_MAX, _GROUP_LENGTH_MAX = 127, 120
_ALLOWED = re.compile(r"[%|a-zA-Z0-9_-]+")
_LITE_ALLOWED = re.compile(r"[a-zA-Z0-9_-]+")
_GROUP_PREFIX = "CID_RMQ_SYS_"


def topic_of(resource: Any) -> str:
    """Return a topic's name. Raises ProxyError: no client may use it."""
    topic: str = resource.name
    flaw = _flaw(topic)
    if java_length(topic) > _TOPIC_LENGTH_MAX:
        flaw = f" is longer than topic max length {_TOPIC_LENGTH_MAX}."
    if flaw is not None:
        raise ProxyError(Code.ILLEGAL_TOPIC, f"The specified topic{flaw}")
    if topic in names.SYSTEM_TOPICS or topic.startswith(names.SYSTEM_PREFIX):
        raise ProxyError(Code.ILLEGAL_TOPIC, "cannot access system topic")
    return topic


def group_of(resource: Any) -> str:
    """Return a group's name. Raises ProxyError: no client may use it."""
    group: str = resource.name
    flaw = _flaw(group)
    if java_length(group) > _GROUP_LENGTH_MAX:
        flaw = f"[{group}] is longer than group max length: {_GROUP_LENGTH_MAX}."
    if flaw is not None:
        raise ProxyError(Code.ILLEGAL_CONSUMER_GROUP, f"the specified group{flaw}")
    if group.startswith(_GROUP_PREFIX):
        raise ProxyError(Code.ILLEGAL_CONSUMER_GROUP, "cannot use system consumer group")
    return group


def _flaw(name: str) -> str | None:
    """Return what is wrong with a name, as Java's clients say it (``Validators``)."""
    if is_java_blank(name):
        return " is blank"
    if _ALLOWED.fullmatch(name) is None:
        return f"[{name}] contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"
    return None


def invisible_ms(duration: Any, min_ms: int, max_ms: int) -> int:
    """Return how long a message is to be invisible; no `max_ms` is 0. Raises ProxyError."""
    value_ms = milliseconds_of(duration)
    if value_ms < min_ms:
        text = f"the invisibleTime is too small. min is {min_ms}"
        raise ProxyError(Code.ILLEGAL_INVISIBLE_TIME, text)
    if value_ms > max_ms > 0:
        text = f"the invisibleTime is too large. max is {max_ms}"
        raise ProxyError(Code.ILLEGAL_INVISIBLE_TIME, text)
    return value_ms


def lite_topic_of(text: str, bytes_max: int) -> str:
    """Return the name of a lite topic. Raises ProxyError: no client may use it."""
    flaw = None
    if is_java_blank(text):
        flaw = "cannot be the char sequence of whitespace"
    elif len(text.encode()) > bytes_max:
        flaw = f"exceed the max size {bytes_max}"
    elif _LITE_ALLOWED.fullmatch(text) is None:
        flaw = "can only contain alphanumeric characters, hyphens(-), and underscores(_)"
    if flaw is not None:
        raise ProxyError(Code.ILLEGAL_LITE_TOPIC, f"lite topic {flaw}")
    return text


def has_control_characters(text: str) -> bool:
    """Tell whether there are any of ISO's."""
    return any(unicodedata.category(letter) == "Cc" for letter in text)


def check_word(text: str, code: Code, what: str, *, forbidden: str = "") -> None:
    """Raise ProxyError for a word of blanks alone, or with `forbidden` or control characters."""
    if not text:
        return
    if is_java_blank(text):
        raise ProxyError(code, f"{what} cannot be the char sequence of whitespace")
    if forbidden and forbidden in text:
        raise ProxyError(code, f"{what} cannot contain '{forbidden}'")
    if has_control_characters(text):
        raise ProxyError(code, f"{what} cannot contain control character")
