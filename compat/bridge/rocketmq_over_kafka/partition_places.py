"""
Places of records for RocketMQ, which knows a message by one number, its physical offset.

    bit 62   set: no place of the commit log beside the data
    61..40   number of the partition, given out when it is first asked for, never again to another
    39..0    offset of the record

The numbers stand in a file beside the data; with it ids of messages stay what they were. There is
noted, too, which topics have records that carry a rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from logstore.errors import RejectedAppendError
from logstore.host import Host
from logstore.segments.rocketmq.tables.json_table import JsonTable

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.segments.kafka.partition import KafkaPartition

_MARK = 1 << 62
_OFFSET_BITS = 40
_OFFSET_MASK = (1 << _OFFSET_BITS) - 1
_NUMBER_MASK = (1 << 22) - 1


def is_place_of_record(physical_offset: int) -> bool:
    """Tell whether a physical offset names a record of a partition."""
    return physical_offset >= _MARK


class PartitionPlaces(JsonTable):
    """Numbers of partitions by topic id and index."""

    file_name: ClassVar[str] = "partitionPlaces.json"

    def __init__(self, host: Host, directory: str, kafka: Broker) -> None:
        super().__init__(host, directory)
        self._kafka = kafka
        self._partitions: list[tuple[bytes, int]] = []
        self._numbers: dict[tuple[bytes, int], int] = {}
        self._topics_with_rests: set[bytes] = set()

    def first_place(self, partition: KafkaPartition) -> int:
        """
        Return the place of offset 0 of a partition; that of others is so much further.

        Raises:
            RejectedAppendError: all numbers are given out.
            OSError: a new number cannot be noted.

        """
        key = self._kafka.topics[partition.topic].topic_id, partition.index
        number = self._numbers.get(key)
        if number is None:
            number = len(self._partitions)
            if number > _NUMBER_MASK:
                raise RejectedAppendError(f"{partition.topic}: {number} partitions had places")
            self._partitions.append(key)
            self._numbers[key] = number
            self.persist()
        return _MARK | number << _OFFSET_BITS

    def find(self, physical_offset: int) -> tuple[KafkaPartition, int] | None:
        """Return partition and offset of a place; None if the partition is no more."""
        number = (physical_offset & ~_MARK) >> _OFFSET_BITS
        if number >= len(self._partitions):
            return None
        topic_id, index = self._partitions[number]
        topic = self._kafka.topic_by_id(topic_id)
        partition = None if topic is None else topic.partitions.get(index)
        return None if partition is None else (partition, physical_offset & _OFFSET_MASK)

    # rests

    def has_rests(self, topic_id: bytes) -> bool:
        """Tell whether records of a topic may carry the rest of a message."""
        return topic_id in self._topics_with_rests

    def note_rests(self, topic_id: bytes) -> None:
        """Note, durably and before the first, that records of a topic will. Raises OSError."""
        if topic_id not in self._topics_with_rests:
            self._topics_with_rests.add(topic_id)
            self.persist()

    # the file

    def to_json(self) -> dict[Any, Any]:
        """Return the content as the file has it."""
        return {
            "partitions": [f"{topic_id.hex()}-{index}" for topic_id, index in self._partitions],
            "topicsWithRests": sorted(topic_id.hex() for topic_id in self._topics_with_rests),
        }

    def take_json(self, content: dict[Any, Any]) -> None:
        """Replace the content by that of a file."""
        found: list[tuple[bytes, int]] = []
        for text in content.get("partitions") or ():
            topic_id, _, index = str(text).partition("-")
            found.append((bytes.fromhex(topic_id), int(index)))
        self._partitions = found
        self._numbers = {key: number for number, key in enumerate(found)}
        names = content.get("topicsWithRests") or ()
        self._topics_with_rests = {bytes.fromhex(str(name)) for name in names}
