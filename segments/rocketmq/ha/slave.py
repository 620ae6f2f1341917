"""
The slave's side of replication: chunks of the master's commit log in, reports out.

Nothing here opens a socket. After an error or an expired connection it is to be closed and made
again after `RECONNECT_AFTER_MS`. (``DefaultHAClient``)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from logstore.segments.rocketmq.ha.frames import FrameReader, ReplicationError, encode_report

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from logstore.segments.rocketmq.ha.settings import HaSettings

__all__ = ["ReplicaLog", "SlaveClient"]


class ReplicaLog(Protocol):
    """What a slave needs of its commit log, or of its whole store."""

    @property
    def max_physical_offset(self) -> int:
        """Where the commit log ends."""
        ...

    def append_raw(self, physical_offset: int, data: Buffer) -> object:
        """Append bytes of the master's commit log; False means that they were not taken."""
        ...


class SlaveClient:
    """
    The connection to a master.

    Call :meth:`connect` for each new connection and send what it returns, feed :meth:`receive` and
    send what it returns, call :meth:`tick` at least every second and send what it returns; close
    when :meth:`is_expired`.

    Java's slave says nothing before five seconds have passed, and so gets nothing;
    `reports_at_connect` lets it say at once where it is, which every master understands.
    """

    __slots__ = (
        "_frames",
        "_last_read_ms",
        "_last_write_ms",
        "_log",
        "_reports_at_connect",
        "_settings",
        "reported_physical_offset",
    )

    def __init__(
        self,
        commit_log: ReplicaLog,
        settings: HaSettings,
        now_ms: float,
        *,
        reports_at_connect: bool = True,
    ) -> None:
        self._log = commit_log
        self._settings = settings
        self._frames = FrameReader()
        self._last_read_ms = self._last_write_ms = now_ms
        self._reports_at_connect = reports_at_connect
        #: what the master was told last
        self.reported_physical_offset = 0

    def connect(self, now_ms: float) -> bytes:
        """Begin a new connection: forget what was left of the old one."""
        self._frames = FrameReader()
        self.reported_physical_offset = self._log.max_physical_offset
        self._last_read_ms = now_ms
        return self._report(now_ms) if self._reports_at_connect else b""

    def receive(self, data: bytes, now_ms: float) -> bytes:
        """
        Take bytes of the master, in any split; return the report to send, if any.

        Raises:
            ReplicationError: the master's chunk does not start where this log ends, or its bytes
                were not taken. Nothing of it was appended.

        """
        reports = b""
        self._frames.receive(data)
        self._check_next()
        for physical_offset, piece in self._frames.frames():
            if piece and self._log.append_raw(physical_offset, piece) is False:
                raise ReplicationError(
                    f"{len(piece)} bytes of the master at physical offset {physical_offset} were "
                    "not taken by this store"
                )
            reports += self._report_growth(now_ms)
            self._check_next()
        self._last_read_ms = now_ms
        return reports

    def tick(self, now_ms: float) -> bytes:
        """Return the report that is due by time or because the log has grown, if any."""
        if now_ms - self._last_write_ms > self._settings.heartbeat_interval_ms:
            return self._report(now_ms)
        return self._report_growth(now_ms)

    def is_expired(self, now_ms: float) -> bool:
        """Tell whether the master was silent for so long that the connection is to be closed."""
        return now_ms - self._last_read_ms > self._settings.housekeeping_interval_ms

    def _check_next(self) -> None:
        """Refuse a chunk as soon as its header says that it is not the next one."""
        header = self._frames.header()
        end = self._log.max_physical_offset
        # An empty slave takes whatever the master starts with.
        if header is not None and end != 0 and header[0] != end:
            raise ReplicationError(
                f"the master sends physical offset {header[0]}, this commit log ends at {end}: "
                "they differ; make the slave's store anew from an empty directory"
            )

    def _report_growth(self, now_ms: float) -> bytes:
        end = self._log.max_physical_offset
        if end <= self.reported_physical_offset:
            return b""
        self.reported_physical_offset = end
        return self._report(now_ms)

    def _report(self, now_ms: float) -> bytes:
        self._last_write_ms = now_ms
        return encode_report(self.reported_physical_offset)
