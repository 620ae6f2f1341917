"""One compacted log, two cleaners: each reads what the other has left, and goes on from there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from logstore.tools.dev.kafka_peer import KafkaPeer
from tests.interop.clients import CLIENTS, CODECS, settings
from tests.interop.conftest import SETTINGS, RunTool, new_topic, start_real
from tests.interop.eventually import eventually
from tests.interop.our_broker import OurBroker
from tests.interop.samples import Sample

pytestmark = [pytest.mark.interop, pytest.mark.slow]

TOPIC = "users"
SECONDS_MAX = 40
BROKER_SETTINGS: dict[str, object] = {"log.cleaner.backoff.ms": 200}
KEY_COUNT = 20
COMPLAINTS = re.compile(r"isvalid: false|mismatch|out of order|corrupt|exception", re.IGNORECASE)


@attrs.frozen
class Stored:
    """A record as a consumer got it."""

    offset: int
    key: bytes
    value: bytes | None


def view(bootstrap: str) -> list[Stored]:
    """Return all committed records of the partition."""
    consumer = Consumer(
        settings(bootstrap)
        | {
            "group.id": "nobody",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            "isolation.level": "read_committed",
            "check.crcs": True,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: list[Stored] = []
    try:
        while True:
            for message in consumer.consume(500, 10):
                error = message.error()
                if error is not None:
                    if error.code() == KafkaError._PARTITION_EOF:
                        return found
                    continue
                key = message.key()
                assert isinstance(key, bytes)
                value = message.value()
                assert value is None or isinstance(value, bytes)
                found.append(Stored(message.offset() or 0, key, value))
    finally:
        consumer.close()


def survivors(records: Sequence[Stored], end_offset: int) -> list[Stored]:
    """Return what the last record of each key below `end_offset` leaves; tombstones count."""
    newest = {record.key: record.offset for record in records if record.offset < end_offset}
    return [r for r in records if r.offset >= end_offset or r.offset == newest[r.key]]


def newest_values(records: Sequence[Stored]) -> dict[bytes, bytes]:
    """Return the table that the records make up."""
    table: dict[bytes, bytes] = {}
    for record in records:
        table.pop(record.key, None)
        if record.value is not None:
            table[record.key] = record.value
    return table


def update(bootstrap: str, name: str) -> None:
    """Write every key in every codec, delete some, and let a transaction commit and one abort."""
    for codec in CODECS:
        records = [
            Sample(
                b"key-%02d" % number,
                None if number % 7 == 3 else f"{name} {codec} {number} ".encode() * 5,
            )
            for number in range(KEY_COUNT)
        ]
        CLIENTS[0].produce(bootstrap, TOPIC, records, codec)
    producer = Producer(settings(bootstrap) | {"transactional.id": "updater"})
    producer.init_transactions(SECONDS_MAX)
    for is_commit in (False, True):
        producer.begin_transaction()
        for number in range(3):
            value = f"{name} {'committed' if is_commit else 'aborted'}".encode()
            producer.produce(TOPIC, value, b"key-%02d" % number, partition=0)
        producer.flush(SECONDS_MAX)
        if is_commit:
            producer.commit_transaction(SECONDS_MAX)
        else:
            producer.abort_transaction(SECONDS_MAX)


def set_ratio(bootstrap: str, ratio: str) -> None:
    """Say how much must be dirty before the cleaner begins; 1.0 is never."""
    entry = ConfigEntry(
        "min.cleanable.dirty.ratio", ratio, incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ConfigResource.Type.TOPIC, TOPIC, incremental_configs=[entry])
    admin = AdminClient(settings(bootstrap))
    admin.incremental_alter_configs([resource])[resource].result(SECONDS_MAX)


def checkpoint(data: Path) -> int:
    """Return up to where the log is clean."""
    path = data / "cleaner-offset-checkpoint"
    text = path.read_text() if path.exists() else ""
    found = re.search(rf"^{TOPIC} 0 (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else 0


def compacted_by_hand(data: Path) -> int:
    """Run ``logstore compact``; return up to where the log is clean."""
    command = [sys.executable, "-m", "logstore.tools.cli", "compact", "--json", "--topic", TOPIC]
    done = subprocess.run([*command, str(data)], capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    outcome = json.loads(done.stdout)
    assert outcome["recordsRemoved"] > 0
    return int(outcome["cleanUpTo"])


def check_files(data: Path, kafka_tool: RunTool) -> None:
    """Let Kafka's own tool look at every batch and every index."""
    folder = data / f"{TOPIC}-0"
    logs = [path for path in sorted(folder.glob("*.log")) if path.stat().st_size]
    indexes = [
        path
        for extension in ("index", "timeindex")
        for path in sorted(folder.glob(f"*.{extension}"))[:-1]
        if path.stat().st_size
    ]
    assert indexes
    done = kafka_tool("DumpLogSegments", "--print-data-log", "--files", ",".join(map(str, logs)))
    assert done.stdout.count("isvalid: true") > 10
    sane = kafka_tool(
        "DumpLogSegments", "--index-sanity-check", "--files", ",".join(map(str, indexes))
    )
    assert sane.stdout.count("passed sanity check") == len(indexes)
    for outcome in (done, sane):
        assert COMPLAINTS.findall(outcome.stdout + outcome.stderr) == []


def complaints_of(peer: KafkaPeer) -> list[str]:
    """Return what the real broker's log says of the topic that is no information."""
    return [
        line
        for line in peer.log.read_text().splitlines()
        if re.search(r"\] (WARN|ERROR|FATAL) ", line) and TOPIC in line
    ]


def cleaned_by_ours(
    directory: Path, data: Path, expected: dict[bytes, bytes]
) -> dict[bytes, bytes]:
    """Serve `data`, write more, and wait for our cleaner; return the table that is there then."""
    before = checkpoint(data)
    broker = OurBroker(directory, SETTINGS | BROKER_SETTINGS, data).start()
    try:
        assert newest_values(view(broker.bootstrap)) == expected
        for name in ("ours", "ours again"):  # more than the active segment takes
            update(broker.bootstrap, name)
        table = newest_values(view(broker.bootstrap))
        ours = eventually(lambda: (found := checkpoint(data)) > before and found, SECONDS_MAX)
        records = view(broker.bootstrap)
        assert newest_values(records) == table
        keys = [record.key for record in records if record.offset < ours]
        assert len(keys) == len(set(keys))
        return table
    finally:
        broker.stop()


@pytest.mark.timeout(600)
def test_both_cleaners_go_on_where_the_other_has_ended(tmp_path: Path, kafka_tool: RunTool) -> None:
    """By hand, then the real broker's, then ours in the background; the table stays the same."""
    peer = start_real(tmp_path / "peer", settings=BROKER_SETTINGS)
    try:
        config = {
            "cleanup.policy": "compact",
            "internal.segment.bytes": "4000",
            "index.interval.bytes": "300",
            "min.cleanable.dirty.ratio": "1.0",
        }
        new_topic(peer.bootstrap, TOPIC, config=config)
        for number in range(3):
            update(peer.bootstrap, f"round {number}")
        before = view(peer.bootstrap)
        peer.stop()

        by_hand = compacted_by_hand(peer.data)
        assert 0 < by_hand == checkpoint(peer.data)
        check_files(peer.data, kafka_tool)

        peer.start()
        after = view(peer.bootstrap)
        assert len(after) < len(before)
        assert after == survivors(before, by_hand)
        for name in ("theirs", "theirs again"):
            update(peer.bootstrap, name)
        expected = newest_values(view(peer.bootstrap))
        set_ratio(peer.bootstrap, "0.01")
        eventually(lambda: checkpoint(peer.data) > by_hand, SECONDS_MAX)
        assert newest_values(view(peer.bootstrap)) == expected
        peer.stop()
        assert complaints_of(peer) == []

        expected = cleaned_by_ours(tmp_path / "ours", peer.data, expected)
        check_files(peer.data, kafka_tool)

        peer.start()
        assert newest_values(view(peer.bootstrap)) == expected
        peer.stop()
        assert complaints_of(peer) == []
    finally:
        peer.stop()
