"""A store and its metadata: what is written of topics, and what opens with or without it."""

from __future__ import annotations

import errno
import json

import attrs
import pytest

from logstore.errors import ForeignDirectoryError, StorageError, WriteFailedError
from logstore.host import read_file, write_file
from logstore.partition import Record
from logstore.segments.kafka import clean_shutdown
from logstore.segments.kafka.cluster_metadata.batches import decode_entries
from logstore.segments.kafka.cluster_metadata.image import MetadataImage, ResourceType
from logstore.segments.kafka.cluster_metadata.metadata_log import MetadataLog
from logstore.segments.kafka.cluster_metadata.records import (
    AnyRecord,
    ConfigRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from logstore.segments.kafka.cluster_metadata.release import (
    NEWEST,
    MetadataVersion,
    parse_release,
)
from logstore.segments.kafka.meta_properties import MetaProperties
from logstore.segments.kafka.partition_metadata import PartitionMetadata
from logstore.segments.kafka.record_batch import iterate_batches
from logstore.segments.kafka.store import KafkaStore, StoreOptions
from logstore.testing import SimulatedHost
from logstore.testing.disk_faults import FaultKind

DATA = "/data"
METADATA = f"{DATA}/__cluster_metadata-0"
OTHER_ID = bytes(15) + b"x"


@pytest.fixture
def host() -> SimulatedHost:
    """An empty world."""
    return SimulatedHost()


def opened(
    host: SimulatedHost, *, is_writable: bool = True, release: MetadataVersion | None = None
) -> KafkaStore:
    """Open the store in DATA."""
    return KafkaStore(host, DATA, StoreOptions(is_writable=is_writable, release=release))


def fill(store: KafkaStore, topic: str, index: int = 0) -> None:
    """Append a record."""
    store.partition(topic, index).append_records([Record(b"k", b"v", 1_700_000_000_000)])


def image_of(host: SimulatedHost) -> MetadataImage:
    """Return what the metadata say, without a store."""
    return MetadataLog(host, DATA, 1, release=NEWEST, is_writable=False).image


def said(host: SimulatedHost) -> list[AnyRecord]:
    """Return the records behind the bootstrap records."""
    path = f"{METADATA}/{0:020d}.log"
    batches = iterate_batches(memoryview(bytearray(read_file(host.fs, path))))
    found = [entry.record for batch in batches for entry in decode_entries(batch, path)]
    return found[9:]


def names(host: SimulatedHost) -> list[str]:
    """Return the partition directories, in whatever role."""
    return [
        entry.name
        for entry in host.fs.list_directory(DATA)
        if entry.is_directory and not entry.name.startswith("__cluster")
    ]


def forget_metadata(host: SimulatedHost) -> None:
    """Take away what a copy of the partition directories alone would not have."""
    host.fs.remove_directory(METADATA)
    for name in ("bootstrap.checkpoint", "meta.properties"):
        host.fs.remove(f"{DATA}/{name}")


# what is written


def test_a_topics_life_is_what_a_controller_writes(host: SimulatedHost) -> None:
    """Topic, settings, partitions; what changes of them; and that it is gone."""
    store = opened(host)
    assert store.meta is not None
    assert store.meta.directory_id is not None
    topic = store.create_topic("t", 1, {"retention.ms": "5", "cleanup.policy": "compact"})
    store.add_partitions(topic, 2)
    store.change_settings(topic, {"cleanup.policy": "compact", "segment.ms": "7"})
    store.delete_topic(topic)
    topic_id = topic.topic_id
    partition = PartitionRecord(0, topic_id, (1,), (1,), 1, directories=(store.meta.directory_id,))
    assert said(host) == [
        TopicRecord("t", topic_id),
        ConfigRecord(2, "t", "retention.ms", "5"),
        ConfigRecord(2, "t", "cleanup.policy", "compact"),
        partition,
        attrs.evolve(partition, partition_id=1),
        ConfigRecord(2, "t", "segment.ms", "7"),
        ConfigRecord(2, "t", "retention.ms", None),
        RemoveTopicRecord(topic_id),
    ]


def test_an_empty_directory_is_as_kafka_formats_it(host: SimulatedHost) -> None:
    """Identity and bootstrap records; the log begins with the first change."""
    opened(host).close()
    found = {entry.name for entry in host.fs.list_directory(DATA)}
    assert found - {".lock"} == {
        "meta.properties",
        "bootstrap.checkpoint",
        ".kafka_cleanshutdown",
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "replication-offset-checkpoint",
    }


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_start_and_a_stop_say_nothing(host: SimulatedHost, is_clean: bool) -> None:
    """Only changes are written, however often a broker starts."""
    store = opened(host)
    store.create_topic("t", 2, {"retention.ms": "5"})
    store.close()
    before = read_file(host.fs, f"{METADATA}/{0:020d}.log")
    for _ in range(2):
        store = opened(host)
        if is_clean:
            store.close()
        else:
            store.abandon()
    assert read_file(host.fs, f"{METADATA}/{0:020d}.log") == before


@pytest.mark.parametrize("fault", ["write", "sync"])
def test_what_cannot_be_said_does_not_happen(host: SimulatedHost, fault: FaultKind) -> None:
    """A full disk under the metadata log: no topic, no partition, no setting, no deletion."""
    store = opened(host)
    topic = store.create_topic("t", 1, {"retention.ms": "5"})
    for change in (
        lambda: store.create_topic("new", 2),
        lambda: store.add_partitions(topic, 3),
        lambda: store.change_settings(topic, {}),
        lambda: store.delete_topic(topic),
    ):
        host.fs.faults.fail_next(fault, errno.ENOSPC, path=f"{METADATA}/*.log")
        with pytest.raises((OSError, WriteFailedError)):
            change()
        assert list(store.topics_by_name) == ["t"]
        assert topic.settings == {"retention.ms": "5"}
        assert list(topic.partitions) == [0]
        assert names(host) == ["t-0"]
    fill(store, "t")


def test_producer_ids_come_in_blocks(host: SimulatedHost) -> None:
    """A thousand at a time, durably; after any stop the next block is another one."""
    store = opened(host)
    assert store.metadata.take_producer_ids() == range(1000)
    assert store.metadata.take_producer_ids() == range(1000, 2000)
    host.power_loss()
    assert opened(host).metadata.take_producer_ids() == range(2000, 3000)
    assert said(host) == [ProducerIdsRecord(1, -1, end) for end in (1000, 2000, 3000)]


def test_settings_of_brokers_are_kept(host: SimulatedHost) -> None:
    """Those of one broker and of all, by name; what is taken back is gone."""
    store = opened(host)
    first = {"log.retention.ms": "5", "log.roll.ms": "6"}
    store.metadata.change_broker_settings("1", {}, first)
    store.metadata.change_broker_settings("1", first, {"log.retention.ms": "7"})
    store.close()
    metadata = opened(host).metadata
    assert metadata.broker_settings("1") == {"log.retention.ms": "7"}
    assert metadata.broker_settings("") == {"min.insync.replicas": "1"}


def test_a_clean_stop_names_the_epoch_of_the_broker(host: SimulatedHost) -> None:
    """By it a real controller knows that the broker it had registered lost nothing (KIP-966)."""
    opened(host).close()
    assert clean_shutdown.read_broker_epoch(host.fs, DATA) == -1
    store = opened(host)
    record = RegisterBrokerRecord(1, OTHER_ID, 42)
    store.metadata.image.apply(record)
    store.close()
    assert clean_shutdown.read_broker_epoch(host.fs, DATA) == 42


# releases


def test_a_release_is_that_of_the_directory_for_good(host: SimulatedHost) -> None:
    """A new one gets it, the same one may be named again, another one is refused."""
    opened(host, release=parse_release("3.9")).close()
    assert image_of(host).features == {"metadata.version": 21}
    opened(host, release=parse_release("3.9")).close()
    with pytest.raises(ForeignDirectoryError, match=r"version is 3\.9-IV0, not 4\.3-IV0; leave"):
        opened(host, release=NEWEST)
    assert opened(host).metadata.image.metadata_version == parse_release("3.9")


# what a crash leaves


def test_partitions_whose_directories_a_crash_took(host: SimulatedHost) -> None:
    """They begin anew, under the id and with the settings that the metadata have."""
    store = opened(host)
    topic_id = store.create_topic("t", 3, {"retention.ms": "5"}).topic_id
    store.abandon()
    for index in (0, 2):
        host.fs.remove_directory(f"{DATA}/t-{index}")
    reader = opened(host, is_writable=False)
    assert list(reader.topics_by_name["t"].partitions) == [1]
    store = opened(host)
    topic = store.topics_by_name["t"]
    assert (topic.topic_id, sorted(topic.partitions)) == (topic_id, [0, 1, 2])
    assert topic.partitions[2].config.retention_ms == 5
    for index in range(3):
        fill(store, "t", index)
    assert names(host) == ["t-0", "t-1", "t-2"]
    store.close()
    for index in range(3):
        host.fs.remove_directory(f"{DATA}/t-{index}")
    assert opened(host).topics_by_id[topic_id].settings == {"retention.ms": "5"}


@pytest.mark.parametrize("directory_count", [0, 1, 2])
def test_a_partition_without_a_directory_may_be_in_any(
    host: SimulatedHost, directory_count: int
) -> None:
    """A node with two has it in the other: made anew here, Kafka would find it twice."""
    store = opened(host)
    store.create_topic("t", 1)
    metadata, home = store.metadata, store.metadata.home.directory_id
    record = metadata.image.topics["t"].partitions[0]
    known = (home, OTHER_ID)[:directory_count]
    metadata.image.apply(RegisterBrokerRecord(1, OTHER_ID, 42, log_dirs=known))
    for directory, is_here in (
        (home, True),
        (OTHER_ID, False),
        (bytes(15) + b"\1", directory_count < 2),  # unassigned
        (bytes(16), directory_count < 2),  # migrating
    ):
        metadata.image.apply(attrs.evolve(record, directories=(directory,)))
        assert len(list(metadata.partitions_here())) == is_here, directory
    store.abandon()


def test_what_is_left_of_a_deleted_topic_goes(host: SimulatedHost) -> None:
    """A crash between the record and the new names of the directories does not bring it back."""
    store = opened(host)
    topic = store.create_topic("t", 2)
    store.create_topic("stays", 1)
    store.metadata.delete_topic(topic)
    store.abandon()
    store = opened(host)
    assert list(store.topics_by_name) == ["stays"]
    assert [name for name in names(host) if not name.endswith("-delete")] == ["stays-0"]
    store.purge()
    assert names(host) == ["stays-0"]
    again = store.create_topic("t", 1)
    assert again.topic_id != topic.topic_id


# directories from elsewhere


def test_a_copy_of_partitions_alone_is_taken_in(host: SimulatedHost) -> None:
    """Ids come from the partitions; a real Kafka finds them in the metadata from then on."""
    store = opened(host)
    topic_id = store.create_topic("t", 2, {"retention.ms": "5"}).topic_id
    store.partition("t", 1).become_leader(7)
    fill(store, "t", 1)
    store.close()
    forget_metadata(host)
    store = opened(host)
    assert store.topics_by_name["t"].topic_id == topic_id
    image = image_of(host)
    assert image.topics["t"].topic_id == topic_id
    assert [record.leader_epoch for record in image.topics["t"].partitions.values()] == [0, 7]
    assert store.meta is not None
    directory_id = store.meta.directory_id
    assert {record.directories for record in image.topics["t"].partitions.values()} == {
        (directory_id,)
    }


def test_producer_ids_that_a_copy_may_know_are_skipped(host: SimulatedHost) -> None:
    """Where topics came from elsewhere the next block is drawn, and stays below 2^53."""
    store = opened(host)
    store.create_topic("t", 1)
    store.close()
    forget_metadata(host)
    store = opened(host)
    first = store.metadata.take_producer_ids()
    assert 1000 < first.start < 2**53
    assert first.start % 1000 == 0
    store.close()
    assert opened(host).metadata.take_producer_ids().start == first.stop


@pytest.mark.parametrize("cut_bytes", [1, 60])
def test_producer_ids_that_a_cut_metadata_log_told_of_are_skipped(
    host: SimulatedHost, cut_bytes: int
) -> None:
    """Its last record may have been about a block, so the next is drawn: after any later stop."""
    store = opened(host)
    store.metadata.take_producer_ids()
    store.close()
    log = host.fs.open(f"{DATA}/__cluster_metadata-0/{0:020}.log")
    log.truncate(log.size() - cut_bytes)
    store = opened(host)
    store.create_topic("t", 1)
    host.power_loss()
    first = opened(host).metadata.take_producer_ids()
    assert 1000 < first.start < 2**53
    host.power_loss()
    assert opened(host).metadata.take_producer_ids().start == first.stop


def test_a_partition_that_was_copied_into_a_directory(host: SimulatedHost) -> None:
    """What the metadata do not know is taken in: here it is no stray."""
    elsewhere = SimulatedHost(seed=5)
    KafkaStore(elsewhere, DATA).create_topic("guest", 1)
    guest = PartitionMetadata.read(elsewhere.fs, f"{DATA}/guest-0")
    assert guest is not None
    opened(host).close()
    host.fs.make_directory(f"{DATA}/guest-0")
    guest.write(host.fs, f"{DATA}/guest-0")
    store = opened(host)
    assert store.topics_by_name["guest"].topic_id == guest.topic_id
    assert image_of(host).topics["guest"].topic_id == guest.topic_id


def test_the_id_of_the_data_counts(host: SimulatedHost) -> None:
    """A topic whose directories all hold another id than the metadata is that other topic."""
    store = opened(host)
    old_id = store.create_topic("t", 2, {"retention.ms": "5"}).topic_id
    store.close()
    for index in range(2):
        PartitionMetadata(OTHER_ID).write(host.fs, f"{DATA}/t-{index}")
    store = opened(host)
    assert list(store.topics_by_id) == [OTHER_ID]
    image = image_of(host)
    assert image.topics["t"].topic_id == OTHER_ID
    assert image.removed_ids == {old_id}
    assert sorted(image.topics["t"].partitions) == [0, 1]
    assert image.configs_of(ResourceType.TOPIC, "t") == {"retention.ms": "5"}


def test_one_topic_has_one_id(host: SimulatedHost, caplog: pytest.LogCaptureFixture) -> None:
    """Where one directory of several holds another id, it is told that of its topic."""
    store = opened(host)
    topic_id = store.create_topic("t", 2).topic_id
    store.abandon()
    PartitionMetadata(OTHER_ID).write(host.fs, f"{DATA}/t-0")
    assert list(opened(host).topics_by_id) == [topic_id]
    assert PartitionMetadata.read(host.fs, f"{DATA}/t-0") == PartitionMetadata(topic_id)
    assert "t-0/partition.metadata: holds topic id AAAAAAAAAAAAAAAAAAAAeA; written" in caplog.text


def test_a_home_that_moved_is_said_anew(host: SimulatedHost) -> None:
    """With another directory id Kafka would look for partitions in a place that is gone."""
    store = opened(host)
    store.create_topic("t", 1)
    store.close()
    host.fs.remove(f"{DATA}/meta.properties")
    store = opened(host)
    assert store.meta is not None
    (partition,) = image_of(host).topics["t"].partitions.values()
    assert partition.directories == (store.meta.directory_id,)
    assert partition.partition_epoch == 1


def test_settings_of_a_newer_kafka_stay(
    host: SimulatedHost, caplog: pytest.LogCaptureFixture
) -> None:
    """They have no effect here, and are not taken back when others change."""
    store = opened(host)
    store.create_topic("t", 1, {"retention.ms": "5"})
    unknown = [
        ConfigRecord(2, "t", "from.the.future", "1"),
        ConfigRecord(2, "t", "segment.bytes", "14"),  # 3.9 allowed that
    ]
    store.metadata.log.append(unknown)
    store.close()
    store = opened(host)
    topic = store.topics_by_name["t"]
    assert topic.settings == {"retention.ms": "5"}
    assert caplog.text.count("it has no effect") == 2
    store.change_settings(topic, {"retention.ms": "6"})
    expected = {"retention.ms": "6", "from.the.future": "1", "segment.bytes": "14"}
    assert image_of(host).configs_of(ResourceType.TOPIC, "t") == expected


def test_partitions_of_other_nodes_and_disks_are_not_made_up(host: SimulatedHost) -> None:
    """What is not ours to have is not missing."""
    store = opened(host)
    assert store.meta is not None
    assert store.meta.directory_id is not None
    home = store.meta.directory_id
    store.create_topic("t", 1)
    a, b = bytes(15) + b"a", bytes(15) + b"b"
    store.metadata.log.append(
        [
            TopicRecord("other-node", a),
            PartitionRecord(0, a, (2, 3), (2, 3), 2, directories=(home, home)),
            TopicRecord("other-disk", b),
            PartitionRecord(0, b, (2, 1), (2,), 2, directories=(home, OTHER_ID)),
            PartitionRecord(1, b, (2, 1), (2,), 2, directories=(OTHER_ID, home)),
        ]
    )
    store.close()
    store = opened(host)
    found = {(name, index) for name, found in store.topics().items() for index in found}
    assert found == {("t", 0), ("other-disk", 1)}


# before there was a metadata log


def test_settings_from_before_are_taken_in(host: SimulatedHost) -> None:
    """``topic-settings.json`` is read once; then the log has it, and the file is gone."""
    store = opened(host)
    store.create_topic("t", 1)
    store.create_topic("u", 1)
    store.close()
    host.fs.remove_directory(METADATA)
    content = {"version": 1, "topics": {"t": {"retention.ms": "5"}}}
    write_file(host.fs, f"{DATA}/topic-settings.json", json.dumps(content).encode())
    reader = opened(host, is_writable=False)
    assert reader.topics_by_name["t"].settings == {"retention.ms": "5"}
    assert host.fs.exists(f"{DATA}/topic-settings.json")
    opened(host).close()
    assert not host.fs.exists(f"{DATA}/topic-settings.json")
    store = opened(host)
    assert store.topics_by_name["t"].settings == {"retention.ms": "5"}
    assert store.topics_by_name["u"].settings == {}


def zookeepers(host: SimulatedHost) -> bytes:
    """Leave a directory as a broker of ZooKeeper's time would; return the id of its topic."""
    store = opened(host)
    topic_id = store.create_topic("t", 2).topic_id
    store.close()
    forget_metadata(host)
    MetaProperties("cluster", 1, None, version=0).write(host.fs, DATA, 0)
    return topic_id


def test_a_directory_of_zookeepers_time_stays_one(host: SimulatedHost) -> None:
    """Served and filled it stays as its broker wants it, also without its metadata."""
    topic_id = zookeepers(host)
    before = read_file(host.fs, f"{DATA}/meta.properties")
    store = opened(host)
    fill(store, "t", 1)
    assert "transaction.version" not in store.metadata.image.features
    store.close()
    assert read_file(host.fs, f"{DATA}/meta.properties") == before
    assert not host.fs.exists(METADATA)
    store = opened(host)
    assert list(store.topics_by_id) == [topic_id]
    store.create_topic("new", 1, {"retention.ms": "5"})
    host.power_loss()
    assert sorted(image_of(host).topics) == ["new", "t"]
    assert opened(host).topics_by_name["new"].settings == {"retention.ms": "5"}


def test_a_release_makes_a_directory_of_zookeepers_time_kafkas_own(host: SimulatedHost) -> None:
    """Who names one wants a KRaft broker to start on it: the identity is that of KRaft then."""
    topic_id = zookeepers(host)
    opened(host, release=NEWEST).close()
    assert image_of(host).features == NEWEST.features
    meta = MetaProperties.read(host.fs, DATA)
    assert (meta.version, meta.node_id, meta.cluster_id) == (1, 1, "cluster")
    assert meta.directory_id is not None
    store = opened(host)
    assert list(store.topics_by_id) == [topic_id]
    fill(store, "t")


def test_foreign_directories_are_left_alone(host: SimulatedHost) -> None:
    """What is no data directory is refused before any metadata are written."""
    host.fs.make_directory(f"{DATA}/photos")
    with pytest.raises(StorageError):
        opened(host)
    assert [entry.name for entry in host.fs.list_directory(DATA)] == ["photos"]
