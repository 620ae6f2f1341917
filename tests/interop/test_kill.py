"""kill -9 under load: whatever was acknowledged is there after the restart."""

from __future__ import annotations

import hashlib
import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import confluent_kafka
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.interop.clients import CODECS, settings
from tests.interop.conftest import SETTINGS, new_topic
from tests.interop.our_broker import OurBroker

pytestmark = pytest.mark.interop

TOPIC = "under-load"
GROUP = "readers"
PARTITIONS = 4
OUTSTANDING_MAX = 300
COMMIT_EVERY = 100
LOAD_SECONDS_MAX = 0.6
STARTUP_SECONDS_MAX = 0.4


def rounds_wanted() -> int:
    """Return how often to kill: LOGSTORE_KILL_ROUNDS, else 50 (10 in CI, whose time is short)."""
    return int(os.environ.get("LOGSTORE_KILL_ROUNDS", "10" if os.environ.get("CI") else "50"))


def payload(name: str) -> bytes:
    """Return up to 3,040 bytes that prove themselves: a name, then its digest again and again."""
    digest = hashlib.sha256(name.encode()).digest()
    filling = digest * 95
    return name.encode() + b"|" + filling[: 32 + digest[0] * 256 % 3000]


def proves_itself(value: bytes) -> bool:
    """Tell whether a value is one that `payload` made, whole and unchanged."""
    return value == payload(value.split(b"|", 1)[0].decode())


@attrs.define
class Ledger:
    """What the broker acknowledged, over all rounds."""

    values: dict[tuple[int, int], bytes] = attrs.field(factory=dict[tuple[int, int], bytes])
    committed: int = -1

    def acknowledge(self, error: object, message: confluent_kafka.Message) -> None:
        """Note a delivery report."""
        if error is None:
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            assert (partition, offset) not in self.values, "an offset was given twice"
            value = message.value()
            assert isinstance(value, bytes)
            self.values[partition, offset] = value


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OurBroker]:
    """A broker of its own, with a topic of small segments."""
    own = OurBroker(tmp_path, SETTINGS).start()
    config = {"internal.segment.bytes": "100000", "index.interval.bytes": "2000"}
    new_topic(own.bootstrap, TOPIC, PARTITIONS, config)
    yield own
    own.stop()


def load_until_killed(
    broker: OurBroker, ledger: Ledger, number: int, chance: random.Random
) -> None:
    """Produce with acks=all and commit offsets until the broker is killed at a random time."""
    codec = chance.choice(CODECS)
    producer = Producer(
        settings(broker.bootstrap)
        | {"enable.idempotence": True, "acks": "all", "compression.type": codec, "linger.ms": 1}
    )
    committer = Consumer(settings(broker.bootstrap) | {"group.id": GROUP})
    killer = threading.Timer(
        chance.uniform(0, LOAD_SECONDS_MAX), broker.stop, kwargs={"kill": True}
    )
    killer.start()
    sent = 0
    while broker.is_alive():
        if len(producer) < OUTSTANDING_MAX:
            producer.produce(
                TOPIC,
                payload(f"{number}-{sent}"),
                partition=sent % PARTITIONS,
                on_delivery=ledger.acknowledge,
            )
            sent += 1
        producer.poll(0 if len(producer) < OUTSTANDING_MAX else 0.005)
        if sent % COMMIT_EVERY == 0:
            commit(committer, ledger)
    killer.join()
    producer.purge()
    producer.flush(5)
    committer.close()


def commit(committer: Consumer, ledger: Ledger) -> None:
    """Commit one more than before; note it if the broker said yes."""
    asked = [TopicPartition(TOPIC, 0, ledger.committed + 1)]
    try:
        answer = committer.commit(offsets=asked, asynchronous=False)
    except KafkaException:
        return
    assert answer is not None
    if all(one.error is None for one in answer):
        ledger.committed += 1


def kill_while_starting(broker: OurBroker, chance: random.Random) -> None:
    """Kill the broker somewhere on its way up: while it imports, recovers or answers."""
    broker.spawn()
    time.sleep(chance.uniform(0, STARTUP_SECONDS_MAX))
    broker.stop(kill=True)


def read_partition(broker: OurBroker, partition: int, start: int) -> dict[int, bytes]:
    """Return what stands in a partition from `start` on, by offset."""
    consumer = Consumer(settings(broker.bootstrap) | {"group.id": "verifier", "check.crcs": True})
    try:
        where = TopicPartition(TOPIC, partition, start)
        low, high = consumer.get_watermark_offsets(where, timeout=20) or (0, 0)
        assert low == 0
        assert high >= start, f"partition {partition} ends at {high}, {start} was seen before"
        consumer.assign([where])
        found: dict[int, bytes] = {}
        while len(found) < high - start:
            messages = consumer.consume(min(1000, high - start - len(found)), timeout=20)
            assert messages, f"partition {partition}: nothing comes after {len(found)} records"
            for message in messages:
                assert message.error() is None, message.error()
                offset, value = message.offset(), message.value()
                assert offset is not None
                assert isinstance(value, bytes)
                found[offset] = value
        assert sorted(found) == list(range(start, high)), "the offsets have no holes"
        return found
    finally:
        consumer.close()


def verify(broker: OurBroker, ledger: Ledger, starts: dict[int, int]) -> dict[int, int]:
    """Check all partitions from `starts` on; return where they end."""
    ends: dict[int, int] = {}
    names: list[bytes] = []
    for partition, start in starts.items():
        found = read_partition(broker, partition, start)
        acknowledged = {
            offset: value
            for (where, offset), value in ledger.values.items()
            if where == partition and offset >= start
        }
        lost = {offset for offset in acknowledged if found.get(offset) != acknowledged[offset]}
        assert lost == set(), f"partition {partition}: acknowledged and lost or changed"
        assert all(proves_itself(value) for value in found.values())
        names += [value.split(b"|", 1)[0] for value in found.values()]
        ends[partition] = start + len(found)
    assert len(names) == len(set(names)), "an idempotent producer's record stands there twice"
    consumer = Consumer(settings(broker.bootstrap) | {"group.id": GROUP})
    (found_commit,) = consumer.committed([TopicPartition(TOPIC, 0)], timeout=20)
    consumer.close()
    assert found_commit.offset >= ledger.committed
    return ends


@pytest.mark.timeout(900)
def test_no_acknowledged_record_is_lost(broker: OurBroker) -> None:
    """After each of many kills at random times every acknowledged record and commit is there."""
    seed = int(os.environ.get("LOGSTORE_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"LOGSTORE_SEED={seed}")  # noqa: T201 - shown when the test fails
    chance = random.Random(seed)
    ledger = Ledger()
    starts = dict.fromkeys(range(PARTITIONS), 0)
    for number in range(rounds_wanted()):
        load_until_killed(broker, ledger, number, chance)
        if chance.random() < 0.3:
            kill_while_starting(broker, chance)
        broker.start()
        starts = verify(broker, ledger, starts)
    assert len(ledger.values) > 20 * rounds_wanted(), "the load was too small to mean much"
    assert ledger.committed >= 0
    verify(broker, ledger, dict.fromkeys(range(PARTITIONS), 0))
