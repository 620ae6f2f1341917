"""What real brokers stored, appended again: the same files with the same bytes come out."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.os_host import system_host
from logstore.segments.kafka.control_record import decode_marker
from logstore.segments.kafka.leader_epochs import LeaderEpochs
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.segment_files import SegmentFiles
from tests.segments.kafka.golden_case import (
    COMPACTED,
    DELETED,
    RESTARTED,
    GoldenCase,
    golden_cases,
)

#: written for the whole topic
NOT_REWRITTEN = {"partition.metadata", "quorum-state"}
#: of the restarts of `leader-epochs` the second came after a kill; an epoch costs two
EPOCH_AFTER_KILL = 4
#: not written by clients alone
WITH_MARKERS = ("transactions", "consumer_offsets")


def bytes_by_name(directory: Path) -> dict[str, bytes]:
    """Return the files that an append of all batches must bring forth again."""
    return {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if path.name not in NOT_REWRITTEN
    }


def open_partition(
    case: GoldenCase, directory: Path, *, log_start_offset: int = 0, is_new: bool = False
) -> KafkaPartition:
    """Open one partition on its own, with the settings of its case."""
    host = system_host()
    files = SegmentFiles(host, str(directory), case.config, is_new=is_new)
    return KafkaPartition(host, files, case.topic, 0, log_start_offset=log_start_offset)


def differing(found: dict[str, bytes], expected: dict[str, bytes]) -> list[str]:
    """Return the names of files that are missing, too many or different."""
    names = sorted(found.keys() | expected.keys())
    return [name for name in names if found.get(name) != expected.get(name)]


@pytest.mark.parametrize(
    "case", golden_cases(without=(COMPACTED, *DELETED, RESTARTED)), ids=lambda case: case.id
)
def test_the_same_batches_give_the_same_files(case: GoldenCase, tmp_path: Path) -> None:
    """Segments, their three indexes, snapshots and leader epochs: same names, same bytes."""
    for index, golden in case.partition_folders.items():
        directory = tmp_path / str(index)
        directory.mkdir()
        partition = open_partition(case, directory, is_new=True)
        for batch in case.stored_batches(index):
            partition.append_stored(batch)
        partition.close()
        assert differing(bytes_by_name(directory), bytes_by_name(golden)) == []


def as_produced(batch: RecordBatch) -> memoryview:
    """Return a stored batch as its producer sent it: without what the leader stamped."""
    data = memoryview(bytearray(batch.data))
    sent = RecordBatch(data, batch.size_bytes).stamped(0, -1)
    if batch.is_log_append_time:
        sent.restamp_time(batch.max_timestamp_ms, is_log_append_time=False)
    return data


@pytest.mark.parametrize(
    "case", golden_cases(without=(COMPACTED, RESTARTED, *WITH_MARKERS)), ids=lambda case: case.id
)
def test_what_producers_sent_gives_the_same_files(case: GoldenCase, tmp_path: Path) -> None:
    """A leader that validates, assigns offsets and stamps its epoch and time stores those bytes."""
    for index, golden in case.partition_folders.items():
        directory = tmp_path / str(index)
        directory.mkdir()
        start = int(min(golden.glob("*.log")).stem)
        partition = open_partition(case, directory, log_start_offset=start, is_new=True)
        partition.become_leader(0)
        for batch in case.stored_batches(index):
            partition.append_produced(as_produced(batch), batch.max_timestamp_ms)
        partition.close()
        assert log_files(directory) == log_files(golden)


@pytest.mark.parametrize(
    "case", [c for c in golden_cases() if c.name in WITH_MARKERS], ids=lambda case: case.id
)
def test_what_clients_and_coordinators_wrote_gives_the_same_files(
    case: GoldenCase, tmp_path: Path
) -> None:
    """Data of producers, offsets of groups, and markers: a leader stores those bytes of each."""
    for index, golden in case.partition_folders.items():
        directory = tmp_path / str(index)
        directory.mkdir()
        partition = open_partition(case, directory, is_new=True)
        partition.become_leader(0)
        for batch in case.stored_batches(index):
            if batch.is_control:
                (record,) = decode_records(batch.data)
                marker = decode_marker(record)
                assert marker is not None
                partition.append_marker(
                    batch.producer_id,
                    batch.producer_epoch,
                    is_commit=not marker.is_abort,
                    coordinator_epoch=marker.coordinator_epoch,
                    now_ms=record.timestamp_ms,
                )
            elif case.content["topic_configs"].get("internal"):
                partition.append_coordinated(as_produced(batch), batch.max_timestamp_ms)
            else:
                partition.append_produced(as_produced(batch), batch.max_timestamp_ms)
        partition.close()
        assert differing(bytes_by_name(directory), bytes_by_name(golden)) == []


def log_files(directory: Path) -> dict[str, bytes]:
    """Return the segments and their indexes."""
    suffixes = (".log", ".index", ".timeindex")
    return {
        name: data for name, data in bytes_by_name(directory).items() if name.endswith(suffixes)
    }


@pytest.mark.parametrize(
    "case", [c for c in golden_cases() if c.name in DELETED], ids=lambda case: case.id
)
def test_what_retention_left_is_rewritten_from_its_first_segment(
    case: GoldenCase, tmp_path: Path
) -> None:
    """A log that starts where the oldest segment does gets the same segments from there on."""
    golden = case.partition_folders[0]
    start = int(min(golden.glob("*.log")).stem)
    partition = open_partition(case, tmp_path, log_start_offset=start, is_new=True)
    for batch in case.stored_batches(0):
        partition.append_stored(batch)
    partition.close()
    assert log_files(tmp_path) == log_files(golden)


@pytest.mark.parametrize(
    "case", [c for c in golden_cases() if c.name == RESTARTED], ids=lambda case: case.id
)
def test_restarts_leave_the_marks_that_they_leave_in_kafka(
    case: GoldenCase, tmp_path: Path
) -> None:
    """
    Closed and opened at every new leader epoch, a log gets the bytes of the restarted broker.

    A reopened active segment counts its index interval anew; producers that were silent for a day
    are forgotten; a snapshot that belongs to no segment goes when a newer one is there. The start
    after the kill makes anew what stands beside the segments from the recovery point on.
    """
    golden = case.partition_folders[0]
    epochs = LeaderEpochs.load(system_host().fs, str(golden)).entries
    partition = open_partition(case, tmp_path, is_new=True)
    recovery_point = 0
    for batch in case.stored_batches(0):
        if batch.leader_epoch > partition.leader_epoch:
            if batch.leader_epoch == EPOCH_AFTER_KILL:
                partition = recovered_partition(case, tmp_path, recovery_point)
            else:
                recovery_point = partition.end_offset
                partition.close()
                partition = open_partition(case, tmp_path)
            partition.become_leader(batch.leader_epoch)
        partition.append_stored(batch)
    partition.close()
    partition = open_partition(case, tmp_path)
    partition.become_leader(epochs[-1][0])  # the last start had no write after it
    partition.close()
    assert differing(bytes_by_name(tmp_path), bytes_by_name(golden)) == []


def recovered_partition(case: GoldenCase, directory: Path, recovery_point: int) -> KafkaPartition:
    """Open a partition that nobody has closed, of which all up to that offset was synced."""
    host = system_host()
    files = SegmentFiles(host, str(directory), case.config, is_clean=False)
    return KafkaPartition(host, files, case.topic, 0, recovery_point=recovery_point)
