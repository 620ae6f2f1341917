"""Bodies of answers: compact JSON as Java writes it, with objects as keys where it has them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

import orjson

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.message_queue import MessageQueue
from logstore.compat.rocketmq.wire.refusals import RefusedError


def json_body(value: object) -> bytes:
    """Return `value` as compact JSON; fields stand in alphabetical order, as with fastjson."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)


def queue_table(table: Mapping[MessageQueue, Any], *, is_concurrent: bool = True) -> bytes:
    """
    Return a map from queues to values as fastjson writes it: ``{{"brokerName":…}:value,…}``.

    That is no standard JSON, and what every client and tool of RocketMQ reads.
    """
    order = in_map_order(table, is_concurrent=is_concurrent)
    pieces = [json_body(queue.to_json()) + b":" + json_body(table[queue]) for queue in order]
    return b"{" + b",".join(pieces) + b"}"


def in_map_order(table: Collection[MessageQueue], *, is_concurrent: bool) -> list[MessageQueue]:
    """
    Return queues in the order of Java's ``ConcurrentHashMap``, or of its ``HashMap``.

    That one grows one entry later.
    """
    size = 16
    while len(table) >= size * 3 // 4 + (0 if is_concurrent else 1):
        size *= 2
    return sorted(table, key=lambda queue: queue.spread_hash & size - 1)


def number_table(table: Mapping[int, Any]) -> bytes:
    """Return a map from numbers to values as fastjson writes it: the keys have no quotes."""
    pieces = [b"%d:" % number + json_body(value) for number, value in table.items()]
    return b"{" + b",".join(pieces) + b"}"


def object_body(**members: object) -> bytes:
    """Return an object; members that are bytes stand in it as they are."""
    pieces = [
        json_body(name) + b":" + (value if isinstance(value, bytes) else json_body(value))
        for name, value in sorted(members.items())
        if value is not None
    ]
    return b"{" + b",".join(pieces) + b"}"


def read_object(body: bytes | memoryview) -> dict[str, Any]:
    """
    Read a request's body, which must be a JSON object.

    Raises:
        RefusedError: SYSTEM_ERROR; it is something else.

    """
    try:
        value = orjson.loads(bytes(body))
    except ValueError as error:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"the body is no JSON: {error}") from error
    return _as_object(value)


def objects_in(content: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """
    Return the objects in a list that is a member of a body; none where it is missing, null or "".

    An object in its place is a list of one, for fastjson.

    Raises:
        RefusedError: SYSTEM_ERROR; it is no list, or holds something else.

    """
    items: object = content.get(name)
    if items is None or items == "":
        return []
    if isinstance(items, dict):
        return [cast("dict[str, Any]", items)]
    if not isinstance(items, list):
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"{name} in the body is no list")
    return [_as_object(item) for item in cast("list[object]", items)]


def object_in(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    """
    Return an object that is a member of a body; an empty one where it is missing, null or "".

    Raises:
        RefusedError: SYSTEM_ERROR; it is something else.

    """
    value: object = content.get(name)
    return {} if value is None or value == "" else _as_object(value)


def _as_object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        kind = type(value).__name__
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"an object belongs where a {kind} stands")
    return cast("dict[str, Any]", value)
