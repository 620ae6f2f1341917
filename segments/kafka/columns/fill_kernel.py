"""
The loop that takes usual batches apart in one go: each record's fields are copied where they stay.

As :func:`logstore.segments.kafka.columns.kernel.scan` it looks at no byte before it knows that it
is the record's, and accepts the same records.
"""

from __future__ import annotations

from logstore.segments.compiled.loops import Bytes, Int64s, Number, uncounted
from logstore.segments.compiled.machine_words import copy, signed_32, signed_64
from logstore.segments.kafka.columns.batch_kernel import SIZE_BYTES, START
from logstore.segments.kafka.columns.kernel import (
    HEADER_COUNT,
    KEY,
    KEY_BYTES,
    RECORD_BYTES_MIN,
    VALUE,
    VALUE_BYTES,
    Int32s,
    scan_record,
    varint,
)
from logstore.segments.kafka.record_batch import HEADER_BYTES, LOG_APPEND_TIME_BIT

#: which columns are wanted
KEYS, VALUES, VALUE_DATA, HEADERS = 1, 2, 4, 8
#: what the numbers of `state` count: rows, batches, null keys, null values; the last offset
ROW, BATCH, KEY_NULLS, VALUE_NULLS, LAST_OFFSET = range(5)
STATES = 5


@uncounted
def _put(
    source: Bytes, start: Number, size_bytes: Number, row: Number, bounds: Int32s, is_null: Bytes,
    data: Bytes, has_data: Number,
) -> Number:  # fmt: skip
    """Set one row of a column of bytes; return 1 if it is null."""
    at: Number = bounds[row]
    is_null[row] = size_bytes < 0
    if size_bytes < 0:
        bounds[row + 1] = at
        return 1
    bounds[row + 1] = at + size_bytes
    if has_data:
        copy(source, start, size_bytes, data, at)
    return 0


@uncounted
def _fill_rows(
    source: Bytes, head: Number, end: Number, row: Number, batch: Number, wanted: Number,
    span: tuple[int, int], places: Int32s, numbers: Int64s, sequences: Int32s,
    batch_rows: Int32s, key_bounds: Int32s, key_nulls: Bytes, keys: Bytes, value_bounds: Int32s,
    value_nulls: Bytes, values: Bytes,
) -> tuple[Number, Number, Number]:  # fmt: skip
    """Append one batch's records from `row` on; return (rows, null keys, null values), or -1."""
    base_offset, base_sequence = signed_64(source, head), signed_32(source, head + 53)
    is_time_of_all = source[head + 22] & LOG_APPEND_TIME_BIT
    base_time = signed_64(source, head + 35 if is_time_of_all else head + 27)
    null_keys: Number = 0
    null_values: Number = 0
    position: Number = head + HEADER_BYTES
    for _ in range(signed_32(source, head + 57)):
        length, start = varint(source, position, end)
        if start < 0 or length < 1 or length > end - start:
            return -1, 0, 0
        position = start + length
        time_delta, offset_delta, fault = scan_record(source, start, position, places, 0)
        if fault or (wanted & HEADERS and places[HEADER_COUNT, 0]):
            return -1, 0, 0
        offset = base_offset + offset_delta
        if offset < span[0] or offset > span[1]:
            continue
        numbers[0, row] = offset
        numbers[1, row] = base_time if is_time_of_all else base_time + time_delta
        sequences[row] = -1
        if base_sequence >= 0:  # they wrap after 2^31-1
            sequences[row] = (base_sequence + offset_delta) & 0x7FFF_FFFF
        batch_rows[row] = batch
        if wanted & KEYS:
            start, size_bytes = places[KEY, 0], places[KEY_BYTES, 0]
            null_keys += _put(source, start, size_bytes, row, key_bounds, key_nulls, keys, 1)
        if wanted & VALUES:
            start, size_bytes = places[VALUE, 0], places[VALUE_BYTES, 0]
            null_values += _put(
                source,
                start,
                size_bytes,
                row,
                value_bounds,
                value_nulls,
                values,
                wanted & VALUE_DATA,
            )
        row += 1
    return row if position == end else -1, null_keys, null_values


@uncounted
def fill(
    source: Bytes, found: Int64s, count: Number, file_position: Number, wanted: Number,
    span: tuple[int, int], places: Int32s, state: Int64s, numbers: Int64s, sequences: Int32s,
    batch_rows: Int32s, key_bounds: Int32s, key_nulls: Bytes, keys: Bytes, value_bounds: Int32s,
    value_nulls: Bytes, values: Bytes, heads: Bytes, positions: Int64s,
) -> Number:  # fmt: skip
    """
    Append the records of the first `count` batches that `found` names to columns.

    Ends in front of a batch that is damaged, has more records than there are rows left, or has
    headers where :data:`HEADERS` are wanted. Records outside of `span` are passed over. Each batch
    leaves its head in `heads` and its place in `positions`. `source` begins at `file_position` of
    the file, `places` is room for one record's. Returns how many batches were taken.
    """
    for index in range(count):
        head = found[START, index]
        end = head + found[SIZE_BYTES, index]
        row, batch = state[ROW], state[BATCH]
        most = min((end - head - HEADER_BYTES) // RECORD_BYTES_MIN, batch_rows.shape[0] - row)
        if not 0 <= signed_32(source, head + 57) <= most:
            return index
        rows, null_keys, null_values = _fill_rows(
            source, head, end, row, batch, wanted, span, places, numbers, sequences, batch_rows,
            key_bounds, key_nulls, keys, value_bounds, value_nulls, values,
        )  # fmt: skip
        if rows < 0:
            return index
        copy(source, head, HEADER_BYTES, heads, batch * HEADER_BYTES)
        positions[batch] = file_position + head
        state[ROW], state[BATCH] = rows, batch + 1
        state[KEY_NULLS] += null_keys
        state[VALUE_NULLS] += null_values
        state[LAST_OFFSET] = signed_64(source, head) + signed_32(source, head + 23)
    return count
