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
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.interop.clients import CODECS, settings
from tests.interop.conftest import SETTINGS, new_topic
from tests.interop.our_broker import OurBroker
from tests.interop.raw_wire import Wire, commit_request, is_committed

pytestmark = pytest.mark.interop

TOPIC = "under-load"
GROUP = "readers"
PARTITIONS = 4
OUTSTANDING_MAX = 300
COMMIT_EVERY = 25
LOAD_SECONDS_MAX = 0.6
#: of the rounds, how many may end before anything was acknowledged
EARLY_SHARE = 0.2
STARTUP_SECONDS_MAX = 0.4


def rounds_wanted() -> int:
    """Return how often to kill: LOGSTORE_KILL_ROUNDS, else 50 (5 in CI, whose time is short)."""
    return int(os.environ.get("LOGSTORE_KILL_ROUNDS", "5" if os.environ.get("CI") else "50"))


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


@pytest.fixture(params=["kafka", pytest.param("rocketmq", marks=pytest.mark.slow)])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OurBroker]:
    """A broker of its own on either layout, with a topic of small segments, or small files."""
    over = ("--protocol", "kafka", "--layout", request.param)
    files: dict[str, object] = {
        "mappedFileSizeCommitLog": 4 << 20,
        "mappedFileSizeConsumeQueue": 20_000,
        "maxHashSlotNum": 1000,
        "maxIndexNum": 4000,
    }
    own = OurBroker(tmp_path, SETTINGS | files, arguments=over).start()
    config = {"internal.segment.bytes": "100000", "index.interval.bytes": "2000"}
    new_topic(own.bootstrap, TOPIC, PARTITIONS, config)
    yield own
    own.stop()


def load_until_killed(
    broker: OurBroker, ledger: Ledger, number: int, chance: random.Random
) -> None:
    """
    Produce with acks=all and commit offsets until the broker is killed at a random time.

    Most often that time counts from the first acknowledgement: librdkafka needs half a second or
    a whole one to get its producer id, in which nothing of interest is under way.
    """
    codec = chance.choice(CODECS)
    producer = Producer(
        settings(broker.bootstrap)
        | {"enable.idempotence": True, "acks": "all", "compression.type": codec, "linger.ms": 1}
    )
    committer = Wire(broker.bootstrap)
    killer = threading.Timer(
        chance.uniform(0, LOAD_SECONDS_MAX), broker.stop, kwargs={"kill": True}
    )
    acknowledged = len(ledger.values)
    is_early = chance.random() < EARLY_SHARE
    sent = 0
    while broker.is_alive():
        if killer.ident is None and (is_early or len(ledger.values) > acknowledged):
            killer.start()
        if len(producer) < OUTSTANDING_MAX:
            producer.produce(
                TOPIC,
                payload(f"{number}-{sent}"),
                partition=sent % PARTITIONS,
                on_delivery=ledger.acknowledge,
            )
            sent += 1
            if sent % COMMIT_EVERY == 0:
                commit(committer, ledger)
        producer.poll(0 if len(producer) < OUTSTANDING_MAX else 0.005)
    killer.join()
    producer.purge()
    producer.flush(5)
    committer.close()


def commit(wire: Wire, ledger: Ledger) -> None:
    """Commit one more than before; note it if the broker said yes."""
    wire.send_frame(commit_request(GROUP, TOPIC, 0, ledger.committed + 1))
    if is_committed(wire.receive_frame()):
        ledger.committed += 1


def kill_while_starting(broker: OurBroker, chance: random.Random) -> None:
    """Kill the broker somewhere on its way up: while it imports, recovers or answers."""
    broker.spawn()
    time.sleep(chance.uniform(0, STARTUP_SECONDS_MAX))
    broker.stop(kill=True)


def ends_of(consumer: Consumer, starts: dict[int, int]) -> dict[int, int]:
    """Return where each partition ends now: never before what was seen already."""
    ends: dict[int, int] = {}
    for partition, start in starts.items():
        marks = consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=20)
        assert marks is not None
        assert marks[0] == 0
        assert marks[1] >= start, f"partition {partition} ends at {marks[1]}, {start} was seen"
        ends[partition] = marks[1]
    return ends


def read_between(
    consumer: Consumer, starts: dict[int, int], ends: dict[int, int]
) -> dict[tuple[int, int], bytes]:
    """Return all values between these offsets, by partition and offset."""
    consumer.assign([TopicPartition(TOPIC, one, offset) for one, offset in starts.items()])
    wanted = {(one, offset) for one in starts for offset in range(starts[one], ends[one])}
    found: dict[tuple[int, int], bytes] = {}
    while len(found) < len(wanted):
        messages = consumer.consume(min(1000, len(wanted) - len(found)), timeout=20)
        assert messages, f"nothing comes after {len(found)} of {len(wanted)} records"
        for message in messages:
            assert message.error() is None, message.error()
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None
            assert offset is not None
            assert isinstance(value, bytes)
            found[partition, offset] = value
    assert found.keys() == wanted, "the offsets have no holes"
    return found


def verify(broker: OurBroker, ledger: Ledger, starts: dict[int, int]) -> dict[int, int]:
    """Check all partitions from `starts` on, and the committed offset; return where they end."""
    consumer = Consumer(
        settings(broker.bootstrap)
        | {"group.id": GROUP, "enable.auto.commit": False, "fetch.wait.max.ms": 50}
    )
    try:
        ends = ends_of(consumer, starts)
        found = read_between(consumer, starts, ends)
        (committed,) = consumer.committed([TopicPartition(TOPIC, 0)], timeout=20)
    finally:
        consumer.close()
    wrong = {
        place
        for place, value in ledger.values.items()
        if place[1] >= starts[place[0]] and found.get(place) != value
    }
    assert wrong == set(), "acknowledged, and then lost or changed"
    assert all(proves_itself(value) for value in found.values())
    names = [value.split(b"|", 1)[0] for value in found.values()]
    assert len(names) == len(set(names)), "an idempotent producer's record stands there twice"
    # Killed before the first commit was answered there may be none: the client says -1001 then.
    assert ledger.committed < 0 or committed.offset >= ledger.committed
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
