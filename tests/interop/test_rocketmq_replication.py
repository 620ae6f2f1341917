"""Masters and slaves of three makes: ours, 5.5.0 and 4.9.8, with a restart in the middle."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from logstore.tools.dev.maven import PeerUnavailable
from logstore.tools.dev.rocketmq_peer import CALM, RocketMQPeer
from tests.interop.conftest import missing
from tests.interop.eventually import eventually
from tests.interop.our_rocketmq import OurRocketMQ
from tests.interop.rocketmq_programs import create_topic
from tests.interop.rocketmq_wire import (
    CLOSED_ERRORS,
    PULL_MESSAGE,
    SEND_MESSAGE_V2,
    SUCCESS,
    Wire,
    pull_fields,
    pulled,
    send_fields,
)

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

TOPIC = "replicated"
QUEUES = 2
SECONDS_MAX = 60
#: small files, so that there are several of each kind; a real slave reports every second
FILES: dict[str, object] = {
    **CALM,
    "mappedFileSizeCommitLog": 100_000,
    "mappedFileSizeConsumeQueue": 6000,
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
    "haSendHeartbeatInterval": 1000,
}
#: a send is answered SUCCESS once it stands in two stores
MASTER = FILES | {"brokerRole": "SYNC_MASTER", "inSyncReplicas": 2}
SLAVE = FILES | {"brokerRole": "SLAVE", "slaveReadEnable": "true"}
FLUSH_SLAVE_TIMEOUT, SLAVE_NOT_AVAILABLE = 12, 11

Broker = OurRocketMQ | RocketMQPeer


class Sender:
    """Sends to one master; knows what was acknowledged, and what stands in its log at all."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.sent: list[bytes] = []

    def send(self, count: int) -> Counter[int]:
        """Send so many more; return how often each code was answered."""
        wire = Wire(self.broker.broker_address)
        codes: Counter[int] = Counter()
        for number in range(len(self.sent), len(self.sent) + count):
            body = b"%d-" % number + b"x" * (number * 37 % 1500)
            fields = send_fields(TOPIC, number % QUEUES, f"UNIQ_KEY\x01k{number}\x02")
            codes[wire.ask(SEND_MESSAGE_V2, fields, body).code] += 1
            self.sent.append(body)
        wire.close()
        return codes

    def send_until_safe(self) -> None:
        """Send one by one until a slave takes part again."""
        eventually(lambda: self.send(1)[SUCCESS] == 1, SECONDS_MAX, what="a slave takes part")


def read(broker: Broker) -> list[bytes]:
    """Return the bodies in all queues of a broker."""
    wire = Wire(broker.broker_address)
    found: list[bytes] = []
    for queue_id in range(QUEUES):
        count = 0
        while (
            answer := wire.ask(PULL_MESSAGE, pull_fields(TOPIC, queue_id, count))
        ).code == SUCCESS:
            bodies = [body for _, body in pulled(answer.body)]
            found += bodies
            count += len(bodies)
    wire.close()
    return sorted(found)


def check_all_have(sender: Sender, brokers: Sequence[Broker]) -> None:
    """Check that each message is in the queues of each broker once, soon."""
    wanted = sorted(sender.sent)
    for broker in brokers:

        def has_all(asked: Broker = broker) -> bool:
            return len(read(asked)) >= len(wanted)

        eventually(has_all, SECONDS_MAX, what=f"{broker.data} has all")
        assert read(broker) == wanted


def check_same_logs(first: Path, second: Path) -> None:
    """Check that two commit logs are the same in each byte; files made ahead are empty."""

    def files(store: Path) -> dict[str, bytes]:
        found = {path.name: path.read_bytes() for path in (store / "commitlog").iterdir()}
        return {name: data for name, data in found.items() if data.strip(b"\0")}

    one, other = files(first), files(second)
    assert len(one) > 3
    assert one.keys() == other.keys()
    for name, data in one.items():
        assert data.rstrip(b"\0") == other[name].rstrip(b"\0"), name


def start_all(peers: Sequence[RocketMQPeer]) -> None:
    """Start them side by side, or end the test as `missing` says."""
    with ThreadPoolExecutor(len(peers)) as pool:
        started = [pool.submit(peer.start) for peer in peers]
    for one in started:
        error = one.exception()
        if isinstance(error, PeerUnavailable):
            missing(str(error))
        if error is not None:
            raise error


def test_real_slaves_of_our_master(tmp_path: Path) -> None:
    """Slaves of 5.5.0 and 4.9.8 follow ours over its restart: their logs are ours in each byte."""
    # A slave that is new gets the last file only: both must be there before there is a second.
    three = {"inSyncReplicas": 3, "slaveTimeout": 500}
    ours = OurRocketMQ(tmp_path / "ours", MASTER | three).start()
    create_topic(ours, TOPIC, QUEUES)
    slaves = [
        RocketMQPeer(
            version,
            tmp_path / f"slave-{version}",
            SLAVE | {"brokerId": number},
            name_server=ours.bootstrap,
        )
        for number, version in ((1, "5"), (2, "4"))
    ]
    sender = Sender(ours)
    try:
        start_all(slaves)
        create_topic(slaves[0], TOPIC, QUEUES)  # 5.5.0 asks for topics once a minute
        sender.send_until_safe()
        assert sender.send(300) == {SUCCESS: 300}
        check_all_have(sender, [ours, *slaves])
        ours.stop()
        ours.start()
        sender.send_until_safe()
        assert sender.send(200) == {SUCCESS: 200}
        check_all_have(sender, [ours, *slaves])
    finally:
        for slave in slaves:
            slave.stop(kill=True)
        ours.stop()
    for slave in slaves:
        check_same_logs(ours.data, slave.data)


def test_our_slaves_of_real_masters(tmp_path: Path) -> None:
    """Ours follow 5.5.0 and 4.9.8 over a restart of ours; their logs are the masters'."""
    names = OurRocketMQ(tmp_path / "names", FILES | {"brokerName": "nobody"}).start()
    settings = MASTER | {"slaveTimeout": 300}
    masters = [
        RocketMQPeer(
            version,
            tmp_path / f"master-{version}",
            settings | {"brokerName": f"broker-{version}"},
            name_server=names.bootstrap,
        )
        for version in ("5", "4")
    ]
    slaves = [
        OurRocketMQ(
            tmp_path / f"slave-{version}",
            SLAVE | {"brokerName": f"broker-{version}", "brokerId": 1},
            name_server=names.bootstrap,
        )
        for version in ("5", "4")
    ]
    senders = [Sender(master) for master in masters]
    try:
        start_all(masters)
        for master, slave in zip(masters, slaves, strict=True):
            create_topic(master, TOPIC, QUEUES)
            slave.start()
        for sender in senders:
            sender.send_until_safe()
            assert sender.send(250) == {SUCCESS: 250}
        for slave, refused in zip(slaves, (FLUSH_SLAVE_TIMEOUT, SLAVE_NOT_AVAILABLE), strict=True):
            slave.stop()
            sender = senders[slaves.index(slave)]
            assert sender.send(2) == {refused: 2}
            slave.start()
        for sender in senders:
            sender.send_until_safe()
            assert sender.send(150) == {SUCCESS: 150}
        for sender, slave in zip(senders, slaves, strict=True):
            check_all_have(sender, [sender.broker, slave])
    finally:
        for slave in slaves:
            slave.stop()
        for master in masters:
            master.stop(kill=True)
        names.stop()
    for master, slave in zip(masters, slaves, strict=True):
        check_same_logs(master.data, slave.data)


def test_a_killed_master_loses_nothing_that_two_have(tmp_path: Path) -> None:
    """Whatever was acknowledged under SYNC_MASTER is at the slave when the master is killed."""
    master = OurRocketMQ(tmp_path / "master", MASTER).start()
    create_topic(master, TOPIC, QUEUES)
    slave = OurRocketMQ(
        tmp_path / "slave", SLAVE | {"brokerId": 1}, name_server=master.bootstrap
    ).start()
    Sender(master).send_until_safe()
    acknowledged: list[bytes] = []

    def load(client: int) -> None:
        """Keep 64 sends under way until the connection breaks."""
        wire = Wire(master.broker_address)
        under_way: dict[int, bytes] = {}
        number = 0
        try:
            while True:
                while len(under_way) < 64:
                    body = b"client %d: %d" % (client, number)
                    fields = send_fields(
                        TOPIC, number % QUEUES, f"UNIQ_KEY\x01{client}k{number}\x02"
                    )
                    under_way[wire.send(SEND_MESSAGE_V2, fields, body)] = body
                    number += 1
                answer = wire.receive()
                body = under_way.pop(answer.opaque)
                if answer.code == SUCCESS:
                    acknowledged.append(body)
        except CLOSED_ERRORS:
            return

    clients = [threading.Thread(target=load, args=(number,)) for number in range(3)]
    for client in clients:
        client.start()
    eventually(lambda: len(acknowledged) > 2000, SECONDS_MAX, what="the load has begun")
    master.stop(kill=True)
    for client in clients:
        client.join(SECONDS_MAX)
    # What was sent to the slave before the kill may be dispatched there just now.
    eventually(lambda: set(acknowledged) <= set(read(slave)), SECONDS_MAX, what="all of it")
    stored = Counter(read(slave))
    assert all(stored[body] == 1 for body in acknowledged)
    master.start()
    sender = Sender(master)
    sender.send_until_safe()
    assert set(acknowledged) <= set(read(master))
    master.stop()
    slave.stop()
    check_same_logs(master.data, slave.data)
