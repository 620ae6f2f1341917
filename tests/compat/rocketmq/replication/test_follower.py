"""A slave follows its master."""

from __future__ import annotations

import pytest

from logstore.compat.rocketmq.replication.follower import host_and_port
from logstore.compat.rocketmq.replication.slave_role import SlaveRole
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import TOPIC, Peer, sent_fields
from tests.compat.rocketmq.replication.network import (
    MASTER,
    MASTER_HA,
    SLAVE,
    SYNC,
    Network,
    Pair,
    log_of,
)


def test_a_slave_has_what_its_master_has() -> None:
    """Its commit log is byte for byte the master's, and consumers read from its queues."""
    pair = Pair()
    client = Peer(pair.master)
    client.produce(b"before")
    pair.connect()
    client.produce(b"after", queue_id=1)
    pair.network.settle()
    master, slave = pair.logs()
    assert master == slave
    assert len(slave) > 100
    reader = Peer(pair.slave)
    assert [one.body for one in reader.messages(TOPIC, 0)] == [b"before"]
    assert [one.body for one in reader.messages(TOPIC, 1)] == [b"after"]


def test_files_end_where_those_of_the_master_end() -> None:
    """Many files are followed, with what fills each of them up."""
    pair = Pair({"mappedFileSizeCommitLog": "20000"}, {"mappedFileSizeCommitLog": "20000"})
    pair.connect()
    client = Peer(pair.master)
    for number in range(60):
        client.produce(b"%d" % number * (100 + 17 * number))
        pair.network.settle()
    master, slave = pair.logs()
    assert len(master) > 60_000
    assert master == slave
    assert len(Peer(pair.slave).messages()) == 60


def test_a_pull_waits_at_a_slave() -> None:
    """A pull that waits at a slave is answered when the message has come there."""
    pair = Pair()
    pair.connect()
    client, reader = Peer(pair.master), Peer(pair.slave)
    client.produce(b"first")
    pair.network.settle()
    fields = reader.pull_fields(TOPIC, 0, 1, "g", sysFlag=6)
    opaque = reader.send(RequestCode.PULL_MESSAGE, fields)
    assert reader.answer_to(opaque) is None
    client.produce(b"second")
    pair.network.settle()
    answer = reader.answer_to(opaque)
    assert answer is not None
    assert answer.code == ResponseCode.SUCCESS
    assert b"second" in answer.body


def test_a_send_is_answered_when_the_slave_has_it() -> None:
    """Two of ours under SYNC_MASTER: the answer comes with the slave's report."""
    pair = Pair(SYNC)
    pair.connect()
    client = Peer(pair.master)
    opaque = client.send(RequestCode.SEND_MESSAGE_V2, sent_fields(TOPIC, 0), b"x")
    assert client.answer_to(opaque) is None
    pair.network.settle()
    answer = client.answer_to(opaque)
    assert answer is not None
    assert answer.code == ResponseCode.SUCCESS
    master, slave = pair.logs()
    assert master == slave


def test_the_connection_breaks() -> None:
    """A second later the slave connects again and goes on where it was."""
    pair = Pair()
    pair.connect()
    client = Peer(pair.master)
    client.produce(b"one")
    pair.network.settle()
    for line in pair.network.lines[:]:
        line.cut()
    client.produce(b"two")
    pair.network.run(900)
    assert len(Peer(pair.slave).messages()) == 1
    pair.network.run(200)
    assert [one.body for one in Peer(pair.slave).messages()] == [b"one", b"two"]
    assert pair.logs()[0] == pair.logs()[1]


def test_the_master_is_away() -> None:
    """A master that cannot be reached is looked for every second."""
    pair = Pair()
    pair.network.listening.clear()
    pair.connect()
    pair.network.run(3050)
    assert pair.network.reached.count(MASTER_HA) == 4
    pair.network.listen(pair.master)
    Peer(pair.master).produce(b"x")
    pair.network.run(1000)
    assert len(Peer(pair.slave).messages()) == 1


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_slave_starts_again(is_clean: bool) -> None:
    """A slave that was stopped, or killed, goes on where its store ends."""
    network = Network()
    master = network.broker()
    network.listen(master)
    master.topics.ensure(TOPIC, 4)
    client = Peer(master)
    host = SimulatedHost(clock=network.clock)
    for number in range(3):
        slave = network.broker(SLAVE, host)
        role = SlaveRole(slave, network.reach)
        role.master_found(MASTER, MASTER_HA)
        client.produce(b"%d" % number * 1000)
        network.settle()
        assert len(Peer(slave).messages()) == number + 1
        assert log_of(master) == log_of(slave)
        role.stop()
        network.cut()
        network.brokers.remove(slave)
        if is_clean:
            slave.close()
        else:
            slave.abandon()


def test_logs_that_differ() -> None:
    """A slave that is ahead of its master gets nothing and changes nothing."""
    pair = Pair()
    Peer(pair.master).produce(b"x" * 300)
    pair.slave.store.append_raw(0, bytes(10_000))
    before = log_of(pair.slave)
    pair.connect()
    pair.network.run(30_000)
    assert log_of(pair.slave) == before
    assert pair.slave.store.commit_log.max_physical_offset == 10_000


def test_a_chunk_that_does_not_follow() -> None:
    """A chunk that begins elsewhere is refused, and the connection made again after 5 seconds."""
    pair = Pair()
    pair.connect()
    (line,) = [one for one in pair.network.lines if one.client is pair.role.follower.peer]
    line.server.output.append(bytes(7) + b"\x09" + bytes(3) + b"\x05hello")
    Peer(pair.master).produce(b"x")
    pair.network.settle()
    assert not pair.role.follower.is_connected
    assert log_of(pair.slave) == b""
    pair.network.run(4900)
    assert not pair.role.follower.is_connected
    pair.network.run(200)
    assert pair.logs()[0] == pair.logs()[1]


def test_a_silent_master() -> None:
    """A master that says nothing for twenty seconds is hung up on and looked for again."""
    pair = Pair()
    pair.connect()
    first = pair.role.follower.peer
    (line,) = [one for one in pair.network.lines if one.client is first]
    pair.network.lines.remove(line)  # nothing is carried any more
    pair.network.run(20_000)
    assert pair.role.follower.peer is first
    pair.network.run(2500)
    assert pair.role.follower.is_connected
    assert pair.role.follower.peer is not first


def test_a_disk_that_is_full() -> None:
    """Nothing is lost where the slave's disk is full: it goes on when there is room again."""
    pair = Pair()
    pair.connect()
    host = pair.slave.host
    assert isinstance(host, SimulatedHost)
    host.fs.fill_up()
    Peer(pair.master).produce(b"x")
    pair.network.run(2000)
    assert not pair.role.follower.is_connected
    host.fs.faults.clear()
    pair.network.run(6000)
    assert pair.logs()[0] == pair.logs()[1]


def test_another_master() -> None:
    """When the name server tells of another master that one is followed."""
    pair = Pair()
    pair.network.listening["192.0.2.9:10912"] = pair.master.replication.connect
    pair.connect()
    pair.role.master_found("", "192.0.2.9:10912")
    pair.network.run(1100)
    assert pair.network.reached[-1] == "192.0.2.9:10912"
    Peer(pair.master).produce(b"x")
    pair.network.settle()
    assert pair.logs()[0] == pair.logs()[1]


def test_the_address_in_the_settings() -> None:
    """``haMasterAddress`` holds, whatever the name server says."""
    pair = Pair(slave={"haMasterAddress": MASTER_HA})
    pair.role.start()
    pair.role.master_found("", "192.0.2.9:1")
    pair.network.settle()
    assert pair.network.reached == [MASTER_HA]
    assert not pair.role.knows_master
    pair.role.master_found(MASTER, "")
    assert pair.role.knows_master


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("192.0.2.1:10912", ("192.0.2.1", 10912)),
        ("[2001:db8::1]:9", ("2001:db8::1", 9)),
        ("10912", None),
        ("host:", None),
        (":1", None),
    ],
)
def test_addresses(text: str, found: tuple[str, int] | None) -> None:
    """``host:port``, IPv6 in brackets; anything else is no address."""
    assert host_and_port(text) == found
