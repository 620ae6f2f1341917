"""
The compressions of message bodies: zlib, LZ4 and zstd, as clients of both releases write them.

======  ====  ==========================================================
type    name  bytes
======  ====  ==========================================================
0, 3    zlib  an RFC 1950 stream; old clients say 0, newer ones 3
1       LZ4   one LZ4 frame
2       zstd  one or more zstd frames
======  ====  ==========================================================

A broker stores what it is given; the checksum is that of the compressed bytes. LZ4 and zstd are
imported when they are first needed.

Source: ``org.apache.rocketmq.common.compression``.
"""

from __future__ import annotations

import importlib
import zlib
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from typing_extensions import Buffer

#: a body that would grow larger is taken for an attack, unless the caller allows more
DECOMPRESSED_BYTES_MAX = 128 * 1024 * 1024
LEVEL = 5
_ZSTD_WINDOW_BYTES_MAX = 1 << 27
_CHUNK_BYTES = 128 * 1024
#: three bytes may become a block of 128 KiB: this bounds what comes out at a time
_ZSTD_INPUT_BYTES = 256


class CompressionType(IntEnum):
    """How a body is compressed: bits 8 to 10 of the system flag."""

    ZLIB_OF_OLD = 0
    LZ4 = 1
    ZSTD = 2
    ZLIB = 3


class BodyCompressionError(LogStoreError):
    """A compressed body cannot be understood, or would grow beyond what the caller allows."""


def compress_body(kind: int, data: Buffer, level: int = LEVEL) -> bytes:
    """
    Return `data` compressed as a client does it.

    Raises:
        BodyCompressionError: there is no compression of that number.

    """
    name = _name(kind)
    if name == "zlib":
        return zlib.compress(data, level)
    if name == "LZ4":
        frame: Any = importlib.import_module("lz4.frame")  # has no types
        compressed: bytes = frame.compress(data, store_size=False)
        return compressed
    import zstandard

    return zstandard.ZstdCompressor(level=level).compress(memoryview(data))


def decompress_body(kind: int, data: bytes, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """
    Return what `data` was before a client compressed it; memory is taken for what comes out only.

    Raises:
        BodyCompressionError: bad or cut data, no compression of that number, or more than
            `size_bytes_max` bytes would come out.

    """
    name = _name(kind)
    if name == "zlib":
        decompressor: Any = zlib.decompressobj()
        errors: tuple[type[Exception], ...] = (zlib.error,)
    elif name == "LZ4":
        decompressor = importlib.import_module("lz4.frame").LZ4FrameDecompressor()
        errors = (RuntimeError, EOFError)
    else:
        return _decompress_zstd(data, size_bytes_max)
    pieces: list[bytes] = []
    size_bytes = 0
    source = data
    try:
        while not decompressor.eof:
            limit = min(_CHUNK_BYTES << min(len(pieces), 10), size_bytes_max - size_bytes + 1)
            piece: bytes = decompressor.decompress(source, limit)
            source = decompressor.unconsumed_tail if name == "zlib" else b""
            pieces.append(piece)
            size_bytes += len(piece)
            if size_bytes > size_bytes_max:
                raise BodyCompressionError(f"{name}: more than {size_bytes_max} bytes come out")
            if not piece and not decompressor.eof:
                raise BodyCompressionError(f"{name}: the body is cut short")
    except errors as error:
        raise BodyCompressionError(f"{name}: {error}") from None
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _decompress_zstd(data: bytes, size_bytes_max: int) -> bytes:
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES_MAX)
    pieces: list[bytes] = []
    size_bytes = position = 0
    frame = None
    try:
        while position < len(data):
            if frame is None:
                frame = decompressor.decompressobj()
            source = data[position : position + _ZSTD_INPUT_BYTES]
            piece = frame.decompress(source)
            position += len(source) - len(frame.unused_data)
            pieces.append(piece)
            size_bytes += len(piece)
            if size_bytes > size_bytes_max:
                raise BodyCompressionError(f"zstd: more than {size_bytes_max} bytes come out")
            if frame.eof:
                frame = None
    except zstandard.ZstdError as error:
        raise BodyCompressionError(f"zstd: {error}") from None
    if frame is not None or not data:
        raise BodyCompressionError("zstd: the body is cut short")
    return b"".join(pieces)


def _name(kind: int) -> str:
    if kind in (CompressionType.ZLIB, CompressionType.ZLIB_OF_OLD):
        return "zlib"
    if kind == CompressionType.LZ4:
        return "LZ4"
    if kind == CompressionType.ZSTD:
        return "zstd"
    raise BodyCompressionError(f"compression type {kind} is none of 0, 1, 2 and 3")
