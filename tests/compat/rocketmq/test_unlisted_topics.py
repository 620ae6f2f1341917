"""Topics that are in no table though their queues are there: how to get at them is told."""

from __future__ import annotations

import pytest

from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import DIRECTORY, TOPIC, Peer, a_broker

FIELDS = {
    "topic": TOPIC, "defaultTopic": "TBW102", "readQueueNums": 4, "writeQueueNums": 4, "perm": 6,
    "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false",
}  # fmt: skip


@pytest.mark.parametrize("kind", ["missing", "empty", "zeros", "other"])
def test_a_topic_that_is_in_no_table_is_told_and_comes_back(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As in Java nobody can read it until it is made again; then all is there."""
    host = SimulatedHost(clock=ManualClock())
    peer = Peer(a_broker(host))
    for number in range(8):
        assert peer.produce(b"%d" % number, queue_id=number % 4).code == 0
    peer.broker.close()
    path = f"{DIRECTORY}/config/topics.json"
    for name in (path, f"{path}.bak"):
        if host.fs.exists(name):
            host.fs.remove(name)
    left = {"empty": b"", "zeros": bytes(99), "other": b'{"topicConfigTable":{}}'}
    if kind in left:
        file = host.fs.open(path, create=True)
        file.write(0, left[kind])
        file.close()
    peer = Peer(a_broker(host))
    assert f"{path}: has no topic {TOPIC}, of which 4 queues hold messages" in caplog.text
    assert f"mqadmin updateTopic -t {TOPIC} -r 4 -w 4" in caplog.text
    assert peer.pull().code == ResponseCode.TOPIC_NOT_EXIST
    assert peer.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, FIELDS).code == 0
    found = [message.body for number in range(4) for message in peer.messages(TOPIC, number)]
    assert sorted(found) == [b"%d" % number for number in range(8)]
    peer.broker.close()
    caplog.clear()
    a_broker(host).abandon()
    assert "has no topic" not in caplog.text


def test_a_new_table_of_topics_is_at_its_first_version() -> None:
    """Like that of a new broker of Java's, which counts one before there is any topic."""
    broker = a_broker()
    assert broker.topics.table.data_version.counter == 1
    broker.topics.ensure("a", 1)
    assert broker.topics.table.data_version.counter == 2
