"""A long log dispatched in bulk gives the same files as one message after the other."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from logstore.segments.rocketmq import bulk_dispatch
from logstore.segments.rocketmq.log import record_walk
from logstore.segments.rocketmq.opening import recovering
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases
from tests.segments.rocketmq.golden_rewrite import Rewriter, index_bytes, queue_bytes

pytest.importorskip("numba")

CASES = golden_cases(
    "plain", "properties", "delay", "transactions", "batch-queue", "property-crc", "multi-dispatch"
)


@pytest.fixture(autouse=True)
def every_log_is_long(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let recovery take even a few messages for many; return how many runs went in bulk."""
    monkeypatch.setattr(recovering, "bulk_bytes_min", lambda: 0)
    taken: list[int] = []
    take = bulk_dispatch.BulkDispatch.take

    def counted(self: bulk_dispatch.BulkDispatch, records: memoryview) -> int:
        taken.append(len(records))
        return take(self, records)

    monkeypatch.setattr(bulk_dispatch.BulkDispatch, "take", counted)
    return taken


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_log_alone_gives_the_brokers_queues_and_index(
    case: GoldenCase, tmp_path: Path, every_log_is_long: list[int]
) -> None:
    """After a kill before any dispatch, queues and index made in bulk are the real broker's."""
    rewriter = Rewriter(case, case.store, tmp_path / "store")
    rewriter.run().abandon()
    assert queue_bytes(tmp_path / "store") == {}
    store = rewriter.open()
    assert store.recovery.dispatched_count > 0
    store.close()
    assert queue_bytes(tmp_path / "store") == queue_bytes(case.store)
    assert index_bytes(tmp_path / "store") == index_bytes(case.store)
    is_possible = case.settings.get("enableMultiDispatch") != "true"
    assert bool(every_log_is_long) is is_possible


@pytest.mark.parametrize("case", golden_cases("properties"), ids=lambda case: case.id)
def test_what_is_there_already_is_passed_over(
    case: GoldenCase, tmp_path: Path, every_log_is_long: list[int]
) -> None:
    """A kill after a part was dispatched and written leaves nothing twice."""
    rewriter = Rewriter(case, case.store, tmp_path / "store")
    store = rewriter.run(dispatch_each=True)
    store.consume_queues.write()
    store.abandon()
    rewriter.open().close()
    assert every_log_is_long
    assert queue_bytes(tmp_path / "store") == queue_bytes(case.store)


@pytest.mark.parametrize("case", golden_cases("plain"), ids=lambda case: case.id)
def test_what_is_dispatched_in_bulk_is_checked_so_from_the_start(
    case: GoldenCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recovery that loads the compiled loops anyway checks no part of the log without them."""
    rewriter = Rewriter(case, case.store, tmp_path / "store")
    rewriter.run().abandon()
    looked_for: list[record_walk.RunChecker] = []
    find = record_walk._find_vectorised  # pyright: ignore[reportPrivateUsage]

    def noted() -> record_walk.RunChecker:
        looked_for.append(find())
        return looked_for[-1]

    monkeypatch.setattr(record_walk, "_find_vectorised", noted)
    store = rewriter.open()
    assert store.recovery.dispatched_count > 0
    assert len(looked_for) == 1
    assert looked_for[0] is not record_walk.check_run
    store.close()


def test_loops_nobody_has_compiled_are_for_long_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start after a crash does not wait for a compiler where less is to be caught up with."""
    monkeypatch.setattr(bulk_dispatch, "__file__", str(tmp_path / "bulk_dispatch.py"))
    cold_bytes = bulk_dispatch.bulk_bytes_min()
    kept = tmp_path / "columns" / "__pycache__"
    kept.mkdir(parents=True)
    (kept / "scan_loops.scan-1.py311.nbi").touch()
    assert 10 * bulk_dispatch.bulk_bytes_min() < cold_bytes


def test_the_kept_loops_have_the_name_that_is_looked_for() -> None:
    """Numba names them so, and keeps them there unless it cannot write."""
    from logstore.segments.rocketmq.columns import scan_loops

    loop: Any = scan_loops.scan
    assert (loop.__module__.rpartition(".")[2], loop.__name__) == ("scan_loops", "scan")
    if "NUMBA_CACHE_DIR" not in os.environ:
        folder = Path(bulk_dispatch.__file__).with_name("columns") / "__pycache__"
        assert Path(loop.stats.cache_path).resolve() == folder.resolve()
