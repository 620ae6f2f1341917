"""
Names of topics and groups that one side does not allow, spelled so that the other does.

Kafka allows letters, digits, ``.``, ``_`` and ``-``, RocketMQ letters, digits, ``_``, ``-``, ``%``
and ``|``. What is not allowed becomes its two hexadecimal digits behind the escape that only the
target has: ``a.b`` is ``a%2Eb`` in RocketMQ, ``%RETRY%g`` is ``.25RETRY.25g`` in Kafka. Most names
stay as they are. A Kafka topic with the name of one that RocketMQ's brokers keep for themselves
gets its first letter escaped. Retry topics of pops (``enableRetryTopicV2``) have a ``+`` that no
client may write. Groups have any names in Kafka, and RocketMQ's rule is that of its topics.
"""

from __future__ import annotations

import re

_NO_ROCKETMQ = re.compile(r"[^%|a-zA-Z0-9_-]")
_NO_PLAIN = re.compile(r"[^|a-zA-Z0-9_-]")
_NO_KAFKA = re.compile(r"[^a-zA-Z0-9._-]")
#: a broker would take messages of such topics for its own: deliver them, ask who sent them
_BROKERS_OWN = re.compile(r"SCHEDULE_TOPIC_XXXX|(?i:rmq_sys_).*")
_RETRY_V2 = re.compile(r"^(%RETRY%[^+]+)\+")
_ESCAPED = re.compile(r"%([0-9A-F]{2})")
_ESCAPED_RUN = re.compile(r"(?:%[0-9A-F]{2})+")
_DOTTED = re.compile(r"\.([0-9A-F]{2})")


def rocketmq_name(topic: str) -> str:
    """Return what a Kafka topic is called in RocketMQ: its old name there if it had one."""
    restored = _DOTTED.sub(_character, topic)
    odd = _NO_ROCKETMQ.search(_RETRY_V2.sub(r"\1", restored, count=1))
    if restored != topic and kafka_name(restored) == topic and not odd:
        return restored
    return _spelled(topic)


def _spelled(topic: str) -> str:
    escaped = _NO_ROCKETMQ.sub(_escaped, topic)
    return f"%{ord(topic[0]):02X}{escaped[1:]}" if _BROKERS_OWN.fullmatch(topic) else escaped


def kafka_name(topic: str) -> str:
    """Return what a RocketMQ topic is called in Kafka: its old name there if it had one."""
    restored = _ESCAPED.sub(_character, topic)
    is_kafkas = restored != topic and not _NO_KAFKA.search(restored)
    if is_kafkas and _spelled(restored) == topic:
        return restored
    return _NO_KAFKA.sub(lambda found: f".{ord(found[0]):02X}", topic)


def rocketmq_group(group: str) -> str:
    """
    Return what a Kafka group is called in RocketMQ, whose clients refuse ``my.app``.

    A group that is called like the spelling of another gets its ``%`` spelled, too.
    """
    spelled = _NO_ROCKETMQ.sub(_escaped, group)
    other = _unescaped(spelled)
    if other == group or (spelled == group and rocketmq_group(other) != spelled):
        return spelled
    return _NO_PLAIN.sub(_escaped, group)


def kafka_group(group: str) -> str:
    """Return what a RocketMQ group is called in Kafka, which takes any name: its old one there."""
    restored = _unescaped(group)
    return restored if rocketmq_group(restored) == group else group


def _unescaped(group: str) -> str:
    """Return a group with its escapes as the bytes of UTF-8 that they are; as it is if not."""
    try:
        return _ESCAPED_RUN.sub(_text, group)
    except UnicodeDecodeError:
        return group


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode())


def _text(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("%", "")).decode()


def _character(found: re.Match[str]) -> str:
    return chr(int(found[1], 16))
