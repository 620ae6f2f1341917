"""Bodies of answers: compact JSON as Java writes it, with objects as keys where it has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from logstore.compat.rocketmq.queue_locks import MessageQueue


def json_body(value: object) -> bytes:
    """Return `value` as compact JSON; fields stand in alphabetical order, as with fastjson."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)


def queue_table(table: Mapping[MessageQueue, Any]) -> bytes:
    """
    Return a map from queues to values as fastjson writes it: ``{{"brokerName":…}:value,…}``.

    That is no standard JSON, and what every client and tool of RocketMQ reads.
    """
    pieces = [json_body(queue.to_json()) + b":" + json_body(table[queue]) for queue in table]
    return b"{" + b",".join(pieces) + b"}"


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
        ValueError: it is something else.

    """
    value = orjson.loads(bytes(body))
    if not isinstance(value, dict):
        raise ValueError(f"the body is a {type(value).__name__}, not an object")
    return value
