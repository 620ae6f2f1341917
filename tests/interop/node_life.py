"""
One life of a cluster whose nodes go, come back and lead in turn while librdkafka's clients work.

What must be so at its end, whatever came about: what was acknowledged is there once, in the order
and at the place of its acknowledgement; a transaction is there as a whole or not at all; the group
has read all that it could read.
"""

from __future__ import annotations

import random
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from logstore.compat import TestBroker
from tests.interop.clients import settings
from tests.interop.eventually import eventually

PARTITION_COUNT = 6
PLAIN, TRANSACTED = "plain", "transacted"
INTERNAL = ("__consumer_offsets", "__transaction_state")
RECORDS_A_TRANSACTION = 5
SECONDS_MAX = 60


class Worker(threading.Thread, ABC):
    """Somebody who works with the cluster until it is told to end; what goes wrong is kept."""

    def __init__(self, bootstrap: str, number: int) -> None:
        super().__init__(daemon=True)
        self.bootstrap = bootstrap
        self.number = number
        self.ending = threading.Event()
        self.problems: list[str] = []

    @abstractmethod
    def work(self) -> None:
        """Do it."""

    def run(self) -> None:
        """Work, and keep what ends it too early."""
        try:
            self.work()
        except KafkaException as error:
            self.problems.append(f"{type(self).__name__}: {error}")


class Sender(Worker):
    """Sends numbered records by an idempotent producer; knows which were acknowledged where."""

    def __init__(self, bootstrap: str, number: int) -> None:
        super().__init__(bootstrap, number)
        self.acknowledged: dict[str, tuple[int, int]] = {}

    def work(self) -> None:
        """Send."""
        producer = Producer(
            settings(self.bootstrap) | {"enable.idempotence": True, "message.timeout.ms": 60_000}
        )
        count = 0
        while not self.ending.is_set():
            try:
                producer.produce(
                    PLAIN, f"{self.number}-{count}".encode(),
                    partition=count % PARTITION_COUNT, on_delivery=self._delivered,
                )  # fmt: skip
                count += 1
            except BufferError:
                producer.poll(0.01)
            producer.poll(0.002)
        left = producer.flush(SECONDS_MAX)
        if left:
            self.problems.append(f"{left} records were never answered")

    def _delivered(self, error: KafkaError | None, message: Any) -> None:
        value = message.value().decode()
        if error is not None:
            self.problems.append(f"{value}: {error}")
        elif value in self.acknowledged:
            self.problems.append(f"{value} was acknowledged twice")
        else:
            self.acknowledged[value] = message.partition(), message.offset()


class Transactor(Worker):
    """Writes by transactions, of which it aborts some; knows what became of each."""

    def __init__(self, bootstrap: str, number: int, seed: int) -> None:
        super().__init__(bootstrap, number)
        self._rng = random.Random(seed)
        self.committed: set[str] = set()
        self.aborted: set[str] = set()

    def work(self) -> None:
        """Write one transaction after the other."""
        own = {"transactional.id": f"tx-{self.number}", "transaction.timeout.ms": 30_000}
        producer = Producer(settings(self.bootstrap) | own)
        producer.init_transactions(SECONDS_MAX)
        count = 0
        while not self.ending.is_set():
            names = {f"{self.number}-{count}-{one}" for one in range(RECORDS_A_TRANSACTION)}
            try:
                self._write(producer, names)
            except KafkaException as error:
                if not error.args[0].txn_requires_abort():
                    raise
                producer.abort_transaction(SECONDS_MAX)
                self.aborted |= names
            count += 1

    def _write(self, producer: Producer, names: set[str]) -> None:
        producer.begin_transaction()
        for name in sorted(names):
            producer.produce(
                TRANSACTED, name.encode(), partition=self._rng.randrange(PARTITION_COUNT)
            )
        if self._rng.random() < 0.2:
            producer.flush(SECONDS_MAX)
            producer.abort_transaction(SECONDS_MAX)
            self.aborted |= names
            return
        for is_last in (False, False, True):
            try:
                producer.commit_transaction(SECONDS_MAX)
                break
            except KafkaException as error:
                if is_last or not error.args[0].retriable():
                    raise
        self.committed |= names


class Reader(Worker):
    """A member of a group; keeps what it has read."""

    def __init__(self, bootstrap: str, number: int, protocol: str) -> None:
        super().__init__(bootstrap, number)
        self._protocol = protocol
        self.found: set[str] = set()

    def work(self) -> None:
        """Read."""
        own: dict[str, Any] = {
            "group.id": "readers", "auto.offset.reset": "earliest",
            "group.protocol": self._protocol, "auto.commit.interval.ms": 500,
        }  # fmt: skip
        if self._protocol == "classic":
            own["session.timeout.ms"] = 6000
        consumer = Consumer(settings(self.bootstrap) | own)
        consumer.subscribe([PLAIN])
        while not self.ending.is_set():
            message = consumer.poll(0.1)
            error = None if message is None else message.error()
            if error is not None and error.fatal():
                self.problems.append(f"{error}")
            elif message is not None and error is None:
                self.found.add((message.value() or b"").decode())
        consumer.close()


def happenings(broker: TestBroker, rng: random.Random, count: int) -> Iterator[str]:
    """Let nodes go, come and be killed, and leaders move; at the end all are there."""
    down: set[int] = set()
    for _ in range(count):
        chance = rng.random()
        if chance < 0.4 and len(down) < 2:
            node_id = rng.choice(sorted({1, 2, 3} - down))
            broker.stop_node(node_id)
            down.add(node_id)
            yield f"{node_id} goes"
        elif chance < 0.8 and down:
            node_id = rng.choice(sorted(down))
            broker.start_node(node_id)
            down.remove(node_id)
            yield f"{node_id} comes"
        elif chance < 0.88:
            broker.crash()
            broker.start()
            down.clear()
            yield "all are killed, and start"
        else:
            topic = rng.choice((PLAIN, TRANSACTED, *INTERNAL))
            try:
                broker.move_leaders(topic)
            except ValueError:
                continue  # nobody else may lead, or the topic is not there yet
            yield f"leaders of {topic} move"
    for node_id in sorted(down):
        broker.start_node(node_id)


def records(bootstrap: str, topic: str, isolation: str) -> list[tuple[str, int, int]]:
    """Return value, partition and offset of every record, in the order of the partitions."""
    own = {"group.id": "all", "isolation.level": isolation, "enable.partition.eof": True}
    consumer = Consumer(settings(bootstrap) | own)
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITION_COUNT)])
    found: list[tuple[str, int, int]] = []
    ended: set[int] = set()

    def is_read() -> bool:
        message = consumer.poll(0.5)
        while message is not None:
            if message.error() is None:
                value, place = message.value() or b"", (message.partition(), message.offset())
                found.append((value.decode(), place[0] or 0, place[1] or 0))
            else:
                ended.add(message.partition() or 0)
            message = consumer.poll(0)
        return len(ended) == PARTITION_COUNT

    eventually(is_read, what=f"the end of {topic}")
    consumer.close()
    return found


def end(workers: list[Any]) -> None:
    """Let them end, in time and without problems."""
    for one in workers:
        one.ending.set()
    for one in workers:
        one.join(2 * SECONDS_MAX)
        assert not one.is_alive(), f"{one} hangs"
        assert not one.problems, one.problems


def check_plain(bootstrap: str, senders: list[Sender]) -> None:
    """Each record once, in its sender's order, where its acknowledgement said."""
    found = records(bootstrap, PLAIN, "read_uncommitted")
    places = {value: (partition, offset) for value, partition, offset in found}
    assert len(places) == len(found), "records that are there twice"
    for sender in senders:
        differing = sender.acknowledged.items() - places.items()
        assert not {one for one in differing if one[1][1] >= 0}, "lost, or elsewhere"
        assert sender.acknowledged.keys() <= places.keys(), "lost"
    last: dict[tuple[str, int], int] = {}
    for value, partition, _ in found:
        number, count = value.split("-")
        assert last.get((number, partition), -1) < int(count), f"{value} is out of order"
        last[number, partition] = int(count)


def check_transacted(bootstrap: str, transactors: list[Transactor]) -> None:
    """What was committed once, nothing of what was aborted."""
    found = [value for value, _, _ in records(bootstrap, TRANSACTED, "read_committed")]
    assert len(set(found)) == len(found), "records that are there twice"
    for one in transactors:
        assert one.committed <= set(found), "lost"
        assert not one.aborted & set(found), "aborted, and there all the same"


def live(seed: int, pause: Callable[[float], object]) -> int:
    """
    Live through it; return how many records were acknowledged, each of which is there.

    `pause` lets seconds go by between one happening and the next.
    """
    rng = random.Random(seed)
    factors = ("offsets.topic", "transaction.state.log")
    own = {"min.insync.replicas": str(rng.choice((1, 2))), "default.replication.factor": "3"}
    own |= {f"{name}.replication.factor": "3" for name in factors}
    own |= {f"{name}.num.partitions": "8" for name in factors}
    own |= {"num.partitions": str(PARTITION_COUNT), "group.initial.rebalance.delay.ms": "0"}
    with TestBroker(nodes=3, settings=own) as broker:
        bootstrap = broker.bootstrap
        protocol = rng.choice(("classic", "consumer"))
        senders = [Sender(bootstrap, number) for number in range(2)]
        transactors = [Transactor(bootstrap, number, seed + number) for number in range(2)]
        readers = [Reader(bootstrap, number, protocol) for number in range(2)]
        for worker in (*senders, *transactors, *readers):
            worker.start()
        for _ in happenings(broker, rng, 12):
            pause(rng.random() * 1.2)
        end([*senders, *transactors])
        acknowledged = {value for one in senders for value in one.acknowledged}

        def is_read() -> bool:
            return acknowledged <= {value for one in readers for value in one.found}

        eventually(is_read, what="all that was acknowledged, read by the group")
        end([*readers])
        check_plain(bootstrap, senders)
        check_transacted(bootstrap, transactors)
    return len(acknowledged)
