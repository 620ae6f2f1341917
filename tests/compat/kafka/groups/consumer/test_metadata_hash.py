"""What a group subscribes to is hashed as Kafka hashes it."""

from __future__ import annotations

import uuid

from logstore.compat.kafka.groups.modern.cluster import TopicShape, metadata_hash

ID = uuid.UUID("01234567-89ab-cdef-fedc-ba9876543210")


def test_the_hash_that_kafka_has() -> None:
    """Where replicas have racks these count; the number is what hash4j makes of it."""
    assert metadata_hash({"t": TopicShape("t", ID, 2, "r1")}) == -307758724576718324
    assert metadata_hash({}) == 0


def test_everything_that_an_assignment_depends_on_counts() -> None:
    """Name, id, partitions and rack each make another number; the order of topics makes none."""
    shape = TopicShape("t", ID, 2)
    others = [
        shape, TopicShape("u", ID, 2), TopicShape("t", uuid.UUID(int=1), 2),
        TopicShape("t", ID, 3), TopicShape("t", ID, 2, "r"),
    ]  # fmt: skip
    assert len({metadata_hash({one.name: one}) for one in others}) == len(others)
    both = {"t": shape, "u": TopicShape("u", uuid.UUID(int=1), 1)}
    assert metadata_hash(both) == metadata_hash(dict(reversed(both.items())))
