"""
Metadata records: what the controller says, one small message each.

A record's value in the log is a frame and a body; it has no key::

    frame version uv = 1 | api key uv | version uv | body       uv: unsigned varint

    01 0c 00  11 metadata.version 00 1e  00     FeatureLevelRecord v0: level 30 of that feature

Of Kafka's 27 kinds those stand here that say something of topics, settings, features, producer ids,
users and brokers; those of access control and client quotas stand in :mod:`.access_records`. The
others (delegation tokens, controllers) come back as :class:`OtherRecord`, whose bytes nobody here
looks into.

Source: ``metadata/src/main/resources/common/metadata/*.json``, ``AbstractApiMessageSerde``.
"""

from __future__ import annotations

import importlib
from typing import Any, ClassVar, NamedTuple, TypeAlias

import attrs

from logstore.segments.kafka.cluster_metadata.wire import (
    BOOLEAN,
    BYTES,
    INT8,
    INT16,
    INT32,
    INT64,
    NULLABLE_STRING,
    STRING,
    UINT16,
    UUID,
    Field,
    WireError,
    array_of,
    decode_fields,
    encode_fields,
    struct_of,
)
from logstore.segments.kafka.varint import (
    VarintError,
    decode_unsigned_varint,
    encode_unsigned_varint,
)

FRAME_VERSION = 1
#: of a partition without a leader
NO_LEADER = -1
#: in a :class:`PartitionChangeRecord`: the leader stays
NO_LEADER_CHANGE = -2

_IDS = array_of(INT32)
_UUIDS = array_of(UUID)
_END_POINTS = array_of(struct_of(STRING, STRING, UINT16, INT16))
_FEATURES = array_of(struct_of(STRING, INT16, INT16))

#: broker, or replica, ids
Ids: TypeAlias = tuple[int, ...]


class UnknownRecordVersionError(WireError):
    """A record has a version that only a newer Kafka knows."""


class MetadataRecord:
    """
    A metadata record of a kind that is understood.

    Equality and text come from `FIELDS`: made by attrs for each of the kinds, they would cost every
    start some milliseconds.
    """

    __slots__ = ()
    API_KEY: ClassVar[int]
    VERSION_MAX: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = ()

    def __eq__(self, other: object) -> bool:
        """Tell whether `other` says the same."""
        return type(other) is type(self) and self._values() == other._values()

    def __hash__(self) -> int:
        """Return what is the same for records that say the same."""
        return hash((self.API_KEY, *self._values()))

    def __repr__(self) -> str:
        """Name what the record says."""
        names = (field.name for field in self.FIELDS)
        said = zip(names, self._values(), strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in said)})"

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, field.name) for field in self.FIELDS)


@attrs.frozen(eq=False, repr=False)
class RegisterBrokerRecord(MetadataRecord):
    """A broker is there. End points: (name, host, port, protocol); features: (name, min, max)."""

    API_KEY = 0
    VERSION_MAX = 4
    FIELDS = (
        Field("broker_id", INT32),
        Field("is_migrating_zk_broker", BOOLEAN, since=2),
        Field("incarnation_id", UUID),
        Field("broker_epoch", INT64),
        Field("end_points", _END_POINTS),
        Field("features", _FEATURES),
        Field("rack", NULLABLE_STRING),
        Field("fenced", BOOLEAN),
        Field("in_controlled_shutdown", BOOLEAN, since=1),
        Field("log_dirs", _UUIDS, since=3, tag=0, default=()),
        Field("cordoned_log_dirs", _UUIDS, since=4, tag=1),
    )
    broker_id: int
    incarnation_id: bytes
    broker_epoch: int
    end_points: tuple[tuple[str, str, int, int], ...] = ()
    features: tuple[tuple[str, int, int], ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    is_migrating_zk_broker: bool = False
    log_dirs: tuple[bytes, ...] = ()
    cordoned_log_dirs: tuple[bytes, ...] | None = None


@attrs.frozen(eq=False, repr=False)
class UnregisterBrokerRecord(MetadataRecord):
    """A broker is gone for good."""

    API_KEY = 1
    FIELDS = (Field("broker_id", INT32), Field("broker_epoch", INT64))
    broker_id: int
    broker_epoch: int


@attrs.frozen(eq=False, repr=False)
class TopicRecord(MetadataRecord):
    """A topic is created; its partitions and settings follow."""

    API_KEY = 2
    FIELDS = (Field("name", STRING), Field("topic_id", UUID))
    name: str
    topic_id: bytes


@attrs.frozen(eq=False, repr=False)
class PartitionRecord(MetadataRecord):
    """A partition is created, or everything about it is said anew."""

    API_KEY = 3
    VERSION_MAX = 2
    FIELDS = (
        Field("partition_id", INT32),
        Field("topic_id", UUID),
        Field("replicas", _IDS),
        Field("isr", _IDS),
        Field("removing_replicas", _IDS),
        Field("adding_replicas", _IDS),
        Field("leader", INT32),
        Field("leader_recovery_state", INT8, tag=0, default=0),
        Field("leader_epoch", INT32),
        Field("partition_epoch", INT32),
        Field("directories", _UUIDS, since=1),
        Field("eligible_leader_replicas", _IDS, since=2, tag=1),
        Field("last_known_elr", _IDS, since=2, tag=2),
    )
    partition_id: int
    topic_id: bytes
    replicas: Ids
    isr: Ids
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    directories: tuple[bytes, ...] = ()
    removing_replicas: Ids = ()
    adding_replicas: Ids = ()
    leader_recovery_state: int = 0
    eligible_leader_replicas: Ids | None = None
    last_known_elr: Ids | None = None


@attrs.frozen(eq=False, repr=False)
class ConfigRecord(MetadataRecord):
    """A setting of a topic (type 2) or broker (type 4; "" is every broker); None takes it back."""

    API_KEY = 4
    FIELDS = (
        Field("resource_type", INT8),
        Field("resource_name", STRING),
        Field("name", STRING),
        Field("value", NULLABLE_STRING),
    )
    resource_type: int
    resource_name: str
    name: str
    value: str | None


@attrs.frozen(eq=False, repr=False)
class PartitionChangeRecord(MetadataRecord):
    """What changes of a partition; None, or -2 as the leader, is what stays."""

    API_KEY = 5
    VERSION_MAX = 2
    FIELDS = (
        Field("partition_id", INT32),
        Field("topic_id", UUID),
        Field("isr", _IDS, tag=0),
        Field("leader", INT32, tag=1, default=NO_LEADER_CHANGE),
        Field("replicas", _IDS, tag=2),
        Field("removing_replicas", _IDS, tag=3),
        Field("adding_replicas", _IDS, tag=4),
        Field("leader_recovery_state", INT8, tag=5, default=-1),
        Field("eligible_leader_replicas", _IDS, since=2, tag=6),
        Field("last_known_elr", _IDS, since=2, tag=7),
        Field("directories", _UUIDS, since=1, tag=8),
    )
    partition_id: int
    topic_id: bytes
    isr: Ids | None = None
    leader: int = NO_LEADER_CHANGE
    replicas: Ids | None = None
    removing_replicas: Ids | None = None
    adding_replicas: Ids | None = None
    leader_recovery_state: int = -1
    eligible_leader_replicas: Ids | None = None
    last_known_elr: Ids | None = None
    directories: tuple[bytes, ...] | None = None


@attrs.frozen(eq=False, repr=False)
class RemoveTopicRecord(MetadataRecord):
    """A topic is deleted, with its partitions and settings."""

    API_KEY = 9
    FIELDS = (Field("topic_id", UUID),)
    topic_id: bytes


@attrs.frozen(eq=False, repr=False)
class UserScramCredentialRecord(MetadataRecord):
    """What is known of a user's password, for one SCRAM mechanism (1: SHA-256, 2: SHA-512)."""

    API_KEY = 11
    FIELDS = (
        Field("name", STRING),
        Field("mechanism", INT8),
        Field("salt", BYTES),
        Field("stored_key", BYTES),
        Field("server_key", BYTES),
        Field("iterations", INT32),
    )
    name: str
    mechanism: int
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        """Name the user alone: the rest is secret."""
        return f"UserScramCredentialRecord(name={self.name!r}, mechanism={self.mechanism})"


@attrs.frozen(eq=False, repr=False)
class FeatureLevelRecord(MetadataRecord):
    """The level of a feature from now on; 0 is none."""

    API_KEY = 12
    FIELDS = (Field("name", STRING), Field("feature_level", INT16))
    name: str
    feature_level: int


@attrs.frozen(eq=False, repr=False)
class ProducerIdsRecord(MetadataRecord):
    """Producer ids below `next_producer_id` have been handed out to brokers."""

    API_KEY = 15
    FIELDS = (
        Field("broker_id", INT32),
        Field("broker_epoch", INT64),
        Field("next_producer_id", INT64),
    )
    broker_id: int
    broker_epoch: int
    next_producer_id: int


@attrs.frozen(eq=False, repr=False)
class BrokerRegistrationChangeRecord(MetadataRecord):
    """A broker is fenced (1) or no longer (-1), or stops in good order."""

    API_KEY = 17
    VERSION_MAX = 3
    FIELDS = (
        Field("broker_id", INT32),
        Field("broker_epoch", INT64),
        Field("fenced", INT8, tag=0, default=0),
        Field("in_controlled_shutdown", INT8, since=1, tag=1, default=0),
        Field("log_dirs", _UUIDS, since=2, tag=2, default=()),
        Field("cordoned_log_dirs", _UUIDS, since=3, tag=3),
    )
    broker_id: int
    broker_epoch: int
    fenced: int = 0
    in_controlled_shutdown: int = 0
    log_dirs: tuple[bytes, ...] = ()
    cordoned_log_dirs: tuple[bytes, ...] | None = None


@attrs.frozen(eq=False, repr=False)
class NoOpRecord(MetadataRecord):
    """Nothing: the controller says that it is there, twice a second."""

    API_KEY = 20


@attrs.frozen(eq=False, repr=False)
class RemoveUserScramCredentialRecord(MetadataRecord):
    """A user has no password any more, for one SCRAM mechanism."""

    API_KEY = 22
    FIELDS = (Field("name", STRING), Field("mechanism", INT8))
    name: str
    mechanism: int


@attrs.frozen(eq=False, repr=False)
class BeginTransactionRecord(MetadataRecord):
    """What follows holds together or not at all."""

    API_KEY = 23
    FIELDS = (Field("name", NULLABLE_STRING, tag=0),)
    name: str | None = None


@attrs.frozen(eq=False, repr=False)
class EndTransactionRecord(MetadataRecord):
    """All since the beginning of the transaction holds."""

    API_KEY = 24


@attrs.frozen(eq=False, repr=False)
class AbortTransactionRecord(MetadataRecord):
    """Nothing since the beginning of the transaction holds."""

    API_KEY = 25
    FIELDS = (Field("reason", NULLABLE_STRING, tag=0),)
    reason: str | None = None


class OtherRecord(NamedTuple):
    """A record that is not looked into. `value` is the whole of it, frame and body."""

    api_key: int
    version: int
    value: bytes


#: what a log is read as
AnyRecord: TypeAlias = MetadataRecord | OtherRecord

KINDS: dict[int, type[MetadataRecord]] = {
    kind.API_KEY: kind
    for kind in (
        RegisterBrokerRecord,
        UnregisterBrokerRecord,
        TopicRecord,
        PartitionRecord,
        ConfigRecord,
        PartitionChangeRecord,
        RemoveTopicRecord,
        UserScramCredentialRecord,
        FeatureLevelRecord,
        ProducerIdsRecord,
        BrokerRegistrationChangeRecord,
        NoOpRecord,
        RemoveUserScramCredentialRecord,
        BeginTransactionRecord,
        EndTransactionRecord,
        AbortTransactionRecord,
    )
}

#: kinds that are imported when a log has one of them: by key, where they stand
_KINDS_APART = {
    10: ("token_records", "DelegationTokenRecord"),
    14: ("access_records", "ClientQuotaRecord"),
    18: ("access_records", "AccessControlEntryRecord"),
    19: ("access_records", "RemoveAccessControlEntryRecord"),
    26: ("token_records", "RemoveDelegationTokenRecord"),
}

_NO_OP = NoOpRecord()
_NO_OP_VALUE = bytes((FRAME_VERSION, NoOpRecord.API_KEY, 0, 0))


def encode_record(record: MetadataRecord, version: int = 0) -> bytes:
    """Return the value of a record in `version`."""
    assert 0 <= version <= record.VERSION_MAX, f"{type(record).__name__} v{version}"
    body = encode_fields(record.FIELDS, version, record.__getattribute__)
    frame = (FRAME_VERSION, record.API_KEY, version)
    return b"".join(map(encode_unsigned_varint, frame)) + body


def decode_record(value: bytes) -> tuple[AnyRecord, int]:
    """
    Return (the record in a value, its version).

    Raises:
        UnknownRecordVersionError: a newer Kafka wrote it.
        WireError: it is no metadata record.

    """
    if value == _NO_OP_VALUE:  # most of an idle cluster's log
        return _NO_OP, 0
    try:
        frame_version, position = decode_unsigned_varint(value, 0)
        api_key, position = decode_unsigned_varint(value, position)
        version, position = decode_unsigned_varint(value, position)
    except VarintError as error:
        raise WireError(f"the frame is cut short: {error}") from None
    if frame_version != FRAME_VERSION:
        raise WireError(f"frame version {frame_version}, expected {FRAME_VERSION}")
    kind = KINDS.get(api_key) or _kind_apart(api_key)
    if kind is None:
        return OtherRecord(api_key, version, value), version
    if version > kind.VERSION_MAX:
        raise UnknownRecordVersionError(
            f"{kind.__name__} of version {version}; up to {kind.VERSION_MAX} is known"
        )
    fields: dict[str, Any] = decode_fields(kind.FIELDS, version, value, position)
    try:
        return kind(**fields), version
    except TypeError as error:
        raise WireError(f"{kind.__name__} of version {version}: {error}") from None


def _kind_apart(api_key: int) -> type[MetadataRecord] | None:
    """Import a kind that stands in a file of its own; from now on it is among the others."""
    place = _KINDS_APART.get(api_key)
    if place is None:
        return None
    module = importlib.import_module(f"{__package__}.{place[0]}")
    kind: type[MetadataRecord] = getattr(module, place[1])
    KINDS[api_key] = kind
    return kind
