"""
What the metadata say as a whole: the fold over all records of a snapshot and of the log behind it.

Source: ``MetadataImage``, ``MetadataDelta``, ``PartitionRegistration``, ``MetadataBatchLoader``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import attrs

from logstore.segments.kafka.cluster_metadata.records import (
    NO_LEADER_CHANGE,
    AbortTransactionRecord,
    AnyRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
)
from logstore.segments.kafka.cluster_metadata.release import METADATA_VERSION, MetadataVersion

if TYPE_CHECKING:
    from logstore.segments.kafka.cluster_metadata.access_records import (
        AccessControlEntryRecord,
        ClientQuotaRecord,
        QuotaEntity,
        RemoveAccessControlEntryRecord,
    )
    from logstore.segments.kafka.cluster_metadata.token_records import (
        DelegationTokenRecord,
        RemoveDelegationTokenRecord,
    )

_log = logging.getLogger(__name__)
#: the least level: logs from before there were any
_NO_LEVEL = MetadataVersion(0)


class ResourceType(IntEnum):
    """What a setting is of. Source: ``ConfigResource.Type``."""

    TOPIC = 2
    BROKER = 4
    CLIENT_METRICS = 16
    GROUP = 32


@attrs.define(eq=False)
class TopicImage:
    """One topic: its partitions by number, each with all that the last records left of it."""

    name: str
    topic_id: bytes
    partitions: dict[int, PartitionRecord] = attrs.field(factory=dict[int, PartitionRecord])


class MetadataImage:
    """
    All topics, settings and features after the records that were applied.

    `removed_ids` are the topics that these records deleted: whatever is left of them is rubbish.
    `broker_epochs` are those of the brokers that are registered, `scram` what is known of users'
    passwords by mechanism and name.
    """

    def __init__(self) -> None:
        self.topics: dict[str, TopicImage] = {}
        self.topics_by_id: dict[bytes, TopicImage] = {}
        self.removed_ids: set[bytes] = set()
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.features: dict[str, int] = {}
        self.broker_epochs: dict[int, int] = {}
        #: by broker: the ids of its data directories, as far as it has told them
        self.log_directories: dict[int, tuple[bytes, ...]] = {}
        self.scram: dict[tuple[int, str], UserScramCredentialRecord] = {}
        self.next_producer_id = 0
        #: who may do what, by the entry's id
        self.access_entries: dict[bytes, AccessControlEntryRecord] = {}
        #: limits by name, by entity
        self.client_quotas: dict[QuotaEntity, dict[str, float]] = {}
        #: by their ids
        self.delegation_tokens: dict[str, DelegationTokenRecord] = {}
        #: the records of a transaction that has not ended; None outside of one
        self._pending: list[AnyRecord] | None = None
        self._changes: dict[type[Any], Callable[[Any], None]] = {
            TopicRecord: self._topic,
            RemoveTopicRecord: self._remove_topic,
            PartitionRecord: self._partition,
            PartitionChangeRecord: self._change_partition,
            ConfigRecord: self._config,
            FeatureLevelRecord: self._feature,
            ProducerIdsRecord: self._producer_ids,
            RegisterBrokerRecord: self._register_broker,
            UnregisterBrokerRecord: self._unregister_broker,
            BrokerRegistrationChangeRecord: self._change_registration,
            UserScramCredentialRecord: self._scram,
            RemoveUserScramCredentialRecord: self._remove_scram,
        }
        #: the same of kinds that stand apart, which must not be imported for that: by their keys
        self._changes_apart: dict[int, Callable[[Any], None]] = {
            10: self._delegation_token,
            14: self._client_quota,
            18: self._access_entry,
            19: self._remove_access_entry,
            26: self._remove_delegation_token,
        }

    @property
    def metadata_version(self) -> MetadataVersion:
        """The metadata version that the records are written in."""
        level = self.features.get(METADATA_VERSION)
        return _NO_LEVEL if level is None else MetadataVersion(level)

    @property
    def is_in_transaction(self) -> bool:
        """Tell whether a transaction has begun whose end was not seen; its records do not count."""
        return self._pending is not None

    def configs_of(self, kind: ResourceType, name: str) -> dict[str, str]:
        """Return a copy of the settings of a topic or broker; "" is every broker."""
        return dict(self.configs.get((kind, name), {}))

    def apply(self, record: AnyRecord) -> None:
        """Take in the next record."""
        if isinstance(record, BeginTransactionRecord):
            self._pending = []
        elif isinstance(record, AbortTransactionRecord):
            self._pending = None
        elif isinstance(record, EndTransactionRecord):
            pending, self._pending = self._pending or [], None
            for held in pending:
                self.apply(held)
        elif self._pending is not None:
            self._pending.append(record)
        else:
            change = self._changes.get(type(record))
            if change is None and isinstance(record, MetadataRecord):
                change = self._changes_apart.get(record.API_KEY)
            if change is not None:
                change(record)

    # one kind of record each

    def _topic(self, record: TopicRecord) -> None:
        topic = TopicImage(record.name, record.topic_id)
        previous = self.topics.get(record.name)
        if previous is not None:  # no controller writes that; the newer one counts
            self.topics_by_id.pop(previous.topic_id, None)
        self.topics[record.name] = topic
        self.topics_by_id[record.topic_id] = topic
        self.removed_ids.discard(record.topic_id)

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        self.removed_ids.add(record.topic_id)
        topic = self.topics_by_id.pop(record.topic_id, None)
        if topic is None:
            _log.warning("metadata: topic %s is removed, but was never there", record.topic_id)
            return
        if self.topics.get(topic.name) is topic:
            del self.topics[topic.name]
            self.configs.pop((ResourceType.TOPIC, topic.name), None)

    def _partition(self, record: PartitionRecord) -> None:
        topic = self.topics_by_id.get(record.topic_id)
        if topic is None:
            _log.warning("metadata: partition %s is of no topic", record)
            return
        topic.partitions[record.partition_id] = record

    def _change_partition(self, record: PartitionChangeRecord) -> None:
        topic = self.topics_by_id.get(record.topic_id)
        before = None if topic is None else topic.partitions.get(record.partition_id)
        if topic is None or before is None:
            _log.warning("metadata: %s changes a partition that was never there", record)
            return
        changed: dict[str, Any] = {"partition_epoch": before.partition_epoch + 1}
        if record.leader != NO_LEADER_CHANGE:
            changed |= {"leader": record.leader, "leader_epoch": before.leader_epoch + 1}
        if record.leader_recovery_state >= 0:
            changed["leader_recovery_state"] = record.leader_recovery_state
        for name in _REPLACED:
            value = getattr(record, name)
            if value is not None:
                changed[name] = value
        topic.partitions[record.partition_id] = attrs.evolve(before, **changed)

    def _config(self, record: ConfigRecord) -> None:
        key = record.resource_type, record.resource_name
        settings = self.configs.setdefault(key, {})
        if record.value is None:
            settings.pop(record.name, None)
        else:
            settings[record.name] = record.value
        if not settings:
            del self.configs[key]

    def _feature(self, record: FeatureLevelRecord) -> None:
        if record.feature_level:
            self.features[record.name] = record.feature_level
        else:
            self.features.pop(record.name, None)

    def _producer_ids(self, record: ProducerIdsRecord) -> None:
        self.next_producer_id = record.next_producer_id

    def _register_broker(self, record: RegisterBrokerRecord) -> None:
        self.broker_epochs[record.broker_id] = record.broker_epoch
        self.log_directories[record.broker_id] = record.log_dirs

    def _change_registration(self, record: BrokerRegistrationChangeRecord) -> None:
        if record.log_dirs:  # else they are as they were
            self.log_directories[record.broker_id] = record.log_dirs

    def _unregister_broker(self, record: UnregisterBrokerRecord) -> None:
        self.broker_epochs.pop(record.broker_id, None)
        self.log_directories.pop(record.broker_id, None)

    def _scram(self, record: UserScramCredentialRecord) -> None:
        self.scram[record.mechanism, record.name] = record

    def _remove_scram(self, record: RemoveUserScramCredentialRecord) -> None:
        self.scram.pop((record.mechanism, record.name), None)

    def _access_entry(self, record: AccessControlEntryRecord) -> None:
        self.access_entries[record.entry_id] = record

    def _remove_access_entry(self, record: RemoveAccessControlEntryRecord) -> None:
        if self.access_entries.pop(record.entry_id, None) is None:
            _log.warning("metadata: %s removes what was never there", record)

    def _client_quota(self, record: ClientQuotaRecord) -> None:
        entity = tuple(sorted(record.entity, key=_type_of))
        limits = self.client_quotas.setdefault(entity, {})
        if record.remove:
            limits.pop(record.key, None)
        else:
            limits[record.key] = record.value
        if not limits:
            del self.client_quotas[entity]

    def _delegation_token(self, record: DelegationTokenRecord) -> None:
        self.delegation_tokens[record.token_id] = record

    def _remove_delegation_token(self, record: RemoveDelegationTokenRecord) -> None:
        self.delegation_tokens.pop(record.token_id, None)


def _type_of(part: tuple[str, str | None]) -> str:
    return part[0]


#: fields of a PartitionChangeRecord that take the place of the partition's own, unless None
_REPLACED = (
    "isr",
    "replicas",
    "removing_replicas",
    "adding_replicas",
    "eligible_leader_replicas",
    "last_known_elr",
    "directories",
)
