"""Messages that were records once, made the records that they were."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logstore.compat.record_mapping import MessageParts, restored_record
from logstore.compat.spark.convert.record_packing import BATCH_BYTES, PackedBatch, RecordBatches
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.rocketmq.columns import MessageColumns
from logstore.segments.rocketmq.messages.properties import parse_properties


def restored_batches(
    columns: MessageColumns,
    offsets: NDArray[np.int64],
    rests: dict[int, dict[str, Any]],
    codec: Codec,
) -> Iterator[PackedBatch]:
    """
    Yield batches of all messages, record by record; `rests` by offset.

    Raises:
        MappingError: a rest is damaged.

    """
    bodies = list(RecordBatches(columns).bodies)
    texts, times = list(columns.properties_text), columns.born_timestamp_ms.tolist()
    records: list[Record] = []
    first = filled_bytes = 0
    for row, offset in enumerate(offsets.tolist()):
        body = bodies[row] or b""
        parts = MessageParts(body, parse_properties(texts[row] or b""))
        kept = rests.get(offset)
        key, value, headers = restored_record(parts, None if kept is None else kept["rest"])
        records.append(Record(offset, times[row], key, value, headers))
        filled_bytes += len(body) + len(texts[row] or b"")
        if filled_bytes >= BATCH_BYTES:
            yield _batch(records, first, row + 1, codec)
            records, first, filled_bytes = [], row + 1, 0
    if records:
        yield _batch(records, first, len(columns), codec)


def _batch(records: list[Record], first: int, last: int, codec: Codec) -> PackedBatch:
    data = encode_batch(records, base_offset=records[0].offset, codec=codec)
    return PackedBatch(first, last, bytes(data))
