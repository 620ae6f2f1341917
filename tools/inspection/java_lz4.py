"""
An LZ4 frame as Kafka's ``Lz4BlockInputStream`` reads it, damaged or not.

It checks what the frame's descriptor says and the descriptor's own checksum when it is opened, and
looks at a block only when it comes to it; nothing behind the end mark is looked at.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from logstore.tools.inspection.java_indexes import JavaError

_MAGIC = b"\x04\x22\x4d\x18"
_HEADER_BYTES_MIN = 6
_PREMATURE = "java.io.IOException: Stream ended prematurely"
_UNDERFLOW = "java.nio.BufferUnderflowException"
_CONTENT_CHECKSUM, _CONTENT_SIZE, _BLOCK_CHECKSUM, _INDEPENDENT = 4, 8, 16, 32
_VERSION = 1
_UNCOMPRESSED = 1 << 31


class Lz4Stream:
    """
    The blocks of a frame, each decompressed; iteration ends at the end mark, or where it breaks.

    Then `is_finished` says that it was the end mark, and `error` what nobody would catch.
    Raises JavaError, when it is made, where the frame does not even begin.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.is_finished = False
        self.error: JavaError | None = None
        self._position, self._flags, self._block_bytes_max = self._opened()

    def _opened(self) -> tuple[int, int, int]:
        data = self._data
        if len(data) < _HEADER_BYTES_MIN:
            raise _unopened(_PREMATURE)
        if not data.startswith(_MAGIC):
            raise _unopened("java.io.IOException: Stream unsupported (invalid magic bytes)")
        flags, sizes = data[4], data[5]
        fault = _fault(flags, sizes)
        if fault is not None:
            raise _unopened(f"java.lang.RuntimeException: {fault}")
        position = _HEADER_BYTES_MIN
        if flags & _CONTENT_SIZE:
            position += 8
            if len(data) < position:
                raise _unopened(_PREMATURE)
        if len(data) <= position:
            raise _unopened(_UNDERFLOW)
        if data[position] != _hash(data[4:position]) >> 8 & 0xFF:
            raise _unopened("java.io.IOException: Stream frame descriptor corrupted")
        return position + 1, flags, 1 << 2 * (sizes >> 4 & 7) + 8

    def __iter__(self) -> Iterator[bytes]:
        """Yield what each block holds."""
        lz4_block: Any = importlib.import_module("lz4.block")  # its types tell of nothing
        data, flags = self._data, self._flags
        while len(data) - self._position >= 4:
            start = self._position + 4
            size_bytes = int.from_bytes(data[self._position : start], "little")
            is_compressed = not size_bytes & _UNCOMPRESSED
            size_bytes &= ~_UNCOMPRESSED
            if size_bytes == 0:
                if flags & _CONTENT_CHECKSUM and len(data) < start + 4:
                    self.error = JavaError(_UNDERFLOW, None)
                self.is_finished = self.error is None
                return
            block = data[start : start + size_bytes]
            if size_bytes > self._block_bytes_max or len(block) < size_bytes:
                return
            self._position = start + size_bytes
            body = block
            if is_compressed:
                try:
                    body = lz4_block.decompress(block, uncompressed_size=self._block_bytes_max)
                except lz4_block.LZ4BlockError:
                    return
            if flags & _BLOCK_CHECKSUM:
                found = data[self._position : self._position + 4]
                self._position += 4
                if len(found) < 4:
                    self.error = JavaError(_UNDERFLOW, None)
                    return
                if int.from_bytes(found, "little") != _hash(block):
                    return
            yield body


def _fault(flags: int, sizes: int) -> str | None:
    """Return what is wrong with a descriptor's two bytes, in Kafka's order."""
    if flags & 3:
        return "Reserved bits must be 0"
    if not flags & _INDEPENDENT:
        return "Dependent block stream is unsupported"
    if flags >> 6 != _VERSION:
        return f"Version {flags >> 6} is unsupported"
    if sizes & 15:
        return "Reserved2 field must be 0"
    if not (sizes >> 4 & 7) >= 4:
        return "Block size value must be between 4 and 7"
    return "Reserved3 field must be 0" if sizes >> 7 else None


def _hash(data: bytes) -> int:
    import xxhash

    return xxhash.xxh32_intdigest(data)


def _unopened(cause: str) -> JavaError:
    """Return what wraps the exception of a constructor."""
    return JavaError("org.apache.kafka.common.KafkaException", cause)
