"""The loops of :mod:`logstore.compat.bridge.compiled.records_to_messages` as pulls call them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from logstore.compat.bridge.compiled.records_to_messages import (
    COLUMNS,
    FRAME_BYTES_MAX,
    MESSAGE_COLUMNS,
    MESSAGE_END,
    NOT_PLAIN,
    OFFSET,
    TAGS_CODE,
    write_stored,
)
from logstore.compat.record_mapping import STEERING
from logstore.segments.kafka.compression import Codec, CompressionError, decompress
from logstore.segments.kafka.record_batch import CODEC_MASK, HEADER_BYTES, MAGIC, RecordBatch
from logstore.segments.rocketmq.messages.message_draft import draft_message
from logstore.segments.rocketmq.messages.message_layout import FIXED_FIELDS

if TYPE_CHECKING:
    from logstore.segments.rocketmq.messages.host_address import HostAddress

#: the messages back to back; offset, end among them and tags code of each
StoredMessages = tuple[bytes, list[int], list[int], list[int]]


def stored_messages(
    batches: Sequence[RecordBatch],
    first_offset: int,
    place: tuple[str, int, int],
    host: HostAddress,
) -> StoredMessages | None:
    """
    Return the messages that the records from `first_offset` on are; None if one is not plain.

    `place` are topic, queue, and the place of offset 0; who was no message was born at `host`.
    """
    bodies = [_records(batch) for batch in batches]
    if None in bodies:
        return None
    data = b"".join(body for body in bodies if body is not None)
    source = np.frombuffer(data, np.uint8)
    source.flags.writeable = False
    topic, queue_id, first_place = place
    name = np.frombuffer(topic.encode(), np.uint8)
    count = sum(batch.record_count for batch in batches)
    target = np.empty(len(data) + count * (FRAME_BYTES_MAX + len(name)), np.uint8)
    messages = np.empty((count, MESSAGE_COLUMNS), np.int64)
    found = int(
        write_stored(
            source, _table([len(body or b"") for body in bodies], batches), first_offset,
            first_place, (_head(topic, host), name, queue_id), _steering(), target, messages,
        )
    )  # fmt: skip
    if found == NOT_PLAIN:
        return None
    messages = messages[:found]
    size_bytes = int(messages[-1, MESSAGE_END]) if found else 0
    return (
        target[:size_bytes].tobytes(),
        messages[:, OFFSET].tolist(),
        messages[:, MESSAGE_END].tolist(),
        messages[:, TAGS_CODE].tolist(),
    )


def _table(sizes: Sequence[int], batches: Sequence[RecordBatch]) -> NDArray[np.int64]:
    """Return a row of each batch, whose records have these sizes and stand back to back."""
    table = np.empty((len(batches), COLUMNS), np.int64)
    at = 0
    for row, (batch, size_bytes) in enumerate(zip(batches, sizes, strict=True)):
        is_one_time = batch.is_log_append_time
        base_ms = batch.max_timestamp_ms if is_one_time else batch.base_timestamp_ms
        end = at + size_bytes
        table[row] = at, end, batch.record_count, batch.base_offset, base_ms, is_one_time
        at = end
    return table


def _head(topic: str, host: HostAddress) -> NDArray[np.uint8]:
    """Return what messages that were none have up to the size of the body."""
    model = draft_message(
        topic=topic,
        body=b"",
        queue_id=0,
        properties_text=b"",
        born_timestamp_ms=0,
        born_host=host,
        store_host=host,
    )
    head = FIXED_FIELDS[model.sys_flag >> 4 & 3].pack(
        0, model.version.magic, 0, 0, 0, 0, 0, model.sys_flag, 0, host.packed, 0, host.packed,
        0, 0, 0,
    )  # fmt: skip
    return np.frombuffer(head, np.uint8)


def _records(batch: RecordBatch) -> memoryview | bytes | None:
    """Return the records of a batch, decompressed; None if somebody else must look at it."""
    if batch.magic != MAGIC or batch.record_count < 0:
        return None
    data = memoryview(batch.data)[HEADER_BYTES:]
    codec = batch.attributes & CODEC_MASK
    if codec:
        try:
            data = memoryview(decompress(Codec(codec), data))
        except (CompressionError, ValueError):
            return None
    return data if batch.record_count <= len(data) else None


@cache
def _steering() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the names that no header may have, joined, and where each begins."""
    names = [name.encode() for name in sorted(STEERING)]
    bounds = np.cumsum([0, *map(len, names)], dtype=np.int64)
    return np.frombuffer(b"".join(names), np.uint8), bounds
