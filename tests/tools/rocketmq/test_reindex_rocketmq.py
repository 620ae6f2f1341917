"""``logstore reindex`` makes consume queues and index of a RocketMQ store anew, byte by byte."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from logstore.os_host import SystemFileSystem, system_host
from logstore.partition import Record
from logstore.segments.rocketmq import bulk_dispatch
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions
from logstore.tools.inspection.rocketmq.rebuilding import derived_store
from tests.segments.rocketmq.golden_case import GoldenCase, copy_of_store, golden_cases
from tests.tools.command_line import CommandLine

CASES = [
    pytest.param(case, id=case.id)
    for case in golden_cases(without=("damage", "crash", "crash-pool"))
]
DERIVED = ("consumequeue", "batchconsumequeue", "consumequeue_ext", "index")
SMALL = {
    "mappedFileSizeCommitLog": "65536",
    "mappedFileSizeConsumeQueue": "400",
    "maxHashSlotNum": "100",
    "maxIndexNum": "400",
}


def derived(store: Path) -> dict[str, bytes]:
    """Return what stands in the derived files; those of zeros alone are only made ahead."""
    found = {
        str(path.relative_to(store)): path.read_bytes()
        for folder in DERIVED
        for path in (store / folder).rglob("*")
        if path.is_file()
    }
    return {name: data for name, data in found.items() if any(data)}


def sizes_of(case: GoldenCase) -> list[str]:
    """Return the settings that a store without an index does not tell."""
    return [
        f"--set={name}={case.settings[name]}"
        for name in (
            "maxHashSlotNum",
            "maxIndexNum",
            "mappedFileSizeConsumeQueue",
            "messageDelayLevel",
        )
        if name in case.settings
    ]


@pytest.mark.parametrize("case", CASES)
def test_what_a_broker_wrote_is_right_already(
    case: GoldenCase, tmp_path: Path, logstore: CommandLine
) -> None:
    """Every file comes out as it was, so that nothing is written."""
    for number, source in enumerate(case.stores.values()):
        store = copy_of_store(source, tmp_path / str(number))
        before = derived(store)
        outcome = logstore("reindex", "--json", store)
        assert outcome.exit_code == 0, outcome.err
        assert {line["outcome"] for line in outcome.json_lines} == {"unchanged"}
        assert derived(store) == before
        assert not (store / ".reindexing").exists()


@pytest.mark.parametrize("case", CASES)
def test_deleted_files_come_back_byte_by_byte(
    case: GoldenCase, tmp_path: Path, logstore: CommandLine
) -> None:
    """Queues of all kinds, and the index, whose files have new names only."""
    for number, source in enumerate(case.stores.values()):
        store = copy_of_store(source, tmp_path / str(number))
        before = derived(store)
        for folder in DERIVED:
            if (store / folder).exists() and folder not in (
                "consumequeue_ext",
                "batchconsumequeue",
            ):
                shutil.rmtree(store / folder)
        set_ext = (
            "--set=enableConsumeQueueExt=true" if (store / "consumequeue_ext").exists() else None
        )
        multi = [
            f"--set={name}=true"
            for name in ("enableMultiDispatch", "enableLmq")
            if case.settings.get(name) == "true"
        ]
        options = [*sizes_of(case), *multi, *filter(None, [set_ext])]
        outcome = logstore("reindex", store, *options)
        assert outcome.exit_code == 0, outcome.err
        after = derived(store)
        ext = {name for name in before if "_ext" in name}
        queues = {
            name: data
            for name, data in before.items()
            if not name.startswith("index") and name not in ext
        }
        if not ext:  # bit maps stood in the old ones alone
            assert {n: d for n, d in after.items() if not n.startswith("index")} == queues
        assert [d for n, d in sorted(after.items()) if n.startswith("index")] == [
            d for n, d in sorted(before.items()) if n.startswith("index")
        ]
        assert logstore("verify", store, *sizes_of(case)).exit_code == 0


def test_damaged_files_are_replaced(tmp_path: Path, logstore: CommandLine) -> None:
    """Wrong units and entries are right again; a dry run says so and does not touch them."""
    (case,) = golden_cases("plain", version="5.5.0")
    store = case.copy_store(tmp_path / "store")
    before = derived(store)
    queue, index = sorted(before)[0], sorted(name for name in before if name[:5] == "index")[1]
    for name in (queue, index):
        data = bytearray(before[name])
        data[44:60] = bytes(range(16))
        (store / name).write_bytes(data)
    damaged = derived(store)
    dry = logstore("reindex", "--dry-run", store)
    assert f"{queue}: would be replaced" in dry.out
    assert derived(store) == damaged
    outcome = logstore("reindex", "--json", store)
    changed = {line["file"] for line in outcome.json_lines if line["outcome"] != "unchanged"}
    assert changed == {queue, index}
    assert derived(store) == before
    assert logstore("verify", store).exit_code == 0


def test_vectorised_it_is_the_same(
    tmp_path: Path, logstore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the compiled loops are, a large log is dispatched by them."""
    pytest.importorskip("numba")
    runs: list[int] = []
    take = bulk_dispatch.BulkDispatch.take

    def counted(self: bulk_dispatch.BulkDispatch, records: memoryview) -> int:
        runs.append(len(records))
        return take(self, records)

    monkeypatch.setattr(derived_store, "bulk_bytes_min", lambda: 1)
    monkeypatch.setattr(bulk_dispatch.BulkDispatch, "take", counted)
    for case in golden_cases("plain", "properties", "transactions"):
        store = case.copy_store(tmp_path / case.id)
        before = derived(store)
        shutil.rmtree(store / "consumequeue")
        assert logstore("reindex", store, *sizes_of(case)).exit_code == 0
        assert derived(store) == before
    assert runs


def test_a_damaged_commit_log_is_refused(tmp_path: Path, logstore: CommandLine) -> None:
    """Nothing is changed; the error names file, position, and what helps."""
    (case,) = golden_cases("damage", version="5.5.0")
    (pair,) = [pair for pair in case.pairs if pair.name == "flipped-body"]
    store = pair.copy_before(tmp_path / "store")
    before = derived(store)
    outcome = logstore("reindex", store)
    assert outcome.exit_code == 1
    assert "commitlog/00000000000000131072: position " in outcome.err
    assert "logstore salvage" in outcome.err
    assert derived(store) == before


def test_a_torn_tail_is_none_of_its_business(tmp_path: Path, logstore: CommandLine) -> None:
    """What leads behind the last good record goes: afterwards nothing is ahead of the log."""
    (case,) = golden_cases("damage", version="4.9.8")
    for pair in case.pairs:
        if pair.name in (
            "torn-tail",
            "consumequeue-ahead",
            "no-consumequeue",
            "consumequeue-behind",
        ):
            store = pair.copy_before(tmp_path / pair.name)
            assert logstore("reindex", store).exit_code == 0
            kinds = {line["kind"] for line in logstore("verify", "--json", store).json_lines}
            assert kinds <= {"abort", "tail", "checkpoint"}, pair.name


def test_a_dry_run_writes_nothing_into_the_store(
    tmp_path: Path, logstore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may stand on a disk that can only be read."""
    (case,) = golden_cases("plain", version="5.5.0")
    store = case.copy_store(tmp_path / "store")
    gone = next(path for path in sorted((store / "consumequeue").rglob("0*")) if path.is_file())
    size_bytes = gone.stat().st_size
    gone.unlink()
    made = SystemFileSystem.make_directory

    def elsewhere(fs: SystemFileSystem, path: str) -> None:
        assert not path.startswith(f"{store}/")
        made(fs, path)

    monkeypatch.setattr(SystemFileSystem, "make_directory", elsewhere)
    before = sorted(store.rglob("*"))
    outcome = logstore("reindex", "--dry-run", store)
    assert outcome.exit_code == 0, outcome.err
    name = gone.relative_to(store)
    assert outcome.lines == [f"{name}: would be made: was missing, now {size_bytes}"]
    assert sorted(store.rglob("*")) == before


def test_a_store_in_use_is_refused(tmp_path: Path, logstore: CommandLine) -> None:
    """The lock of a broker keeps it out; a copy is made without the lock and worked on."""
    store = RocketMQStore(system_host(), str(tmp_path / "store"), StoreOptions(settings=SMALL))
    store.queue("T", 0).append_records([Record(b"k", b"v", 1_700_000_000_000)] * 30)
    refused = logstore("reindex", tmp_path / "store")
    assert refused.exit_code == 1
    assert "in use by process" in refused.err
    store.close()
    copied = logstore("reindex", "--into", tmp_path / "copy", tmp_path / "store")
    assert copied.exit_code == 0, copied.err
    assert derived(tmp_path / "copy") == derived(tmp_path / "store")
    assert not (tmp_path / "copy" / "lock").exists()


def test_what_the_log_cannot_tell_any_more_stays(tmp_path: Path, logstore: CommandLine) -> None:
    """Queues go on at the same queue offset, also where their messages were deleted."""
    store = RocketMQStore(system_host(), str(tmp_path), StoreOptions(settings=SMALL))
    store.queue("Old", 0).append_records([Record(b"k", b"v", 1_700_000_000_000)] * 25)
    for _ in range(150):
        store.queue("New", 0).append_records([Record(b"k", bytes(1000), 1_700_000_000_000)])
    store.dispatch()
    store.commit_log.delete_below(65536)
    store.close()
    before = derived(tmp_path)
    outcome = logstore("reindex", "--set=maxHashSlotNum=5000000", tmp_path)
    assert outcome.exit_code == 0, outcome.err
    after = derived(tmp_path)
    queues = {name for name in before if name.startswith("consumequeue")}
    assert {name: after[name] for name in queues} == {name: before[name] for name in queues}
    again = RocketMQStore(system_host(), str(tmp_path), StoreOptions(settings=SMALL))
    assert again.max_queue_offset("Old", 0) == 25
    assert again.max_queue_offset("New", 0) == 150
    again.close()
