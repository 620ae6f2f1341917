"""
The loops over records: where every field stands, and copies of them back to back.

Plain Python over numpy arrays, made fast by numba, whose compiled form is kept on disk and runs
without the interpreter's lock. Nothing is read outside of a record before its length is known to
lie inside of its batch: :func:`scan` checks every byte it looks at, and :func:`gather` and
:func:`scan_headers` only go where it has been.

What it accepts is what :func:`logstore.segments.kafka.record.decode_records` accepts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logstore.segments.compiled.loops import Bytes, Int64s, Number, inlined, uncounted

Int32s = NDArray[np.int32]
Flags = NDArray[np.bool_]

#: why a record is bad, by the number that a kernel returns; 0 is none
FAULTS = (
    "",
    "is cut short",
    "has an integer that runs on too long",
    "has a length that runs out of its batch",
    "has a field that runs out of it",
    "has more headers than bytes",
    "has a header without a name",
    "is longer than its fields",
    "is followed by bytes that are no record",
)
CUT_SHORT, TOO_LONG, BAD_LENGTH, BAD_FIELD, BAD_COUNT, NO_NAME, NOT_FILLED, NOT_ALL = range(1, 9)
#: what each row of the places that :func:`scan` fills says
KEY, KEY_BYTES, VALUE, VALUE_BYTES, HEADERS, HEADER_COUNT = range(6)
PLACES = 6
NULL = -1
#: length, attributes, both deltas, sizes of key and value, count of headers
RECORD_BYTES_MIN = 7


@uncounted
def varint(source: Bytes, position: Number, end: Number) -> tuple[Number, Number]:
    """Return (signed 32-bit value, position after it), or (fault, -1)."""
    value: Number = 0
    for count in range(5):
        if position + count >= end:
            return CUT_SHORT, -1
        byte = np.int64(source[position + count])
        value |= (byte & 127) << (7 * count)
        if byte < 128:
            value &= 0xFFFF_FFFF
            return (value >> 1) ^ -(value & 1), position + count + 1
    return TOO_LONG, -1


@uncounted
def _varlong(source: Bytes, position: Number, end: Number) -> tuple[Number, Number]:
    """Return (signed 64-bit value, position after it), or (fault, -1)."""
    value = np.uint64(0)
    for count in range(10):
        if position + count >= end:
            return CUT_SHORT, -1
        byte = np.uint64(source[position + count])
        value |= (byte & np.uint64(127)) << np.uint64(7 * count)
        if byte < np.uint64(128):
            half = np.int64(value >> np.uint64(1))
            return half ^ -np.int64(value & np.uint64(1)), position + count + 1
    return TOO_LONG, -1


@inlined
def _field(source: Bytes, position: Number, end: Number) -> tuple[Number, Number]:
    """Return (size or -1 for null, start of the bytes), or (fault, -1)."""
    if position < end and source[position] < 128:  # most sizes have one byte
        byte = np.int64(source[position])
        size_bytes: Number = (byte >> 1) ^ -(byte & 1)
        start: Number = position + 1
    else:
        size_bytes, start = varint(source, position, end)
        if start < 0:
            return size_bytes, start
    if size_bytes < 0:
        return NULL, start
    if size_bytes > end - start:
        return BAD_FIELD, -1
    return size_bytes, start


@uncounted
def _skip_headers(
    source: Bytes, position: Number, end: Number, count: Number
) -> tuple[Number, Number]:
    """Return (bytes of names and values, position after all headers), or (fault, -1)."""
    if not 0 <= count <= end - position:
        return BAD_COUNT, -1
    total: Number = 0
    for _ in range(count):
        size_bytes, start = _field(source, position, end)
        if start < 0:
            return size_bytes, start
        if size_bytes < 0:
            return NO_NAME, -1
        total += size_bytes
        position = start + size_bytes
        size_bytes, start = _field(source, position, end)
        if start < 0:
            return size_bytes, start
        total += max(size_bytes, 0)
        position = start + max(size_bytes, 0)
    return total, position


@inlined
def scan_record(
    source: Bytes, position: Number, end: Number, places: Int32s, row: int
) -> tuple[Number, Number, Number]:
    """
    Note where the fields of the record between `position` and `end` stand.

    Returns (timestamp delta, offset delta, 0), or (0, 0, fault). `position` is behind the length.
    """
    position += 1  # attributes: none are defined
    time_delta, position = _varlong(source, position, end)
    if position < 0:
        return 0, 0, time_delta
    offset_delta, position = varint(source, position, end)
    if position < 0:
        return 0, 0, offset_delta
    for place in (KEY, VALUE):
        size_bytes, position = _field(source, position, end)
        if position < 0:
            return 0, 0, size_bytes
        places[place, row] = position
        places[place + 1, row] = size_bytes
        position += max(size_bytes, 0)
    count, position = varint(source, position, end)
    if position < 0:
        return 0, 0, count
    places[HEADERS, row] = position
    places[HEADER_COUNT, row] = count
    if count:
        fault, position = _skip_headers(source, position, end, count)
        if position < 0:
            return 0, 0, fault
    return time_delta, offset_delta, 0 if position == end else NOT_FILLED


@uncounted
def scan(
    source: Bytes,
    bodies: Int64s,
    times_of_all: Flags,
    span: tuple[int, int],
    numbers: Int64s,
    sequences: Int32s,
    batches: Int32s,
    places: Int32s,
) -> tuple[Number, Number, Number, Number]:
    """
    Walk all records of all batches; keep those with offsets from `span[0]` to `span[1]`, both in.

    `bodies` has a column a batch: start and end in `source`, record count, base offset, base
    timestamp (where `times_of_all`, the timestamp of all), base sequence. The rest is filled, a
    column a record: `numbers` with offset and timestamp, `sequences`, `batches` with the column of
    the record's batch, `places`. Returns (records kept, 0, 0, 0), or (position, batch, record in
    it, fault).
    """
    row = 0
    for batch in range(bodies.shape[1]):
        position, body_end, record_count = bodies[0, batch], bodies[1, batch], bodies[2, batch]
        base_offset, base_time, base_sequence = bodies[3, batch], bodies[4, batch], bodies[5, batch]
        for index in range(record_count):
            length, start = varint(source, position, body_end)
            if start < 0:
                return position, batch, index, length
            if length < 1 or length > body_end - start:
                return position, batch, index, BAD_LENGTH
            end = start + length
            time_delta, offset_delta, fault = scan_record(source, start, end, places, row)
            if fault:
                return position, batch, index, fault
            position = end
            offset = base_offset + offset_delta
            if offset < span[0] or offset > span[1]:
                continue
            numbers[0, row] = offset
            numbers[1, row] = base_time if times_of_all[batch] else base_time + time_delta
            sequence: Number = -1
            if base_sequence >= 0:
                sequence = (base_sequence + offset_delta) & 0x7FFF_FFFF  # they wrap after 2^31-1
            sequences[row] = sequence
            batches[row] = batch
            row += 1
        if position != body_end:
            return position, batch, record_count, NOT_ALL
    return row, 0, 0, 0


@uncounted
def bound(sizes: Int32s, bounds: Int32s, is_null: Flags) -> Number:
    """Fill `bounds` with the running sum of `sizes` and mark the nulls; return how many."""
    total: Number = 0
    null_count: Number = 0
    bounds[0] = 0
    for row in range(sizes.shape[0]):
        size_bytes = sizes[row]
        is_null[row] = size_bytes < 0
        if size_bytes < 0:
            null_count += 1
        else:
            total += size_bytes
        bounds[row + 1] = total
    return null_count


@uncounted
def gather(source: Bytes, starts: Int32s, bounds: Int32s, target: Bytes) -> None:
    """Copy the pieces that begin at `starts` to where `bounds` says, back to back."""
    for row in range(starts.shape[0]):
        start, at = np.int64(starts[row]), np.int64(bounds[row])
        size_bytes = np.int64(bounds[row + 1]) - at
        # Slices count from zero, so that the compiler need not think of negative indices: with
        # them in the way it copies byte by byte, at a tenth of the speed.
        piece, place = source[start : start + size_bytes], target[at : at + size_bytes]
        for index in range(size_bytes):
            place[index] = piece[index]


@uncounted
def scan_headers(source: Bytes, places: Int32s, found: Int32s) -> None:
    """
    Note where the names and values of all headers stand, which :func:`scan` has passed.

    Fills the four rows of `found`, a column a header: start and size of the name, of the value.
    """
    end = source.shape[0]
    at = 0
    for row in range(places.shape[1]):
        position: Number = np.int64(places[HEADERS, row])
        for _ in range(places[HEADER_COUNT, row]):
            for place in (0, 2):
                size_bytes, position = _field(source, position, end)
                found[place, at] = position
                found[place + 1, at] = size_bytes
                position += max(size_bytes, 0)
            at += 1
