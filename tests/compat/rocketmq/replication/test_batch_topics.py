"""A slave's queues of batches, of messages that came before it had learned of their topic."""

from __future__ import annotations

import errno

import pytest

from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.replication.slave_role import SlaveRole
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.segments.rocketmq.messages.message_batch import BatchItem, encode_batch_body
from logstore.testing.disk_faults import FaultKind
from logstore.testing.power_loss import KEEP_EVERYTHING, LOSE_UNSYNCED, PowerLoss, PowerLost
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import Peer, sent_fields
from tests.compat.rocketmq.replication.network import MASTER, MASTER_HA, SLAVE, Pair

TOPIC = "batches"
SMALL = {"mapperFileSizeBatchConsumeQueue": "230"}


def _make_topic(broker: Broker) -> None:
    fields = {
        "topic": TOPIC, "defaultTopic": "TBW102", "readQueueNums": 2, "writeQueueNums": 2,
        "perm": 6, "topicFilterType": "SINGLE_TAG", "order": "false",
        "attributes": "+queue.type=BatchCQ",
    }  # fmt: skip
    assert not Peer(broker).ask(RequestCode.UPDATE_AND_CREATE_TOPIC, fields).code


def _send_batch(broker: Broker, queue_id: int, count: int) -> None:
    body = encode_batch_body(
        BatchItem(b"%d" % number, b"UNIQ_KEY\x01K%d\x02" % number) for number in range(count)
    )
    fields = sent_fields(TOPIC, queue_id, "UNIQ_KEY\x01K\x02WAIT\x01true\x02", m="true")
    assert not Peer(broker).ask(RequestCode.SEND_BATCH_MESSAGE, fields, body).code


def _ends(broker: Broker) -> list[int]:
    return [broker.store.max_queue_offset(TOPIC, queue_id) for queue_id in range(2)]


def _told_too_late() -> Pair:
    """Return a slave that has batches of a topic that it does not know."""
    pair = Pair(slave=SMALL)
    pair.connect()
    Peer(pair.master).produce(b"before")
    _make_topic(pair.master)
    for count in range(1, 9):
        _send_batch(pair.master, 0, count)
    _send_batch(pair.master, 1, 3)
    pair.network.settle()
    assert _ends(pair.slave) == [8, 1], "plain queues"
    pair.slave.store.syncs.run_here(pair.slave.store.syncs.begin_all())
    return pair


def _host_of(pair: Pair) -> SimulatedHost:
    host = pair.slave.host
    assert isinstance(host, SimulatedHost)
    return host


def _started_again(pair: Pair) -> Broker:
    pair.network.brokers.remove(pair.slave)
    return pair.network.broker({**SLAVE, **SMALL}, _host_of(pair))


def test_queues_are_made_anew() -> None:
    """As soon as the topic has come over its queues are those of the master, and stay so."""
    pair = _told_too_late()
    pair.network.run(10_000)
    assert _ends(pair.slave) == _ends(pair.master) == [36, 3]
    assert [len(one.body) for one in Peer(pair.slave).messages(TOPIC, 0)] == [
        len(one.body) for one in Peer(pair.master).messages(TOPIC, 0)
    ]
    _send_batch(pair.master, 0, 2)
    pair.network.settle()
    assert _ends(pair.slave) == [38, 3]
    pair.slave.close()
    _host_of(pair).fs.process_death()
    assert _ends(_started_again(pair)) == [38, 3]


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("rename", "*/consumequeue/*"),
        ("write", "*/checkpoint"),
        ("write", "*/batchconsumequeue/*"),
        ("rename", "*/topics.json"),
    ],
)
def test_a_disk_that_refuses(kind: FaultKind, path: str) -> None:
    """What could not be done is done with the next round."""
    pair = _told_too_late()
    faults = _host_of(pair).fs.faults
    faults.fail_next(kind, errno.ENOSPC, path=path)
    pair.network.run(10_000)
    assert not faults.planned, "it has met the fault"
    pair.network.run(10_000)
    assert _ends(pair.slave) == [36, 3]
    table = _host_of(pair).fs.open("/store/config/topics.json").read(0, 1 << 20)
    assert TOPIC.encode() in table


@pytest.mark.parametrize(
    "loss", [KEEP_EVERYTHING, LOSE_UNSYNCED, PowerLoss.random(1), PowerLoss.random(2)], ids=str
)
def test_a_power_loss_on_the_way(loss: PowerLoss) -> None:
    """Wherever the power goes, the slave starts, and comes to have its master's queues."""
    count, is_through = 0, False
    while not is_through:
        pair = _told_too_late()
        host = _host_of(pair)
        host.fs.cut_power_after(count)
        try:
            pair.network.run(10_000)
            is_through = True
        except PowerLost:
            count += 1
        host.power_loss(loss)
        for line in pair.network.lines:
            line.is_open = False
            line.server.lost()
        pair.network.lines = []
        again = _started_again(pair)
        SlaveRole(again, pair.network.reach).master_found(MASTER, MASTER_HA)
        pair.network.run(2000)
        assert _ends(again) == [36, 3], f"after {count} operations"
    assert count > 5
