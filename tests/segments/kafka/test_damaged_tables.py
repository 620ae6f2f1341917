"""Small text files that are damaged: one partition's keeps nobody out, and what is done is said."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logstore.errors import CorruptFileError
from logstore.host import read_file, write_file
from logstore.partition import Record
from logstore.segments.kafka import checkpoints
from logstore.segments.kafka.partition_metadata import FILE_NAME as PARTITION_METADATA
from logstore.segments.kafka.store import KafkaStore, StoreOptions
from logstore.testing import SimulatedHost

DATA = "/data"
EPOCHS = f"{DATA}/t-0/{checkpoints.LEADER_EPOCHS}"
LIVES = 3
RECORDS = 4

Damage = Callable[[bytes], bytes]
DAMAGES: dict[str, Damage] = {
    "empty": lambda _: b"",
    "zeros": lambda data: bytes(len(data)),
    "garbage": lambda data: bytes(range(128, 128 + len(data) % 100)),
    "text": lambda _: b"no such thing\n",
    "half": lambda data: data[: len(data) // 2],
    "cut": lambda data: data[:-2],
    "longer": lambda data: data + b"17 x\n",
    "crlf": lambda data: data.replace(b"\n", b"\r\n"),
    "other version": lambda data: data.replace(b"0", b"7", 1),
}
FILES = (
    f"t-0/{checkpoints.LEADER_EPOCHS}",
    f"t-0/{PARTITION_METADATA}",
    checkpoints.RECOVERY_POINT,
    checkpoints.LOG_START,
    checkpoints.HIGH_WATERMARK,
    checkpoints.CLEANER,
)


@pytest.fixture
def host() -> SimulatedHost:
    """A world with a store that was led in three epochs, and stopped."""
    host = SimulatedHost()
    store = KafkaStore(host, DATA)
    store.create_topic("t", 2, {"internal.segment.bytes": "300"})
    for _ in range(LIVES):
        store.lead_anew()
        for partition in store.partitions():
            for _ in range(RECORDS):
                partition.append_records([Record(b"k", b"v" * 50, 1_700_000_000_000)])
        store.close()
        store = KafkaStore(host, DATA)
    store.partition("t", 0).delete_records(1)
    store.close()
    return host


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("damage", list(DAMAGES))
@pytest.mark.parametrize("name", FILES)
def test_nothing_is_lost_with_a_damaged_table(
    host: SimulatedHost, name: str, damage: str, is_clean: bool
) -> None:
    """All records are there, and the next start finds sound files."""
    store = KafkaStore(host, DATA, StoreOptions(is_writable=False))
    former = store.partition("t", 0).leader_epoch
    store.abandon()
    path = f"{DATA}/{name}"
    data = read_file(host.fs, path) if host.fs.exists(path) else b"0\n1\nt 0 12\n"
    write_file(host.fs, path, DAMAGES[damage](data))
    if not is_clean:
        host.fs.remove(f"{DATA}/.kafka_cleanshutdown")
    store = KafkaStore(host, DATA)
    topic_id = store.topics_by_name["t"].topic_id
    assert [p.end_offset for p in store.partitions()] == [LIVES * RECORDS] * 2
    assert all(p.start_offset <= 1 for p in store.partitions())
    store.lead_anew()
    store.partition("t", 0).append_records([Record(b"k", b"v", 1_700_000_000_000)])
    newest = store.partition("t", 0).leader_epoch
    assert newest > former, "the metadata log knows it, too"
    store.close()
    store = KafkaStore(host, DATA)
    assert store.topics_by_name["t"].topic_id == topic_id
    assert store.partition("t", 0).end_offset == LIVES * RECORDS + 1
    assert store.partition("t", 0).leader_epochs.latest_epoch == newest
    store.close()


@pytest.mark.parametrize("is_writable", [True, False])
@pytest.mark.parametrize("is_clean", [True, False])
def test_leader_epochs_that_cannot_be_read_are_taken_from_the_batches(
    host: SimulatedHost, caplog: pytest.LogCaptureFixture, is_clean: bool, is_writable: bool
) -> None:
    """The same ones; who only reads writes none."""
    before = read_file(host.fs, EPOCHS)
    write_file(host.fs, EPOCHS, b"rubbish")
    if not is_clean:
        host.fs.remove(f"{DATA}/.kafka_cleanshutdown")
    store = KafkaStore(host, DATA, StoreOptions(is_writable=is_writable))
    entries = store.partition("t", 0).leader_epochs.entries
    assert len(entries) == LIVES
    assert entries == [
        (epoch, max(offset, 1) if is_writable else offset)
        for epoch, offset in store.partition("t", 1).leader_epochs.entries
    ]
    assert f"{EPOCHS}: 'rubbish' is no 32-bit integer; made anew" in caplog.text
    if not is_writable:
        assert read_file(host.fs, EPOCHS) == b"rubbish"
        store.abandon()
        return
    store.close()
    assert read_file(host.fs, EPOCHS) == before


@pytest.mark.parametrize("text", [b"version=1\nnode.id=1\n", b"version=x\n", b"version=1\ncl"])
def test_a_damaged_meta_properties_is_refused_with_a_remedy(
    host: SimulatedHost, text: bytes
) -> None:
    """It is the one file that says whose the directory is; without it there is a new one."""
    path = f"{DATA}/meta.properties"
    write_file(host.fs, path, text)
    with pytest.raises(CorruptFileError, match="restore it, or move it away") as refusal:
        KafkaStore(host, DATA)
    assert refusal.value.path == path
    host.fs.rename(path, "/moved-away")
    store = KafkaStore(host, DATA)
    assert store.partition("t", 0).end_offset == LIVES * RECORDS
    store.close()
