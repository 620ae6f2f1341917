"""A topic in a record is covered by no checksum: whatever it is, no start ends because of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from logstore.segments.rocketmq.opening import recovering
from tests.segments.rocketmq.golden_case import GoldenCase
from tests.segments.rocketmq.golden_records import stored_records
from tests.segments.rocketmq.test_golden_recovery import opened, read_all

CASE = GoldenCase("plain", "5.5.0")
NUMBER = 5


@pytest.mark.parametrize("is_bulk", [False, True])
@pytest.mark.parametrize("wrong", [b"\0", b"/"])
def test_its_message_is_passed_over_alone(
    wrong: bytes,
    is_bulk: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It can have no queue, which is said with its place; all others are there again."""
    if is_bulk:
        pytest.importorskip("numba")
        monkeypatch.setattr(recovering, "bulk_bytes_min", lambda: 0)
    whole = opened(CASE, CASE.copy_store(tmp_path / "whole"))
    expected = {(one[0], one[3]) for one in read_all(whole)}
    whole.close()
    directory = CASE.copy_store(tmp_path / "store")
    record = list(stored_records(directory))[NUMBER]
    topic = next(name for name, _ in expected if name.encode() in record.data)
    position = record.position + record.data.index(topic.encode()) + 2
    with record.file.open("r+b") as file:
        file.seek(position)
        file.write(wrong)
    shutil.rmtree(directory / "consumequeue")
    (directory / "abort").touch()
    store = opened(CASE, directory)
    found = {(one[0], one[3]) for one in read_all(store)}
    store.close()
    ((lost_topic, lost_body),) = expected - found
    assert lost_topic == topic
    assert lost_body in record.data
    assert found <= expected
    (said,) = {r.getMessage() for r in caplog.records if "can have no directory" in r.getMessage()}
    assert f"physical offset {record.physical_offset}: " in said
    opened(CASE, directory).close()
