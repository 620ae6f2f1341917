"""
The codecs of record batches: each in the framing that Java's clients write and read.

========  =========================================================================
gzip      one RFC 1952 member; header without name, time 0, OS byte 0xff (JDK 16+)
snappy    xerial stream: magic, two versions, then blocks of at most 32 KiB, each
          with its length; raw snappy without framing is accepted on reading
lz4       one LZ4 frame of independent 64 KiB blocks, no checksums but the header's
zstd      one frame without content size, ended by an empty last block
========  =========================================================================

Compressed bytes differ between versions of the libraries; what Kafka promises is the framing.
The libraries are imported on first use.

Source: ``org.apache.kafka.common.compress``; ``SnappyOutputStream`` of xerial's snappy-java.
"""

from __future__ import annotations

import importlib
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from logstore.errors import LogStoreError
from logstore.segments.kafka.varint import VarintError, decode_unsigned_varint

if TYPE_CHECKING:
    import zstandard
    from typing_extensions import Buffer

#: A batch that would grow larger is taken for an attack, unless the caller allows more.
DECOMPRESSED_BYTES_MAX = 128 * 1024 * 1024

_GZIP_MAGIC = b"\x1f\x8b\x08"
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + bytes.fromhex("0000000100000001")
_XERIAL_BLOCK_BYTES = 32 * 1024
#: of gzip data that are too much to be read whole, so much is
_GZIP_READ_BYTES = 16 * 1024
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_LEVEL_FAST = 9
_LZ4_CHUNK_BYTES = 128 * 1024  # the library takes memory for all that it is allowed to return
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"  # behind a byte 0x50..0x5f
_ZSTD_BLOCK_BYTES_MAX = 128 * 1024
_ZSTD_WINDOW_BYTES_MAX = 1 << 27


class CompressionError(LogStoreError):
    """Compressed data cannot be understood."""


class DecompressedTooLargeError(CompressionError):
    """Compressed data would grow beyond what the caller allows."""

    def __init__(self, size_bytes_max: int) -> None:
        super().__init__(f"the data decompress to more than {size_bytes_max} bytes")
        self.size_bytes_max = size_bytes_max


class Codec(IntEnum):
    """How the records of a batch are compressed: bits 0-2 of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """
    Return `data` compressed; `level` None is the codec's default in Kafka.

    Levels: gzip -1 or 1-9 (default -1), lz4 1-17 (default 9, which is Java's *fast* compressor;
    all others are the slower one), zstd -131072..22 (default 3); snappy has none.
    """
    if codec is Codec.NONE:
        return bytes(data)
    if codec is Codec.GZIP:
        return _compress_gzip(data, -1 if level is None else level)
    if codec is Codec.SNAPPY:
        return _compress_snappy(data)
    if codec is Codec.LZ4:
        return _compress_lz4(data, _LZ4_LEVEL_FAST if level is None else level)
    return _compress_zstd(data, 3 if level is None else level)


def decompress(codec: Codec, data: Buffer, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """
    Return what `data` was before it was compressed.

    Raises:
        DecompressedTooLargeError: more than `size_bytes_max` bytes would come out; memory for
            more is never taken.
        CompressionError: bad, cut or foreign data.

    """
    if codec is Codec.NONE:
        result = bytes(data)
    elif codec is Codec.GZIP:
        result = _decompress_gzip(bytes(data), size_bytes_max)
    elif codec is Codec.SNAPPY:
        result = _decompress_snappy(bytes(data), size_bytes_max)
    elif codec is Codec.LZ4:
        result = _decompress_lz4(bytes(data), size_bytes_max)
    else:
        result = _decompress_zstd(bytes(data), size_bytes_max)
    if len(result) > size_bytes_max:
        raise DecompressedTooLargeError(size_bytes_max)
    return result


def looks_like(codec: Codec, data: Buffer) -> bool:
    """
    Tell from the first few bytes whether `data` may be compressed with `codec`.

    Raw snappy begins with nothing to be known by, so it is decompressed to be sure.
    """
    head = bytes(memoryview(data)[:16])
    if codec is Codec.GZIP:
        return head.startswith(_GZIP_MAGIC)
    if codec is Codec.SNAPPY:
        return head.startswith(_XERIAL_MAGIC) or _is_raw_snappy(data)
    if codec is Codec.LZ4:
        return head.startswith(_LZ4_MAGIC)
    if codec is Codec.ZSTD:
        return head.startswith(_ZSTD_MAGIC) or _is_skippable(head)
    return True


def check_frames(codec: Codec, data: memoryview) -> None:
    """
    Walk what `data` is put together of, without decompressing all of it.

    Frames, streams and blocks must be whole and no larger than they may be; what stands in a block
    is not looked at. Of gzip, which has no blocks that could be walked, the beginning is read.

    Raises:
        CompressionError: bad, cut or foreign data, as far as this can tell.

    """
    if codec is Codec.GZIP:
        with suppress(DecompressedTooLargeError):
            _decompress_gzip(bytes(data), _GZIP_READ_BYTES)
    elif codec is Codec.SNAPPY:
        if bytes(data[: len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC:
            for _ in _xerial_blocks(data):
                pass
    elif codec is Codec.LZ4:
        _check_lz4_blocks(data)
    elif codec is Codec.ZSTD:
        position = 0
        while position < len(data):
            position = _zstd_end(data, position)


# gzip


def _compress_gzip(data: Buffer, level: int) -> bytes:
    compressed = bytearray(zlib.compress(data, level, wbits=31))
    compressed[8] = 0  # "extra flags": zlib tells the level here, Java does not
    compressed[9] = 0xFF  # operating system: unknown
    return bytes(compressed)


def _decompress_gzip(data: bytes, size_bytes_max: int) -> bytes:
    """Read one member after another; as in Java, what follows and is none does not count."""
    pieces: list[bytes] = []
    size_bytes = 0
    while True:
        member = zlib.decompressobj(wbits=31)
        try:
            piece = member.decompress(data, max(1, size_bytes_max - size_bytes + 1))
        except zlib.error as error:
            raise CompressionError(f"gzip: {error}") from None
        size_bytes += len(piece)
        if size_bytes > size_bytes_max:
            raise DecompressedTooLargeError(size_bytes_max)
        if not member.eof:
            raise CompressionError("gzip: the data are cut short")
        pieces.append(piece)
        data = member.unused_data
        if not data.startswith(_GZIP_MAGIC):
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


# snappy


def _compress_snappy(data: Buffer) -> bytes:
    from cramjam import snappy

    view = memoryview(data).cast("B")
    pieces = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        pieces += (len(block).to_bytes(4, "big"), block)
    return b"".join(pieces)


def _decompress_snappy(data: bytes, size_bytes_max: int) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _decompress_snappy_block(data, size_bytes_max)
    pieces: list[bytes] = []
    for start, end in _xerial_blocks(data):
        piece = _decompress_snappy_block(data[start:end], size_bytes_max)
        size_bytes_max -= len(piece)
        pieces.append(piece)
    return b"".join(pieces)


def _xerial_blocks(data: bytes | memoryview) -> Iterator[tuple[int, int]]:
    """Yield where each block starts and ends. Raises CompressionError."""
    position = 0
    while position < len(data):
        if data[position : position + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)  # streams may follow each other
            if position > len(data):
                raise CompressionError("snappy: the stream header is cut short")
            continue
        start = position + 4
        end = start + int.from_bytes(data[position:start], "big")
        if end > len(data) or start > len(data):
            raise CompressionError(f"snappy: the block at {position} is cut short")
        yield start, end
        position = end


def _decompress_snappy_block(block: bytes, size_bytes_max: int) -> bytes:
    from cramjam import DecompressionError, snappy

    try:
        size_bytes, _ = decode_unsigned_varint(block, 0)
        # A copy of three bytes yields at most 64: a length that these bytes cannot fill is a lie,
        # and must not get its memory.
        if size_bytes > len(block) * 64:
            raise CompressionError(f"snappy: {len(block)} bytes cannot hold {size_bytes}")
        if size_bytes > size_bytes_max:
            raise DecompressedTooLargeError(size_bytes_max)
        return bytes(snappy.decompress_raw(block))
    except (DecompressionError, VarintError) as error:
        raise CompressionError(f"snappy: {error}") from None


def _is_raw_snappy(data: Buffer) -> bool:
    try:
        return _decompress_snappy_block(bytes(data), DECOMPRESSED_BYTES_MAX) != b""
    except (CompressionError, ValueError):
        return False


# lz4


def _compress_lz4(data: Buffer, level: int) -> bytes:
    frame_of_lz4: Any = importlib.import_module("lz4.frame")  # has no types

    compressed: bytes = frame_of_lz4.compress(
        data,
        compression_level=0 if level == _LZ4_LEVEL_FAST else min(max(level, 3), 12),
        block_size=frame_of_lz4.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return compressed


def _decompress_lz4(data: bytes, size_bytes_max: int) -> bytes:
    """Read the first frame, as Java does; what follows it does not count."""
    frame_of_lz4: Any = importlib.import_module("lz4.frame")  # has no types

    _check_lz4_descriptor(data)
    frame = frame_of_lz4.LZ4FrameDecompressor()
    pieces: list[bytes] = []
    size_bytes = 0
    chunk_bytes = _LZ4_CHUNK_BYTES
    try:
        while not frame.eof:
            if size_bytes > size_bytes_max:
                raise DecompressedTooLargeError(size_bytes_max)
            if pieces and frame.needs_input:
                raise CompressionError("lz4: the data are cut short")
            limit = min(chunk_bytes, size_bytes_max - size_bytes + 1)
            piece: bytes = frame.decompress(b"" if pieces else data, max_length=limit)
            pieces.append(piece)
            size_bytes += len(piece)
            chunk_bytes *= 4
    except (RuntimeError, EOFError) as error:
        raise CompressionError(f"lz4: {error}") from None
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _check_lz4_descriptor(data: bytes | memoryview) -> None:
    if data[:4] != _LZ4_MAGIC or len(data) < 7:
        raise CompressionError("lz4: no frame")
    flags = data[4]
    if flags >> 6 != 1 or flags & 0x03 or data[5] & 0x8F or data[5] < 0x40:
        raise CompressionError(f"lz4: frame descriptor {data[4:6].hex()} is not supported")
    if not flags & 0x20:  # Java's reader refuses it, so it must not enter a log
        raise CompressionError("lz4: dependent blocks are not supported")


def _check_lz4_blocks(data: memoryview) -> None:
    """Walk the first frame's blocks up to the mark that ends them."""
    _check_lz4_descriptor(data)
    flags = data[4]
    block_bytes_max = 1 << (2 * (data[5] >> 4) + 8)  # 4: 64 KiB, 5: 256 KiB, ...
    checksum_bytes = 4 if flags & 0x10 else 0
    position = 15 if flags & 0x08 else 7  # behind a content size
    while True:
        size_bytes = int.from_bytes(data[position : position + 4], "little") & 0x7FFFFFFF
        if position + 4 > len(data):
            raise CompressionError("lz4: the data are cut short")
        if size_bytes == 0:
            return
        if size_bytes > block_bytes_max:
            raise CompressionError(f"lz4: a block of {size_bytes} bytes at {position} is too large")
        position += 4 + size_bytes + checksum_bytes


# zstd


class _ZstdContexts(threading.local):
    """A thread's contexts: to make one takes twenty times as long as to use it."""

    def __init__(self) -> None:
        self.compressors: dict[int, zstandard.ZstdCompressor] = {}
        self.decompressor: zstandard.ZstdDecompressor | None = None


_zstd_contexts = _ZstdContexts()


def _compress_zstd(data: Buffer, level: int) -> bytes:
    import zstandard

    compressors = _zstd_contexts.compressors
    if level not in compressors:
        compressors[level] = zstandard.ZstdCompressor(
            level=level, write_content_size=False, write_checksum=False
        )
    compressor = compressors[level].compressobj()
    # Java writes, flushes, then closes: an empty last block ends the frame.
    return b"".join(
        (
            compressor.compress(memoryview(data)),
            compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK),
            compressor.flush(zstandard.COMPRESSOBJ_FLUSH_FINISH),
        )
    )


def _decompress_zstd(data: bytes, size_bytes_max: int) -> bytes:
    import zstandard

    pieces: list[bytes] = []
    position = size_bytes = 0
    decompressor = _zstd_contexts.decompressor
    if decompressor is None:
        decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES_MAX)
        _zstd_contexts.decompressor = decompressor
    while position < len(data):
        if _is_skippable(data[position : position + 4]):
            position = _zstd_skipped(data, position)
            continue
        end, bound_bytes, content_bytes = _zstd_frame(data, position)
        if content_bytes > size_bytes_max - size_bytes:
            raise DecompressedTooLargeError(size_bytes_max)
        limit = min(bound_bytes, size_bytes_max - size_bytes + 1)
        try:
            if bound_bytes:
                piece = decompressor.decompress(data[position:end], max_output_size=limit)
                size_bytes += len(piece)
                pieces.append(piece)
        except zstandard.ZstdError as error:
            if limit < bound_bytes and "did not decompress full frame" in str(error):
                raise DecompressedTooLargeError(size_bytes_max) from None
            raise CompressionError(f"zstd: {error}") from None
        position = end
    if not position:
        raise CompressionError("zstd: no frame")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _zstd_end(data: memoryview, position: int) -> int:
    """Return where the frame at `position` ends, whatever its kind. Raises CompressionError."""
    if _is_skippable(bytes(data[position : position + 4])):
        return _zstd_skipped(data, position)
    return _zstd_frame(data, position)[0]


def _zstd_skipped(data: bytes | memoryview, position: int) -> int:
    position += 8 + int.from_bytes(data[position + 4 : position + 8], "little")
    if position > len(data):
        raise CompressionError("zstd: a skippable frame is cut short")
    return position


def _zstd_frame(data: bytes | memoryview, position: int) -> tuple[int, int, int]:
    """
    Return (end of the frame at `position`, what its blocks can hold, what its header claims).

    Walks the three-byte block headers, so that memory is taken for what blocks can hold and not
    for what a frame header claims. No claim is 0. Raises CompressionError.
    """
    import zstandard

    head = bytes(data[position : position + 18])
    if not head.startswith(_ZSTD_MAGIC):
        raise CompressionError(f"zstd: no frame at {position}")
    try:
        parameters = zstandard.get_frame_parameters(head)
        position += zstandard.frame_header_size(head)
    except zstandard.ZstdError as error:
        raise CompressionError(f"zstd: {error}") from None
    bound_bytes = 0
    while True:
        header = int.from_bytes(data[position : position + 3], "little")
        size_bytes = header >> 3
        kind = header >> 1 & 3  # 0 raw, 1 one byte repeated, 2 compressed, 3 reserved
        bound_bytes += size_bytes if kind < 2 else _ZSTD_BLOCK_BYTES_MAX
        position += 3 + (1 if kind == 1 else size_bytes)
        if position > len(data):
            raise CompressionError("zstd: the data are cut short")
        if header & 1:
            break
    position += 4 if parameters.has_checksum else 0
    if position > len(data):
        raise CompressionError("zstd: the data are cut short")
    content_bytes = parameters.content_size
    if content_bytes == zstandard.CONTENTSIZE_UNKNOWN:
        content_bytes = 0
    if content_bytes > bound_bytes:
        raise CompressionError("zstd: the frame claims more than its blocks can hold")
    return position, bound_bytes, content_bytes


def _is_skippable(head: bytes) -> bool:
    return len(head) >= 4 and head[0] & 0xF0 == 0x50 and head[1:4] == _ZSTD_SKIPPABLE
