"""In which versions groups and offsets are written, by the release that is to read them."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.emulation.release import Emulation
from logstore.compat.kafka.features import METADATA_VERSION, TRANSACTION_VERSION
from logstore.compat.kafka.groups.offsets_log import decode_offset_commit_value
from logstore.compat.kafka.groups.record_versions import RecordVersions
from logstore.compat.kafka.topics.names import GROUPS_TOPIC, TRANSACTIONS_TOPIC
from logstore.segments.kafka.cluster_metadata.release import parse_release
from logstore.segments.kafka.meta_properties import MetaProperties
from logstore.segments.kafka.record import decode_records
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.conversation import DIRECTORY
from tests.compat.kafka.groups.test_groups_topic import a_commit, codes
from tests.compat.kafka.peer import Peer, a_broker
from tests.compat.kafka.transactions.producer import TransactionalClient

ONE_LOG = {"offsets.topic.num.partitions": "1"}
WEEK_MS = 7 * 24 * 3_600_000


@pytest.mark.parametrize(
    ("release", "versions"),
    [
        ("0.10.0", RecordVersions(1, 0, has_expiry=True)),
        ("0.11", RecordVersions(1, 1, has_expiry=True)),
        ("2.0", RecordVersions(1, 1, has_expiry=True)),
        ("2.1", RecordVersions(3, 2)),
        ("2.2", RecordVersions(3, 2)),
        ("2.3", RecordVersions(3, 3)),
        ("4.0", RecordVersions(3, 3)),
        ("4.1", RecordVersions(4, 3)),
    ],
)
def test_a_release_that_is_emulated_writes_its_own(release: str, versions: RecordVersions) -> None:
    """Whether the groups are there before it is known which it is, or later."""
    early, late = a_broker(), a_broker()
    early.emulation = Emulation.of(release)
    groups = late.groups
    late.emulation = Emulation.of(release)
    assert early.groups.surroundings.versions == groups.surroundings.versions == versions


def written(broker: Broker) -> list[bytes]:
    """Commit one offset twice, the second time with a text; return the values in the log."""
    for text in ("", "five"):
        fields = a_commit("g", 5, text=text) | {"retention_time_ms": -1}
        answer = Peer(broker).ask("OffsetCommit", 4, fields)  # as far as 2.0 knows it
        assert codes(answer.message) == [0]
    log = broker.topics[GROUPS_TOPIC].partitions[0]
    batches = [decode_records(batch.data) for batch in log.batches()]
    return [record.value or b"" for records in batches for record in records]


def opened(host: SimulatedHost, **more: Any) -> Broker:
    """Return a broker with one partition of offsets, and a topic."""
    broker = Broker.open(host, DIRECTORY, ONE_LOG, **more)
    if "t" not in broker.topics:
        broker.create_topic("t", 1)
    return broker


@pytest.mark.parametrize(("release", "version"), [("2.0", 1), ("3.9", 3), ("4.3", 4)])
def test_offsets_are_written_so(release: str, version: int) -> None:
    """And are found again, at their version's place of the time they end at."""
    host = SimulatedHost()
    broker = opened(host, emulated_release=release)
    values = written(broker)
    assert [value[:2] for value in values] == [version.to_bytes(2, "big")] * 2
    for value in map(decode_offset_commit_value, values):
        assert value.offset == 5
        ends_ms = value.commit_timestamp_ms + WEEK_MS if version == 1 else -1
        assert value.expire_timestamp_ms == ends_ms
    broker.close()
    found = opened(host).groups.committed("g")
    assert [(of, one.offset, one.metadata) for of, one in found.items()] == [(("t", 0), 5, "five")]


@pytest.mark.parametrize(("release", "version"), [("3.3", 3), ("3.4", 3), ("3.5", 4), ("3.9", 4)])
def test_a_directory_of_an_older_release_stays_readable_for_it(release: str, version: int) -> None:
    """Offsets of version 4 are read since 3.5: up to there a partition with one is not loaded."""
    broker = opened(SimulatedHost(), release=parse_release(release))
    assert {value[:2] for value in written(broker)} == {version.to_bytes(2, "big")}


def test_so_it_is_until_its_metadata_are_newer() -> None:
    """UpdateFeatures leaves no way back."""
    broker = opened(SimulatedHost(), release=parse_release("3.3"))
    assert broker.groups.surroundings.versions.offset == 3
    broker.change_features({METADATA_VERSION: parse_release("4.0").level})
    assert broker.groups.surroundings.versions == RecordVersions()


def give_to_zookeeper(host: SimulatedHost) -> None:
    """Make of a directory what a broker of ZooKeeper's time would have left."""
    host.fs.remove_directory(f"{DIRECTORY}/__cluster_metadata-0")
    host.fs.remove(f"{DIRECTORY}/bootstrap.checkpoint")
    MetaProperties("cluster", 1, None, version=0).write(host.fs, DIRECTORY, 0)


def test_a_directory_of_zookeepers_time_may_go_back() -> None:
    """To any release since 2.1: nothing tells which wrote it."""
    host = SimulatedHost()
    broker = opened(host)
    written(broker)
    broker.close()
    give_to_zookeeper(host)
    broker = opened(host)
    assert [value[:2] for value in written(broker)] == [b"\0\4"] * 2 + [b"\0\3"] * 2


def test_so_may_its_transactions() -> None:
    """They are noted as before 4.0 until somebody turns ``transaction.version`` on."""
    host = SimulatedHost()
    opened(host).close()
    give_to_zookeeper(host)
    broker = opened(host)
    assert TRANSACTION_VERSION not in broker.feature_levels
    client = TransactionalClient(broker, 1)
    for level, value_version in ((0, 0), (2, 1)):
        broker.change_features({TRANSACTION_VERSION: level})
        assert (client.init(), client.send("t", 0, b"a"), client.end(is_commit=True)) == (0, 0, 0)
        topic = broker.topics[TRANSACTIONS_TOPIC]
        newest = [
            record.value
            for partition in topic.partitions.values()
            for one in partition.batches()
            for record in decode_records(one.data)
        ][-1]
        assert newest is not None
        assert int.from_bytes(newest[:2]) == value_version
