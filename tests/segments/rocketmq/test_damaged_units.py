"""A bad unit of a queue costs nothing after a clean stop: the commit log knows what stood there."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.testing import SimulatedHost
from tests.segments.rocketmq.drafts import draft
from tests.segments.rocketmq.golden_case import GoldenCase
from tests.segments.rocketmq.golden_rewrite import queue_bytes
from tests.segments.rocketmq.small_store import DIRECTORY, bodies, small_store
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


@pytest.mark.parametrize("is_writable", [True, False])
def test_what_no_queue_knows_any_more_is_dispatched(is_writable: bool) -> None:
    """A queue has lost its units, and another one those of messages that the log has lost."""
    host = SimulatedHost()
    store = small_store(host)
    for queue_id, body in ((0, b"first"), (1, b"lost unit"), (0, b"lost message")):
        store.put_message(draft(queue_id=queue_id, body=body))
    store.close()
    file = host.fs.open(f"{DIRECTORY}/commitlog/{0:020d}")
    position = file.read(0, 4096).index(b"lost message")
    file.write(position, b"X")
    units = host.fs.open(f"{DIRECTORY}/consumequeue/TopicTest/1/{0:020d}")
    units.write(0, bytes(UNIT_BYTES))
    store = small_store(host, is_writable=is_writable)
    assert [bodies(store, queue_id=one) for one in (0, 1)] == [[b"first"], [b"lost unit"]]
    store.close()
