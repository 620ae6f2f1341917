"""Stores that came back by ``convert --preserve``: real brokers start on them and serve all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from logstore.tools.dev.kafka_peer import KafkaPeer
from logstore.tools.dev.maven import PeerUnavailable
from tests.interop.conftest import missing
from tests.interop.rocketmq_sessions import start_real
from tests.interop.test_convert import consumed, convert, kafka_records, messages_of, pulled
from tests.segments.kafka.golden_case import GOLDEN
from tests.segments.rocketmq.golden_case import GoldenCase

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(500)]
#: as a Spark job it is the same tasks
HERE = ("--preserve", "--master", "none")


def test_a_real_kafka_takes_its_segments_back(tmp_path: Path) -> None:
    """4.3 finds nothing to complain about; a consumer reads every record at its old offset."""
    source = GOLDEN / "kafka-4.3" / "data"
    topics = ("transactions", "delete-records", "codec-mixed", "shapes", "groups", "idempotent")
    convert(source, tmp_path / "between", "rocketmq", *HERE, "--topics", ",".join(topics))
    convert(tmp_path / "between", tmp_path / "kafka", "kafka", *HERE)
    for path in source.glob("*/*.log"):
        if path.parent.name.rpartition("-")[0] in topics:
            again = tmp_path / "kafka" / path.parent.name / path.name
            assert again.read_bytes() == path.read_bytes()
    expected = [
        (topic, index, one.offset, one.key, one.value)
        for (topic, index), records in kafka_records(source).items()
        if topic in topics
        for one in records
    ]
    ends = dict.fromkeys(((row[0], row[1]) for row in expected), 0)
    try:
        real = KafkaPeer("4", tmp_path / "real", as_is=tmp_path / "kafka").start()
    except PeerUnavailable as reason:
        missing(str(reason))
    try:
        found = consumed(real.bootstrap, ends, len(expected))
    finally:
        real.stop()
    assert _by_place((*row[:3], *row[4:]) for row in found) == _by_place(expected)
    assert len(expected) > 100


def _by_place(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: row[:3])


def test_a_real_rocketmq_takes_its_store_back(tmp_path: Path) -> None:
    """5.5.0 takes the store for one that it stopped itself; a consumer reads every message."""
    case = GoldenCase("plain", "5.5.0")
    known = ("mappedFileSize", "maxHashSlotNum", "maxIndexNum")
    sizes = [f"{name}={value}" for name, value in case.settings.items() if name.startswith(known)]
    wishes = [word for size in sizes for word in ("--set", size)]
    places = {place: found for place, found in messages_of(case).items() if found}
    topics = ",".join(sorted({topic for topic, _ in places}))
    convert(case.store, tmp_path / "between", "kafka", *HERE, "--topics", topics)
    convert(tmp_path / "between", tmp_path / "store", "rocketmq", *HERE, *wishes)
    for folder in ("commitlog", "consumequeue"):
        for path in (case.store / folder).rglob("*"):
            if path.is_file():
                again = tmp_path / "store" / path.relative_to(case.store)
                assert again.read_bytes() == path.read_bytes()
    expected = [
        (topic, queue_id, m.queue_offset, m.born_timestamp_ms)
        for (topic, queue_id), messages in places.items()
        for m in messages
    ]
    settings: dict[str, object] = dict(case.settings)
    real = start_real("5", tmp_path / "real", settings, tmp_path / "store")
    try:
        found = pulled(real.bootstrap, sorted({topic for topic, _ in places}))
        assert [row[:4] for row in found] == sorted(expected)
        assert "last shutdown normally" in real.log.read_text(errors="replace")
    finally:
        real.stop()
    assert len(expected) > 100
