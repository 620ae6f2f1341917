"""Stored messages as gRPC clients receive them (``GrpcConverter``)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.lite.lite_names import LITE_TOPIC
from logstore.compat.rocketmq.proxy.codes import GZIP, IDENTITY, MD5
from logstore.compat.rocketmq.proxy.reserved_names import RESERVED
from logstore.compat.rocketmq.proxy.schema import MESSAGES
from logstore.compat.rocketmq.proxy.sent_messages import (
    BORN_HOST,
    SHARDING_KEY,
    TRACE_CONTEXT,
    type_of,
)
from logstore.compat.rocketmq.sending.priorities import read_priority
from logstore.segments.rocketmq.messages import properties as names

if TYPE_CHECKING:
    from logstore.segments.rocketmq.messages.message import Message


def message_for_client(
    message: Message,
    topic: str,
    handle: str | None,
    delivered_count: int,
    now_ms: int,
    lite_offset: int | None = None,
) -> Any:
    """
    Return a message of `topic`; `handle` is that of its pop, None where it was not popped.

    `lite_offset` is its place in a lite topic, which then counts instead of that in its queue.
    """
    known = message.properties
    told = MESSAGES["Message"](
        topic={"name": topic},
        user_properties={name: value for name, value in known.items() if name not in RESERVED},
        body=message.body,
    )
    about = told.system_properties
    if names.TAGS in known:
        about.tag = known[names.TAGS]
    about.keys.extend(_keys(known.get(names.KEYS)))
    about.message_id = known.get(names.UNIQUE_KEY) or message.offset_message_id
    about.body_digest.type = MD5
    about.body_digest.checksum = (
        hashlib.md5(message.body, usedforsecurity=False).hexdigest().upper()
    )
    about.body_encoding = GZIP if message.is_compressed else IDENTITY
    about.message_type = int(type_of(known))
    about.born_timestamp.FromMilliseconds(message.born_timestamp_ms)
    about.born_host = known.get(BORN_HOST) or message.born_host.host
    about.store_timestamp.FromMilliseconds(message.store_timestamp_ms)
    about.store_host = f"{message.store_host.host}:{message.store_host.port}"
    _add_delivery(about, known, now_ms)
    _add_kind(about, known)
    if handle is not None:
        about.receipt_handle = handle
    about.queue_id = message.queue_id
    about.queue_offset = message.queue_offset if lite_offset is None else lite_offset
    about.delivery_attempt = delivered_count + 1
    if TRACE_CONTEXT in known:
        about.trace_context = known[TRACE_CONTEXT]
    if names.DLQ_ORIGIN_TOPIC in known and names.DLQ_ORIGIN_MESSAGE_ID in known:
        about.dead_letter_queue.topic = known[names.DLQ_ORIGIN_TOPIC]
        about.dead_letter_queue.message_id = known[names.DLQ_ORIGIN_MESSAGE_ID]
    return told


def _add_kind(about: Any, known: dict[str, str]) -> None:
    """Say what messages of some types alone have."""
    priority = read_priority(known)
    if priority >= 0:
        about.priority = priority
    if SHARDING_KEY in known:
        about.message_group = known[SHARDING_KEY]
    if LITE_TOPIC in known:
        about.lite_topic = known[LITE_TOPIC]


def _keys(text: str | None) -> list[str]:
    """Return the keys as ``String.split`` does: nothing for what is missing at the end."""
    if text is None:
        return []
    found = text.split(" ")
    while len(found) > 1 and not found[-1]:
        found.pop()
    return found


def _add_delivery(about: Any, known: dict[str, str], now_ms: int) -> None:
    if names.TIMER_DELAY_SECONDS in known:
        due_ms = now_ms + 1000 * int(known[names.TIMER_DELAY_SECONDS])
    elif names.TIMER_DELIVER_MS in known:
        due_ms = int(known[names.TIMER_DELIVER_MS])
    else:
        return
    about.delivery_timestamp.FromMilliseconds(due_ms)
