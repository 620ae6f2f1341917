"""
The checkpoint: up to when commit log, consume queues and index are durable.

::

    0   8   physic message timestamp: store time of the last message flushed to the commit log
    8   8   logics message timestamp: store time of the last message whose unit was flushed
    16  8   index message timestamp: store time of the last message of the last full index file
    24  8   [5.x] master flushed physical offset
    32  8   [5.x] confirm physical offset
    40  8   [5.x] logics physical offset: of the last message whose unit was flushed
    48      zeros up to 4096

A file of 4096 bytes; where one is missing or shorter, what it lacks is zero. There is no checksum.
It is written in place, and a power loss may leave any mix of old and new fields: each is a lower
bound, and zero is the lowest: then recovery reads all.

Source: ``StoreCheckpoint``.
"""

from __future__ import annotations

import struct

from logstore.host import File, Host

CHECKPOINT_NAME = "checkpoint"
CHECKPOINT_SIZE_BYTES = 4096
#: how much earlier than the checkpoint says recovery starts, for what was written meanwhile
SAFETY_MARGIN_MS = 3000

_FIELDS = struct.Struct(">6q")


class StoreCheckpoint:
    """
    The six fields in memory, and the file that :meth:`flush` writes them to.

    All fields may be set at any time; nothing is written before :meth:`flush`. A store of 4.x
    leaves the last three at zero.
    """

    __slots__ = (
        "_file",
        "_host",
        "_written",
        "confirm_physical_offset",
        "index_msg_timestamp_ms",
        "logics_msg_timestamp_ms",
        "logics_physical_offset",
        "master_flushed_physical_offset",
        "path",
        "physic_msg_timestamp_ms",
    )

    def __init__(self, host: Host, path: str) -> None:
        self.path = path
        self._host = host
        self._file: File | None = None
        data = self._read()
        fields: tuple[int, ...] = _FIELDS.unpack_from(data)
        (
            self.physic_msg_timestamp_ms,
            self.logics_msg_timestamp_ms,
            self.index_msg_timestamp_ms,
            self.master_flushed_physical_offset,
            self.confirm_physical_offset,
            self.logics_physical_offset,
        ) = fields
        #: what stands in the file; None where there is no file of full size yet
        self._written = data[: _FIELDS.size] if len(data) == CHECKPOINT_SIZE_BYTES else None

    def _read(self) -> bytes:
        """Return the file's bytes, at least those of the fields."""
        try:
            file = self._host.fs.open(self.path, writable=False)
        except FileNotFoundError:
            return bytes(_FIELDS.size)
        try:
            data = file.read(0, CHECKPOINT_SIZE_BYTES)
        finally:
            file.close()
        return data.ljust(_FIELDS.size, b"\0")

    @property
    def min_timestamp_ms(self) -> int:
        """The time up to which both commit log and queues are durable for sure."""
        durable_ms = min(self.physic_msg_timestamp_ms, self.logics_msg_timestamp_ms)
        return max(durable_ms - SAFETY_MARGIN_MS, 0)

    @property
    def min_timestamp_with_index_ms(self) -> int:
        """As :attr:`min_timestamp_ms`, for the index too (``messageIndexSafe``)."""
        return min(self.min_timestamp_ms, self.index_msg_timestamp_ms)

    def encoded(self) -> bytes:
        """Return the fields as they stand in the file."""
        return _FIELDS.pack(
            self.physic_msg_timestamp_ms,
            self.logics_msg_timestamp_ms,
            self.index_msg_timestamp_ms,
            self.master_flushed_physical_offset,
            self.confirm_physical_offset,
            self.logics_physical_offset,
        )

    def write(self) -> bool:
        """Write the fields without a sync; tell whether they differed from what stood there."""
        data = self.encoded()
        if data == self._written:
            return False
        file = self._open_file()
        if self._written is None and file.size() < CHECKPOINT_SIZE_BYTES:
            file.truncate(CHECKPOINT_SIZE_BYTES)
        self._written = None  # unknown until the write is through
        file.write(0, data)
        self._written = data
        return True

    def sync(self) -> None:
        """Make what was written durable; may run beside everything else, in any thread."""
        if self._file is not None:
            self._file.sync()

    def flush(self) -> None:
        """Write and sync the fields, if any of them changed."""
        if self.write():
            self.sync()

    def _open_file(self) -> File:
        """Return the handle of the file, which is made if it is missing."""
        if self._file is None:
            is_new = not self._host.fs.exists(self.path)
            self._file = self._host.fs.open(self.path, create=True)
            if is_new:
                self._host.fs.sync_directory(self.path.rpartition("/")[0])
        return self._file

    def close(self) -> None:
        """Give the handle back; does not flush."""
        if self._file is not None:
            self._file.close()
            self._file = None
