"""
The master's side of replication: one connection for each slave, and puts that wait for slaves.

Nothing here opens a socket: bytes that a slave sent go in, chunks of the commit log come out.
Times are those of the host's monotonic clock. (``DefaultHAService``, ``DefaultHAConnection``,
``GroupTransferService``)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

from logstore.segments.rocketmq.ha.flow_monitor import FlowMonitor
from logstore.segments.rocketmq.ha.frames import ReportReader, encode_transfer_header
from logstore.segments.rocketmq.putting.put_result import PutMessageStatus
from logstore.segments.rocketmq.settings.release import Release

if TYPE_CHECKING:
    from logstore.segment import Extent
    from logstore.segments.rocketmq.ha.settings import HaSettings

__all__ = ["Chunk", "MasterConnection", "ReplicatedLog", "ReplicationMaster", "ReplicationWait"]


class ReplicatedLog(Protocol):
    """What a master needs of its commit log."""

    @property
    def file_size_bytes(self) -> int:
        """Length of each file."""
        ...

    @property
    def min_physical_offset(self) -> int:
        """Where the oldest file starts."""
        ...

    @property
    def max_physical_offset(self) -> int:
        """Where what can be read ends."""
        ...

    def rest_of_file(self, physical_offset: int) -> Extent:
        """Return all that can be read of the file from `physical_offset` on."""
        ...


@attrs.frozen
class Chunk:
    """What is to be sent next: a header and, but for a heartbeat, bytes of the commit log."""

    header: bytes
    extent: Extent | None = None

    @property
    def size_bytes(self) -> int:
        """Length of both."""
        return len(self.header) + (0 if self.extent is None else self.extent.size_bytes)

    def read(self) -> bytes:
        """Return header and bytes."""
        return self.header if self.extent is None else self.header + self.extent.read()


class MasterConnection:
    """
    One slave, as the master sees it.

    Feed :meth:`receive`; send what :meth:`next_chunk` returns whenever the socket takes more, when
    a message was put, and about every 100 ms; close when :meth:`is_expired`.
    """

    __slots__ = (
        "_last_read_ms",
        "_last_write_ms",
        "_log",
        "_reports",
        "_settings",
        "address",
        "flow",
        "next_physical_offset",
        "slave_ack_offset",
        "slave_request_offset",
    )

    def __init__(
        self, commit_log: ReplicatedLog, settings: HaSettings, now_ms: float, address: str = ""
    ) -> None:
        self._log = commit_log
        self._settings = settings
        self._reports = ReportReader()
        self._last_read_ms = self._last_write_ms = now_ms
        self.address = address
        self.flow = FlowMonitor(settings, now_ms)
        #: the physical offset up to which the slave has everything, -1 before its first report
        self.slave_ack_offset = -1
        #: its first report
        self.slave_request_offset = -1
        #: what is sent next, -1 before the first report
        self.next_physical_offset = -1

    def receive(self, data: bytes, now_ms: float) -> bool:
        """Take bytes of the slave, in any split; tell whether it reported how far it is."""
        self._last_read_ms = now_ms
        report = self._reports.receive(data)
        if report is None:
            return False
        self.slave_ack_offset = report
        if self.slave_request_offset < 0:
            self.slave_request_offset = report
        return True

    def next_chunk(self, now_ms: float) -> Chunk | None:
        """
        Return what is to be sent next, None if there is nothing now.

        A slave that has nothing gets the last file only, as in Java: what older files hold it
        never sees.
        """
        if self.slave_request_offset < 0:
            return None
        commit_log, settings = self._log, self._settings
        if self.next_physical_offset < 0:
            end = commit_log.max_physical_offset
            start = self.slave_request_offset or max(end - end % commit_log.file_size_bytes, 0)
            self.next_physical_offset = start
        start = self.next_physical_offset
        if now_ms - self._last_write_ms > settings.heartbeat_interval_ms:
            return self._sent(Chunk(encode_transfer_header(start, 0)), now_ms)
        if self.is_unservable or start >= commit_log.max_physical_offset:
            return None
        rest = commit_log.rest_of_file(start)
        size = min(rest.size_bytes, settings.transfer_bytes_max)
        allowance = self.flow.allowance_bytes(now_ms)
        size = size if allowance is None else min(size, allowance)
        if size <= 0:
            return None
        self.next_physical_offset = start + size
        extent = rest._replace(size_bytes=size)
        return self._sent(Chunk(encode_transfer_header(start, size), extent), now_ms)

    def _sent(self, chunk: Chunk, now_ms: float) -> Chunk:
        self._last_write_ms = now_ms
        self.flow.count(chunk.size_bytes, now_ms)
        return chunk

    @property
    def is_unservable(self) -> bool:
        """
        Tell whether the slave asked for what is not there, or not there any more.

        It gets heartbeats only, until somebody empties its store.
        """
        start, commit_log = self.next_physical_offset, self._log
        return start >= 0 and not (
            commit_log.min_physical_offset <= start <= commit_log.max_physical_offset
        )

    def is_expired(self, now_ms: float) -> bool:
        """Tell whether the slave was silent for so long that the connection is to be closed."""
        return now_ms - self._last_read_ms > self._settings.housekeeping_interval_ms


class ReplicationWait:
    """A put that waits for slaves: `status` is None until it is known."""

    __slots__ = ("ack_count", "deadline_ms", "next_physical_offset", "status")

    def __init__(self, next_physical_offset: int, ack_count: int, deadline_ms: float) -> None:
        self.next_physical_offset = next_physical_offset
        #: how many must have it, the master included
        self.ack_count = ack_count
        self.deadline_ms = deadline_ms
        self.status: PutMessageStatus | None = None


class ReplicationMaster:
    """All slaves of a master, and the puts that wait for them."""

    def __init__(self, commit_log: ReplicatedLog, settings: HaSettings) -> None:
        self.commit_log = commit_log
        self.settings = settings
        self.connections: list[MasterConnection] = []
        #: the farthest that any slave has ever reported
        self.push_to_slave_max_physical_offset = 0
        self._waits: list[ReplicationWait] = []

    def accept(self, now_ms: float, address: str = "") -> MasterConnection:
        """Take in a slave that has connected."""
        connection = MasterConnection(self.commit_log, self.settings, now_ms, address)
        self.connections.append(connection)
        return connection

    def remove(self, connection: MasterConnection) -> None:
        """Let go of a slave whose connection is closed."""
        if connection in self.connections:
            self.connections.remove(connection)

    def receive(
        self, connection: MasterConnection, data: bytes, now_ms: float
    ) -> list[ReplicationWait]:
        """Take bytes of a slave; return the puts that are done because of them."""
        if not connection.receive(data, now_ms):
            return []
        self.push_to_slave_max_physical_offset = max(
            self.push_to_slave_max_physical_offset, connection.slave_ack_offset
        )
        return self.settle(now_ms)

    # how well slaves keep up

    def is_slave_ok(self, master_physical_offset: int) -> bool:
        """Tell whether a slave is there that is not too far behind (``isSlaveOK``)."""
        gap = master_physical_offset - self.push_to_slave_max_physical_offset
        return bool(self.connections) and gap < self.settings.gap_bytes_max

    def is_in_sync(self, connection: MasterConnection, master_physical_offset: int) -> bool:
        """Tell whether one slave is not too far behind (``isInSyncSlave``)."""
        gap = master_physical_offset - connection.slave_ack_offset
        return gap < self.settings.gap_bytes_max

    def in_sync_replica_count(self, master_physical_offset: int) -> int:
        """Return how many keep up, the master included (``inSyncReplicasNums``)."""
        return 1 + sum(self.is_in_sync(one, master_physical_offset) for one in self.connections)

    # puts that wait

    def wait_for(
        self, next_physical_offset: int, now_ms: float, *, waits_for_store: bool = True
    ) -> ReplicationWait:
        """
        Return what a put that ends at `next_physical_offset` has to wait for (``handleHA``).

        Its status is known at once where nothing is to be waited for: no SYNC_MASTER, a message
        with ``WAIT=false``, 5.x with ``inSyncReplicas=1``, 4.9.8 without a slave that keeps up.
        """
        settings = self.settings
        is_v4 = settings.release is Release.V4
        ack_count = 1 if is_v4 else settings.in_sync_replicas
        wait = ReplicationWait(next_physical_offset, ack_count, now_ms + settings.slave_timeout_ms)
        if not settings.is_sync_master or not waits_for_store or (not is_v4 and ack_count <= 1):
            wait.status = PutMessageStatus.PUT_OK
        elif is_v4 and not self.is_slave_ok(next_physical_offset):
            wait.status = PutMessageStatus.SLAVE_NOT_AVAILABLE
        elif self._is_replicated(wait):
            wait.status = PutMessageStatus.PUT_OK
        else:
            self._waits.append(wait)
        return wait

    def settle(self, now_ms: float) -> list[ReplicationWait]:
        """Return the puts that are done or out of time now, each once."""
        settled: list[ReplicationWait] = []
        for wait in self._waits:
            if self._is_replicated(wait):
                wait.status = PutMessageStatus.PUT_OK
            elif now_ms >= wait.deadline_ms:
                wait.status = PutMessageStatus.FLUSH_SLAVE_TIMEOUT
            else:
                continue
            settled.append(wait)
        if settled:
            self._waits = [wait for wait in self._waits if wait.status is None]
        return settled

    def next_deadline_ms(self) -> float | None:
        """Return when the first waiting put is out of time, None if none waits."""
        return min((wait.deadline_ms for wait in self._waits), default=None)

    def _is_replicated(self, wait: ReplicationWait) -> bool:
        if wait.ack_count <= 1:
            return self.push_to_slave_max_physical_offset >= wait.next_physical_offset
        have = sum(one.slave_ack_offset >= wait.next_physical_offset for one in self.connections)
        return 1 + have >= wait.ack_count
