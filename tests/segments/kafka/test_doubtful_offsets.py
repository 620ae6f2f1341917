"""A log that does not reach to where a checkpoint of the last, clean stop has it end or start."""

from __future__ import annotations

import pytest

from logstore.host import read_file, write_file
from logstore.partition import Record
from logstore.segments.kafka import checkpoints
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.segment_files import LOG
from logstore.segments.kafka.store import KafkaStore, StoreOptions
from logstore.testing import SimulatedHost

DATA = "/data"
FOLDER = f"{DATA}/t-0"
BATCHES = 6
BATCH_RECORDS = 3
END = BATCHES * BATCH_RECORDS
MAGIC_POSITION = 16


@pytest.fixture
def host() -> SimulatedHost:
    """A world with a store of two partitions in some segments each, cleanly stopped."""
    host = SimulatedHost()
    store = KafkaStore(host, DATA)
    store.create_topic("t", 2, {"internal.segment.bytes": "500"})
    for partition in store.partitions():
        fill(partition, BATCHES)
    store.close()
    return host


def fill(partition: KafkaPartition, count: int) -> None:
    """Append `count` batches of three records."""
    for number in range(count):
        record = Record(b"%d" % number, b"v" * 50, 1_700_000_000_000)
        partition.append_records([record] * BATCH_RECORDS)


def newest_batch(host: SimulatedHost) -> tuple[str, int, bytes]:
    """Return the newest segment of t-0, where its last batch starts, and the whole file."""
    store = KafkaStore(host, DATA, StoreOptions(is_writable=False))
    active = store.partition("t", 0).log.active
    place = active.path, active.locate(END - 1), read_file(host.fs, active.path)
    store.abandon()
    assert place[1] > 0, "a batch stands before it"
    return place


def names(host: SimulatedHost) -> list[str]:
    """Return the files of t-0."""
    return [entry.name for entry in host.fs.list_directory(FOLDER)]


def checkpoint(host: SimulatedHost, name: str, offset: int) -> None:
    """Put another offset of t-0 into a checkpoint."""
    path = f"{DATA}/{name}"
    offsets = checkpoints.read_offset_checkpoint(host.fs, path)
    checkpoints.write_offset_checkpoint(host.fs, path, offsets | {("t", 0): offset})


@pytest.mark.parametrize("records", [BATCH_RECORDS, 1])
def test_a_last_batch_with_the_magic_of_old_messages_is_cut_off_and_kept(
    host: SimulatedHost, caplog: pytest.LogCaptureFixture, records: int
) -> None:
    """Else it is unreadable, and offsets of it may be given a second time, behind it."""
    store = KafkaStore(host, DATA)
    partition = store.partition("t", 0)
    partition.append_records([Record(b"k", b"v", 1_700_000_000_000)] * records)
    path, position = partition.log.active.path, partition.log.active.locate(END)
    store.close()
    damaged = bytearray(read_file(host.fs, path))
    damaged[position + MAGIC_POSITION] = 0
    write_file(host.fs, path, bytes(damaged))
    reader = KafkaStore(host, DATA, StoreOptions(is_writable=False))
    assert reader.partition("t", 0).end_offset == END + 1, "as Kafka reads it"
    reader.abandon()
    store = KafkaStore(host, DATA)
    torn, sound = store.partition("t", 0), store.partition("t", 1)
    assert (torn.end_offset, sound.end_offset) == (END, END)
    assert sound.recovery is None
    kept = f"{path}.cut-at-{position}"
    assert torn.recovery is not None
    assert torn.recovery.kept_aside == (kept,)
    assert read_file(host.fs, kept) == bytes(damaged[position:])
    assert f"{path}: position {position}: CRC is " in caplog.text
    assert f"rebuilt up to offset {END}" in caplog.text
    fill(torn, 1)
    store.close()
    store = KafkaStore(host, DATA)
    again = store.partition("t", 0)
    assert (again.end_offset, again.recovery) == (END + BATCH_RECORDS, None)
    store.close()


def test_a_last_batch_with_a_lower_base_offset_is_cut_off_and_kept(
    host: SimulatedHost, caplog: pytest.LogCaptureFixture
) -> None:
    """The offset stands in no checksum; it goes back, and the log ends too early by it."""
    path, position, whole = newest_batch(host)
    write_file(host.fs, path, whole[:position] + bytes(8) + whole[position + 8 :])
    store = KafkaStore(host, DATA)
    partition = store.partition("t", 0)
    assert partition.end_offset == END - BATCH_RECORDS
    assert partition.recovery is not None
    assert partition.recovery.kept_aside == (f"{path}.cut-at-{position}",)
    assert (
        f"{path}: position {len(whole)}: the log ends at offset {BATCH_RECORDS}, but the last stop,"
        f" a clean one, left it at {END}; rebuilt up to offset {END - BATCH_RECORDS}"
    ) in caplog.text
    store.close()


def test_a_recovery_point_that_is_too_high_takes_nothing_away(
    host: SimulatedHost, caplog: pytest.LogCaptureFixture
) -> None:
    """The newest segment is looked at, and found sound; the next stop writes the right one."""
    before = {name: read_file(host.fs, f"{FOLDER}/{name}") for name in names(host)}
    checkpoint(host, checkpoints.RECOVERY_POINT, 10**6)
    store = KafkaStore(host, DATA)
    partition = store.partition("t", 0)
    assert (partition.start_offset, partition.end_offset) == (0, END)
    assert "left it at 1000000; rebuilt up to offset" in caplog.text
    store.close()
    after = {name: read_file(host.fs, f"{FOLDER}/{name}") for name in names(host)}
    logs = [name for name in before if name.endswith(LOG)]
    assert [after[name] for name in logs] == [before[name] for name in logs]
    assert not [name for name in after if ".cut-at-" in name]
    caplog.clear()
    KafkaStore(host, DATA).close()
    assert "rebuilt" not in caplog.text


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_log_start_above_the_end_keeps_the_segments_aside(
    host: SimulatedHost, caplog: pytest.LogCaptureFixture, is_clean: bool
) -> None:
    """Kafka removes them, by what may be one bad number; the warning says how to get them back."""
    logs = [name for name in names(host) if name.endswith(LOG)]
    before = {name: read_file(host.fs, f"{FOLDER}/{name}") for name in logs}
    assert len(logs) > 1
    checkpoint(host, checkpoints.LOG_START, 90)
    if not is_clean:
        host.fs.remove(f"{DATA}/.kafka_cleanshutdown")
    store = KafkaStore(host, DATA)
    partition = store.partition("t", 0)
    assert (partition.start_offset, partition.end_offset) == (90, 90)
    assert "has the log start at offset 90, but it ends at 18; if the start is wrong" in caplog.text
    kept = [f"{FOLDER}/{name}.cut-at-0" for name in logs]
    assert partition.recovery is not None
    assert partition.recovery.kept_aside == tuple(kept)
    assert all(name in caplog.text for name in kept)
    fill(partition, 1)
    store.close()
    # the way back
    checkpoint(host, checkpoints.LOG_START, 0)
    for name in logs:
        host.fs.rename(f"{FOLDER}/{name}.cut-at-0", f"{FOLDER}/{name}")
    store = KafkaStore(host, DATA)
    partition = store.partition("t", 0)
    assert (partition.start_offset, partition.end_offset) == (0, 90 + BATCH_RECORDS)
    assert [read_file(host.fs, f"{FOLDER}/{name}") for name in logs] == list(before.values())
    extent = partition.log.read(END - 1, 1000)
    assert extent.size_bytes > 0
    store.close()


def test_who_only_reads_is_shown_all_that_is_below_a_wrong_log_start(host: SimulatedHost) -> None:
    """And changes nothing."""
    checkpoint(host, checkpoints.LOG_START, 90)
    before = names(host)
    store = KafkaStore(host, DATA, StoreOptions(is_writable=False))
    partition = store.partition("t", 0)
    assert (partition.start_offset, partition.end_offset) == (0, END)
    store.abandon()
    assert names(host) == before
