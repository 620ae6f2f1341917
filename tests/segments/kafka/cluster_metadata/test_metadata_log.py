"""The metadata log: appended to as Kafka's controller does, and read again after anything."""

from __future__ import annotations

import pytest

from logstore.errors import CorruptFileError
from logstore.host import read_file, write_file
from logstore.segments.kafka.cluster_metadata.batches import (
    decode_entries,
    encode_snapshot_footer,
    encode_snapshot_header,
    encode_values,
)
from logstore.segments.kafka.cluster_metadata.image import ResourceType
from logstore.segments.kafka.cluster_metadata.metadata_log import MetadataLog
from logstore.segments.kafka.cluster_metadata.quorum_state import QuorumState
from logstore.segments.kafka.cluster_metadata.records import (
    AnyRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
    encode_record,
)
from logstore.segments.kafka.cluster_metadata.release import NEWEST, MetadataVersion, parse_release
from logstore.segments.kafka.cluster_metadata.snapshot import SnapshotId
from logstore.segments.kafka.record_batch import RecordBatch, iterate_batches
from logstore.testing import SimulatedHost

DATA = "/data"
LOG = f"{DATA}/__cluster_metadata-0"
FIRST = f"{LOG}/{0:020d}.log"
A, B = bytes(15) + b"a", bytes(15) + b"b"
SAFETY = ConfigRecord(ResourceType.BROKER, "", "min.insync.replicas", "1")


@pytest.fixture
def host() -> SimulatedHost:
    """A world with an empty data directory."""
    host = SimulatedHost()
    host.fs.make_directory(DATA)
    host.fs.sync_directory("/")
    return host


def open_log(
    host: SimulatedHost, release: MetadataVersion = NEWEST, *, is_writable: bool = True
) -> MetadataLog:
    """Open the log of node 1."""
    return MetadataLog(host, DATA, 1, release=release, is_writable=is_writable)


def batches(host: SimulatedHost, path: str = FIRST) -> list[RecordBatch]:
    """Return the batches of a file."""
    return list(iterate_batches(memoryview(bytearray(read_file(host.fs, path)))))


def records(host: SimulatedHost, path: str = FIRST) -> list[AnyRecord]:
    """Return the metadata records of a file."""
    return [entry.record for batch in batches(host, path) for entry in decode_entries(batch, path)]


def write_segment(host: SimulatedHost, base_offset: int, *values: bytes, epoch: int = 1) -> None:
    """Write a segment with one batch, without any index."""
    host.fs.make_directory(LOG)
    now_ms = host.clock.wall_ms()
    data = encode_values(values, base_offset, epoch=epoch, timestamp_ms=now_ms)
    write_file(host.fs, f"{LOG}/{base_offset:020d}.log", bytes(data))


def write_snapshot(host: SimulatedHost, end_offset: int, *found: MetadataRecord) -> None:
    """Write a snapshot of epoch 3."""
    host.fs.make_directory(LOG)
    values = [encode_record(record) for record in found]
    data = (
        encode_snapshot_header(0, epoch=3, timestamp_ms=5)
        + encode_values(values, 1, epoch=3, timestamp_ms=5)
        + encode_snapshot_footer(len(values) + 1, epoch=3, timestamp_ms=5)
    )
    write_file(host.fs, f"{LOG}/{SnapshotId(end_offset, 3).file_name}", bytes(data))


# the first writes


def test_a_formatted_directory_has_no_log_yet(host: SimulatedHost) -> None:
    """Opening leaves what ``kafka-storage format`` leaves; the image has its features."""
    log = open_log(host, parse_release("3.9"))
    assert [entry.name for entry in host.fs.list_directory(DATA)] == ["bootstrap.checkpoint"]
    assert records(host, f"{DATA}/bootstrap.checkpoint") == [
        FeatureLevelRecord("metadata.version", 21)
    ]
    assert log.image.metadata_version == parse_release("3.9")
    log.close()
    assert open_log(host).image.metadata_version == parse_release("3.9")


def test_the_first_change_starts_the_log_as_a_controller_does(host: SimulatedHost) -> None:
    """A leader, the bootstrap records in a transaction, then the change: a batch each."""
    log = open_log(host)
    log.append([TopicRecord("a", A), PartitionRecord(0, A, (1,), (1,), 1)])
    found = batches(host)
    assert [(batch.base_offset, batch.record_count, batch.is_control) for batch in found] == [
        (0, 1, True),
        (1, 9, False),
        (10, 2, False),
    ]
    assert {batch.leader_epoch for batch in found} == {1}
    assert records(host) == [
        BeginTransactionRecord("Bootstrap records"),
        *(FeatureLevelRecord(name, level) for name, level in NEWEST.features.items()),
        SAFETY,
        EndTransactionRecord(),
        TopicRecord("a", A),
        PartitionRecord(0, A, (1,), (1,), 1),
    ]
    assert QuorumState.read(host.fs, LOG) == QuorumState(1, 1)
    assert read_file(host.fs, f"{LOG}/partition.metadata") == (
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    )
    log.close()
    assert read_file(host.fs, f"{LOG}/leader-epoch-checkpoint") == b"0\n1\n1 0\n"


def test_the_leader_change_is_kafkas(host: SimulatedHost) -> None:
    """Its key and value are those that a real lone controller wrote (golden set ``epochs-4.3``)."""
    open_log(host).append([TopicRecord("a", A)])
    body = bytes(batches(host)[0].data)[61:]
    assert body.hex(" ") == (
        "3a 00 00 00 08 00 00 00 02 26 00 00 00 00 00 01 02 00 00 00 01 00 02 00 00 00 01 00 00 00"
    )


def test_old_releases_know_no_transactions(host: SimulatedHost) -> None:
    """Before 3.6-IV1 the bootstrap records stand alone; partitions are written in old versions."""
    log = open_log(host, parse_release("3.3"))
    partition = PartitionRecord(0, A, (1,), (1,), 1, directories=(B,))
    log.append([TopicRecord("a", A), partition])
    found = [
        (entry.record, entry.version)
        for batch in batches(host)
        for entry in decode_entries(batch, FIRST)
    ]
    without_directories = PartitionRecord(0, A, (1,), (1,), 1)
    assert found == [
        (FeatureLevelRecord("metadata.version", 7), 0),
        (TopicRecord("a", A), 0),
        (without_directories, 0),
    ]


def test_bootstrap_records_of_others_go_into_the_log_whole(host: SimulatedHost) -> None:
    """What ``kafka-storage format`` or a newer Kafka added is not lost."""
    foreign = bytes.fromhex("011b00abcdef")
    values = [encode_record(FeatureLevelRecord("metadata.version", 12)), foreign]
    data = (
        encode_snapshot_header(0, epoch=0, timestamp_ms=5)
        + encode_values(values, 1, epoch=0, timestamp_ms=5)
        + encode_snapshot_footer(3, epoch=0, timestamp_ms=5)
    )
    write_file(host.fs, f"{DATA}/bootstrap.checkpoint", bytes(data))
    open_log(host).append([TopicRecord("a", A)])
    found = [r if isinstance(r, MetadataRecord) else r.value for r in records(host)]
    assert found == [
        FeatureLevelRecord("metadata.version", 12),
        foreign,
        TopicRecord("a", A),
    ]


# again


@pytest.mark.parametrize("is_clean", [True, False])
def test_what_was_appended_comes_back(host: SimulatedHost, is_clean: bool) -> None:
    """After a stop of any kind the image is the same; the next leader counts the epoch up."""
    log = open_log(host)
    log.append([TopicRecord("a", A), ConfigRecord(ResourceType.TOPIC, "a", "retention.ms", "5")])
    if is_clean:
        log.close()
    else:
        host.power_loss()
    log = open_log(host)
    assert log.image.topics["a"].topic_id == A
    assert log.image.configs_of(ResourceType.TOPIC, "a") == {"retention.ms": "5"}
    log.append([RemoveTopicRecord(A)])
    host.power_loss()
    log = open_log(host)
    assert log.image.topics == {}
    assert log.image.removed_ids == {A}
    found = [(batch.leader_epoch, batch.is_control) for batch in batches(host)]
    assert found == [(1, True), (1, False), (1, False), (2, True), (2, False)]
    assert QuorumState.read(host.fs, LOG) == QuorumState(1, 2)
    log.append([TopicRecord("b", B)])
    log.close()
    expected = b"0\n3\n1 0\n2 12\n3 14\n"
    assert read_file(host.fs, f"{LOG}/leader-epoch-checkpoint") == expected


def test_reading_changes_nothing(host: SimulatedHost) -> None:
    """A store that is only read writes no file and has the image; so does one without a change."""
    empty = open_log(host, is_writable=False)
    assert host.fs.list_directory(DATA) == []
    assert empty.image.metadata_version == NEWEST
    log = open_log(host)
    log.append([TopicRecord("a", A)])
    log.close()
    before = {entry.name: entry for entry in host.fs.list_directory(LOG)}
    for is_writable in (False, True):
        reader = open_log(host, is_writable=is_writable)
        assert list(reader.image.topics) == ["a"]
        reader.close()
    assert {entry.name: entry for entry in host.fs.list_directory(LOG)} == before


@pytest.mark.parametrize("is_writable", [True, False])
def test_a_torn_tail_ends_the_log(host: SimulatedHost, is_writable: bool) -> None:
    """What a crash left of a last batch does not count, and is overwritten by the next."""
    log = open_log(host)
    log.append([TopicRecord("a", A)])
    log.append([TopicRecord("b", B)])
    log.close()
    whole = read_file(host.fs, FIRST)
    write_file(host.fs, FIRST, whole[:-1])
    log = open_log(host, is_writable=is_writable)
    assert list(log.image.topics) == ["a"]
    if is_writable:
        log.append([TopicRecord("b", B)])
        log.close()
        assert list(open_log(host).image.topics) == ["a", "b"]


def test_several_segments(host: SimulatedHost) -> None:
    """The log is read through all its segments, whoever rolled them."""
    write_segment(host, 0, encode_record(FeatureLevelRecord("metadata.version", 30)))
    write_segment(host, 1, encode_record(TopicRecord("a", A)))
    write_segment(host, 2, encode_record(TopicRecord("b", B)), epoch=4)
    log = open_log(host)
    assert list(log.image.topics) == ["a", "b"]
    log.append([RemoveTopicRecord(A)])
    log.close()
    assert [batch.leader_epoch for batch in batches(host, f"{LOG}/{2:020d}.log")] == [4, 5, 5]


# snapshots


def test_a_snapshot_stands_for_what_lies_below_it(host: SimulatedHost) -> None:
    """Records below its end are not applied again, also within a batch; those behind it are."""
    write_segment(
        host,
        0,
        encode_record(FeatureLevelRecord("metadata.version", 30)),
        encode_record(TopicRecord("long gone", B)),
        encode_record(ConfigRecord(ResourceType.TOPIC, "a", "retention.ms", "6")),
    )
    write_snapshot(host, 2, FeatureLevelRecord("metadata.version", 25), TopicRecord("a", A))
    image = open_log(host).image
    assert list(image.topics) == ["a"]
    assert image.metadata_version == MetadataVersion(25)
    assert image.configs_of(ResourceType.TOPIC, "a") == {"retention.ms": "6"}


def test_a_snapshot_newer_than_the_log(host: SimulatedHost) -> None:
    """The log starts anew at its end, as Kafka does it (``truncateToLatestSnapshot``)."""
    write_segment(host, 0, encode_record(TopicRecord("long gone", B)))
    write_snapshot(host, 90, FeatureLevelRecord("metadata.version", 30), TopicRecord("a", A))
    log = open_log(host)
    assert list(log.image.topics) == ["a"]
    log.append([TopicRecord("b", B)])
    log.close()
    assert [
        (batch.base_offset, batch.leader_epoch) for batch in batches(host, f"{LOG}/{90:020d}.log")
    ] == [(90, 4), (91, 4)]
    assert list(open_log(host).image.topics) == ["a", "b"]


def test_a_snapshot_alone_is_enough(host: SimulatedHost) -> None:
    """Also where nobody has written a log behind it yet, and where it is only read."""
    write_snapshot(host, 90, FeatureLevelRecord("metadata.version", 30), TopicRecord("a", A))
    for is_writable in (False, True):
        assert list(open_log(host, is_writable=is_writable).image.topics) == ["a"]


def test_a_log_without_its_beginning(host: SimulatedHost) -> None:
    """Where neither segment nor snapshot has the first records, nobody knows what they said."""
    write_segment(host, 7, encode_record(TopicRecord("a", A)))
    with pytest.raises(CorruptFileError, match="starts at offset 7; no snapshot has"):
        open_log(host)


# accidents


def test_a_transaction_that_its_controller_never_ended(host: SimulatedHost) -> None:
    """Its records do not count; the next leader aborts it before it says anything else."""
    log = open_log(host)
    log.append([TopicRecord("a", A)])
    log.append([BeginTransactionRecord(), TopicRecord("b", B)])
    log.close()
    log = open_log(host)
    assert list(log.image.topics) == ["a"]
    log.append([ConfigRecord(ResourceType.TOPIC, "a", "retention.ms", "6")])
    log.close()
    image = open_log(host).image
    assert list(image.topics) == ["a"]
    assert not image.is_in_transaction
    assert image.configs_of(ResourceType.TOPIC, "a") == {"retention.ms": "6"}


def test_a_record_that_cannot_be_read_is_named(host: SimulatedHost) -> None:
    """Whole batches with senseless records are no torn tail: the error says where they stand."""
    write_segment(host, 0, encode_record(TopicRecord("a", A)), b"\x01\x02\x00\x00")
    with pytest.raises(CorruptFileError, match=r"__cluster_metadata-0: offset 1: .* null"):
        open_log(host)


def test_a_huge_change_comes_in_several_batches(
    host: SimulatedHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No batch has more records than Kafka's controller allows itself."""
    monkeypatch.setattr("logstore.segments.kafka.cluster_metadata.metadata_log.RECORDS_MAX", 10)
    log = open_log(host)
    log.append([TopicRecord("a", A), *(PartitionRecord(n, A, (1,), (1,), 1) for n in range(24))])
    assert [batch.record_count for batch in batches(host)] == [1, 9, 10, 10, 5]
    log.close()
    assert list(open_log(host).image.topics["a"].partitions) == list(range(24))
