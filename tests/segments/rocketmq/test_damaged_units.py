"""A bad unit of a queue costs nothing after a clean stop: the commit log knows what stood there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.segments.rocketmq.golden_case import GoldenCase
from tests.segments.rocketmq.golden_rewrite import queue_bytes
from tests.segments.rocketmq.test_golden_recovery import opened, read_all

CASE = GoldenCase("damage", "5.5.0")
UNIT_BYTES = 20


@pytest.mark.parametrize("number", [0, 7])
@pytest.mark.parametrize("bad", [b"\x7f" * 8 + b"\xff" * 12, b"\xff" * 20, bytes(20)])
def test_the_queue_comes_back_byte_for_byte(bad: bytes, number: int, tmp_path: Path) -> None:
    """Messages behind the unit are dispatched again, although other queues know later ones."""
    directory = CASE.copy_store(tmp_path / "store", "base")
    before = queue_bytes(directory)
    file = min((directory / "consumequeue").glob("*/0/*"))
    data = bytearray(file.read_bytes())
    data[number * UNIT_BYTES : (number + 1) * UNIT_BYTES] = bad
    file.write_bytes(data)
    store = opened(CASE, directory)
    assert len(read_all(store)) == len(CASE.expected)
    store.close()
    assert queue_bytes(directory) == before
