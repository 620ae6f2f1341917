"""Master and slave over bytes: golden streams of real brokers, every split, waits, failures."""

from __future__ import annotations

import json
import struct
from itertools import pairwise
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.segment import Extent
from logstore.segments.rocketmq.ha.flow_monitor import FlowMonitor
from logstore.segments.rocketmq.ha.frames import (
    FrameReader,
    ReplicationError,
    ReportReader,
    encode_report,
    encode_transfer_header,
)
from logstore.segments.rocketmq.ha.master import MasterConnection, ReplicationMaster
from logstore.segments.rocketmq.ha.settings import HaSettings
from logstore.segments.rocketmq.ha.slave import SlaveClient
from logstore.segments.rocketmq.putting.put_result import PutMessageStatus
from logstore.segments.rocketmq.settings.release import Release
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases
from tests.segments.rocketmq.memory_store import MemoryCommitLog

JAVA = HaSettings()
GOLDEN = pytest.mark.parametrize(
    "case", golden_cases("replication-async", "replication-sync"), ids=lambda one: one.id
)


@attrs.define
class GrowingLog:
    """A master's commit log: as much of it as `max_physical_offset` says."""

    whole: MemoryCommitLog
    max_physical_offset: int = 0
    min_physical_offset: int = 0

    @property
    def file_size_bytes(self) -> int:
        """Length of each file."""
        return self.whole.file_size_bytes

    def rest_of_file(self, physical_offset: int) -> Extent:
        """Return what can be read of one file."""
        end = physical_offset - physical_offset % self.file_size_bytes + self.file_size_bytes
        end = min(end, self.max_physical_offset)
        return self.whole.extent(physical_offset, end - physical_offset)


@attrs.define
class Replica:
    """A slave's commit log in memory."""

    start: int = 0
    data: bytearray = attrs.field(factory=bytearray)
    is_refusing: bool = False

    @property
    def max_physical_offset(self) -> int:
        """Where it ends."""
        return self.start + len(self.data)

    def append_raw(self, physical_offset: int, data: Any) -> bool:
        """Append at the end; an empty log starts wherever the master does."""
        if self.is_refusing:
            return False
        if not self.data:
            self.start = physical_offset
        assert physical_offset == self.max_physical_offset
        self.data += data
        return True


def log_of(size_bytes: int, file_size_bytes: int = 1 << 16) -> GrowingLog:
    """Return a log of `size_bytes` that all differ a little."""
    data = b"".join(
        struct.pack(">I", number * 2654435761 % 2**32) for number in range(size_bytes // 4 + 1)
    )
    whole = MemoryCommitLog.of_bytes(data[:size_bytes], file_size_bytes)
    return GrowingLog(whole, size_bytes)


def pieces_of(case: GoldenCase) -> list[dict[str, Any]]:
    """Return who sent which bytes when."""
    lines = (case.folder / "ha-pieces.jsonl").read_text().splitlines()
    pieces: list[dict[str, Any]] = [json.loads(line) for line in lines]
    assert {piece["connection"] for piece in pieces} == {1}
    return pieces


def frames_of(stream: bytes) -> list[tuple[int, int]]:
    """Return (physical offset, size) of each chunk of a master's stream."""
    found: list[tuple[int, int]] = []
    position = 0
    while position < len(stream):
        physical_offset, size = struct.unpack_from(">qi", stream, position)
        found.append((physical_offset, size))
        position += 12 + size
    return found


@GOLDEN
def test_master_makes_the_bytes_again(case: GoldenCase) -> None:
    """With a log that grows as the real master's did, the same bytes go to the slave."""
    stream = (case.folder / "ha-master-to-slave.bin").read_bytes()
    reports = (case.folder / "ha-slave-to-master.bin").read_bytes()
    log = GrowingLog(MemoryCommitLog.of_store(case.folder / "master", 1 << 40))
    master = MasterConnection(log, JAVA, 0)
    assert master.next_chunk(0) is None
    assert master.receive(reports[:8], 0)
    now_ms, made = 0.0, b""
    for physical_offset, size in frames_of(stream):
        log.max_physical_offset = physical_offset + size
        if size == 0:
            now_ms += JAVA.heartbeat_interval_ms + 1
        chunk = master.next_chunk(now_ms)
        assert chunk is not None
        made += chunk.read()
        assert master.next_chunk(now_ms) is None
    assert made == stream
    master.receive(reports[8:], now_ms)
    assert master.slave_ack_offset == log.max_physical_offset


@GOLDEN
def test_slave_gets_the_masters_log(case: GoldenCase) -> None:
    """The recorded stream makes the commit log that the real slave had, and its reports."""
    stream = (case.folder / "ha-master-to-slave.bin").read_bytes()
    recorded = (case.folder / "ha-slave-to-master.bin").read_bytes()
    replica = Replica()
    slave = SlaveClient(replica, JAVA, 0, reports_at_connect=False)
    said, now_ms = slave.connect(0), 0.0
    assert said == b""
    for piece in pieces_of(case):
        start, end = piece["position"], piece["position"] + piece["bytes"]
        if piece["from"] == "master":
            said += slave.receive(stream[start:end], now_ms)
        elif len(said) < end:
            now_ms += JAVA.heartbeat_interval_ms + 1
            said += slave.tick(now_ms)
    assert said[: len(recorded)] == recorded
    assert len(said) - len(recorded) in (0, 8)
    end = replica.max_physical_offset
    for name in ("master", "slave"):
        files = sorted((case.folder / name / "commitlog").iterdir())
        content = b"".join(path.read_bytes() for path in files)
        assert bytes(replica.data) == content[:end]
        assert not any(content[end:])


@GOLDEN
@settings(max_examples=5, deadline=None)
@given(cuts=st.lists(st.integers(0, 130_000), max_size=40))
def test_every_split(case: GoldenCase, cuts: list[int]) -> None:
    """However the stream is split on its way, the slave's log is the same."""
    stream = (case.folder / "ha-master-to-slave.bin").read_bytes()
    whole = Replica()
    SlaveClient(whole, JAVA, 0).receive(stream, 0)
    replica = Replica()
    slave = SlaveClient(replica, JAVA, 0)
    for start, end in pairwise([0, *sorted(cuts), len(stream)]):
        slave.receive(stream[start:end], 0)
    assert replica == whole


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(0, 200_000),
    have=st.integers(0, 200_000),
    batch=st.integers(1, 70_000),
    grows=st.lists(st.integers(0, 30_000), max_size=5),
)
def test_catches_up(size: int, have: int, batch: int, grows: list[int]) -> None:
    """A slave catches up from anywhere in the log, while the log grows, to the same bytes."""
    have = min(have, size)
    log = log_of(size + sum(grows))
    log.max_physical_offset = size
    content = log.whole.read(0, 0) + b"".join(file.data for file in log.whole.files.values())
    replica = Replica(0, bytearray(content[:have]))
    limits = HaSettings(transfer_bytes_max=batch)
    master = ReplicationMaster(log, limits)
    connection = master.accept(0)
    slave = SlaveClient(replica, limits, 0)
    master.receive(connection, slave.connect(0), 0)
    for grow in [*grows, 0]:
        while (chunk := connection.next_chunk(0)) is not None:
            data = chunk.read()
            start, length = struct.unpack_from(">qi", data)
            assert 0 < length <= batch
            assert start // log.file_size_bytes == (start + length - 1) // log.file_size_bytes
            master.receive(connection, slave.receive(data, 0), 0)
        log.max_physical_offset += grow
    end = size + sum(grows)
    start = 0 if have else size - size % log.file_size_bytes
    assert bytes(replica.data) == content[start:end]
    if replica.data:
        assert master.push_to_slave_max_physical_offset == end
        assert replica.start == start


def test_new_slave_gets_the_last_file() -> None:
    """A slave that has nothing gets the last file of the log from its start, as in Java."""
    log = log_of(200_000)
    connection = MasterConnection(log, JAVA, 0)
    connection.receive(encode_report(0), 0)
    chunk = connection.next_chunk(0)
    assert chunk is not None
    assert struct.unpack_from(">qi", chunk.header) == (3 << 16, 200_000 - (3 << 16))


def test_heartbeats_and_expiry() -> None:
    """The master says where it is when it had nothing to say for long; silence ends it all."""
    log = log_of(0)
    connection = MasterConnection(log, JAVA, 0)
    connection.receive(encode_report(0), 1000)
    assert connection.next_chunk(5000) is None
    beat = connection.next_chunk(5001)
    assert beat is not None
    assert beat.read() == encode_transfer_header(0, 0)
    assert connection.next_chunk(10_001) is None
    assert not connection.is_expired(21_000)
    assert connection.is_expired(21_001)


def test_slave_reports() -> None:
    """A slave reports at once when connected, every five seconds, and when it has grown."""
    replica = Replica()
    slave = SlaveClient(replica, JAVA, 0)
    assert slave.connect(100) == encode_report(0)
    assert slave.tick(5100) == b""
    assert slave.tick(5101) == encode_report(0)
    frame = encode_transfer_header(0, 3) + b"abc"
    assert slave.receive(frame + frame[:5], 6000) == encode_report(3)
    assert not slave.is_expired(26_000)
    assert slave.is_expired(26_001)
    assert slave.connect(27_000) == encode_report(3)
    assert slave.receive(encode_transfer_header(3, 1) + b"d", 27_000) == encode_report(4)


def test_slave_that_differs() -> None:
    """A chunk that does not start where the slave ends is refused at its header already."""
    replica = Replica(0, bytearray(10))
    slave = SlaveClient(replica, JAVA, 0)
    slave.connect(0)
    with pytest.raises(ReplicationError, match=r"offset 7, this commit log ends at 10.*anew"):
        slave.receive(encode_transfer_header(7, 100), 0)
    assert replica.data == bytes(10)


def test_store_that_refuses() -> None:
    """Bytes that the slave's store does not take end the connection, unreported."""
    slave = SlaveClient(Replica(is_refusing=True), JAVA, 0)
    with pytest.raises(ReplicationError, match="not taken"):
        slave.receive(encode_transfer_header(0, 1) + b"x", 0)


@pytest.mark.parametrize("requested", [5, 300_000])
def test_unservable_slave(requested: int) -> None:
    """A slave that asks for what is deleted, or not there yet, gets heartbeats only."""
    log = log_of(200_000)
    log.min_physical_offset = 1 << 16
    connection = MasterConnection(log, JAVA, 0)
    connection.receive(encode_report(requested), 0)
    assert connection.next_chunk(0) is None
    assert connection.is_unservable
    beat = connection.next_chunk(6000)
    assert beat is not None
    assert beat.read() == encode_transfer_header(requested, 0)


def test_flow_control() -> None:
    """With flow control no more than so many bytes go in a second."""
    limits = HaSettings.of_settings(
        {"haFlowControlEnable": "true", "maxHaTransferByteInSecond": "1000"}
    )
    connection = MasterConnection(log_of(5000), limits, 0)
    connection.receive(encode_report(1), 0)
    first = connection.next_chunk(0)
    assert first is not None
    assert first.size_bytes == 1012
    assert connection.next_chunk(999) is None
    assert connection.next_chunk(1000) is not None
    assert connection.flow.bytes_last_second == 1012
    monitor = FlowMonitor(HaSettings(), 0)
    monitor.count(5, 0)
    assert monitor.allowance_bytes(0) is None
    monitor.count(7, 5500)
    assert monitor.bytes_last_second == 0


# puts that wait

SYNC = {"brokerRole": "SYNC_MASTER"}


def master_of(
    given: dict[str, str], slaves: int, release: Release = Release.V5
) -> ReplicationMaster:
    """Return a master with slaves that have reported nothing."""
    master = ReplicationMaster(log_of(1000), HaSettings.of_settings(given, release))
    for number in range(slaves):
        master.accept(0, f"slave {number}")
    return master


@pytest.mark.parametrize(
    ("given_settings", "waits_for_store", "release"),
    [
        ({}, True, Release.V5),
        (SYNC, True, Release.V5),
        ({**SYNC, "inSyncReplicas": "2"}, False, Release.V5),
        ({"brokerRole": "ASYNC_MASTER"}, True, Release.V4),
    ],
)
def test_nothing_to_wait_for(
    given_settings: dict[str, str], waits_for_store: bool, release: Release
) -> None:
    """An asynchronous master, WAIT=false, or one replica that must have it: a put is done."""
    master = master_of(given_settings, 0, release)
    wait = master.wait_for(500, 0, waits_for_store=waits_for_store)
    assert wait.status is PutMessageStatus.PUT_OK
    assert master.next_deadline_ms() is None


def test_waits_for_enough_slaves() -> None:
    """With inSyncReplicas=3 a put is done once two slaves have it."""
    master = master_of({**SYNC, "inSyncReplicas": "3"}, 2)
    wait = master.wait_for(500, 0)
    assert wait.status is None
    assert master.receive(master.connections[0], encode_report(500), 1) == []
    assert master.receive(master.connections[0], encode_report(600), 1) == []
    assert master.receive(master.connections[1], encode_report(499), 1) == []
    assert master.receive(master.connections[1], encode_report(500), 2) == [wait]
    assert wait.status is PutMessageStatus.PUT_OK
    assert master.settle(9999) == []


def test_slave_timeout() -> None:
    """A put that no slave has acknowledged in time is FLUSH_SLAVE_TIMEOUT."""
    master = master_of({**SYNC, "inSyncReplicas": "2", "slaveTimeout": "700"}, 1)
    wait = master.wait_for(500, 100)
    assert master.next_deadline_ms() == 800
    assert master.settle(799) == []
    assert master.settle(800) == [wait]
    assert wait.status is PutMessageStatus.FLUSH_SLAVE_TIMEOUT


def test_v4_without_slave() -> None:
    """4.9.8 answers SLAVE_NOT_AVAILABLE without a slave, or with one too far behind."""
    master = master_of({**SYNC, "haSlaveFallbehindMax": "100"}, 0, Release.V4)
    assert master.wait_for(50, 0).status is PutMessageStatus.SLAVE_NOT_AVAILABLE
    connection = master.accept(0)
    assert master.wait_for(100, 0).status is PutMessageStatus.SLAVE_NOT_AVAILABLE
    wait = master.wait_for(99, 0)
    assert wait.status is None
    assert master.receive(connection, encode_report(99), 0) == [wait]
    assert master.wait_for(60, 0).status is PutMessageStatus.PUT_OK


def test_in_sync_replicas() -> None:
    """Replicas in sync are the master and all slaves that are not too far behind."""
    master = master_of({"haMaxGapNotInSync": "100"}, 2)
    for connection, report in zip(master.connections, (900, 950), strict=True):
        master.receive(connection, encode_report(report), 0)
    assert master.in_sync_replica_count(1000) == 2
    assert master.is_slave_ok(1049)
    assert not master.is_slave_ok(1050)
    gone = master.connections[1]
    master.remove(gone)
    master.remove(gone)
    assert master.in_sync_replica_count(1000) == 1


# decoders


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_reports_in_any_split(parts: list[bytes]) -> None:
    """The newest whole report counts, whatever the split."""
    reader, whole = ReportReader(), b"".join(parts)
    last = None
    for part in parts:
        newest = reader.receive(part)
        last = last if newest is None else newest
    count = len(whole) // 8
    assert last == (struct.unpack_from(">q", whole, count * 8 - 8)[0] if count else None)


@given(st.binary(max_size=200))
def test_any_bytes_from_a_master(data: bytes) -> None:
    """Any bytes are chunks or an error; never is more taken than was announced."""
    reader = FrameReader()
    reader.receive(data)
    taken = 0
    try:
        for physical_offset, piece in reader.frames():
            assert physical_offset >= 0
            taken += 12 + len(piece)
    except ReplicationError as error:
        taken += 12
        assert "announces" in str(error)  # noqa: PT017
    assert taken <= len(data)
