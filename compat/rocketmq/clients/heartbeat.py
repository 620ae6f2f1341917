"""
The body of a heart beat (HeartbeatData): the groups that one client process is part of.

Clients write it in their own ways: the C++ client sends enums as numbers, versions as text and
neither tags nor codes. All of them are understood.
"""

from __future__ import annotations

from typing import Any, cast

import attrs
import orjson

from logstore.compat.rocketmq.clients.subscriptions import (
    TAG,
    Subscription,
    codes_of,
    subscription_to,
)
from logstore.compat.rocketmq.wire.json_header import read_patiently

_CONSUME_TYPES = ("CONSUME_ACTIVELY", "CONSUME_PASSIVELY", "CONSUME_POP")
_MESSAGE_MODELS = ("BROADCASTING", "CLUSTERING", "LITE_SELECTIVE")
_CONSUME_FROM = (
    "CONSUME_FROM_LAST_OFFSET",
    "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
    "CONSUME_FROM_MIN_OFFSET",
    "CONSUME_FROM_MAX_OFFSET",
    "CONSUME_FROM_FIRST_OFFSET",
    "CONSUME_FROM_TIMESTAMP",
)
BROADCASTING = "BROADCASTING"


@attrs.frozen
class ConsumerData:
    """One consumer group of a client, by Java's names of its enums; None is what it did not say."""

    group: str
    consume_type: str | None
    message_model: str | None
    consume_from_where: str | None
    subscriptions: tuple[Subscription, ...]
    is_unit_mode: bool = False


@attrs.frozen
class Heartbeat:
    """One heart beat. With a `fingerprint` (version 2) its subscriptions may be left out."""

    client_id: str
    producer_groups: tuple[str, ...]
    consumers: tuple[ConsumerData, ...]
    fingerprint: int = 0
    is_without_subscriptions: bool = False


def read_heartbeat(body: bytes) -> Heartbeat:
    """
    Read the body of a HEART_BEAT.

    Raises:
        ValueError: it is no JSON object, or lacks the client id.

    """
    try:
        content = orjson.loads(body)
    except ValueError:
        content = read_patiently(body)
    data = _object(content)
    if not data.get("clientID"):
        raise ValueError("a heart beat lacks clientID")
    producers = [_object(item) for item in _items(data.get("producerDataSet"))]
    return Heartbeat(
        client_id=str(data["clientID"]),
        producer_groups=tuple(map(_group, producers)),
        consumers=tuple(_read_consumer(_object(c)) for c in _items(data.get("consumerDataSet"))),
        fingerprint=int(data.get("heartbeatFingerprint") or 0),
        is_without_subscriptions=_is_true(data.get("withoutSub")),
    )


def read_subscription(data: dict[str, Any]) -> Subscription:
    """Read one SubscriptionData; codes that were left out are found from the expression."""
    topic = str(data.get("topic") or "")
    sub_string = "*" if data.get("subString") is None else str(data["subString"])
    version = int(data.get("subVersion") or 0)
    expression_type = str(data.get("expressionType") or TAG)
    if "codeSet" not in data:
        return subscription_to(topic, sub_string, expression_type, version)
    tags = tuple(str(tag) for tag in _items(data.get("tagsSet")))
    codes = frozenset(int(code) for code in _items(data.get("codeSet")))
    return Subscription(
        topic,
        sub_string,
        tags,
        codes or codes_of(tags),
        version,
        expression_type,
        _is_true(data.get("classFilterMode")),
    )


def _read_consumer(data: dict[str, Any]) -> ConsumerData:
    return ConsumerData(
        group=_group(data),
        consume_type=_enum(data.get("consumeType"), _CONSUME_TYPES),
        message_model=_enum(data.get("messageModel"), _MESSAGE_MODELS),
        consume_from_where=_enum(data.get("consumeFromWhere"), _CONSUME_FROM),
        subscriptions=tuple(
            read_subscription(_object(item)) for item in _items(data.get("subscriptionDataSet"))
        ),
        is_unit_mode=_is_true(data.get("unitMode")),
    )


def _group(data: dict[str, Any]) -> str:
    """Return the name of a group. Raises ValueError where there is none, not even an empty one."""
    if data.get("groupName") is None:
        raise ValueError("a heart beat has a group without groupName")
    return str(data["groupName"])


def _enum(value: object, names: tuple[str, ...]) -> str | None:
    """
    Return the name of an enum that was sent as its name or as its number, None for no such name.

    As fastjson reads it: in any case, with or without what joins words, numbers in quotes too.

    Raises:
        ValueError: it is no such number, or neither name nor number.

    """
    if isinstance(value, str):
        if value.isascii() and value.isdigit():
            return names[int(value)] if int(value) < len(names) else None
        return {_spelled(name): name for name in names}.get(_spelled(value))
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"a heart beat has {type(value).__name__} where a name belongs")
    if not 0 <= int(value) < len(names):
        raise ValueError(f"a heart beat has {value}, where there are {len(names)} names")
    return names[int(value)]


def _spelled(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _is_true(value: object) -> bool:
    return value is True or str(value).lower() in ("true", "1")


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"a heart beat has {type(value).__name__} where an object belongs")
    return cast("dict[str, Any]", value)


def _items(value: object) -> list[Any]:
    """Return what is in a list; an object in its place is a list of one, for fastjson."""
    if isinstance(value, dict):
        return [cast("dict[str, object]", value)]
    return cast("list[object]", value) if isinstance(value, list) else []
