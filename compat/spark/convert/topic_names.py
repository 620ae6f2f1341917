"""
Topic names that one side does not allow, spelled so that the other does.

Kafka allows letters, digits, ``.``, ``_`` and ``-``, RocketMQ letters, digits, ``_``, ``-``, ``%``
and ``|``. What is not allowed becomes its two hexadecimal digits behind the escape that only the
target has: ``a.b`` is ``a%2Eb`` in RocketMQ, ``%RETRY%g`` is ``.25RETRY.25g`` in Kafka. Most names
stay as they are. Retry topics of pops (``enableRetryTopicV2``) have a ``+`` that no client may
write.
"""

from __future__ import annotations

import re

_NO_ROCKETMQ = re.compile(r"[^%|a-zA-Z0-9_-]")
_NO_KAFKA = re.compile(r"[^a-zA-Z0-9._-]")
_RETRY_V2 = re.compile(r"^(%RETRY%[^+]+)\+")
_ESCAPED = re.compile(r"%([0-9A-F]{2})")
_DOTTED = re.compile(r"\.([0-9A-F]{2})")


def rocketmq_name(topic: str) -> str:
    """Return what a Kafka topic is called in RocketMQ: its old name there if it had one."""
    restored = _DOTTED.sub(_character, topic)
    odd = _NO_ROCKETMQ.search(_RETRY_V2.sub(r"\1", restored, count=1))
    if restored != topic and kafka_name(restored) == topic and not odd:
        return restored
    return _NO_ROCKETMQ.sub(lambda found: f"%{ord(found[0]):02X}", topic)


def kafka_name(topic: str) -> str:
    """Return what a RocketMQ topic is called in Kafka: its old name there if it had one."""
    restored = _ESCAPED.sub(_character, topic)
    is_kafkas = restored != topic and not _NO_KAFKA.search(restored)
    if is_kafkas and _NO_ROCKETMQ.sub(lambda found: f"%{ord(found[0]):02X}", restored) == topic:
        return restored
    return _NO_KAFKA.sub(lambda found: f".{ord(found[0]):02X}", topic)


def _character(found: re.Match[str]) -> str:
    return chr(int(found[1], 16))
