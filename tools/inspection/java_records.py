"""
The records of a damaged batch as Kafka's ``DefaultRecordBatch`` reads them, up to its exception.

It looks at other things than :func:`~logstore.segments.kafka.record.decode_records`, and in another
order: of an uncompressed batch it hands out every record before the damage, reads a record's fields
as far as the batch goes, and only then looks whether that was as much as the record claims.

Source: ``DefaultRecordBatch``, ``DefaultRecord``, ``ByteUtils``.
"""

from __future__ import annotations

from collections.abc import Iterator

from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.record import Record
from logstore.segments.kafka.record_batch import HEADER_BYTES, RecordBatch
from logstore.segments.kafka.varint import wrapped_long
from logstore.tools.inspection.java_indexes import JavaError
from logstore.tools.inspection.java_streams import (
    ARRAY_LENGTH_MAX,
    HEAP_BYTES,
    JavaStream,
    java_stream,
)

_SEQUENCE_MODULUS = 1 << 31
_REFERENCE_BYTES = 4


class _UnderflowError(Exception):
    """``BufferUnderflowException``: the bytes are at their end."""


class _IllegalError(Exception):
    """``IllegalArgumentException``, with its message where it has one."""


def java_records(batch: RecordBatch) -> Iterator[Record]:
    """
    Yield the records that Kafka's tool gets of a batch of magic 2.

    Raises:
        JavaError: where the tool ends.

    """
    count = batch.record_count
    if count == 0:
        return
    data = bytes(batch.data)[HEADER_BYTES:]
    if batch.codec:
        yield from _compressed(batch, data)
        return
    if count < 0:
        raise _invalid(f"Found invalid record count {count} in magic v{batch.magic} batch")
    buffer = _Buffer(data)
    for number in range(1, count + 1):
        try:
            size = buffer.varint()
        except _UnderflowError:
            raise _premature_end() from None
        except _IllegalError as error:
            raise JavaError("java.lang.IllegalArgumentException", str(error)) from None
        record = _record(batch, buffer, size)
        if number == count and buffer.left:
            raise _invalid("Incorrect declared batch size, records still remaining in file")
        yield record


def _compressed(batch: RecordBatch, data: bytes) -> list[Record]:
    """Return all records; the tool has none before it has the last one."""
    body, is_whole, error = _decompressed(batch, data)
    if batch.record_count < 0:
        count = batch.record_count
        raise _invalid(f"Found invalid record count {count} in magic v{batch.magic} batch")
    if batch.record_count * _REFERENCE_BYTES > HEAP_BYTES:  # a list is made for so many
        is_beyond = batch.record_count > ARRAY_LENGTH_MAX
        message = "Requested array size exceeds VM limit" if is_beyond else "Java heap space"
        raise JavaError("java.lang.OutOfMemoryError", message)
    stream, records = _Buffer(body), list[Record]()
    for _ in range(batch.record_count):
        try:
            size = stream.varint()
            if size < 0:
                raise _IllegalError
        except _IllegalError:
            raise _premature_end() from None
        except _UnderflowError:
            raise (_premature_end() if is_whole else error or _undecompressed()) from None
        if size > stream.left:
            if not is_whole:
                raise error or _undecompressed()
            raise _invalid(
                f"Invalid record size: expected {size} bytes in record payload, "
                "but the record payload reached EOF."
            )
        records.append(_record(batch, _Buffer(stream.take(size)), size))
    if stream.left:
        raise _invalid("Incorrect declared batch size, records still remaining in file")
    if not is_whole:
        message = "Error checking for remaining bytes after reading batch"
        raise error or JavaError("org.apache.kafka.common.KafkaException", message)
    return records


def _decompressed(batch: RecordBatch, data: bytes) -> JavaStream:
    """Return what comes out of the codec. Raises JavaError."""
    try:
        codec = Codec(batch.codec)
    except ValueError:
        message = f"Unknown compression type id: {batch.codec}"
        raise JavaError("java.lang.IllegalArgumentException", message) from None
    return java_stream(codec, data)


def _record(batch: RecordBatch, buffer: _Buffer, size: int) -> Record:
    if buffer.left < size:
        raise _invalid(
            f"Invalid record size: expected {size} bytes in record payload, "
            f"but instead the buffer has only {buffer.left} remaining bytes."
        )
    start = buffer.position
    try:
        buffer.take(1)  # attributes
        time_delta, offset_delta = buffer.varlong(), buffer.varint()
        key, value = buffer.field(), buffer.field()
        headers = tuple(_headers(buffer))
    except (_UnderflowError, _IllegalError):
        raise _invalid("Found invalid record structure") from None
    if buffer.position - start != size:
        raise _invalid(
            f"Invalid record size: expected to read {size} bytes in record payload, "
            f"but instead read {buffer.position - start}"
        )
    timestamp_ms = wrapped_long(batch.base_timestamp_ms + time_delta)
    if batch.is_log_append_time:
        timestamp_ms = batch.max_timestamp_ms
    sequence = max(batch.base_sequence, -1)
    if sequence >= 0:
        sequence = incremented_sequence(sequence, offset_delta)
    offset = wrapped_long(batch.base_offset + offset_delta)
    return Record(offset, timestamp_ms, key, value, headers, sequence)


def incremented_sequence(sequence: int, increment: int) -> int:
    """Return a sequence behind another, as ``DefaultRecordBatch.incrementSequence`` does."""
    if sequence > _wrapped_int(_SEQUENCE_MODULUS - 1 - increment):
        return _wrapped_int(sequence + increment - _SEQUENCE_MODULUS)
    return _wrapped_int(sequence + increment)


def _wrapped_int(value: int) -> int:
    """Return a value as Java's int holds it."""
    return (value + _SEQUENCE_MODULUS) % (2 * _SEQUENCE_MODULUS) - _SEQUENCE_MODULUS


def _headers(buffer: _Buffer) -> Iterator[tuple[str, bytes | None]]:
    count = buffer.varint()
    if count < 0:
        raise _invalid(f"Found invalid number of record headers {count}")
    if count > buffer.left:
        raise _invalid(
            f"Found invalid number of record headers. {count} "
            "is larger than the remaining size of the buffer"
        )
    for _ in range(count):
        name_size = buffer.varint()
        if name_size < 0:
            raise _invalid(f"Invalid negative header key size {name_size}")
        name = buffer.take(name_size)
        yield name.decode("utf-8", "surrogateescape"), buffer.field()


def _invalid(message: str) -> JavaError:
    return JavaError("org.apache.kafka.common.InvalidRecordException", message)


def _premature_end() -> JavaError:
    return _invalid("Incorrect declared batch size, premature EOF reached")


def _undecompressed() -> JavaError:
    message = "Failed to decompress record stream"
    return JavaError("org.apache.kafka.common.KafkaException", message)


class _Buffer:
    """A ``ByteBuffer`` that is read from its beginning."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    @property
    def left(self) -> int:
        """How many bytes are still to be read."""
        return len(self._data) - self.position

    def take(self, size: int) -> bytes:
        """Return so many bytes. Raises _UnderflowError."""
        if size > self.left:
            raise _UnderflowError
        start, self.position = self.position, self.position + size
        return self._data[start : self.position]

    def field(self) -> bytes | None:
        """Return the bytes behind their length; any length below 0 is null."""
        size = self.varint()
        return None if size < 0 else self.take(size)

    def varint(self) -> int:
        """Return a signed integer of 32 bits. Raises _UnderflowError, _IllegalError."""
        value = self._unsigned(bytes_max=5) & 0xFFFF_FFFF
        return (value >> 1) ^ -(value & 1)

    def varlong(self) -> int:
        """Return a signed integer of 64 bits. Raises _UnderflowError, _IllegalError."""
        value = self._unsigned(bytes_max=10) & 0xFFFF_FFFF_FFFF_FFFF
        return (value >> 1) ^ -(value & 1)

    def _unsigned(self, bytes_max: int) -> int:
        value = 0
        for count in range(bytes_max):
            (byte,) = self.take(1)
            if byte < 128:
                return value | byte << 7 * count
            if count == bytes_max - 1:
                value |= (byte - 256) << 7 * count  # Java shifts the sign along
            else:
                value |= (byte & 127) << 7 * count
        raise _IllegalError(
            "Varint is too long, the most significant bit in the 5th byte is set, "
            f"converted value: {value & 0xFFFF_FFFF:x}"
        )
