"""Two whole stores and the bytes between them: a slave of ours, a master of ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from typing_extensions import Buffer

from logstore.os_host import system_host
from logstore.segments.rocketmq.ha.frames import ReplicationError, encode_transfer_header
from logstore.segments.rocketmq.ha.master import ReplicationMaster
from logstore.segments.rocketmq.ha.settings import HaSettings
from logstore.segments.rocketmq.ha.slave import SlaveClient
from logstore.segments.rocketmq.reading.get_message import GetMessageStatus
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases

LIMITS = HaSettings()
GOLDEN = pytest.mark.parametrize(
    "case", golden_cases("replication-async", "replication-sync"), ids=lambda one: one.id
)


class SlaveStore:
    """A slave's store as the connection sees it."""

    def __init__(self, path: Path, case: GoldenCase) -> None:
        self.store = RocketMQStore(
            system_host(),
            str(path),
            StoreOptions(settings={**case.settings, "brokerRole": "SLAVE"}),
        )

    @property
    def max_physical_offset(self) -> int:
        """Where its commit log ends."""
        return self.store.commit_log.max_physical_offset

    def append_raw(self, physical_offset: int, data: Buffer) -> bool:
        """Take bytes of the master."""
        taken: bool = self.store.append_raw(physical_offset, data)
        return taken


def commit_log_of(store: Path, end: int) -> bytes:
    """Return the bytes of a store's commit log."""
    files = sorted((store / "commitlog").iterdir())
    return b"".join(path.read_bytes() for path in files)[:end]


def check_messages(store: RocketMQStore, case: GoldenCase) -> None:
    """Each message that a client got from the real pair is in the store's queues."""
    for expected in case.expected:
        topic, queue_id = expected["topic"], expected["queueId"]
        result = store.get_message("g", topic, queue_id, expected["queueOffset"], 1)
        assert result is not None
        assert result.status is GetMessageStatus.FOUND
        data = result.read()
        assert int.from_bytes(data[28:36], "big") == expected["commitLogOffset"]
        assert len(data) == expected["storeSize"]


@GOLDEN
def test_our_slave_of_a_real_master(case: GoldenCase, tmp_path: Path) -> None:
    """A slave of ours that is fed what a real master sent has its commit log and its messages."""
    stream = (case.folder / "ha-master-to-slave.bin").read_bytes()
    slave = SlaveStore(tmp_path / "slave", case)
    client = SlaveClient(slave, LIMITS, 0)
    client.connect(0)
    for start in range(0, len(stream), 5000):
        client.receive(stream[start : start + 5000], 0)
        slave.store.dispatch()
    check_messages(slave.store, case)
    end = slave.max_physical_offset
    slave.store.close()
    assert commit_log_of(tmp_path / "slave", end) == commit_log_of(case.folder / "master", end)
    again = RocketMQStore(
        system_host(), str(tmp_path / "slave"), StoreOptions(settings=case.settings)
    )
    assert again.was_clean
    check_messages(again, case)
    again.close()


@GOLDEN
def test_our_master(case: GoldenCase, tmp_path: Path) -> None:
    """A master of ours over a real store feeds a slave, which goes on after both start anew."""
    case.copy_store(tmp_path / "master", "master")
    options = StoreOptions(settings=case.settings)
    for is_second in (False, True):
        master = RocketMQStore(system_host(), str(tmp_path / "master"), options)
        slave = SlaveStore(tmp_path / "slave", case)
        file_bytes = master.commit_log.file_size_bytes
        replication = ReplicationMaster(master.commit_log, LIMITS)
        connection = replication.accept(0)
        client = SlaveClient(slave, LIMITS, 0)
        replication.receive(connection, client.connect(0), 0)
        chunks = 0
        while (chunk := connection.next_chunk(0)) is not None:
            if is_second or chunks < 1:
                replication.receive(connection, client.receive(chunk.read(), 0), 0)
            chunks += 1
        end = master.commit_log.max_physical_offset
        slave.store.dispatch()
        if is_second:
            assert slave.max_physical_offset == end
            assert replication.push_to_slave_max_physical_offset == end
            start = end - end % file_bytes
            assert slave.store.commit_log.min_physical_offset == start
            piece = slave.store.commit_log.read(start, end - start)
            assert piece == master.commit_log.read(start, end - start)
        slave.store.close()
        master.close()


def test_slave_with_another_log(tmp_path: Path) -> None:
    """A slave whose log differs in length refuses the master's bytes and keeps its own."""
    case = golden_cases("replication-async", version="5.5.0")[0]
    stream = (case.folder / "ha-master-to-slave.bin").read_bytes()
    slave = SlaveStore(tmp_path / "slave", case)
    client = SlaveClient(slave, LIMITS, 0)
    client.connect(0)
    client.receive(stream[:60_000], 0)
    end = slave.max_physical_offset
    with pytest.raises(ReplicationError, match="differ"):
        SlaveClient(slave, LIMITS, 0).receive(encode_transfer_header(end - 5, 100), 0)
    assert slave.max_physical_offset == end
    slave.store.abandon()
