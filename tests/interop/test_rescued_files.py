"""What is salvaged or reindexed is sound to Kafka's own tool, and served by its broker."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from logstore.segments.kafka.batch_walk import iterate_entries
from logstore.segments.kafka.record import decode_records
from tests.interop.clients import CLIENTS, read_all
from tests.interop.conftest import RunTool, new_topic, start_real
from tests.interop.samples import numbered
from tests.interop.test_files import files, joined, transplant
from tests.segments.kafka.golden_case import GOLDEN

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def logstore(*arguments: object) -> str:
    """Run a command that must succeed; return what it printed."""
    command = [sys.executable, "-m", "logstore.tools.cli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def damaged(tmp_path: Path) -> Path:
    """Return a copy of a partition with a wrong byte, a wrong length, and a segment missing."""
    folder = tmp_path / "before/plain-0"
    shutil.copytree(GOLDEN / "kafka-4.3/data/plain-0", folder)
    logs = files(folder, ".log")
    for log, at in ((logs[1], 90), (logs[4], 9)):
        data = bytearray(log.read_bytes())
        data[at] ^= 0x40
        log.write_bytes(data)
    logs[7].unlink()
    return folder


def values(folder: Path) -> list[bytes | None]:
    """Return the values of all records in the logs."""
    return [
        record.value
        for path in files(folder, ".log")
        for batch in iterate_entries(memoryview(path.read_bytes()))
        for record in decode_records(batch.data)
    ]


def test_a_real_kafka_serves_what_was_rescued(tmp_path: Path, kafka_tool: RunTool) -> None:
    """Indexes are sane and true, the broker recovers without a complaint and serves all records."""
    target = tmp_path / "rescued/plain-0"
    logstore("salvage", damaged(tmp_path), "--into", target)
    logstore("verify", target)
    kept = values(target)
    assert 100 < len(kept) < 179
    indexes = [path for path in files(target, ".index", ".timeindex") if path.stat().st_size]
    for option in ("--index-sanity-check", "--verify-index-only"):
        assert kafka_tool("DumpLogSegments", option, "--files", joined(indexes)).stderr == ""
    peer = start_real(tmp_path / "peer")
    try:
        new_topic(peer.bootstrap, "rescued", config={"index.interval.bytes": "200"})
        peer.stop()
        peer.log.unlink()
        transplant(target, peer, "rescued")
        peer.start()
        found = read_all(CLIENTS[0], peer.bootstrap, "rescued", len(kept))
        assert [sample.value for sample in found] == kept
        assert CLIENTS[0].produce(peer.bootstrap, "rescued", numbered(2, "more")) == [179, 180]
    finally:
        peer.stop()
    about = [line for line in peer.log.read_text().splitlines() if "rescued" in line]
    assert about
    assert [line for line in about if re.search(r"\] (WARN|ERROR|FATAL) ", line)] == []


def test_kafkas_tool_finds_rebuilt_indexes_true(tmp_path: Path, kafka_tool: RunTool) -> None:
    """All indexes of a partition made anew: every entry leads where its batch is."""
    folder = tmp_path / "transactions-0"
    shutil.copytree(GOLDEN / "kafka-4.3/data/transactions-0", folder)
    for path in files(folder, ".index", ".timeindex", ".txnindex", ".snapshot"):
        path.unlink()
    logstore("reindex", folder)
    indexes = [path for path in files(folder, ".index", ".timeindex") if path.stat().st_size]
    done = kafka_tool("DumpLogSegments", "--verify-index-only", "--files", joined(indexes))
    assert done.stderr == ""
    rest = files(folder, ".txnindex", ".snapshot")
    golden = [GOLDEN / "kafka-4.3/data/transactions-0" / path.name for path in rest]
    assert [path.read_bytes() for path in rest] == [path.read_bytes() for path in golden]
