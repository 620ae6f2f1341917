"""What a power loss leaves of a first start and of a deletion does not get in the way."""

from __future__ import annotations

import pytest

from logstore.partition import Record
from logstore.segments.kafka.store import KafkaStore
from logstore.testing import (
    KEEP_EVERYTHING,
    PowerLoss,
    SimulatedHost,
    every_power_loss,
)
from tests.segments.kafka.accidents.watched_host import keep_metadata_indexes_small
from tests.segments.kafka.accidents.witnessed_store import StoreTestimony, WitnessedStore
from tests.segments.kafka.accidents.workload import SMALL

DATA = "/data"


@pytest.fixture(autouse=True)
def small_metadata_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is preallocated is small."""
    keep_metadata_indexes_small(monkeypatch)


def test_a_first_start_that_lost_power_is_followed_by_another() -> None:
    """Wherever it went: the directory counts as ours, also with ``meta.properties.tmp`` in it."""

    def workload(host: SimulatedHost) -> None:
        KafkaStore(host, DATA)

    leftovers = 0
    for point in every_power_loss(workload):
        leftovers += point.host.fs.exists(f"{DATA}/meta.properties.tmp")
        KafkaStore(point.host, DATA).close()
    assert leftovers, "at some point it is left over"


def deleting(host: SimulatedHost) -> None:
    """Delete a topic, remove its files."""
    store = KafkaStore(host, DATA)
    host.fs.journal.note("started")
    store.delete_topic(store.topics_by_name["t"])
    host.fs.journal.note("deleted")
    host.clock.advance(60_000)
    store.purge()


def test_a_deleted_topic_does_not_come_back() -> None:
    """Not even as another topic, if the file with its id goes before its old name does."""
    host = SimulatedHost()
    store = KafkaStore(host, DATA)
    topic = store.create_topic("t", 1, SMALL)
    store.partition("t", 0).append_records([Record(b"k", b"v", 1_700_000_000_000)])
    store.close()
    host.power_loss(KEEP_EVERYTHING)
    for point in every_power_loss(deleting, make_host=host.fork, random_losses=10):
        found = KafkaStore(point.host, DATA).topics_by_name
        if point.host.fs.journal.notes("deleted"):
            assert not found, point
        assert [one.topic_id for one in found.values()] in ([], [topic.topic_id]), point


def test_a_flush_makes_a_topics_id_durable_whoever_led_before_it() -> None:
    """Also where a newer leader epoch was written, durably, before the first flush."""
    host = SimulatedHost()
    store = KafkaStore(host, DATA)
    store.create_topic("t", 1, SMALL)
    partition = store.partition("t", 0)
    partition.append_records([Record(b"k", b"v", 1_700_000_000_000)])
    partition.become_leader(3)
    partition.flush()
    assert f"{DATA}/t-0/partition.metadata" not in host.fs.unsynced_paths()


def test_a_clean_stop_makes_the_id_of_an_empty_topic_durable() -> None:
    """Or the next start, which trusts what it finds, would refuse the directory."""
    host = SimulatedHost(sector_bytes=16)
    store = KafkaStore(host, DATA)
    topic = store.create_topic("t", 1, SMALL)
    store.close()
    for seed in range(20):
        fork = host.fork()
        fork.power_loss(PowerLoss.random(seed))
        assert KafkaStore(fork, DATA).topics_by_name["t"].topic_id == topic.topic_id


def test_a_recovery_keeps_what_is_known_of_aborted_transactions() -> None:
    """Flushed, recovered, stopped or not, and power lost again: aborted records stay aborted."""
    host = SimulatedHost()
    witnessed = WitnessedStore(host, StoreTestimony())
    witnessed.create("t", 1, SMALL)
    witnessed.append("t", 0, [(b"k", b"v")], producer_id=1, is_transactional=True)
    witnessed.end_transaction("t", 0, 1, is_commit=False)
    witnessed.flush("t", 0)
    witnessed.checkpoint()
    host.power_loss()
    for is_stopped in (False, True):
        fork = host.fork()
        store = KafkaStore(fork, DATA)
        if is_stopped:
            store.close()
        fork.power_loss()
        partition = KafkaStore(fork, DATA).partition("t", 0)
        assert partition.read_records(0, 10, is_committed_only=True) == []
        assert len(partition.read_records(0, 10)) == 1
