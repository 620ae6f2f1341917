"""
Several data directories of one cluster, read as one store.

They are the ``log.dirs`` of a node, or directories of some nodes or of all. Of a partition that
more than one of them has, the copy counts that Kafka could have elected as its leader: that of the
latest epoch, of these the longest, of these the first that was named.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from logstore.errors import ForeignDirectoryError
from logstore.host import Host
from logstore.segments.kafka.directory_name import METADATA_DIRECTORY
from logstore.segments.kafka.kafka_uuid import uuid_to_text
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.store import KafkaStore, StoreOptions
from logstore.segments.kafka.topic import Topic

_log = logging.getLogger(__name__)
_READING = StoreOptions(is_writable=False)


class GatheredStore(KafkaStore):
    """
    The topics of `directories` together; nothing is written or locked.

    What topics are set to, and which there are, the first directory tells that has the cluster's
    metadata. `directory` is all names with commas between.

    Raises, on opening:
        ForeignDirectoryError: one is no data directory, or is of another cluster, or two of them
            have topics of one name that are not the same.
        CorruptFileError: a file in it cannot be understood.
    """

    def __init__(self, host: Host, directories: Iterable[str]) -> None:
        named = list(dict.fromkeys(directories))
        ordered = sorted(
            named, key=lambda path: not host.fs.is_directory(f"{path}/{METADATA_DIRECTORY}")
        )
        super().__init__(host, ordered[0], _READING)
        self._others: list[KafkaStore] = []
        #: by topic and number: which of `named` a partition was taken from
        self._owners = {(p.topic, p.index): named.index(ordered[0]) for p in self.partitions()}
        try:
            for path in ordered[1:]:
                other = KafkaStore(host, path, _READING)
                self._others.append(other)
                self._check_cluster(other)
                self._take_in(other, named.index(path))
        except BaseException:
            self.close()
            raise
        self.was_clean = self.was_clean and all(other.was_clean for other in self._others)
        self.directory = ",".join(named)

    def _check_cluster(self, other: KafkaStore) -> None:
        metas = [one.meta for one in (self, other) if one.meta is not None and one.meta.cluster_id]
        if len({meta.cluster_id for meta in metas}) > 1:
            first, second = (meta.cluster_id for meta in metas)
            raise ForeignDirectoryError(
                f"{other.directory}: is of cluster {second}, and {self.directory} of {first}; name "
                "directories of one cluster"
            )

    def _take_in(self, other: KafkaStore, place: int) -> None:
        for found in other.topics_by_name.values():
            topic = self.topics_by_name.get(found.name)
            if topic is None:
                settings = found.settings | self.metadata.settings_of(found.name)
                topic = Topic(found.name, found.topic_id, settings)
                self._enter(topic)
            elif topic.topic_id != found.topic_id:
                self._refuse(topic, found, other)
                continue
            topic.known_count = max(topic.known_count, found.known_count)
            for partition in found.partitions.values():
                self._choose(topic, partition, place)

    def _refuse(self, topic: Topic, found: Topic, other: KafkaStore) -> None:
        """Pass over what is left of a topic that was deleted; without metadata nobody knows."""
        text = (
            f"{other.directory}: its topic {found.name} has the id {uuid_to_text(found.topic_id)}, "
            f"and not {uuid_to_text(topic.topic_id)}"
        )
        if self.metadata.image.topics.get(topic.name) is None:
            raise ForeignDirectoryError(
                f"{text}: of two topics one was deleted; leave that one out"
            )
        _log.warning("%s: it was deleted, and is passed over", text)

    def _choose(self, topic: Topic, partition: KafkaPartition, place: int) -> None:
        index = partition.index
        before = topic.partitions.get(index)
        if before is not None:
            ours, theirs = (
                (one.leader_epochs.latest_epoch, one.end_offset, -of)
                for one, of in ((before, self._owners[topic.name, index]), (partition, place))
            )
            if theirs < ours:
                partition.drop()
                return
            before.drop()
        topic.partitions[index] = partition
        self._owners[topic.name, index] = place

    def abandon(self) -> None:
        """Let go of all directories."""
        super().abandon()
        for other in self._others:
            other.abandon()
