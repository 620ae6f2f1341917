"""
What Java's streams make of compressed records that are damaged, and how they end.

Codecs in Python refuse as a whole what Java reads piece by piece: a stream may be refused as soon
as it is opened, break off behind some bytes, or end well although something follows. Which it is
decides what ``DumpLogSegments`` says.

Source: ``GZIPInputStream`` (JDK 17), ``SnappyInputStream`` (1.1.10), ``Lz4BlockInputStream``,
``ZstdInputStreamNoFinalizer`` (1.5.6), ``ChunkedBytesStream``.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

from logstore.segments.kafka.compression import Codec, CompressionError, decompress
from logstore.segments.kafka.varint import VarintError, decode_unsigned_varint
from logstore.tools.inspection.java_indexes import JavaError
from logstore.tools.inspection.java_lz4 import Lz4Stream

_SIZE_BYTES_MAX = 2**31 - 1
#: more than this Kafka's tools have no memory for
HEAP_BYTES = 200 * 1024 * 1024
ARRAY_LENGTH_MAX = 2**31 - 3
_GZIP_FILL_BYTES = _ZSTD_FILL_BYTES = 16 * 1024
_GZIP_READ_BYTES = 8 * 1024
_ZSTD_READ_BYTES = 128 * 1024 + 3
_GZIP_MEMBER_BYTES = 26  # what must follow for another member to be looked for
_GZIP_EXTRA, _GZIP_NAME, _GZIP_COMMENT, _GZIP_HEADER_CRC = 4, 8, 16, 2
_SNAPPY_MAGIC = b"\x82SNAPPY\x00"
_SNAPPY_HEADER_BYTES = 16
_SNAPPY_FILL_BYTES = 2 * 1024
_SNAPPY_CHUNK_BYTES_MAX = 512 * 1024 * 1024
_SNAPPY_ERROR = "org.xerial.snappy.SnappyError"


class JavaStream(NamedTuple):
    """
    What can be read of a stream.

    Behind `body` it ends well if `is_whole`, by an IOException if not; by `error` if there is one.
    """

    body: bytes
    is_whole: bool = True
    error: JavaError | None = None


def java_stream(codec: Codec, data: bytes) -> JavaStream:
    """Return what comes out of a stream. Raises JavaError where it does not even begin."""
    if codec is Codec.GZIP:
        return _gzip(data)
    if codec is Codec.SNAPPY:
        return _snappy(data)
    if codec is Codec.LZ4:
        stream = Lz4Stream(data)
        body = b"".join(stream)
        return JavaStream(body, stream.is_finished, stream.error)
    return _zstd(data)


def _filled(pieces: list[bytes], fill_bytes: int) -> bytes:
    """Return what was read before the fill that failed; what that one had got is lost."""
    body = b"".join(pieces)
    return body[: len(body) - len(body) % fill_bytes]


# gzip


def _gzip(data: bytes) -> JavaStream:
    position, pieces = _gzip_header(data, 0), list[bytes]()
    while True:
        member = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
        crc = size_bytes = 0
        while not member.eof:
            waiting = member.unconsumed_tail
            if not waiting:
                waiting = data[position : position + _GZIP_READ_BYTES]
                position += len(waiting)
            try:
                piece = member.decompress(waiting, _GZIP_FILL_BYTES)
            except zlib.error:
                return JavaStream(b"".join(pieces), is_whole=False)
            if not piece and not waiting and not member.eof:
                return JavaStream(b"".join(pieces), is_whole=False)
            pieces.append(piece)
            crc, size_bytes = zlib.crc32(piece, crc), size_bytes + len(piece)
        left_bytes = len(member.unused_data) + len(data) - position
        position = len(data) - left_bytes
        trailer = crc.to_bytes(4, "little") + (size_bytes & 0xFFFF_FFFF).to_bytes(4, "little")
        if data[position : position + 8] != trailer:
            return JavaStream(b"".join(pieces), is_whole=False)
        if left_bytes <= _GZIP_MEMBER_BYTES:
            return JavaStream(b"".join(pieces))
        try:
            position = _gzip_header(data, position + 8)
        except JavaError:  # what follows is no member, and does not count
            return JavaStream(b"".join(pieces))


def _gzip_header(data: bytes, start: int) -> int:
    """Return where a member's data begin. Raises JavaError."""
    if len(data) < start + 2:
        raise _unopened("java.io.EOFException")
    if data[start : start + 2] != b"\x1f\x8b":
        raise _unopened("java.util.zip.ZipException: Not in GZIP format")
    if data[start + 2 : start + 3] not in (b"", b"\x08"):
        raise _unopened("java.util.zip.ZipException: Unsupported compression method")
    position = start + 10
    flags = data[start + 3] if len(data) > start + 3 else 0
    if flags & _GZIP_EXTRA:
        position += 2 + int.from_bytes(data[position : position + 2], "little")
    for flag in (_GZIP_NAME, _GZIP_COMMENT):
        if flags & flag:
            position = data.find(0, position) + 1 or len(data) + 1
    if flags & _GZIP_HEADER_CRC and len(data) >= position + 2:
        crc = zlib.crc32(data[start:position]) & 0xFFFF
        if int.from_bytes(data[position : position + 2], "little") != crc:
            raise _unopened("java.util.zip.ZipException: Corrupt GZIP header")
    position += 2 * bool(flags & _GZIP_HEADER_CRC)
    if position > len(data):
        raise _unopened("java.io.EOFException")
    return position


# snappy


def _snappy(data: bytes) -> JavaStream:
    if not data:
        said = "org.xerial.snappy.SnappyIOException: [EMPTY_INPUT] Cannot decompress empty stream"
        raise _unopened(said)
    if len(data) < _SNAPPY_HEADER_BYTES or not data.startswith(_SNAPPY_MAGIC):
        return JavaStream(_raw_snappy(data))
    pieces, position = list[bytes](), _SNAPPY_HEADER_BYTES
    try:
        while (chunk := _snappy_chunk(data, position)) is not None:
            position, piece = chunk
            pieces.append(piece)
    except CompressionError:
        return JavaStream(_filled(pieces, _SNAPPY_FILL_BYTES), is_whole=False)
    except JavaError as error:
        return JavaStream(_filled(pieces, _SNAPPY_FILL_BYTES), is_whole=False, error=error)
    return JavaStream(b"".join(pieces))


def _snappy_chunk(data: bytes, position: int) -> tuple[int, bytes] | None:
    """
    Return where the next chunk ends and what it holds; None at the end, which comes early.

    Raises:
        CompressionError: an IOException, so to speak.
        JavaError: what nobody catches.

    """
    while data[position : position + 4] == _SNAPPY_MAGIC[:4]:
        header = data[position : position + _SNAPPY_HEADER_BYTES]
        if len(header) < _SNAPPY_HEADER_BYTES:
            raise CompressionError("snappy: the header of a further stream is cut short")
        if not header.startswith(_SNAPPY_MAGIC):
            return None
        if int.from_bytes(header[8:12], "big", signed=True) < 1:
            raise CompressionError("snappy: a version that there never was")
        position += _SNAPPY_HEADER_BYTES
    if len(data) < position + 4:
        return None
    size_bytes = int.from_bytes(data[position : position + 4], "big", signed=True)
    if size_bytes < 0:
        said = f"[INVALID_CHUNK_SIZE] chunkSize is too big or negative : {size_bytes}"
        raise JavaError(_SNAPPY_ERROR, said)
    if size_bytes > _SNAPPY_CHUNK_BYTES_MAX:
        said = (
            f"[FAILED_TO_UNCOMPRESS] Received chunkSize {size_bytes:,} is greater than max "
            f"configured chunk size {_SNAPPY_CHUNK_BYTES_MAX:,}"
        )
        raise JavaError(_SNAPPY_ERROR, said)
    if size_bytes > HEAP_BYTES:
        raise JavaError(_SNAPPY_ERROR, "[INVALID_CHUNK_SIZE] Java heap space")
    start, position = position + 4, position + 4 + size_bytes
    if position > len(data):
        raise CompressionError("snappy: a chunk is cut short")
    return position, decompress(Codec.SNAPPY, data[start:position], _SIZE_BYTES_MAX)


def _raw_snappy(data: bytes) -> bytes:
    """Return what a block without framing holds. Raises JavaError."""
    try:
        size_bytes, _ = decode_unsigned_varint(data, 0)
    except VarintError:
        size_bytes = 2**32
    if size_bytes >= 2**32 or (data[4:5] > b"\x0f" and min(data[:4]) > 0x7F):  # more than 32 bits
        raise _unopened("java.io.IOException: PARSING_ERROR(2)")
    if size_bytes >= 2**31:
        raise _unopened(f"java.lang.NegativeArraySizeException: {size_bytes - 2**32}")
    if size_bytes > ARRAY_LENGTH_MAX:
        raise _unopened("java.lang.OutOfMemoryError: Requested array size exceeds VM limit")
    if size_bytes > HEAP_BYTES:
        raise _unopened("java.lang.OutOfMemoryError: Java heap space")
    try:
        return decompress(Codec.SNAPPY, data, _SIZE_BYTES_MAX)
    except CompressionError:
        raise _unopened("java.io.IOException: FAILED_TO_UNCOMPRESS(5)") from None


# zstd


def _zstd(data: bytes) -> JavaStream:
    import zstandard

    pieces, is_further = list[bytes](), False
    is_read_at_once = len(data) <= _ZSTD_READ_BYTES
    while data:
        frame = zstandard.ZstdDecompressor().decompressobj()
        held, end = list[bytes](), 0
        try:
            while end < len(data) and not frame.eof:  # blocks come out as soon as they are whole
                held.append(frame.decompress(data[end : end + 1]))
                end += 1
        except zstandard.ZstdError:
            return JavaStream(b"".join(pieces) + _filled(held, _ZSTD_FILL_BYTES), is_whole=False)
        pieces += held
        if not frame.eof:  # a further one in the same buffer is no reason to complain
            return JavaStream(b"".join(pieces), is_whole=is_further and is_read_at_once)
        data, is_further = data[end:], True
    return JavaStream(b"".join(pieces))


def _unopened(cause: str) -> JavaError:
    """Return what wraps the exception of a constructor."""
    return JavaError("org.apache.kafka.common.KafkaException", cause)
