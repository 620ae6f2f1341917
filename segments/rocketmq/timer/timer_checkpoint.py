"""
``config/timercheck``: how far the time wheel is, in 4096 bytes of which 56 are used.

Seven big-endian longs: read time, flushed timer offset, queue offset of the timer topic, the same
of the master, state version, timestamp and counter of the data version. (``TimerCheckpoint``)
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

import attrs

from logstore.segments.rocketmq.tables.data_version import DataVersion

if TYPE_CHECKING:
    from logstore.host import Host

__all__ = ["TIMER_CHECKPOINT_BYTES", "TimerCheckpoint"]

_FIELDS = Struct(">7q")
TIMER_CHECKPOINT_BYTES = 4096


@attrs.define
class TimerCheckpoint:
    """What a broker knows of its timer messages after a restart; a slave asks its master for it."""

    last_read_time_ms: int = 0
    last_timer_log_flush_where: int = 0
    last_timer_queue_offset: int = 0
    master_timer_queue_offset: int = 0
    data_version: DataVersion = attrs.field(factory=lambda: DataVersion(0))

    @classmethod
    def decode(cls, data: bytes) -> TimerCheckpoint:
        """Return the checkpoint in a file or a master's answer; what is missing counts as 0."""
        read_ms, flushed, queue_offset, masters, state, timestamp_ms, counter = _FIELDS.unpack(
            data[: _FIELDS.size].ljust(_FIELDS.size, b"\0")
        )
        version = DataVersion(timestamp_ms, counter, state)
        return cls(read_ms, flushed, queue_offset, masters, version)

    def encode(self) -> bytes:
        """Return the 56 bytes that slaves are sent (code 60)."""
        version = self.data_version
        return _FIELDS.pack(
            self.last_read_time_ms,
            self.last_timer_log_flush_where,
            self.last_timer_queue_offset,
            self.master_timer_queue_offset,
            version.state_version,
            version.timestamp_ms,
            version.counter,
        )

    @classmethod
    def load(cls, host: Host, path: str) -> TimerCheckpoint:
        """Return the checkpoint of a store, an empty one if there is no file."""
        if not host.fs.exists(path):
            return cls(data_version=DataVersion(host.clock.wall_ms()))
        file = host.fs.open(path, writable=False)
        try:
            return cls.decode(file.read(0, _FIELDS.size))
        finally:
            file.close()

    def store(self, host: Host, path: str) -> None:
        """Write the file in place and make it durable; raises OSError."""
        fs = host.fs
        directory = path.rpartition("/")[0]
        is_new = not fs.exists(path)
        if is_new:
            fs.make_directory(directory)
        file = fs.open(path, create=True)
        try:
            if file.size() < TIMER_CHECKPOINT_BYTES:
                file.truncate(TIMER_CHECKPOINT_BYTES)
            file.write(0, self.encode())
            file.sync()
        finally:
            file.close()
        if is_new:
            fs.sync_directory(directory)
