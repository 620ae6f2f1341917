"""A commit log and consume queues in memory, for tests of what only reads them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import attrs

from logstore.host import File
from logstore.segment import Extent
from logstore.segments.rocketmq.queues.consume_queue_ext import ConsumeQueueExtUnit

UNIT = struct.Struct(">qiq")
_EXT_HEAD = struct.Struct(">hqqh")


@attrs.define
class MemoryFile:
    """Bytes that count how often they are read."""

    data: bytes
    read_count: int = 0

    def read(self, position: int, size_bytes: int) -> bytes:
        """Return the bytes there."""
        self.read_count += 1
        return self.data[position : position + size_bytes]


@attrs.define
class MemoryCommitLog:
    """A commit log of files of one size."""

    file_size_bytes: int
    files: dict[int, MemoryFile]
    max_physical_offset: int

    @classmethod
    def of_bytes(
        cls, data: bytes, file_size_bytes: int = 1 << 20, first: int = 0
    ) -> MemoryCommitLog:
        """Return a log whose first file starts at physical offset `first`."""
        files = {
            first + start: MemoryFile(data[start : start + file_size_bytes])
            for start in range(0, max(len(data), 1), file_size_bytes)
        }
        return cls(file_size_bytes, files, first + len(data))

    @classmethod
    def of_store(cls, store: Path, end: int) -> MemoryCommitLog:
        """Return the commit log of a golden store that ends at `end`."""
        paths = sorted((store / "commitlog").iterdir())
        files = {int(path.name): MemoryFile(path.read_bytes()) for path in paths}
        return cls(len(next(iter(files.values())).data), files, end)

    @property
    def min_physical_offset(self) -> int:
        """Where the oldest file starts."""
        return min(self.files)

    def extent(self, physical_offset: int, size_bytes: int) -> Extent:
        """Return a run of bytes of one file."""
        position = physical_offset % self.file_size_bytes
        file = self.files[physical_offset - position]
        assert position + size_bytes <= len(file.data)
        return Extent(cast("File", file), position, size_bytes)

    def read(self, physical_offset: int, size_bytes: int) -> bytes:
        """Return bytes of one file."""
        position = physical_offset % self.file_size_bytes
        return self.files[physical_offset - position].read(position, size_bytes)


@attrs.frozen
class MemoryQueueFile:
    """One file of a queue."""

    first_queue_offset: int
    end_queue_offset: int
    modified_ms: int = 0


@attrs.define
class MemoryQueue:
    """A consume queue of 20-byte units."""

    data: bytes
    units_per_file: int = 300000
    min_queue_offset: int = 0
    first_queue_offset: int = 0
    ext: bytes = b""
    modified_ms: dict[int, int] = attrs.field(factory=dict[int, int])

    unit_size_bytes = 20

    @classmethod
    def of_store(cls, store: Path, topic: str, queue_id: int) -> MemoryQueue:
        """Return a queue of a golden store up to its last unit."""
        paths = sorted((store / "consumequeue" / topic / str(queue_id)).iterdir())
        data = b"".join(path.read_bytes() for path in paths)
        while data.endswith(bytes(20)):
            data = data[:-20]
        ext = store / "consumequeue_ext" / topic / str(queue_id)
        return cls(
            data + bytes(-len(data) % 20),
            units_per_file=paths[0].stat().st_size // 20,
            first_queue_offset=int(paths[0].name) // 20,
            ext=b"".join(path.read_bytes() for path in sorted(ext.iterdir()))
            if ext.is_dir()
            else b"",
        )

    @property
    def max_queue_offset(self) -> int:
        """Behind the last unit."""
        return self.first_queue_offset + len(self.data) // 20

    def units(self, queue_offset: int, count_max: int) -> memoryview:
        """Return units of one file."""
        count = min(count_max, self.roll_next_file(queue_offset) - queue_offset)
        start = (queue_offset - self.first_queue_offset) * 20
        return memoryview(self.data)[start : start + count * 20]

    def roll_next_file(self, queue_offset: int) -> int:
        """Return the first queue offset of the next file."""
        return queue_offset - queue_offset % self.units_per_file + self.units_per_file

    def ext_unit(self, address: int) -> ConsumeQueueExtUnit | None:
        """Return what the extension says."""
        position = address + (1 << 63)
        if position + 20 > len(self.ext):
            return None
        _, tags_code, stored_ms, size = _EXT_HEAD.unpack_from(self.ext, position)
        bit_map = self.ext[position + 20 : position + 20 + size]
        return ConsumeQueueExtUnit(tags_code, stored_ms, bit_map or None)

    def queue_files(self) -> Sequence[MemoryQueueFile]:
        """Return the files that hold units."""
        per_file = self.units_per_file
        start = self.first_queue_offset - self.first_queue_offset % per_file
        return [
            MemoryQueueFile(
                first, min(first + per_file, self.max_queue_offset), self.modified_ms.get(first, 0)
            )
            for first in range(start, self.max_queue_offset, per_file)
        ]
