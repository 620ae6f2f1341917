"""
The records of a damaged batch as Kafka's ``DefaultRecordBatch`` reads them, up to its exception.

It looks at other things than :func:`~logstore.segments.kafka.record.decode_records`, and in another
order: of an uncompressed batch it hands out every record before the damage, reads a record's fields
as far as the batch goes, and only then looks whether that was as much as the record claims.

Source: ``DefaultRecordBatch``, ``DefaultRecord``, ``ByteUtils``, ``GzipCompression`` and its like.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from logstore.segments.kafka.compression import Codec, CompressionError, decompress
from logstore.segments.kafka.record import Record
from logstore.segments.kafka.record_batch import HEADER_BYTES, RecordBatch
from logstore.segments.kafka.varint import wrapped_long
from logstore.tools.inspection.java_indexes import JavaError

_SEQUENCE_MODULUS = 1 << 31
_SIZE_BYTES_MAX = 2**31 - 1
_GZIP_MAGIC = b"\x1f\x8b"
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_HEADER_BYTES_MIN = 6


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
    body, is_whole = _decompressed(batch, data)
    if batch.record_count < 0:
        count = batch.record_count
        raise _invalid(f"Found invalid record count {count} in magic v{batch.magic} batch")
    stream, records = _Buffer(body), list[Record]()
    for _ in range(batch.record_count):
        try:
            size = stream.varint()
            if size < 0:
                raise _IllegalError
        except (_UnderflowError, _IllegalError):
            raise (_premature_end() if is_whole else _undecompressed()) from None
        if size > stream.left:
            if not is_whole:
                raise _undecompressed()
            raise _invalid(
                f"Invalid record size: expected {size} bytes in record payload, "
                "but the record payload reached EOF."
            )
        records.append(_record(batch, _Buffer(stream.take(size)), size))
    if stream.left:
        raise _invalid("Incorrect declared batch size, records still remaining in file")
    if not is_whole:
        message = "Error checking for remaining bytes after reading batch"
        raise JavaError("org.apache.kafka.common.KafkaException", message)
    return records


def _decompressed(batch: RecordBatch, data: bytes) -> tuple[bytes, bool]:
    """Return what comes out of the codec, and whether it is all. Raises JavaError."""
    try:
        codec = Codec(batch.codec)
    except ValueError:
        message = f"Unknown compression type id: {batch.codec}"
        raise JavaError("java.lang.IllegalArgumentException", message) from None
    try:
        return decompress(codec, data, _SIZE_BYTES_MAX), True
    except CompressionError:
        cause = _refusal(codec, data)
        if cause is not None:
            raise JavaError("org.apache.kafka.common.KafkaException", cause) from None
        return (_unzipped(data) if codec is Codec.GZIP else b""), False


def _refusal(codec: Codec, data: bytes) -> str | None:
    """Return what a stream says that does not even begin; None if it only breaks off."""
    if codec is Codec.GZIP and not data.startswith(_GZIP_MAGIC):
        is_cut = len(data) < len(_GZIP_MAGIC)
        return (
            "java.io.EOFException" if is_cut else "java.util.zip.ZipException: Not in GZIP format"
        )
    if codec is Codec.SNAPPY and not data.startswith(_XERIAL_MAGIC):
        return "java.io.IOException: FAILED_TO_UNCOMPRESS(5)"
    if codec is Codec.LZ4:
        if len(data) < _LZ4_HEADER_BYTES_MIN:
            return "java.io.IOException: Stream ended prematurely"
        if not data.startswith(_LZ4_MAGIC):
            return "java.io.IOException: Stream unsupported (invalid magic bytes)"
    return None


def _unzipped(data: bytes) -> bytes:
    """Return what comes out of a gzip stream before it breaks off."""
    member, pieces = zlib.decompressobj(wbits=31), list[bytes]()
    try:
        pieces += (member.decompress(data[at : at + 1]) for at in range(len(data)))
    except zlib.error:
        return b"".join(pieces)
    return b"".join(pieces)


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
        sequence = (sequence + offset_delta) % _SEQUENCE_MODULUS
    offset = wrapped_long(batch.base_offset + offset_delta)
    return Record(offset, timestamp_ms, key, value, headers, sequence)


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
