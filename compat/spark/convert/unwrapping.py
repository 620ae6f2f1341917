"""Messages that are batches in themselves, taken apart into the messages that they hold."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.segments.rocketmq.columns import MessageColumns, decode_columns
from logstore.segments.rocketmq.messages.message import Message, decode_message, encode_message
from logstore.segments.rocketmq.messages.message_batch import decode_batch_body
from logstore.segments.rocketmq.messages.properties import INNER_BASE
from logstore.segments.rocketmq.messages.system_flags import COMPRESSED, INNER_BATCH, NEED_UNWRAP

_WRAPPING = COMPRESSED | INNER_BATCH | NEED_UNWRAP


def unwrapped(columns: MessageColumns) -> Iterator[tuple[MessageColumns, NDArray[np.int64]]]:
    """Yield the messages in each message, as columns with their queue offsets."""
    start = 0
    data = columns.scan.data
    for size_bytes in columns.size_bytes.tolist():
        message = decode_message(data[start : start + size_bytes].data)
        start += size_bytes
        held = list(held_messages(message))
        records = b"".join(encode_message(one) for one in held)
        offsets = np.array([one.queue_offset for one in held], dtype=np.int64)
        yield decode_columns(records), offsets


def held_messages(message: Message) -> Iterator[Message]:
    """Yield what an inner batch holds, each with a queue offset of its own; or the message."""
    if not message.sys_flag & INNER_BATCH:
        yield message
        return
    base = int(message.properties.get(INNER_BASE, message.queue_offset))
    for index, item in enumerate(decode_batch_body(message.plain_body())):
        one = attrs.evolve(
            message,
            body=item.body,
            properties_text=item.properties_text,
            flag=item.flag,
            sys_flag=message.sys_flag & ~_WRAPPING,
            queue_offset=base + index,
            body_crc=zlib.crc32(item.body) & 0x7FFF_FFFF,
        )
        yield attrs.evolve(one, size_bytes=len(encode_message(one)))
