"""Tiered objects between Kafka's own LocalTieredStorage and ours, and partitions restored."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import cast

import pytest

from logstore.os_host import system_host
from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.remote import (
    ObjectKind,
    PartitionSource,
    RemoteLog,
    RemoteStorage,
    restore_partition,
    upload_partition,
)
from logstore.segments.kafka.remote.metadata_records import encode_metadata
from logstore.segments.kafka.remote.object_names import OBJECTS
from logstore.tools.dev.kafka_peer import KafkaPeer
from tests.interop import tiered
from tests.interop.clients import CLIENTS, read_all
from tests.interop.conftest import SETTINGS, Broker, new_topic, start_real
from tests.interop.eventually import eventually
from tests.interop.java_programs import kafka_program
from tests.interop.our_broker import OurBroker
from tests.interop.samples import Sample, numbered
from tests.interop.test_files import fill, transplant

pytestmark = [pytest.mark.interop, pytest.mark.slow]

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "tiered-4.3"
TOPIC = "stored"
READER = Path(__file__).with_name("ReadStored.java")


def sealed(directory: Path) -> dict[str, bytes]:
    """Return the files of all segments but the last, by name."""
    active = max(path.stem for path in directory.glob("*.log"))
    return {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if path.suffix in (".log", ".index", ".timeindex", ".txnindex") and path.stem != active
    }


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, KafkaPeer, list[Sample]]:
    """What a real broker stored of a topic, its own data, and what was written; it is down."""
    base = tmp_path_factory.mktemp("tiered")
    peer = start_real(base / "peer", settings=tiered.settings(base / "remote"))
    try:
        new_topic(peer.bootstrap, TOPIC, config=tiered.TOPIC_SETTINGS)
        records = fill(cast("Broker", peer), TOPIC)
        objects = base / "remote" / OBJECTS
        local = peer.data / f"{TOPIC}-0"

        def is_stored() -> bool:
            snapshots = list(objects.glob(f"{TOPIC}-0-*/*.leader_epoch_checkpoint"))
            return len(snapshots) == len(list(local.glob("*.log"))) - 1

        eventually(is_stored, 60, what="the copy of all sealed segments")
    finally:
        peer.stop()
    return base / "remote", peer, records


def test_what_the_real_broker_stored_is_restored(
    stored: tuple[Path, KafkaPeer, list[Sample]], tmp_path: Path
) -> None:
    """Every sealed segment of the broker's own directory comes back, byte for byte."""
    directory, peer, records = stored
    storage = RemoteStorage(system_host().fs, str(directory))
    log = RemoteLog(storage, storage.find(TOPIC, 0))
    done = restore_partition(log, system_host(), str(tmp_path))
    expected = sealed(peer.data / f"{TOPIC}-0")
    assert len(expected) >= 6
    found = {name: (Path(done.path) / name).read_bytes() for name in expected}
    assert found == expected
    assert [r.offset for r in log.records()] == list(range(done.span.end))
    assert [r.value for r in log.records()] == [r.value for r in records[: done.span.end]]


@pytest.mark.parametrize("version", ["4", "3.9"])
def test_a_real_kafka_serves_what_was_restored(
    stored: tuple[Path, KafkaPeer, list[Sample]], version: str, tmp_path: Path
) -> None:
    """Put in place of an empty partition it is read whole, and written on, without a complaint."""
    directory, _, records = stored
    storage = RemoteStorage(system_host().fs, str(directory))
    (tmp_path / "restored").mkdir()
    done = restore_partition(
        RemoteLog(storage, storage.find(TOPIC, 0)), system_host(), str(tmp_path / "restored")
    )
    peer = start_real(tmp_path / "peer", version)
    try:
        new_topic(peer.bootstrap, "transplanted")
        peer.stop()
        peer.log.unlink()
        transplant(Path(done.path), peer, "transplanted")
        peer.start()
        expected = records[: done.span.end]
        assert read_all(CLIENTS[0], peer.bootstrap, "transplanted", len(expected)) == expected
        offsets = CLIENTS[0].produce(peer.bootstrap, "transplanted", numbered(5, "more"))
        assert offsets == list(range(done.span.end, done.span.end + 5))
    finally:
        peer.stop()
    about = [line for line in peer.log.read_text().splitlines() if "transplanted" in line]
    assert about, "the log tells of the recovery"
    assert [line for line in about if "] WARN " in line or "] ERROR " in line] == []


def test_kafkas_own_storage_reads_what_we_stored(tmp_path: Path) -> None:
    """LocalTieredStorage finds every record, and hands out each object by our metadata."""
    storage = RemoteStorage(system_host().fs, str(tmp_path))
    values: list[str] = []
    expected: list[str] = []
    offsets: list[str] = []
    for topic in ("tiered", "tiered-transactions"):
        source = PartitionSource(system_host(), str(GOLDEN / "data" / f"{topic}-0"))
        for metadata in upload_partition(source, storage, broker_id=1):
            values.append(encode_metadata(metadata).hex())
            kinds = (
                ObjectKind.LOG,
                ObjectKind.OFFSET_INDEX,
                ObjectKind.TIME_INDEX,
                ObjectKind.PRODUCER_SNAPSHOT,
                ObjectKind.TRANSACTION_INDEX,
                ObjectKind.LEADER_EPOCHS,
            )
            paths = [Path(storage.path(metadata, kind)) for kind in kinds]
            sizes = [path.stat().st_size if path.exists() else 0 for path in paths]
            epochs = ", ".join(f"{epoch}={start}" for epoch, start in metadata.leader_epochs)
            expected.append(
                f"segment {metadata.start_offset} {metadata.end_offset} COPY_SEGMENT_FINISHED "
                f"{{{epochs}}} {' '.join(map(str, sizes))}"
            )
        log = RemoteLog(storage, source.partition)
        for batch in log.batches():
            offsets += [f"record {record.offset}" for record in decode_records(batch.data)]
    command = kafka_program(READER, str(tmp_path), *values, more=str(tiered.jar()))
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert sorted(line for line in lines if line.startswith("record ")) == sorted(offsets)
    assert [line for line in lines if line.startswith("segment ")] == expected
    assert len([line for line in lines if line.startswith("partition ")]) == 2


def test_our_broker_serves_what_was_restored(
    stored: tuple[Path, KafkaPeer, list[Sample]], tmp_path: Path
) -> None:
    """In a new data directory of ours, without a cluster; and it is stored again from there."""
    directory, _, records = stored
    storage = RemoteStorage(system_host().fs, str(directory))
    log = RemoteLog(storage, storage.find(TOPIC, 0))
    broker = OurBroker(tmp_path / "ours", SETTINGS)
    broker.data.mkdir(parents=True, exist_ok=True)
    restore_partition(log, system_host(), str(broker.data))
    broker.start()
    try:
        expected = records[: log.span.end]
        assert read_all(CLIENTS[0], broker.bootstrap, TOPIC, len(expected)) == expected
        offsets = CLIENTS[0].produce(broker.bootstrap, TOPIC, numbered(5, "more"))
        assert offsets == list(range(log.span.end, log.span.end + 5))
    finally:
        broker.stop()
    again = RemoteStorage(system_host().fs, str(tmp_path / "again"))
    source = PartitionSource(system_host(), str(broker.data / f"{TOPIC}-0"))
    copied = upload_partition(source, again, has_active=True)
    assert source.partition == log.partition
    assert copied[-1].next_offset == log.span.end + 5


def test_a_real_kafka_goes_on_with_a_tiered_topic_that_we_served(
    stored: tuple[Path, KafkaPeer, list[Sample]], tmp_path: Path
) -> None:
    """
    We serve what is here of it, the broker that tiers all of it, from where it says the log starts.

    A part of its segments is only in remote storage, as ``local.retention.bytes`` has it.
    """
    directory, peer, records = stored
    remote, data = tmp_path / "remote", tmp_path / "data"
    shutil.copytree(directory, remote)
    shutil.copytree(peer.data, data)
    (data / "log-start-offset-checkpoint").write_text(f"0\n1\n{TOPIC} 0 3\n")
    local = data / f"{TOPIC}-0"
    oldest = sorted(local.glob("*.log"))[3].stem
    for path in local.iterdir():
        if path.stem.isdigit() and path.stem < oldest:
            path.unlink()
    values = [record.value for record in records]
    with OurBroker(tmp_path / "ours", SETTINGS, data) as broker:
        here = read_all(CLIENTS[0], broker.bootstrap, TOPIC, len(records) - int(oldest))
        assert [record.value for record in here] == values[int(oldest) :]
        more = numbered(5, "more")
        assert CLIENTS[0].produce(broker.bootstrap, TOPIC, more)[0] == len(records)
    values += [record.value for record in more]
    real = start_real(tmp_path / "peer", settings=tiered.settings(remote), as_is=data)
    try:
        found = read_all(CLIENTS[0], real.bootstrap, TOPIC, len(values) - 3)
        assert [record.value for record in found] == values[3:]
    finally:
        real.stop()
