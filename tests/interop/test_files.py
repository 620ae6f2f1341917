"""What a broker wrote is read by Kafka's own tool and served by Kafka's own broker."""

from __future__ import annotations

import re
import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

from logstore.tools.dev.kafka_peer import KafkaPeer
from tests.interop.clients import CLIENTS, CODECS, read_all
from tests.interop.conftest import Broker, RunTool, new_topic, start_real
from tests.interop.samples import Sample, noise, numbered

pytestmark = pytest.mark.interop

BATCH_RECORDS = 20
SMALL_SEGMENTS = {"internal.segment.bytes": "9000", "index.interval.bytes": "300"}
COMPLAINTS = re.compile(
    r"isvalid: false|mismatch|out of order|out-of-order|corrupt|invalid bytes|exception|error|warn"
    r"|does not|failed",
    re.IGNORECASE,
)


# The tool says this of every segment but the first, the real broker's too: it starts from -1.
FIRST_OFFSET_NOTE = re.compile(
    r"^Non-consecutive offsets in \S*/0*(\d+)\.log\n  -1 is followed by \1\n", re.MULTILINE
)


def fill(broker: Broker, topic: str) -> list[Sample]:
    """Write small batches of three clients in all codecs; return the records in their order."""
    written: list[Sample] = []
    for client in CLIENTS:
        for codec in CODECS:
            records = [
                attrs.evolve(
                    sample, value=noise(f"{client.name} {codec} {sample.timestamp_ms}", 150)
                )
                for sample in numbered(BATCH_RECORDS)
            ]
            client.produce(broker.bootstrap, topic, records, codec)
            written += records
    return written


@contextmanager
def stopped(broker: Broker, kill: bool = False) -> Generator[None]:
    """Have the broker down for the time of the block."""
    broker.stop(kill=kill)
    try:
        yield
    finally:
        broker.start()


def copy_partition(broker: Broker, topic: str, target: Path) -> Path:
    """Copy the files of partition 0 while the broker is down."""
    shutil.copytree(broker.data / f"{topic}-0", target)
    return target


def files(directory: Path, *suffixes: str) -> list[Path]:
    """Return the partition's files with these suffixes, oldest segment first."""
    return sorted(path for path in directory.iterdir() if path.suffix in suffixes)


def joined(paths: Sequence[Path]) -> str:
    """Return the paths as DumpLogSegments wants them."""
    return ",".join(str(path) for path in paths)


@pytest.fixture(
    scope="module",
    params=[pytest.param("clean stop", marks=pytest.mark.slow), "kill -9 and recovery"],
)
def written(
    request: pytest.FixtureRequest, broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[Sample]]:
    """A partition directory with several segments, and what must be in it."""
    topic = "files-" + request.param.partition(" ")[0]
    new_topic(broker.bootstrap, topic, config=SMALL_SEGMENTS)
    records = fill(broker, topic)
    if request.param != "clean stop":
        with stopped(broker, kill=True):
            pass
        assert read_all(CLIENTS[0], broker.bootstrap, topic, len(records)) == records
    with stopped(broker):
        return copy_partition(broker, topic, tmp_path_factory.mktemp("written") / topic), records


def test_dump_log_segments_has_no_complaint(
    written: tuple[Path, list[Sample]], kafka_tool: RunTool
) -> None:
    """Every batch is valid, every index entry is true, and every record is listed."""
    directory, records = written
    logs = files(directory, ".log")
    # The offset index of a segment with one batch is empty, and the tool only says so.
    indexes = [path for path in files(directory, ".index", ".timeindex") if path.stat().st_size]
    assert len(logs) >= 3, "the test wants several segments"
    assert len(indexes) > len(logs), "the test wants entries in both indexes"

    printed = kafka_tool("DumpLogSegments", "--print-data-log", "--files", joined(logs))
    assert len(re.findall(r"isvalid: true", printed.stdout)) >= len(records) / BATCH_RECORDS
    offsets = re.findall(r"^\| offset: (\d+)", printed.stdout, re.MULTILINE)
    assert offsets == [str(offset) for offset in range(len(records))]
    deep = kafka_tool("DumpLogSegments", "--deep-iteration", "--files", joined(logs + indexes))
    sane = kafka_tool("DumpLogSegments", "--index-sanity-check", "--files", joined(indexes))
    assert sane.stdout.count("passed sanity check") == len(indexes)
    verified = kafka_tool("DumpLogSegments", "--verify-index-only", "--files", joined(indexes))
    for done in (printed, deep, sane, verified):
        assert COMPLAINTS.findall(done.stdout) == []
        assert FIRST_OFFSET_NOTE.sub("", done.stderr) == ""


def test_dump_log_segments_reads_producer_snapshots(
    written: tuple[Path, list[Sample]], kafka_tool: RunTool
) -> None:
    """The snapshots list each idempotent producer with its last sequence and offset."""
    directory, records = written
    snapshots = files(directory, ".snapshot")
    assert snapshots, "rolled segments leave producer snapshots"
    done = kafka_tool("DumpLogSegments", "--files", joined(snapshots))
    assert done.stderr == ""
    sequences = f"firstSequence: 0 lastSequence: {BATCH_RECORDS - 1}"
    pattern = rf"producerId: \d+ producerEpoch: 0 .*{sequences} lastOffset: (\d+)"
    lines = done.stdout.splitlines()
    entries = [re.search(pattern, line) for line in lines if "producerId" in line]
    assert entries
    for entry in entries:
        assert entry is not None, lines
        assert (int(entry[1]) + 1) % BATCH_RECORDS == 0
        assert int(entry[1]) < len(records)


def transplant(directory: Path, peer: KafkaPeer, topic: str) -> None:
    """Put the partition's files in place of the peer's own; leave it its topic id, and a crash."""
    target = peer.data / f"{topic}-0"
    for path in target.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for path in directory.iterdir():
        if path.name != "partition.metadata":
            shutil.copy(path, target)
    (peer.data / ".kafka_cleanshutdown").unlink()
    (peer.data / "replication-offset-checkpoint").unlink(missing_ok=True)


@pytest.mark.parametrize("version", ["4", pytest.param("3.9", marks=pytest.mark.slow)])
def test_a_real_kafka_serves_the_directory(
    written: tuple[Path, list[Sample]], version: str, tmp_path: Path
) -> None:
    """Kafka recovers the partition without a complaint, serves every record, and appends to it."""
    directory, records = written
    names = {"3.9": "segment.bytes"}
    config = {
        names.get(version, "internal.segment.bytes"): SMALL_SEGMENTS["internal.segment.bytes"],
        "index.interval.bytes": SMALL_SEGMENTS["index.interval.bytes"],
    }
    topic = "transplanted"
    peer = start_real(tmp_path / "peer", version)
    try:
        new_topic(peer.bootstrap, topic, config=config)
        peer.stop()
        peer.log.unlink()
        transplant(directory, peer, topic)
        peer.start()
        for client in CLIENTS[:2]:
            assert read_all(client, peer.bootstrap, topic, len(records)) == records
        more = numbered(5, "more")
        offsets = CLIENTS[0].produce(peer.bootstrap, topic, more)
        assert offsets == list(range(len(records), len(records) + 5))
    finally:
        peer.stop()
    log = peer.log.read_text()
    about = [line for line in log.splitlines() if "transplanted" in line]
    assert about, "the log tells of the recovery"
    assert [line for line in about if re.search(r"\] (WARN|ERROR|FATAL) ", line)] == []
    # Recovery rebuilt every index from the batches alone: what ours wrote must be the same.
    sealed = files(directory, ".log", ".index", ".timeindex")
    last = files(directory, ".log")[-1].stem
    for path in sealed:
        if path.stem != last:
            found = (peer.data / f"{topic}-0" / path.name).read_bytes()
            assert found == path.read_bytes(), path.name
