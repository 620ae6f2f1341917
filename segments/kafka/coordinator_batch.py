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

#: of sizes and offset deltas that occur
_VARINTS = [encode_varint(number) for number in range(1024)]
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
    pieces: list[bytes] = []
    shapes: dict[tuple[int, int], tuple[int, bytes, bytes]] = {}
    for offset_delta, (key, value) in enumerate(records):
        sizes = len(key), _NO_VALUE if value is None else len(value)
        shape = shapes.get(sizes)
        if shape is None:
            shape = shapes[sizes] = _shape(*sizes)
        size_bytes, key_bytes, value_bytes = shape
        delta = _varint(offset_delta)
        size = _varint(size_bytes + len(delta))
        pieces += (size, _NO_ATTRIBUTES_NO_DELAY, delta, key_bytes, key, value_bytes)
        pieces += (value or b"", _NO_HEADERS)
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


def _shape(key_size_bytes: int, value_size_bytes: int) -> tuple[int, bytes, bytes]:
    """Return a record's size but for its offset delta, and both lengths as they are written."""
    key_bytes, value_bytes = encode_varint(key_size_bytes), encode_varint(value_size_bytes)
    fields_bytes = len(key_bytes) + key_size_bytes + len(value_bytes) + max(0, value_size_bytes)
    return len(_NO_ATTRIBUTES_NO_DELAY) + fields_bytes + len(_NO_HEADERS), key_bytes, value_bytes


def _varint(number: int) -> bytes:
    return _VARINTS[number] if number < len(_VARINTS) else encode_varint(number)
