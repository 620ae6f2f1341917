"""A master serves slaves, and sends wait for them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logstore.compat.rocketmq.replication.master_service import MasterService, SlavePeer
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.outbox import Outbox
from logstore.compat.waiting import Timers
from logstore.segments.rocketmq.ha.frames import TRANSFER_HEADER, encode_report
from logstore.segments.rocketmq.ha.settings import HaSettings
from logstore.segments.rocketmq.putting.put_result import PutMessageStatus
from logstore.segments.rocketmq.settings.release import Release
from logstore.testing.manual_clock import ManualClock
from tests.compat.rocketmq.broker_peer import TOPIC, Peer, sent_fields
from tests.compat.rocketmq.frames import Answer, joined
from tests.compat.rocketmq.replication.network import SYNC, Network, log_of

SEND = 310
MIB = 1024 * 1024


class Scene:
    """A master with a client, and a slave whose bytes a test writes."""

    def __init__(self, **settings: str) -> None:
        self.network = Network()
        self.broker = self.network.broker(settings)
        self.client = Peer(self.broker)
        self.slave: SlavePeer | None = None

    def slave_comes(self, max_physical_offset: int = 0) -> SlavePeer:
        """Connect a slave and have it say where it is."""
        self.slave = slave = self.broker.replication.connect("192.0.2.7", 40000)
        slave.on_output = lambda: None
        self.report(max_physical_offset)
        return slave

    def report(self, max_physical_offset: int) -> None:
        """Say how far the slave is."""
        assert self.slave is not None
        data = encode_report(max_physical_offset)
        self.slave.writable()[: len(data)] = data
        self.slave.received(len(data))

    def sent_to_slave(self) -> bytes:
        """Take what the master has for its slave."""
        assert self.slave is not None
        data, self.slave.output = joined(self.slave.output), []
        return data

    def send(self, properties: str = "", body: bytes = b"x") -> int:
        """Send a message; return the number of the request."""
        return self.client.send(SEND, sent_fields(TOPIC, 0, properties), body)

    def answer(self, opaque: int) -> Answer | None:
        """Return the answer, None if there is none yet."""
        return self.client.answer_to(opaque)

    @property
    def end(self) -> int:
        """Where the commit log ends."""
        return self.broker.store.commit_log.max_physical_offset


def log_in(stream: bytes) -> bytes:
    """Return the bytes of the commit log that stand in what a master sent."""
    found, position = b"", 0
    while position < len(stream):
        _, size = TRANSFER_HEADER.unpack_from(stream, position)
        position += TRANSFER_HEADER.size
        found += stream[position : position + size]
        position += size
    assert position == len(stream), "it ends with a chunk"
    return found


def test_a_slave_gets_the_log() -> None:
    """What stands in the log goes to a slave that has nothing, and what is put later follows."""
    scene = Scene()
    scene.client.produce(b"before")
    scene.slave_comes()
    stream = scene.sent_to_slave()
    scene.client.produce(b"after")
    stream += scene.sent_to_slave()
    assert log_in(stream) == log_of(scene.broker)


def test_a_slave_goes_on_where_it_is() -> None:
    """A slave that has something gets what is behind it."""
    scene = Scene()
    scene.client.produce(b"before")
    known = scene.end
    scene.client.produce(b"after")
    scene.slave_comes(known)
    assert log_in(scene.sent_to_slave()) == log_of(scene.broker)[known:]


def test_a_send_waits_for_a_slave() -> None:
    """Under SYNC_MASTER with two in-sync replicas the answer comes with the slave's report."""
    scene = Scene(**SYNC)
    scene.slave_comes()
    first, second = scene.send(), scene.send()
    assert scene.answer(first) is None
    message_bytes = scene.end // 2
    scene.report(message_bytes)
    answer = scene.answer(first)
    assert answer is not None
    assert answer.code == ResponseCode.SUCCESS
    assert scene.answer(second) is None
    scene.report(scene.end)
    assert scene.answer(second) is not None


def test_nobody_comes() -> None:
    """Without enough replicas a send is answered FLUSH_SLAVE_TIMEOUT after slaveTimeout."""
    scene = Scene(**SYNC, slaveTimeout="500")
    opaque = scene.send()
    scene.network.run(400)
    assert scene.answer(opaque) is None
    later = scene.send()
    scene.network.run(100)
    answer = scene.answer(opaque)
    assert answer is not None
    assert answer.code == ResponseCode.FLUSH_SLAVE_TIMEOUT
    assert (answer.fields or {})["queueOffset"] == "0"
    assert scene.answer(later) is None
    scene.network.run(400)
    assert scene.answer(later) is not None


def test_one_replica_is_the_master() -> None:
    """As in 5.5.0 the default of one in-sync replica waits for nobody, SYNC_MASTER or not."""
    scene = Scene(brokerRole="SYNC_MASTER")
    assert scene.client.produce().code == ResponseCode.SUCCESS


def test_a_message_that_does_not_wait() -> None:
    """``WAIT=false`` is answered at once."""
    scene = Scene(**SYNC)
    assert scene.answer(scene.send("WAIT\x01false\x02")) is not None


def test_a_master_becomes_synchronous() -> None:
    """The settings hold from when they are changed on."""
    scene = Scene(brokerRole="SYNC_MASTER")
    scene.broker.update_settings({"inSyncReplicas": "2"})
    assert scene.answer(scene.send()) is None


@pytest.mark.parametrize("is_flushed", [True, False])
@pytest.mark.parametrize("is_replicated", [True, False])
def test_disk_and_slaves(is_flushed: bool, is_replicated: bool) -> None:
    """Both are waited for; of two failures that of the slaves is told."""
    scene = Scene(**SYNC, flushDiskType="SYNC_FLUSH", syncFlushTimeout="300", slaveTimeout="200")
    works: list[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = []
    scene.broker.offload = lambda work, done: works.append((work, done))
    scene.slave_comes()
    opaque = scene.send()
    if is_replicated:
        scene.report(scene.end)
    assert scene.answer(opaque) is None
    if is_flushed:
        work, done = works.pop()
        work()
        done(None)
    if is_flushed and is_replicated:
        answer = scene.answer(opaque)
        assert answer is not None
        assert answer.code == ResponseCode.SUCCESS
        return
    assert scene.answer(opaque) is None
    scene.network.run(400)
    answer = scene.answer(opaque)
    assert answer is not None
    wanted = ResponseCode.FLUSH_DISK_TIMEOUT if is_replicated else ResponseCode.FLUSH_SLAVE_TIMEOUT
    assert answer.code == wanted


def test_a_silent_slave() -> None:
    """A slave gets a heartbeat every five seconds; one that is silent for twenty is hung up on."""
    scene = Scene()
    slave = scene.slave_comes()
    scene.network.run(5200)
    assert scene.sent_to_slave() == TRANSFER_HEADER.pack(0, 0)
    scene.network.run(10_000)
    scene.report(0)
    scene.network.run(19_900)
    assert not slave.is_closing
    scene.network.run(300)
    assert slave.is_closing


def test_a_slave_that_takes_nothing() -> None:
    """A megabyte waits for a slave that does not read, not the whole log; nothing is lost."""
    scene = Scene(maxMessageSize=str(MIB))
    for number in range(40):
        scene.client.produce(b"%d" % number * 50_000)
    scene.slave_comes(scene.end % MIB)
    slave = scene.slave
    assert slave is not None
    for _ in range(5):
        scene.broker.replication.log_grew()
    stream = scene.sent_to_slave()
    assert MIB <= len(stream) < 1.1 * MIB
    while True:
        scene.broker.replication.log_grew()
        more = scene.sent_to_slave()
        if not more:
            break
        stream += more
    assert log_in(stream) == log_of(scene.broker)[scene.end % MIB :]


def test_a_slave_that_went() -> None:
    """Who hung up is forgotten, and no timer runs for it."""
    scene = Scene()
    slave = scene.slave_comes()
    slave.lost()
    scene.client.produce()
    assert slave.output == []
    assert scene.broker.replication.master.connections == []
    scene.network.run(200)
    assert scene.broker.timers.next_due_ms() is None


class EmptyLog:
    """A commit log that nothing is read of."""

    file_size_bytes = 4096
    min_physical_offset = max_physical_offset = 0

    def rest_of_file(self, physical_offset: int) -> None:  # pragma: no cover - never asked
        """Return nothing."""


def test_habits_of_4_9_8() -> None:
    """4.9.8 waits for one slave, and tells at once where there is none that keeps up."""
    clock = ManualClock()
    settings = HaSettings(is_sync_master=True, release=Release.V4)
    service = MasterService(EmptyLog(), settings, Timers(clock), Outbox())  # type: ignore[arg-type]
    told: list[PutMessageStatus] = []
    service.wait(100, told.append)
    assert told == [PutMessageStatus.SLAVE_NOT_AVAILABLE]
    slave = service.connect("192.0.2.7", 40000)
    service.wait(100, told.append)
    assert len(told) == 1
    slave.writable()[:8] = encode_report(100)
    slave.received(8)
    assert told[1:] == [PutMessageStatus.PUT_OK]
