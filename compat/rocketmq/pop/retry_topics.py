"""Topics that popped messages come back from: one for each group and topic (KeyBuilder)."""

from __future__ import annotations

from logstore.compat.rocketmq.topics.names import RETRY_PREFIX

_SEPARATOR_V1, _SEPARATOR_V2 = "_", "+"
#: how answers and handles call the three kinds of topics
NORMAL, RETRY_V1, RETRY_V2 = "0", "1", "2"


def pop_retry_topic(topic: str, group: str, *, is_v2: bool = False) -> str:
    """Return where messages of `topic` go that `group` did not acknowledge."""
    return f"{RETRY_PREFIX}{group}{_SEPARATOR_V2 if is_v2 else _SEPARATOR_V1}{topic}"


def normal_topic(topic: str, group: str) -> str:
    """Return the topic whose messages come back from `topic`, or `topic` if it is no such one."""
    if not topic.startswith(RETRY_PREFIX):
        return topic
    for separator in (_SEPARATOR_V2, _SEPARATOR_V1):
        start = f"{RETRY_PREFIX}{group}{separator}"
        if topic.startswith(start):
            return topic[len(start) :]
    return topic


def kind_of(topic: str) -> str:
    """Return whether messages of a topic are new or come back, as one letter."""
    if not topic.startswith(RETRY_PREFIX):
        return NORMAL
    return RETRY_V2 if _SEPARATOR_V2 in topic else RETRY_V1


def topic_of_kind(topic: str, group: str, kind: str) -> str:
    """
    Return the topic that a client means by the letter.

    Raises:
        ValueError: there is no such kind.

    """
    if kind == NORMAL:
        return topic
    if kind not in (RETRY_V1, RETRY_V2):
        raise ValueError("getRetry fail, format is wrong")
    return pop_retry_topic(topic, group, is_v2=kind == RETRY_V2)
