"""
Where tiered objects stand, as Kafka's ``LocalTieredStorage`` names them.

::

    LOCATION/kafka-tiered-storage/orders-0-hiUS4pi-QOSeMGZotiiymQ/
        00000000000000000031-kNunKvNWQ4m3rD0VxtjT9Q.log
        00000000000000000031-kNunKvNWQ4m3rD0VxtjT9Q.index
        00000000000000000031-kNunKvNWQ4m3rD0VxtjT9Q.timeindex
        00000000000000000031-kNunKvNWQ4m3rD0VxtjT9Q.txnindex                  where there is one
        00000000000000000031-kNunKvNWQ4m3rD0VxtjT9Q.snapshot                  producers at the end
        00000000000000000031-kNunKvNWQ4m3rD0VxtjT9Q.leader_epoch_checkpoint   epochs up to the end
    LOCATION/logstore-manifests/orders-0-hiUS4pi-QOSeMGZotiiymQ/
        00000000000000000031-kNunKvNWQ4m3rD0VxtjT9Q.json                      ours

A directory is topic, partition and topic id; a file is the segment's base offset and an id that
every copy gets anew. LOCATION is what Kafka is given as ``rsm.config.dir``. It stumbles over files
that it does not know, so manifests have a directory of their own.

Source: ``RemoteLogSegmentFileset``, ``RemoteTopicPartitionDirectory`` (tests of Kafka's storage).
"""

from __future__ import annotations

import re
from enum import Enum

import attrs

from logstore.segments.kafka.kafka_uuid import uuid_from_text, uuid_to_text

OBJECTS = "kafka-tiered-storage"
MANIFESTS = "logstore-manifests"
MANIFEST_SUFFIX = ".json"
#: of a sealed index nobody asks how large it may become
INDEX_BYTES_MAX = 2**31 - 8

_UUID = "[A-Za-z0-9_-]{22}"
_DIRECTORY = re.compile(rf"([A-Za-z0-9._-]+)-([0-9]{{1,10}})-({_UUID})")
_FILE = re.compile(rf"([0-9]{{20}})-({_UUID})(\.[a-z_]+)")


class ObjectKind(Enum):
    """The files of one segment's bundle; the value is the end of the name."""

    LOG = ".log"
    OFFSET_INDEX = ".index"
    TIME_INDEX = ".timeindex"
    TRANSACTION_INDEX = ".txnindex"
    PRODUCER_SNAPSHOT = ".snapshot"
    LEADER_EPOCHS = ".leader_epoch_checkpoint"

    @property
    def is_optional(self) -> bool:
        """Tell whether a bundle is whole without it."""
        return self is ObjectKind.TRANSACTION_INDEX


@attrs.frozen(order=True)
class RemotePartition:
    """A partition of which segments are stored; `topic_id` has 16 bytes."""

    topic: str
    partition: int
    topic_id: bytes

    @property
    def directory_name(self) -> str:
        """The name of its directory."""
        return f"{self.topic}-{self.partition}-{uuid_to_text(self.topic_id)}"

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@attrs.frozen
class SegmentId:
    """One copy of a segment: its base offset, and the 16 bytes that tell it from other copies."""

    start_offset: int
    uuid: bytes

    @property
    def stem(self) -> str:
        """What the names of its files begin with."""
        return f"{self.start_offset:020d}-{uuid_to_text(self.uuid)}"


def parse_directory(name: str) -> RemotePartition | None:
    """Return which partition a directory is of, None if it is none of these."""
    match = _DIRECTORY.fullmatch(name)
    if match is None:
        return None
    return RemotePartition(match[1], int(match[2]), uuid_from_text(match[3]))


def parse_object(name: str) -> tuple[SegmentId, ObjectKind] | None:
    """Return which segment's file this is and of what kind, None if it is none of these."""
    match = _FILE.fullmatch(name)
    if match is None or match[3] not in {kind.value for kind in ObjectKind}:
        return None
    return SegmentId(int(match[1]), uuid_from_text(match[2])), ObjectKind(match[3])
