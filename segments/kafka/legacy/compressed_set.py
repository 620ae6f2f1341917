"""
What stands in the value of a wrapper: messages, compressed in the framing of today's batches.

But one byte. The header checksum of an lz4 frame is the second byte of xxh32 over the frame's
descriptor; whoever wrote magic 0 took it over the frame's magic too (KAFKA-3160). Readers of magic
0 therefore do not look at it, and its writers still get it wrong, for clients that look at it in
the wrong way::

    04 22 4d 18   60 40   1a      magic 0: xxh32(04 22 4d 18 60 40)
    04 22 4d 18   60 40   82      magic 1 and 2: xxh32(60 40)

Source: ``Lz4BlockInputStream``, ``Lz4BlockOutputStream``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from logstore.segments.kafka.compression import (
    DECOMPRESSED_BYTES_MAX,
    Codec,
    CompressionError,
    compress,
    decompress,
)
from logstore.segments.kafka.legacy.message import MAGIC_0

if TYPE_CHECKING:
    from typing_extensions import Buffer

_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_CONTENT_BYTES_BIT = 0x08
_LZ4_HEADER = _LZ4_MAGIC + b"\x60\x40\x82"
_LZ4_HEADER_OF_MAGIC_0 = _LZ4_MAGIC + b"\x60\x40\x1a"


def compress_set(codec: Codec, data: Buffer, magic: int, level: int | None = None) -> bytes:
    """
    Return the value of a wrapper of this magic around the messages in `data`.

    Raises:
        CompressionError: zstd, which is younger than both formats.

    """
    _refuse_zstd(codec)
    compressed = compress(codec, data, level)
    if codec is Codec.LZ4 and magic == MAGIC_0:
        assert compressed.startswith(_LZ4_HEADER), compressed[:7].hex()
        compressed = _LZ4_HEADER_OF_MAGIC_0 + compressed[len(_LZ4_HEADER) :]
    return compressed


def decompress_set(
    codec: Codec, data: Buffer, magic: int, size_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> bytes:
    """
    Return the messages that a wrapper of this magic has in its value.

    Raises:
        DecompressedTooLargeError: they would take more than `size_bytes_max` bytes.
        CompressionError: bad, cut or foreign data, or zstd.

    """
    _refuse_zstd(codec)
    if codec is Codec.LZ4 and magic == MAGIC_0:
        data = _with_right_checksum(bytes(data))
    return decompress(codec, data, size_bytes_max)


def _refuse_zstd(codec: Codec) -> None:
    if codec is Codec.ZSTD:
        raise CompressionError("zstd: messages of magic 0 and 1 do not have this codec")


def _with_right_checksum(frame: bytes) -> bytes:
    """
    Return the frame with the header checksum that a strict reader wants.

    A content size, which Java's reader skips, is left out: so the descriptor has two bytes, and
    the library knows a header with the same two.
    """
    if len(frame) < len(_LZ4_HEADER) or not frame.startswith(_LZ4_MAGIC):
        raise CompressionError("lz4: no frame")
    flags, block = frame[4], frame[5]
    body = len(_LZ4_HEADER)
    if flags & _LZ4_CONTENT_BYTES_BIT:
        flags &= ~_LZ4_CONTENT_BYTES_BIT
        body += 8
        if body > len(frame):
            raise CompressionError("lz4: the data are cut short")
    header = _lz4_header(flags, block)
    if header[4:6] != bytes((flags, block)):
        raise CompressionError(f"lz4: frame descriptor {frame[4:6].hex()} is not supported")
    return header + frame[body:]


def _lz4_header(flags: int, block: int) -> bytes:
    """Return the header of a frame with this descriptor; a near one if it makes no sense."""
    frame_of_lz4: Any = importlib.import_module("lz4.frame")  # has no types

    header: bytes = frame_of_lz4.compress_begin(
        frame_of_lz4.create_compression_context(),
        block_size=min(max(block >> 4 & 7, 4), 7),
        block_linked=not flags & 0x20,
        content_checksum=bool(flags & 0x04),
        block_checksum=bool(flags & 0x10),
    )
    return header
