"""A real node with two entries in ``log.dirs``: served one by one, and read as one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from logstore.compat import TestBroker
from logstore.os_host import system_host
from logstore.segments.kafka.gathered_store import GatheredStore
from tests.interop.clients import settings
from tests.interop.conftest import start_real

pytestmark = pytest.mark.interop

SECONDS_MAX = 60
SPREAD, GROWN = 6, 8
TOPICS = ("one", "two", "three", "four")
Place = tuple[str, int]


def produce(bootstrap: str, places: Iterable[Place]) -> None:
    """Send a record to each place, and wait for them."""
    producer = Producer(settings(bootstrap))
    failures: list[object] = []
    for topic, partition in places:
        producer.produce(
            topic, b"v", partition=partition, on_delivery=lambda error, _: failures.append(error)
        )
    assert producer.flush(SECONDS_MAX) == 0
    assert set(failures) == {None}


def ends(bootstrap: str, places: Iterable[Place]) -> dict[Place, int]:
    """Return where each place ends."""
    consumer = Consumer(settings(bootstrap) | {"group.id": "ends"})
    try:
        return {
            place: consumer.get_watermark_offsets(TopicPartition(*place), SECONDS_MAX)[1]
            for place in places
        }
    finally:
        consumer.close()


def names_in(directory: Path, places: Iterable[Place]) -> list[Place]:
    """Return which of the places have a folder in a directory."""
    return [(topic, index) for topic, index in places if (directory / f"{topic}-{index}").exists()]


def go_on(directory: Path, places: list[Place]) -> dict[Place, int]:
    """Serve one directory: read, write and grow what is there, and leave alone what is not."""
    with TestBroker(directory=str(directory)) as ours:
        here = names_in(directory, places)
        found = ends(ours.bootstrap, here)
        admin = AdminClient(settings(ours.bootstrap))
        told = admin.list_topics(timeout=SECONDS_MAX).topics
        assert {name: len(told[name].partitions) for name in (*TOPICS, "spread")} == {
            **dict.fromkeys(TOPICS, 1),
            "spread": SPREAD,
        }
        for name in TOPICS:
            made = admin.create_topics([NewTopic(name, 1, 1)])[name]
            with pytest.raises(KafkaException, match="already exists"):
                made.result(SECONDS_MAX)
        admin.create_partitions([NewPartitions("spread", GROWN)])["spread"].result(SECONDS_MAX)
        more = [("spread", index) for index in range(SPREAD, GROWN)]
        produce(ours.bootstrap, [*here, *more])
        return {place: end + 1 for place, end in found.items()} | dict.fromkeys(more, 1)


def test_the_node_goes_on_with_what_one_of_its_directories_was_served_for(tmp_path: Path) -> None:
    """Killed, served by ours with its metadata, and started again on both; nothing is lost."""
    first, second = tmp_path / "real/data", tmp_path / "real/second"
    peer = start_real(tmp_path / "real", settings={"log.dirs": f"{first},{second}"})
    try:
        admin = AdminClient(settings(peer.bootstrap))
        made = [NewTopic("spread", SPREAD, 1), *(NewTopic(name, 1, 1) for name in TOPICS)]
        for future in admin.create_topics(made).values():
            future.result(SECONDS_MAX)
        places = [*(("spread", index) for index in range(SPREAD)), *((name, 0) for name in TOPICS)]
        produce(peer.bootstrap, [*places, *places])
        peer.stop(kill=True)
        there = names_in(second, places)
        assert 0 < len(there) < len(places), "Kafka spreads partitions over its directories"
        wanted = dict.fromkeys(there, 2) | go_on(first, places)
        peer.start()
        assert ends(peer.bootstrap, wanted) == wanted
        peer.stop()
    finally:
        peer.stop(kill=True)
    store = GatheredStore(system_host(), [str(second), str(first)])
    assert {place: store.partition(*place).end_offset for place in wanted} == wanted
    store.close()
