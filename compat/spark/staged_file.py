"""
The file that a task puts beside a store: portions of rows, the places they go to, a checksum.

::

    file    := portion* places footer
    portion := pickle of (place, records or batch or messages)
    places  := pickle of all places, sorted
    footer  := position of `places` u64, CRC-32C of all in front of the footer u32, magic 4 bytes

It is read by the driver that takes the job, or by the next writer, after a driver died in between.
"""

from __future__ import annotations

import os
import pickle
import struct
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from logstore.checksum import crc32c
from logstore.compat.spark.row_batches import StagedBatch
from logstore.compat.spark.row_messages import StagedMessages
from logstore.compat.spark.row_places import Place
from logstore.errors import StorageError
from logstore.partition import Record

Portion = list[Record] | StagedBatch | StagedMessages
_FOOTER = struct.Struct("<QI4s")
_MAGIC = b"LSsf"
_CHECKED_BYTES = 1024 * 1024


class StagedFileWriter:
    """
    Writes one; it counts for nothing unless all of it was left without an error.

    Where `is_durable` it is synced then. Else a power loss may damage it, which
    :meth:`StagedFile.is_whole` finds.
    """

    def __init__(self, path: str, *, is_durable: bool) -> None:
        self.path = path
        self.is_durable = is_durable
        self._places: set[Place] = set()
        self._position = 0
        self._crc = 0
        self._file = Path(path).open("wb")  # noqa: SIM115 - closed where the writer is left

    def __enter__(self) -> Self:
        return self

    def put(self, place: Place, portion: Portion) -> None:
        """Add rows that go to one place."""
        self._places.add(place)
        pickle.dump((place, portion), self)

    def write(self, data: bytes | memoryview) -> int:
        """Add bytes; what pickles want of a file."""
        self._crc = crc32c(data, self._crc)
        self._position += memoryview(data).nbytes
        return self._file.write(data)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._file as file:
            if error is not None:
                return
            position = self._position
            pickle.dump(sorted(self._places), self)
            file.write(_FOOTER.pack(position, self._crc, _MAGIC))
            file.flush()
            if self.is_durable:
                os.fsync(file.fileno())


class StagedFile:
    """One that a task has left."""

    def __init__(self, path: str) -> None:
        self.path = path

    @property
    def size_bytes(self) -> int:
        """How long it is."""
        return os.path.getsize(self.path)

    def places(self) -> list[Place]:
        """
        Return where its rows go.

        Raises:
            StorageError: it ends in the middle.

        """
        with Path(self.path).open("rb") as file:
            position, _ = self._footer(file)
            file.seek(position)
            found: list[Place] = pickle.load(file)  # noqa: S301 - our own file
            return found

    def portions(self) -> Iterator[tuple[Place, Portion]]:
        """
        Yield what was put, in order.

        Raises:
            StorageError: it ends in the middle.

        """
        with Path(self.path).open("rb") as file:
            end, _ = self._footer(file)
            file.seek(0)
            while file.tell() < end:
                yield pickle.load(file)  # noqa: S301 - our own file

    def is_whole(self) -> bool:
        """Tell whether it is there as it was written; this reads all of it."""
        try:
            with Path(self.path).open("rb") as file:
                _, crc = self._footer(file)
                rest = file.tell() - _FOOTER.size
                file.seek(0)
                found = 0
                while rest:
                    data = file.read(min(rest, _CHECKED_BYTES))
                    found = crc32c(data, found)
                    rest -= len(data)
        except (OSError, StorageError):
            return False
        return found == crc

    def _footer(self, file: IO[Any]) -> tuple[int, int]:
        """Return where the places stand, and the checksum; the file's position is its end."""
        end = file.seek(0, os.SEEK_END)
        if end >= _FOOTER.size:
            file.seek(end - _FOOTER.size)
            position, crc, magic = _FOOTER.unpack(file.read(_FOOTER.size))
            if magic == _MAGIC and position <= end - _FOOTER.size:
                return position, crc
        raise StorageError(f"{self.path}: ends in the middle: {end} bytes are there")
