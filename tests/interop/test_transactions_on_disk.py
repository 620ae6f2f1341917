"""Transactions that we wrote into files, as real brokers recover, index and serve them."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import confluent_kafka
import pytest

from logstore.os_host import system_host
from logstore.segments.kafka.config import parse_topic_configs
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.tools.dev.kafka_peer import KafkaPeer
from tests.interop.clients import settings
from tests.interop.conftest import RunTool, new_topic, start_real

pytestmark = pytest.mark.interop

SEGMENT_BYTES, INDEX_INTERVAL_BYTES = "1200", "200"
COMMITTING, ABORTING, LEAVING_OPEN, PLAIN = 1000, 1001, 1002, 1003
TURNS = 20
DERIVED = (".log", ".index", ".timeindex", ".txnindex")


class Written:
    """A partition of ours with transactions of every fate, interleaved over many segments."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.directory = directory
        self.sequences: dict[int, int] = {}
        config = parse_topic_configs(
            {"internal.segment.bytes": SEGMENT_BYTES, "index.interval.bytes": INDEX_INTERVAL_BYTES}
        )
        files = SegmentFiles(system_host(), str(directory), config, is_new=True)
        self.partition = KafkaPartition(system_host(), files, "t", 0)
        self.partition.become_leader(0)

    def append(self, producer_id: int, count: int) -> None:
        """Append a batch of a producer."""
        now_ms = int(time.time() * 1000)
        sequence = self.sequences.get(producer_id, 0)
        self.sequences[producer_id] = sequence + count
        records = [Record(n, now_ms, b"%d" % producer_id, bytes(20)) for n in range(count)]
        batch = encode_batch(
            records,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=producer_id != PLAIN,
        )
        self.partition.append_produced(memoryview(batch), now_ms)

    def end(self, producer_id: int, *, is_commit: bool) -> None:
        """Append a marker."""
        self.partition.append_marker(
            producer_id, 0, is_commit=is_commit, coordinator_epoch=0, now_ms=int(time.time() * 1000)
        )

    def fill(self) -> None:
        """Write it all; at the end one transaction is open, with records behind it."""
        for turn in range(TURNS):
            self.append(COMMITTING, 2)
            self.append(ABORTING, 1)
            self.append(PLAIN, 1)
            if turn % 3 == 1:
                self.end(COMMITTING, is_commit=True)
            if turn % 4 == 3:
                self.end(ABORTING, is_commit=False)
        self.end(COMMITTING, is_commit=True)
        self.append(LEAVING_OPEN, 2)
        self.append(PLAIN, 1)
        assert len(self.partition.log.segments) > 4

    def offsets(self, *, is_committed_only: bool) -> list[int]:
        """Return the offsets that a reader of ours gets."""
        found = self.partition.read_records(0, 1000, is_committed_only=is_committed_only)
        return [record.offset for record in found]


def consumed(peer: KafkaPeer, topic: str, isolation: str) -> list[int]:
    """Return the offsets that a consumer gets until it is at the end."""
    consumer = confluent_kafka.Consumer(
        settings(peer.bootstrap)
        | {
            "group.id": isolation,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found: list[int] = []
    try:
        while (message := consumer.poll(30)) is not None:
            error = message.error()
            if error is not None:
                assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF
                return found
            offset = message.offset()
            assert offset is not None
            found.append(offset)
    finally:
        consumer.close()
    pytest.fail("the consumer did not come to the end")


@pytest.mark.parametrize("version", ["4", pytest.param("3.9", marks=pytest.mark.slow)])
def test_a_real_kafka_finds_the_same_transactions(version: str, tmp_path: Path) -> None:
    """Its recovery rebuilds our indexes byte for byte; its consumers skip what ours skip."""
    written = Written(tmp_path / "ours")
    written.fill()
    expected = {
        isolation: written.offsets(is_committed_only=isolation == "read_committed")
        for isolation in ("read_uncommitted", "read_committed")
    }
    assert 0 < len(expected["read_committed"]) < len(expected["read_uncommitted"])
    stable, end = written.partition.last_stable_offset, written.partition.end_offset
    assert stable < end
    written.partition.close()
    topic = "ours"
    peer = start_real(tmp_path / "peer", version)
    segment_bytes = "segment.bytes" if version == "3.9" else "internal.segment.bytes"
    try:
        new_topic(
            peer.bootstrap,
            topic,
            config={segment_bytes: SEGMENT_BYTES, "index.interval.bytes": INDEX_INTERVAL_BYTES},
        )
        peer.stop()
        target = peer.data / f"{topic}-0"
        for path in target.iterdir():
            if path.name != "partition.metadata":
                path.unlink()
        for path in written.directory.iterdir():
            shutil.copy(path, target)
        (peer.data / ".kafka_cleanshutdown").unlink()
        (peer.data / "replication-offset-checkpoint").unlink(missing_ok=True)
        peer.start()
        assert {isolation: consumed(peer, topic, isolation) for isolation in expected} == expected
    finally:
        peer.stop()
    last = f"{max(written.partition.log.segments):020d}"
    ours = {p.name: p.read_bytes() for p in written.directory.iterdir() if p.suffix in DERIVED}
    assert sum(name.endswith(".txnindex") for name in ours) > 1
    for name, data in ours.items():
        if not name.startswith(last) or name.endswith(".txnindex"):
            assert (target / name).read_bytes() == data, name
    again = SegmentFiles(system_host(), str(target), written.partition.config)
    reopened = KafkaPartition(system_host(), again, topic, 0)
    assert (reopened.last_stable_offset, reopened.end_offset) == (stable, end)
    marker = reopened.append_marker(
        LEAVING_OPEN, 0, is_commit=False, coordinator_epoch=0, now_ms=int(time.time() * 1000)
    )
    assert reopened.last_stable_offset == marker + 1
    reopened.close()


def test_dump_log_segments_reads_our_transaction_indexes(
    tmp_path: Path, kafka_tool: RunTool
) -> None:
    """Every aborted transaction is listed as we have it, and open ones are in the snapshot."""
    written = Written(tmp_path / "ours")
    written.fill()
    aborted = written.partition.aborted_transactions(0, written.partition.end_offset)
    (left_open,) = written.partition.producers.open_transactions()
    written.partition.close()
    indexes = sorted(str(path) for path in written.directory.glob("*.txnindex"))
    done = kafka_tool("DumpLogSegments", "--files", ",".join(indexes))
    assert done.stderr == ""
    listed = re.findall(
        r"producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)",
        done.stdout,
    )
    assert [tuple(map(int, entry)) for entry in listed] == [
        (a.producer_id, a.first_offset, a.last_offset, a.last_stable_offset) for a in aborted
    ]
    snapshot = max(written.directory.glob("*.snapshot"))
    dumped = kafka_tool("DumpLogSegments", "--files", str(snapshot)).stdout
    pattern = rf"producerId: {LEAVING_OPEN} .*currentTxnFirstOffset: (?:Optional\w*\[)?(\d+)"
    found = re.search(pattern, dumped)
    assert found is not None, dumped
    assert int(found[1]) == left_open.first_offset
