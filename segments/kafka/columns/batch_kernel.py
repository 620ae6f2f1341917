"""
The loop over batch headers, for batches that nothing need be asked about but their CRC.

As most batches of most logs: of today's magic, uncompressed, with records, wanted, whole. The loop
ends in front of the first that is not, which :mod:`logstore.segments.kafka.columns.batch_run`
looks at with care.
"""

from __future__ import annotations

from logstore.segments.compiled.loops import Bytes, Int64s, Number, uncounted
from logstore.segments.compiled.machine_words import signed_32, signed_64
from logstore.segments.kafka.record_batch import (
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_BYTES,
    MAGIC,
    PREFIX_BYTES,
)

_UNUSUAL = CODEC_MASK | CONTROL_BIT
#: places and bounds have 32 bits, as in Arrow's binary
SOURCE_BYTES_MAX = 2**31 - 1
#: no sum of an offset and a difference leaves 64 bits
_OFFSET_MAX = 2**62
#: what each row of that which :func:`usual_batches` finds says
START, SIZE_BYTES, CRC = range(3)
ROWS = 3


@uncounted
def usual_batches(
    source: Bytes,
    first: Number,
    last: Number,
    last_offset: Number,
    size_bytes_max: Number,
    found: Int64s,
) -> tuple[Number, Number, Number, Number]:
    """
    Note the usual batches that `source` begins with and that have offsets from `first` to `last`.

    Each must follow the one before in its offsets, too; what stands before all has `last_offset`
    (-1: nothing). Behind the one with which they have `size_bytes_max` it ends. Fills `found`, a
    column a batch. Returns how many there are, where the last one ends, their bytes without the
    first twelve of each, and the last one's last offset.
    """
    end = source.shape[0]
    position: Number = 0
    size_bytes: Number = 0
    count = 0
    while end - position >= HEADER_BYTES and size_bytes < size_bytes_max:
        length = signed_32(source, position + 8)
        following = position + PREFIX_BYTES + length
        if source[position + 16] != MAGIC or source[position + 22] & _UNUSUAL:
            break
        is_too_much = size_bytes + length > SOURCE_BYTES_MAX
        if length < HEADER_BYTES - PREFIX_BYTES or following > end or is_too_much:
            break
        base_offset, last_delta = signed_64(source, position), signed_32(source, position + 23)
        if not 0 <= base_offset < _OFFSET_MAX or base_offset > last or last_delta < 0:
            break
        if base_offset + last_delta < first or base_offset <= last_offset:
            break
        last_offset = base_offset + last_delta
        found[START, count] = position
        found[SIZE_BYTES, count] = following - position
        found[CRC, count] = signed_32(source, position + 17) & 0xFFFF_FFFF
        count += 1
        position = following
        size_bytes += length
    return count, position, size_bytes, last_offset
