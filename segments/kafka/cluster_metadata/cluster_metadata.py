"""
The metadata of a data directory as its store uses them: who a topic is, and what changes of it.

Where there is a metadata log it knows best. What stands in the directory all the same, because a
directory was copied there or is from before KRaft, is taken in: a real Kafka that starts here later
knows it then, and puts nothing aside as stray.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import attrs

from logstore.host import Host
from logstore.segments.kafka.clean_shutdown import NO_BROKER_EPOCH
from logstore.segments.kafka.cluster_metadata.image import ResourceType, TopicImage
from logstore.segments.kafka.cluster_metadata.metadata_log import MetadataLog
from logstore.segments.kafka.cluster_metadata.records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from logstore.segments.kafka.cluster_metadata.release import (
    ELIGIBLE_LEADER_REPLICAS,
    MetadataVersion,
)
from logstore.segments.kafka.config import parse_topic_configs
from logstore.segments.kafka.config_keys import ConfigError
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.topic import Topic

_log = logging.getLogger(__name__)

#: how many producer ids a broker gets at a time (``ProducerIdsBlock``)
PRODUCER_IDS_PER_BLOCK = 1000

#: in place of a directory's id: not known, from before there were any; not decided yet
_MIGRATING = bytes(16)
_UNASSIGNED = bytes(15) + b"\1"


class Home(NamedTuple):
    """Where partitions of this store are: on which node, in which of its directories."""

    node_id: int
    directory_id: bytes = _MIGRATING


class ClusterMetadata:
    """
    The metadata in the data directory `path`, whose partitions are at `home`.

    `release` is the metadata version of a directory that has none yet, maybe because it
    `is_upgraded` from ZooKeeper's time, and `min_insync_replicas` what its cluster starts with
    where eligible leader replicas are counted. Changes are durable when a method returns.

    Raises, on opening:
        CorruptFileError: they cannot be understood.
    """

    def __init__(
        self,
        host: Host,
        path: str,
        home: Home,
        *,
        release: MetadataVersion,
        is_upgraded: bool = False,
        min_insync_replicas: str = "1",
        is_writable: bool = True,
    ) -> None:
        self.home = home
        self._rng = host.rng
        #: topics that are taken in with the next change
        self._waiting: list[Topic] = []
        self.log = MetadataLog(
            host,
            path,
            home.node_id,
            release=release,
            is_upgraded=is_upgraded,
            min_insync_replicas=min_insync_replicas,
            is_writable=is_writable,
        )
        self.image = self.log.image

    @property
    def fixes_min_insync_replicas(self) -> bool:
        """Tell whether ``min.insync.replicas`` is the cluster's alone (KIP-966)."""
        return bool(self.image.features.get(ELIGIBLE_LEADER_REPLICAS))

    @property
    def broker_epoch(self) -> int:
        """The epoch under which a real broker was registered last; -1 without one."""
        return self.image.broker_epochs.get(self.home.node_id, NO_BROKER_EPOCH)

    # what is known

    def topic_id_of(self, name: str, found: Iterable[bytes]) -> bytes | None:
        """
        Return the id of a topic whose directories hold the ids `found`; None if nobody knows.

        An id that is in a directory counts more than one that is in none: these are the data.
        """
        ids = list(found)
        topic = self.image.topics.get(name)
        if topic is not None and (not ids or topic.topic_id in ids):
            return topic.topic_id
        return ids[0] if ids else None

    def was_deleted(self, topic_id: bytes) -> bool:
        """Tell whether a topic was deleted, so that what is left of it may go."""
        return topic_id in self.image.removed_ids

    @property
    def were_there(self) -> bool:
        """Tell whether the directory had metadata when it was opened."""
        return self.log.was_there

    def has_partition(self, name: str, number: int) -> bool:
        """Tell whether a partition was ever spoken of, here or anywhere, and is not gone."""
        topic = self.image.topics.get(name)
        return topic is not None and number in topic.partitions

    def partition_count_of(self, name: str) -> int:
        """Return how many partitions the cluster knows of a topic, wherever they are."""
        topic = self.image.topics.get(name)
        return 0 if topic is None else max(topic.partitions, default=-1) + 1

    def settings_of(self, name: str) -> dict[str, str]:
        """Return a topic's own settings, without those that a newer Kafka may know."""
        found = self.image.configs_of(ResourceType.TOPIC, name)
        for key, value in list(found.items()):
            try:
                parse_topic_configs({key: value})
            except ConfigError as error:
                _log.warning("topic %s: %s; it has no effect", name, error)
                del found[key]
        return found

    def partitions_here(self) -> Iterator[tuple[TopicImage, int]]:
        """Yield every partition that must be in this directory, by topic."""
        for topic in self.image.topics.values():
            for number, record in topic.partitions.items():
                if self._is_here(record):
                    yield topic, number

    def _is_here(self, record: PartitionRecord) -> bool:
        if self.home.node_id not in record.replicas:
            return False
        directory = self._directory_in(record)
        if directory not in (_MIGRATING, _UNASSIGNED):
            return directory == self.home.directory_id
        # The node has not said yet in which of its directories it is.
        return len(self.image.log_directories.get(self.home.node_id, ())) <= 1

    def _directory_in(self, record: PartitionRecord) -> bytes:
        """Return in which directory a record says that our replica is."""
        place = record.replicas.index(self.home.node_id)
        return record.directories[place] if place < len(record.directories) else _MIGRATING

    # what is there all the same

    def adopt(self, topics: Iterable[Topic], *, is_put_off: bool = False) -> None:
        """
        Take in what the metadata lack of `topics`; `is_put_off` does it with the first change.

        So a directory that belongs to a broker of ZooKeeper's time stays as it is while nobody
        changes its topics.
        """
        self._waiting = list(topics)
        if not is_put_off:
            self._append([])

    @property
    def is_waiting(self) -> bool:
        """Tell whether something is put off."""
        return bool(self._waiting)

    def epoch_to_lead(self, topic: Topic, partition: KafkaPartition) -> int:
        """Return the leader epoch after an absence: one is that in which nobody leads."""
        found = self.image.topics.get(topic.name)
        known = None if found is None else found.partitions.get(partition.index)
        if known is None:
            return partition.leader_epoch + 2
        newest = max(known.leader_epoch, partition.leader_epoch)
        return newest + (2 if known.leader == self.home.node_id else 1)

    def _append(self, records: Iterable[MetadataRecord]) -> None:
        """Append records, and in front of them what is put off."""
        missing = [record for topic in self._waiting for record in self._missing(topic)]
        ids = self._next_block(missing)
        self.log.append([*missing, *ids, *records])
        self._waiting = []

    def _next_block(self, missing: list[MetadataRecord]) -> Iterator[ProducerIdsRecord]:
        """
        Yield what skips the producer ids that topics know and the metadata may not.

        So it is with topics from elsewhere, and where the metadata log was cut short. Were one
        given out a second time, its first batch would pass for a retry of the other's:
        acknowledged, and lost. Nothing on disk tells of ids whose producer has not written yet, so
        a block is drawn. Below 2^53 every client can represent it.
        """
        is_cut_short, self.log.is_cut_short = self.log.is_cut_short, False
        if is_cut_short or any(isinstance(record, TopicRecord) for record in missing):
            drawn = self._rng.getrandbits(42) * PRODUCER_IDS_PER_BLOCK
            if drawn > self.image.next_producer_id:
                yield ProducerIdsRecord(self.home.node_id, self.broker_epoch, drawn)

    def _missing(self, topic: Topic) -> Iterator[MetadataRecord]:
        known = self.image.topics.get(topic.name)
        if known is not None and known.topic_id != topic.topic_id:
            _log.warning("topic %s: its directories have another id than the metadata", topic.name)
            yield RemoveTopicRecord(known.topic_id)
            known = None
        if known is None:
            yield from self._creation(topic)
            return
        settings = self.image.configs_of(ResourceType.TOPIC, topic.name)
        yield from _config_changes(
            ResourceType.TOPIC, topic.name, settings, settings | topic.settings
        )
        for partition in topic.partitions.values():
            before = known.partitions.get(partition.index)
            if before is None:
                yield self._partition(topic, partition)
            elif before.leader_epoch < partition.leader_epoch or not self._is_at_home(before):
                yield self._corrected(before, partition)

    def _is_at_home(self, record: PartitionRecord) -> bool:
        if self.home.node_id not in record.replicas:
            return False
        if self.image.metadata_version.partition_record_version == 0:
            return True
        return self._directory_in(record) == self.home.directory_id

    def _corrected(self, before: PartitionRecord, partition: KafkaPartition) -> PartitionRecord:
        """Say anew what a copied directory brought along: an epoch, or a home of its own."""
        node_id = self.home.node_id
        replicas = before.replicas if node_id in before.replicas else (node_id,)
        homes = dict(zip(before.replicas, before.directories, strict=False))
        homes[node_id] = self.home.directory_id
        return attrs.evolve(
            before,
            replicas=replicas,
            directories=tuple(homes.get(replica, _MIGRATING) for replica in replicas),
            isr=(node_id,),
            leader=node_id,
            leader_epoch=max(before.leader_epoch, partition.leader_epoch),
            partition_epoch=before.partition_epoch + 1,
            eligible_leader_replicas=None,
            last_known_elr=None,
        )

    # changes

    def create_topic(self, topic: Topic) -> None:
        """Say that the topic is there, with its settings and partitions."""
        self._append(self._creation(topic))

    def _creation(self, topic: Topic) -> Iterator[MetadataRecord]:
        yield TopicRecord(topic.name, topic.topic_id)
        yield from _config_changes(ResourceType.TOPIC, topic.name, {}, topic.settings)
        for partition in topic.partitions.values():
            yield self._partition(topic, partition)

    def _partition(self, topic: Topic, partition: KafkaPartition) -> PartitionRecord:
        node_id = self.home.node_id
        return PartitionRecord(
            partition_id=partition.index,
            topic_id=topic.topic_id,
            replicas=(node_id,),
            isr=(node_id,),
            leader=node_id,
            leader_epoch=partition.leader_epoch,
            directories=(self.home.directory_id,),
        )

    def add_partitions(self, topic: Topic, start: int) -> None:
        """Say that the topic's partitions from `start` on are there, too."""
        self._append(
            [
                self._partition(topic, partition)
                for index, partition in topic.partitions.items()
                if index >= start
            ]
        )

    def delete_topic(self, topic: Topic) -> None:
        """Say that the topic is gone; whatever is left of it may go from now on."""
        self._append([RemoveTopicRecord(topic.topic_id)])

    def change_settings(self, topic: Topic, settings: Mapping[str, str]) -> None:
        """Say that `settings` take the place of the topic's own."""
        self._append(_config_changes(ResourceType.TOPIC, topic.name, topic.settings, settings))

    # brokers

    def broker_settings(self, name: str) -> dict[str, str]:
        """Return the settings of a broker that were changed while it ran; "" is every broker."""
        return self.image.configs_of(ResourceType.BROKER, name)

    def change_broker_settings(
        self, name: str, before: Mapping[str, str], after: Mapping[str, str]
    ) -> None:
        """Say that a broker's settings are `after`, and were `before`; "" is every broker."""
        self._append(_config_changes(ResourceType.BROKER, name, before, after))

    # features

    @property
    def features_epoch(self) -> int:
        """Since when the features have the levels that they have; grows with every change."""
        return self.log.features_epoch

    def change_features(self, levels: Mapping[str, int]) -> None:
        """Say that features have these levels from now on; 0 turns one off."""
        self._append(FeatureLevelRecord(name, level) for name, level in levels.items())

    # groups and subscriptions to clients' metrics

    def settings_of_resource(self, kind: int, name: str) -> dict[str, str]:
        """Return the settings that a group or a subscription has of its own."""
        return self.image.configs_of(ResourceType(kind), name)

    def resources_with_settings(self, kind: int) -> list[str]:
        """Return the names of one kind that have settings of their own."""
        return [name for of_kind, name in self.image.configs if of_kind == kind]

    def change_resource(self, kind: int, name: str, after: Mapping[str, str]) -> None:
        """Say that the settings of a group or a subscription are `after`."""
        before = self.settings_of_resource(kind, name)
        self._append(_config_changes(ResourceType(kind), name, before, after))

    # users

    def change_users(
        self,
        removed: Iterable[RemoveUserScramCredentialRecord],
        known: Iterable[UserScramCredentialRecord],
    ) -> None:
        """Say what is forgotten of users' passwords, and what is known from now on."""
        self._append([*removed, *known])

    # access control and client quotas

    def change_access(self, records: Iterable[MetadataRecord]) -> None:
        """Say who may do what, or how much, from now on, and what of it holds no more."""
        self._append(records)

    # delegation tokens

    def change_tokens(self, records: Iterable[MetadataRecord]) -> None:
        """Say which tokens there are from now on, until when, and which are there no more."""
        self._append(records)

    # producers

    def take_producer_ids(self) -> range:
        """Return producer ids that nobody ever had, and that nobody else will get."""
        self._append([])  # what is put off may draw a block
        start = self.image.next_producer_id
        end = start + PRODUCER_IDS_PER_BLOCK
        self._append([ProducerIdsRecord(self.home.node_id, self.broker_epoch, end)])
        return range(start, end)

    def lead(self) -> tuple[int, int]:
        """Return epoch and end of the metadata log as :meth:`MetadataLog.lead` does."""
        self._append([])  # leading cuts off what cannot be read, and it is not known any more then
        return self.log.lead()

    def close(self) -> None:
        """Let go of the files in good order."""
        self.log.close()

    def abandon(self) -> None:
        """Let go of the files as they are."""
        self.log.abandon()


def _config_changes(
    kind: ResourceType, name: str, before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[ConfigRecord]:
    """Yield what makes `after` of the settings `before`, in the order of `after`."""
    for key, value in after.items():
        if before.get(key) != value:
            yield ConfigRecord(kind, name, key, value)
    for key in before:
        if key not in after:
            yield ConfigRecord(kind, name, key, None)
