"""
The bytes between master and slave (``DefaultHAConnection``, ``DefaultHAClient``).

::

    slave  -> master   max physical offset i64          every few seconds, and as it grows
    master -> slave    physical offset i64, size i32, then so many bytes of the commit log

A size of 0 is a heartbeat. A chunk may end within a message, but not go on behind the end of a
commit log file; what fills a file behind its last message is sent, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from logstore.errors import LogStoreError

__all__ = [
    "TRANSFER_HEADER",
    "FrameReader",
    "ReplicationError",
    "ReportReader",
    "encode_report",
    "encode_transfer_header",
]

#: physical offset, size
TRANSFER_HEADER = Struct(">qi")
_REPORT = Struct(">q")
#: no chunk of a master is longer: it has to fit into a slave's read buffer in Java
FRAME_BYTES_MAX = 4 * 1024 * 1024


class ReplicationError(LogStoreError):
    """The other side sent what cannot be right; the connection is to be closed."""


def encode_report(max_physical_offset: int) -> bytes:
    """Return what a slave says of how far it is."""
    return _REPORT.pack(max_physical_offset)


def encode_transfer_header(physical_offset: int, size_bytes: int) -> bytes:
    """Return what a master sends before a chunk."""
    return TRANSFER_HEADER.pack(physical_offset, size_bytes)


class ReportReader:
    """Puts a slave's reports together again, however they were split on the way."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def receive(self, data: bytes) -> int | None:
        """Take bytes; return the newest report in them, None if none is whole yet."""
        data = self._rest + data
        whole = len(data) - len(data) % _REPORT.size
        self._rest = data[whole:]
        if not whole:
            return None
        (newest,) = _REPORT.unpack_from(data, whole - _REPORT.size)
        return int(newest)


class FrameReader:
    """Puts a master's chunks together again, however they were split on the way."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def receive(self, data: bytes) -> None:
        """Take bytes; they come out of :meth:`frames`."""
        self._buffer += data

    def header(self) -> tuple[int, int] | None:
        """
        Return (physical offset, size) of the next chunk, None if they are not there yet.

        Raises:
            ReplicationError: the size is impossible.

        """
        if len(self._buffer) < TRANSFER_HEADER.size:
            return None
        physical_offset, size_bytes = TRANSFER_HEADER.unpack_from(self._buffer)
        if not 0 <= size_bytes <= FRAME_BYTES_MAX or physical_offset < 0:
            raise ReplicationError(
                f"the master announces {size_bytes} bytes at physical offset {physical_offset}; "
                "is that its haListenPort?"
            )
        return physical_offset, size_bytes

    def frames(self) -> Iterator[tuple[int, bytes]]:
        """
        Yield (physical offset, bytes) of each whole chunk; a heartbeat has no bytes.

        Raises:
            ReplicationError: a size is impossible.

        """
        while (header := self.header()) is not None:
            physical_offset, size_bytes = header
            end = TRANSFER_HEADER.size + size_bytes
            if len(self._buffer) < end:
                return
            data = bytes(self._buffer[TRANSFER_HEADER.size : end])
            del self._buffer[:end]
            yield physical_offset, data
