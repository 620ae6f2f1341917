"""
What two Kafka brokers that were asked the same hold on disk, but for what each makes up by itself.

Partitions are compared batch by batch, but for the largest time in a batch's header, of which
SKIPPED.md tells. In the topics of the coordinators each key's records are, in the order in which
they were written; there one of the two may have gone further: when members are late, and
transactions take too long, each decides by its own clock. Of the metadata's log what is said of
topics, settings and users is.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any

import attrs

from logstore.segments.kafka.batch_walk import iterate_entries
from logstore.segments.kafka.cluster_metadata.batches import decode_entries
from logstore.segments.kafka.cluster_metadata.image import ResourceType
from logstore.segments.kafka.cluster_metadata.records import (
    AnyRecord,
    ConfigRecord,
    OtherRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from logstore.segments.kafka.internal_topics.group_metadata import GroupMetadataValue
from logstore.segments.kafka.internal_topics.record_types import (
    GROUP_RECORDS,
    SHARE_RECORDS,
    TRANSACTION_RECORDS,
    RecordTypes,
    decode_internal_record,
)
from logstore.segments.kafka.internal_topics.schema import Message
from logstore.segments.kafka.internal_topics.transaction_log import (
    TransactionLogKey,
    TransactionLogValue,
)
from logstore.segments.kafka.record import CorruptRecordError, Record, decode_records
from logstore.segments.kafka.record_batch import RecordBatch

SECONDS_MAX, PAUSE_SECONDS = 20, 0.5
METADATA = "__cluster_metadata-0"
COORDINATORS: dict[str, RecordTypes] = {
    "__consumer_offsets": GROUP_RECORDS,
    "__transaction_state": TRANSACTION_RECORDS,
    "__share_group_state": SHARE_RECORDS,
}
_PARTITION = re.compile(r"(?P<topic>.+)-(?P<number>\d+)")
_PRODUCER_ID = re.compile(r"(producer_id=)(\d+)")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: the other way in which Kafka writes them
_TEXT_UUID = re.compile(r"'[A-Za-z0-9_-]{22}'")
#: of these years, in milliseconds, or as far below them as numbers go
_TIME = re.compile(r"\b1(?:7[5-9]|[89]\d)\d{10}\b|-922337\d{13}\b")
#: hashes of what a group reads, which each broker takes of its own topic ids
_HASH = re.compile(r"(metadata_hash=)-?[1-9]\d*")
#: offsets of metadata logs, in which each broker counts records of its own
_OFFSET = re.compile(r"(ConsumerGroupRegularExpressionValue\(.*?\bversion=)\d+")
_MARKER = "marker "
#: What each broker says of itself and of the moment.
OF_THE_BROKER = frozenset(
    ("RegisterBrokerRecord", "BrokerRegistrationChangeRecord", "NoOpRecord", "ProducerIdsRecord",
     "FeatureLevelRecord", "BeginTransactionRecord", "EndTransactionRecord",
     "UnregisterBrokerRecord", "AbortTransactionRecord")
)  # fmt: skip
REGISTER_CONTROLLER = 27
#: forgets the eligible leader replicas of a topic, which no partition with one replica has
CLEAR_ELR = 28
#: what members of share groups get, which depends on when the state of partitions has begun
SHARED_OUT_LATE = frozenset((13, 14))
#: epochs of groups: no request has two of one group, but members that are late together have
EPOCHS = frozenset((3, 11, 17))
SECRETS = frozenset(("salt", "stored_key", "server_key"))
Lines = dict[str, list[str]]


class Held:
    """What one broker holds: what each partition, or each key of a coordinator's, says in order."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._topics: dict[bytes, str] = {}
        self._broker_settings: dict[tuple[str, str], str | None] = {}
        #: what the transactions of producers are called
        self._transactions = dict(self._producers())
        self.metadata = list(self._metadata())

    def lines(self) -> Lines:
        """Return all of it, as text."""
        found: Lines = {METADATA: self._settings_sorted()}
        for directory in sorted(self._data.iterdir()):
            match = _PARTITION.fullmatch(directory.name)
            if match is None or not directory.is_dir() or directory.name == METADATA:
                continue
            kinds = COORDINATORS.get(match["topic"])
            if kinds is None:
                found[directory.name] = [_shown_batch(one) for one in _batches(directory)]
            else:
                for key, text in self._coordinated(kinds, directory):
                    found.setdefault(f"{match['topic']} {key}", []).append(text)
        return found

    def _metadata(self) -> Iterator[AnyRecord]:
        for batch in _batches(self._data / METADATA):
            for entry in decode_entries(batch, METADATA):
                record = entry.record
                if isinstance(record, TopicRecord):
                    self._topics[record.topic_id] = record.name
                if not _is_of_the_broker(record) and not self._says_again(record):
                    yield record

    def _says_again(self, record: AnyRecord) -> bool:
        """Tell whether a broker's setting is what it was: that has a real broker read it anew."""
        if not isinstance(record, ConfigRecord) or record.resource_type != ResourceType.BROKER:
            return False
        key = record.resource_name, record.name
        before, self._broker_settings[key] = self._broker_settings.get(key), record.value
        return before == record.value

    def _producers(self) -> Iterator[tuple[int, str]]:
        for directory in self._data.glob("__transaction_state-*"):
            for batch in _batches(directory):
                for record in decode_records(batch.data):
                    assert record.key is not None
                    found = decode_internal_record(TRANSACTION_RECORDS, record.key, record.value)
                    if isinstance(found.value, TransactionLogValue):
                        assert isinstance(found.key, TransactionLogKey)
                        yield found.value.producer_id, found.key.transactional_id

    def _settings_sorted(self) -> list[str]:
        """Return the metadata; what changed together stands in Java by its hashes."""
        found: list[str] = []
        for kind, some in groupby(self.metadata, type):
            texts = [self._named(self._shown(one)) for one in some]
            found += sorted(texts) if kind in (ConfigRecord, RemoveTopicRecord) else texts
        return found

    def _shown(self, record: AnyRecord) -> str:
        if isinstance(record, OtherRecord):
            return repr(record)
        said = [
            f"{field.name}={value!r}"
            for field in record.FIELDS
            if field.name not in SECRETS
            for value in (self._plain(getattr(record, field.name)),)
        ]
        return f"{type(record).__name__}({', '.join(said)})"

    def _plain(self, value: object) -> object:
        """Return ids as UUIDs, so that they are found in the text."""
        if isinstance(value, bytes) and len(value) == 16:
            return str(uuid.UUID(bytes=value))
        return tuple(map(self._plain, value)) if isinstance(value, tuple) else value

    def _coordinated(self, kinds: RecordTypes, directory: Path) -> Iterator[tuple[str, str]]:
        for batch in _batches(directory):
            whose = self._transactions.get(batch.producer_id, "")
            front = f"{whose} epoch {batch.producer_epoch}"
            said: dict[str, str] = {}
            for record in decode_records(batch.data):
                if batch.is_control:
                    yield f"markers of {whose}", f"{front} {record.key!r}"
                    continue
                assert record.key is not None
                found = decode_internal_record(kinds, record.key, record.value)
                if found.record_type in SHARED_OUT_LATE:
                    continue
                value = found.value
                if isinstance(value, TransactionLogValue):
                    value = _in_order(value)
                elif isinstance(value, GroupMetadataValue):
                    value = _with_members_in_order(value)
                else:
                    value = self._by_topic(value)
                key = self._named(f"{found.record_type} {found.key}")
                if kinds is SHARE_RECORDS or found.record_type in EPOCHS:
                    yield key, self._named(f"{front} v{found.version} {value}")
                    continue
                # A real broker writes twice what one request names twice.
                said[key] = self._named(f"{front} v{found.version} {value}")
            yield from said.items()

    def _by_topic(self, value: Message | None) -> Message | None:
        """Return a record whose topics stand by name; a real broker has them in sets of ids."""
        if value is None:
            return None
        changes: dict[str, Any] = {}
        for field in attrs.fields(type(value)):
            items = getattr(value, field.name)
            if isinstance(items, tuple) and items and hasattr(items[0], "topic_id"):
                changes[field.name] = tuple(sorted(items, key=self._topic_name))
        return attrs.evolve(value, **changes)

    def _topic_name(self, item: Any) -> str:
        return self._topics.get(item.topic_id.bytes, "")

    def _named(self, text: str) -> str:
        """Replace topic ids by names, and what else is made up by a star."""

        def name(found: re.Match[str]) -> str:
            topic_id = uuid.UUID(found[0])
            return self._topics.get(topic_id.bytes, "*" if topic_id.int > 1 else found[0])

        text = _TEXT_UUID.sub("'*'", _TIME.sub("*", _UUID.sub(name, text)))
        return _OFFSET.sub(r"\1*", _HASH.sub(r"\1*", text))


def _in_order(value: TransactionLogValue) -> TransactionLogValue:
    """Return what is said of a transaction; its partitions stand in a set."""
    partitions = sorted(value.transaction_partitions or (), key=lambda one: one.topic)
    return attrs.evolve(value, transaction_partitions=tuple(partitions))


def _with_members_in_order(value: GroupMetadataValue) -> GroupMetadataValue:
    """Return what is said of a classic group; its members stand in a table, by ids made up."""
    members = sorted(
        value.members,
        key=lambda one: (one.group_instance_id or "", one.subscription, one.assignment),
    )
    return attrs.evolve(value, members=tuple(members))


def _is_of_the_broker(record: AnyRecord) -> bool:
    if isinstance(record, OtherRecord):
        return record.api_key in (REGISTER_CONTROLLER, CLEAR_ELR)
    return type(record).__name__ in OF_THE_BROKER


def _batches(directory: Path) -> Iterator[RecordBatch]:
    for file in sorted(directory.glob("*.log")):
        yield from iterate_entries(memoryview(file.read_bytes()), str(file))


def _shown_batch(batch: RecordBatch) -> str:
    try:
        records = "; ".join(map(_shown_record, decode_records(batch.data)))
    except CorruptRecordError:
        records = bytes(batch.data).hex()
    front = (
        f"{batch.base_offset}+{batch.last_offset_delta} magic {batch.magic} "
        f"led in {batch.leader_epoch} attributes {batch.attributes} "
        f"{_MARKER if batch.is_control else ''}"
        f"producer_id={batch.producer_id} epoch {batch.producer_epoch} "
        f"sequence {batch.base_sequence} {batch.record_count} records "
        f"from {batch.base_timestamp_ms}: "
    )
    return _TIME.sub("*", front + records)


def _shown_record(record: Record) -> str:
    return (
        f"{record.offset} {record.timestamp_ms} {record.key!r}={record.value!r} {record.headers!r}"
    )


def differences(ours: Path, real: Path) -> list[str]:
    """Return where the two hold something else, a line each."""
    here, there = Held(ours).lines(), Held(real).lines()
    found, known = [], ProducerIds()
    for name in sorted(here.keys() | there.keys()):
        if name not in here or name not in there:
            which = "ours" if name in here else "real"
            found.append(f"only {which} has {name}: {here.get(name) or there[name]}")
            continue
        is_as_far = not name.startswith(tuple(f"{one} " for one in COORDINATORS))
        ours_said, real_said = here[name], there[name]
        pairs = (
            zip_longest(ours_said, real_said, fillvalue="")
            if is_as_far
            else zip(ours_said, real_said, strict=False)
        )
        for number, (mine, other) in enumerate(pairs):
            if not (mine and other) and _MARKER in mine + other:
                continue
            if not known.are_same(mine, other):
                found.append(f"{name}[{number}]: {mine}\n    instead of {other}")
                break
    return found


def settled_differences(ours: Path, real: Path) -> list[str]:
    """Return the differences that are left once both have done what they do by and by."""
    deadline = time.monotonic() + SECONDS_MAX
    while (found := differences(ours, real)) and time.monotonic() < deadline:
        time.sleep(PAUSE_SECONDS)
    return found


class ProducerIds:
    """Which producer of ours stands for which of the real broker's."""

    def __init__(self) -> None:
        self._theirs: dict[str, str] = {}
        self._ours: dict[str, str] = {}

    def are_same(self, ours: str, real: str) -> bool:
        """Tell whether two texts differ by nothing but what they call producers."""
        if _PRODUCER_ID.sub(r"\1", ours) != _PRODUCER_ID.sub(r"\1", real):
            return False
        pairs = zip(_PRODUCER_ID.findall(ours), _PRODUCER_ID.findall(real), strict=True)
        return all(
            self._theirs.setdefault(mine, other) == other
            and self._ours.setdefault(other, mine) == mine
            for (_, mine), (_, other) in pairs
        )
