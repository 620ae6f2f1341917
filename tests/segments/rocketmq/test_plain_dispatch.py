"""A log caught up with run by run, without any extra, gives the files of single dispatches."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.host import read_file
from logstore.segments.rocketmq.index.index_file import IndexSizes
from logstore.segments.rocketmq.index.message_index import MessageIndex
from logstore.segments.rocketmq.messages.dispatch_request import DispatchRequest
from logstore.segments.rocketmq.opening.checkpoint import StoreCheckpoint
from logstore.segments.rocketmq.plain_dispatch import PlainDispatch
from logstore.testing.simulated_host import SimulatedHost
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases
from tests.segments.rocketmq.golden_rewrite import Rewriter, index_bytes, queue_bytes

CASES = golden_cases(
    "plain", "properties", "delay", "transactions", "batch-queue", "property-crc", "multi-dispatch"
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_log_alone_gives_the_brokers_queues_and_index(
    case: GoldenCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a kill before any dispatch, queues and index made anew are the real broker's."""
    taken: list[int] = []
    take = PlainDispatch.take

    def counted(self: PlainDispatch, records: memoryview) -> int:
        taken.append(take(self, records))
        return taken[-1]

    monkeypatch.setattr(PlainDispatch, "take", counted)
    rewriter = Rewriter(case, case.store, tmp_path / "store")
    rewriter.run().abandon()
    assert queue_bytes(tmp_path / "store") == {}
    store = rewriter.open()
    assert store.recovery.dispatched_count == sum(taken) > 0
    store.close()
    assert queue_bytes(tmp_path / "store") == queue_bytes(case.store)
    assert index_bytes(tmp_path / "store") == index_bytes(case.store)


def index_files(groups: list[list[bytes]], *, is_grouped: bool) -> list[bytes]:
    """Return the index files of messages with these properties, put one by one or in groups."""
    host = SimulatedHost()
    host.fs.make_directory("/store")
    checkpoint = StoreCheckpoint(host, "/store/checkpoint")
    index = MessageIndex(host, "/store/index", checkpoint, sizes=IndexSizes(3, 6))
    place = 0
    for number, texts in enumerate(groups):
        stored_ms = 1_700_000_000_000 + 900 * number
        places = list(range(place, place + 100 * len(texts), 100))
        place += 100 * len(texts)
        behind = [b"\0\0" + text for text in texts]
        if is_grouped and index.put_alike("topic", behind, places, stored_ms):
            continue
        for text, at in zip(texts, places, strict=True):
            index.put(DispatchRequest("topic", 0, at, 100, 0, stored_ms, 0, 0, 0, text))
    index.write()
    return [read_file(host.fs, file.path) for file in index.files]


texts = st.sampled_from(
    [b"", b"WAIT\x01true\x02", b"KEYS\x01a b c\x02", b"TAGS\x01x\x02"]
    + [b"UNIQ_KEY\x01AC1100020A2B%d\x02" % number for number in range(10_000_000, 10_000_004)]
)


@given(st.lists(st.lists(texts, min_size=1, max_size=5), max_size=8))
def test_keys_put_together_fill_the_same_files(groups: list[list[bytes]]) -> None:
    """Whatever keys there are or are not, and wherever a file is full."""
    assert index_files(groups, is_grouped=True) == index_files(groups, is_grouped=False)
