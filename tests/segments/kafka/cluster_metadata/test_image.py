"""The image: what all metadata records together say."""

from __future__ import annotations

import attrs
import pytest

from logstore.segments.kafka.cluster_metadata.image import MetadataImage, ResourceType
from logstore.segments.kafka.cluster_metadata.records import (
    AbortTransactionRecord,
    AnyRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    OtherRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)

A, B = bytes(15) + b"a", bytes(15) + b"b"
DIRECTORY = bytes(15) + b"d"
PARTITION = PartitionRecord(0, A, (1,), (1,), 1, 4, 7, (DIRECTORY,))


def image_of(*records: AnyRecord) -> MetadataImage:
    """Return the image after these records."""
    image = MetadataImage()
    for record in records:
        image.apply(record)
    return image


def test_topics_and_partitions() -> None:
    """A topic is found by name and by id, with its partitions by number."""
    image = image_of(TopicRecord("a", A), PARTITION, attrs.evolve(PARTITION, partition_id=1))
    assert image.topics["a"] is image.topics_by_id[A]
    assert list(image.topics["a"].partitions) == [0, 1]
    assert image.topics["a"].partitions[0] == PARTITION


def test_a_removed_topic_takes_its_settings_along() -> None:
    """Its id is remembered as removed, until a record brings it back."""
    image = image_of(
        TopicRecord("a", A),
        ConfigRecord(ResourceType.TOPIC, "a", "retention.ms", "5"),
        PARTITION,
        RemoveTopicRecord(A),
    )
    assert (image.topics, image.topics_by_id, image.configs) == ({}, {}, {})
    assert image.removed_ids == {A}
    image.apply(TopicRecord("a", B))
    assert image.topics["a"].topic_id == B
    assert image.removed_ids == {A}
    image.apply(TopicRecord("c", A))
    assert image.removed_ids == set()


def test_a_late_removal_does_not_hit_the_new_topic() -> None:
    """Topics are removed by id: one of the same name that came after stays, with its settings."""
    image = image_of(
        TopicRecord("a", A),
        TopicRecord("a", B),
        ConfigRecord(ResourceType.TOPIC, "a", "retention.ms", "5"),
        RemoveTopicRecord(A),
    )
    assert image.topics["a"].topic_id == B
    assert image.configs_of(ResourceType.TOPIC, "a") == {"retention.ms": "5"}


def test_settings_are_set_and_taken_back() -> None:
    """Null takes a setting away; topics, this broker and every broker are kept apart."""
    image = image_of(
        ConfigRecord(ResourceType.TOPIC, "1", "a", "topic"),
        ConfigRecord(ResourceType.BROKER, "1", "a", "broker"),
        ConfigRecord(ResourceType.BROKER, "", "a", "every broker"),
        ConfigRecord(ResourceType.TOPIC, "1", "b", "x"),
        ConfigRecord(ResourceType.TOPIC, "1", "b", None),
        ConfigRecord(ResourceType.TOPIC, "2", "b", None),
    )
    assert image.configs_of(ResourceType.TOPIC, "1") == {"a": "topic"}
    assert image.configs_of(ResourceType.BROKER, "1") == {"a": "broker"}
    assert image.configs_of(ResourceType.BROKER, "") == {"a": "every broker"}
    assert image.configs_of(ResourceType.TOPIC, "2") == {}
    image.configs_of(ResourceType.TOPIC, "1")["a"] = "a copy"
    assert image.configs_of(ResourceType.TOPIC, "1") == {"a": "topic"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (PartitionChangeRecord(0, A), attrs.evolve(PARTITION, partition_epoch=8)),
        (
            PartitionChangeRecord(0, A, isr=(), leader=-1, eligible_leader_replicas=(1,)),
            attrs.evolve(
                PARTITION,
                isr=(),
                leader=-1,
                leader_epoch=5,
                partition_epoch=8,
                eligible_leader_replicas=(1,),
            ),
        ),
        (
            PartitionChangeRecord(
                0, A, replicas=(1, 2), directories=(B, A), leader=1, leader_recovery_state=1
            ),
            attrs.evolve(
                PARTITION,
                replicas=(1, 2),
                directories=(B, A),
                leader_epoch=5,
                partition_epoch=8,
                leader_recovery_state=1,
            ),
        ),
    ],
)
def test_a_change_of_a_partition(change: PartitionChangeRecord, expected: PartitionRecord) -> None:
    """Every change counts the partition's epoch up, every election its leader's, even its own."""
    image = image_of(TopicRecord("a", A), PARTITION, change)
    assert image.topics["a"].partitions[0] == expected


def test_what_is_of_nothing_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    """A partition without its topic, a change without its partition: a warning, no error."""
    image = image_of(PARTITION, PartitionChangeRecord(0, A), RemoveTopicRecord(B))
    assert image.topics == {}
    assert len(caplog.records) == 3


def test_features_and_their_level() -> None:
    """Level 0 turns a feature off; without a metadata version the oldest forms are written."""
    image = image_of(FeatureLevelRecord("group.version", 1))
    assert image.metadata_version.partition_record_version == 0
    image.apply(FeatureLevelRecord("metadata.version", 30))
    assert image.metadata_version.name == "4.3-IV0"
    image.apply(FeatureLevelRecord("group.version", 0))
    assert image.features == {"metadata.version": 30}


def test_brokers_and_producer_ids() -> None:
    """The newest registration counts, and the first producer id that nobody has."""
    image = image_of(
        RegisterBrokerRecord(1, A, 11),
        RegisterBrokerRecord(2, A, 12),
        RegisterBrokerRecord(1, B, 29),
        RegisterBrokerRecord(3, A, 30, log_dirs=(A,)),
        BrokerRegistrationChangeRecord(3, 30, -1),
        BrokerRegistrationChangeRecord(1, 29, log_dirs=(A, B)),
        UnregisterBrokerRecord(2, 12),
        ProducerIdsRecord(1, 11, 1000),
        ProducerIdsRecord(1, 29, 2000),
    )
    assert image.broker_epochs == {1: 29, 3: 30}
    assert image.log_directories == {1: (A, B), 3: (A,)}
    assert image.next_producer_id == 2000


def test_a_transaction_holds_as_a_whole() -> None:
    """Its records count once its end is there, and never if it is aborted or not ended."""
    begin, topic = BeginTransactionRecord(), TopicRecord("a", A)
    image = image_of(begin, topic, PARTITION)
    assert image.is_in_transaction
    assert image.topics == {}
    image.apply(EndTransactionRecord())
    assert not image.is_in_transaction
    assert list(image.topics["a"].partitions) == [0]
    aborted = image_of(begin, topic, AbortTransactionRecord("Controller failover"))
    assert not aborted.is_in_transaction
    assert aborted.topics == {}


def test_records_of_no_interest() -> None:
    """Signs of life and kinds that are not looked into change nothing."""
    image = image_of(NoOpRecord(), OtherRecord(10, 0, b"\1\x0a\0"))
    assert vars(image).keys() == vars(MetadataImage()).keys()
    assert (image.topics, image.configs, image.features) == ({}, {}, {})
