"""
The batch that a coordinator writes: keys and values of one moment, without headers.

A commit of a thousand offsets is one batch of as many records; nothing of them varies but key and
value, so they are encoded without a :class:`~logstore.segments.kafka.record.Record` for each.
"""

from __future__ import annotations

from collections.abc import Sequence

from logstore.segments.kafka.compression import Codec, compress
from logstore.segments.kafka.record import sealed_batch
from logstore.segments.kafka.record_batch import TRANSACTIONAL_BIT
from logstore.segments.kafka.varint import encode_varint

#: of the offset deltas that occur
_DELTAS = [encode_varint(number) for number in range(1024)]
_NO_ATTRIBUTES_NO_DELAY = b"\x00\x00"
_NO_VALUE = -1
_NO_HEADERS = b"\x00"


def encode_coordinator_batch(
    records: Sequence[tuple[bytes, bytes | None]],
    now_ms: int,
    *,
    codec: Codec = Codec.NONE,
    producer: tuple[int, int, int] | None = None,
) -> bytearray:
    """
    Return the batch of these keys and values, at least one; a value of None is a tombstone.

    With a `producer` (id, epoch and first sequence) they belong to its transaction.

    Raises:
        CorruptRecordError: they do not fit a batch.

    """
    deltas = _DELTAS
    if len(records) > len(deltas):
        deltas = [encode_varint(number) for number in range(len(records))]
    pieces: list[bytes] = []
    shapes: dict[tuple[int, int, int], bytes] = {}
    for delta, (key, value) in zip(deltas, records, strict=False):
        sizes = len(delta), len(key), _NO_VALUE if value is None else len(value)
        shape = shapes.get(sizes)
        if shape is None:
            shape = shapes[sizes] = _shape(*sizes)
        pieces.append(shape % (delta, key, value or b""))
    is_transactional = producer is not None
    return sealed_batch(
        compress(codec, b"".join(pieces), None),
        len(records),
        attributes=codec | is_transactional * TRANSACTIONAL_BIT,
        last_offset_delta=len(records) - 1,
        base_timestamp_ms=now_ms,
        max_timestamp_ms=now_ms,
        producer=(-1, -1, -1) if producer is None else producer,
    )


def _shape(delta_bytes: int, key_bytes: int, value_bytes: int) -> bytes:
    """Return what stands around offset delta, key and value where they are of these sizes."""
    key_length, value_length = encode_varint(key_bytes), encode_varint(value_bytes)
    lengths_bytes = len(key_length) + len(value_length)
    fields_bytes = delta_bytes + key_bytes + max(0, value_bytes) + lengths_bytes
    size = encode_varint(len(_NO_ATTRIBUTES_NO_DELAY) + fields_bytes + len(_NO_HEADERS))
    around = (size + _NO_ATTRIBUTES_NO_DELAY, key_length, value_length, _NO_HEADERS)
    return b"%b".join(one.replace(b"%", b"%%") for one in around)
