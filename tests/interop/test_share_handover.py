"""A share group of a real Kafka is ours after it, and the real one's again after us."""

from __future__ import annotations

import subprocess
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from logstore.compat.kafka.groups.share.messages import DescribedOffsetsGroup
from logstore.compat.kafka.share_state.messages import PartitionState
from logstore.tools.dev.kafka_peer import KafkaPeer
from tests.compat.kafka.groups.questioner import Line
from tests.interop.conftest import SETTINGS, new_topic, start_real
from tests.interop.eventually import eventually
from tests.interop.java_programs import kafka_program
from tests.interop.our_broker import OurBroker
from tests.interop.share_wire import ShareWire
from tests.interop.test_same_share_groups import topic_id, written

pytestmark = [pytest.mark.interop, pytest.mark.slow]

PROGRAM = Path(__file__).with_name("ShareConsumers.java")
GROUP, TOPIC, PARTITIONS, RECORDS = "readers", "work", 2, 40
SHARE_SETTINGS: dict[str, object] = {
    "offsets.topic.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.snapshot.update.records.per.snapshot": 3,
}
GROUP_RESOURCE, SET = 32, 0
SECONDS_MAX = 60


def produced(bootstrap: str) -> None:
    """Write the records, half of them to either partition."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce(TOPIC, f"record {number}", partition=number % PARTITIONS)
    assert producer.flush(30) == 0


def reads_from_the_start(bootstrap: str) -> None:
    """Let the group begin with the first record."""
    config = {
        "name": "share.auto.offset.reset", "config_operation": SET, "value": "earliest",
    }  # fmt: skip
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": GROUP, "configs": [config]}
    Line(bootstrap).ask("IncrementalAlterConfigs", 1, resources=[resource], validate_only=False)


def consumed(bootstrap: str, count: int, kind: str) -> list[tuple[int, int, int]]:
    """Return (partition, offset, deliveries) of so many records that a Java member was given."""
    command = kafka_program(PROGRAM, bootstrap, GROUP, TOPIC, str(count), kind)
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    return [(int(partition), int(offset), int(times)) for partition, offset, times in lines]


class Seen:
    """What a broker says of the group; two that say the same are equal."""

    def __init__(self, bootstrap: str) -> None:
        with closing(ShareWire(bootstrap)) as wire:
            eventually(
                lambda: wire.starts(GROUP).error_code == 0, what="the group", seconds=SECONDS_MAX
            )
            topic = topic_id(Line(bootstrap), TOPIC)
            self.starts: DescribedOffsetsGroup = wire.starts(GROUP)
            self.described = wire.describe_share(GROUP)
            self.states: list[PartitionState] = [
                state(wire, topic, index) for index in range(PARTITIONS)
            ]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Seen) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment] # nobody keeps them

    def lag(self) -> int:
        """Return how many records are not done."""
        return sum(one.lag for topic in self.starts.topics for one in topic.partitions)


def state(wire: ShareWire, topic: uuid.UUID, index: int) -> PartitionState:
    """Return what is known of a partition."""
    ((found,),) = (one.partitions for one in wire.read_state(GROUP, topic, index, -1).results)
    return found


def started(directory: Path, data: Path) -> KafkaPeer:
    """Return a real broker on a directory that somebody left behind."""
    return KafkaPeer("4", directory, settings=SETTINGS | SHARE_SETTINGS, as_is=data).start()


def test_a_group_is_handed_over_and_back(tmp_path: Path) -> None:
    """Whoever has the directory knows what the group has read, and goes on from there."""
    real = start_real(tmp_path / "real", settings=SHARE_SETTINGS)
    try:
        new_topic(real.bootstrap, TOPIC, PARTITIONS)
        reads_from_the_start(real.bootstrap)
        produced(real.bootstrap)
        first = consumed(real.bootstrap, 14, "some")
        theirs = Seen(real.bootstrap)
    finally:
        real.stop()
    written_by_real = written(real.data)
    assert any(len(one.state_batches) > 1 for one in theirs.states)

    ours = OurBroker(tmp_path / "ours", SHARE_SETTINGS, data=real.data).start()
    try:
        assert Seen(ours.bootstrap) == theirs
        topic = topic_id(Line(ours.bootstrap), TOPIC)
        done = accept_next(ours.bootstrap, topic, theirs.states[0])
        with closing(ShareWire(ours.bootstrap)) as wire:
            assert wire.alter("moved", {TOPIC: {0: 5}}).error_code == 0
            moved = wire.starts("moved")
        mine = Seen(ours.bootstrap)
    finally:
        ours.stop()
    assert mine.lag() == theirs.lag() - len(done)
    for about, before in written_by_real.items():
        assert written(real.data)[about][: len(before)] == before

    settled = {(partition, offset) for partition, offset, _ in first if offset % 4 != 3}
    everything = {(index, offset) for index in range(PARTITIONS) for offset in range(20)}
    expected = everything - settled - done
    real = started(tmp_path / "real-again", real.data)
    try:
        assert Seen(real.bootstrap) == mine
        with closing(ShareWire(real.bootstrap)) as wire:
            assert wire.starts("moved") == moved
        second = consumed(real.bootstrap, len(expected), "all")
    finally:
        real.stop()
    assert {(partition, offset) for partition, offset, _ in second} == expected
    released = {(partition, offset) for partition, offset, _ in first if offset % 4 == 3}
    assert {one[:2] for one in second if one[2] == 2} >= released - done


def accept_next(bootstrap: str, topic: uuid.UUID, known: PartitionState) -> set[tuple[int, int]]:
    """Acknowledge the first records of partition 0 that nobody has seen, as its leader would."""
    last = max(one.last_offset for one in known.state_batches)
    done_before = sum(
        one.last_offset - one.first_offset + 1
        for one in known.state_batches
        if one.delivery_state != 0
    )
    fields: dict[str, Any] = {"epochs": (known.state_epoch, -1), "done": done_before + 3}
    with closing(ShareWire(bootstrap)) as wire:
        batch = (last + 1, last + 3, 2, 1)
        ((told,),) = (
            one.partitions for one in wire.write_state(GROUP, topic, 0, batch, **fields).results
        )
        assert told.error_code == 0, told
    return {(0, last + number) for number in (1, 2, 3)}
