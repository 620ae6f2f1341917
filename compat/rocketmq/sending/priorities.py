"""
A message with a priority goes to the queue of that number (``SendMessageProcessor``).

A priority goes with nothing else that makes a message special, and is taken out of a message that
has both; whether the topic is one of priorities is not asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from logstore.segments.rocketmq.messages.properties import (
    DELAY,
    HASH_MAP_CAPACITY_5,
    PRIORITY,
    SHARDING_KEY,
    TIMER_DELAY_MS,
    TIMER_DELAY_SECONDS,
    TIMER_DELIVER_MS,
    TRANSACTION_PREPARED,
    encode_properties,
    parse_properties,
)

_INTEGER = re.compile(r"[+-]?[0-9]+")
_INT_MAX = 2**31 - 1
_OTHERWISE_SPECIAL = (DELAY, TIMER_DELIVER_MS, TIMER_DELAY_SECONDS, TIMER_DELAY_MS, SHARDING_KEY)


def read_priority(properties: Mapping[str, str]) -> int:
    """Return the priority of a message, negative if it has none."""
    text = properties.get(PRIORITY, "")
    priority = int(text) if _INTEGER.fullmatch(text) else -1
    return priority if priority <= _INT_MAX else -1


def place_by_priority(text: str, write_queue_count: int) -> tuple[int | None, str]:
    """Return the queue of a message with a priority, None for any, and its properties."""
    found = parse_properties(text.encode())
    priority = read_priority(found)
    if priority < 0:
        return None, text
    is_half = found.get(TRANSACTION_PREPARED, "").lower() == "true"
    if is_half or any(name in found for name in _OTHERWISE_SPECIAL):
        del found[PRIORITY]
        return None, encode_properties(found, capacity=HASH_MAP_CAPACITY_5).decode()
    return min(priority, write_queue_count - 1), text
