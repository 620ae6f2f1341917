"""What tasks derive of their messages, against what a store derives of its commit log."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from logstore.compat.spark.convert import to_rocketmq
from logstore.compat.spark.convert.convert import convert
from logstore.compat.spark.convert.derived_store import is_derivable
from logstore.compat.spark.convert.job import HereRunner
from logstore.compat.spark.convert.options import ConvertOptions
from logstore.os_host import system_host
from logstore.segments.rocketmq.opening.checkpoint import StoreCheckpoint
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions
from tests.segments.kafka.golden_case import GOLDEN
from tests.segments.rocketmq.golden_case import GoldenCase

SMALL = {
    "mappedFileSizeCommitLog": "1048576",
    "maxHashSlotNum": "100",
    "maxIndexNum": "400",
    "mappedFileSizeConsumeQueue": "2000",
}
#: when a table was written
_TIME = re.compile(rb'"timestamp":\d+')


def derived_files(store: Path) -> dict[str, bytes]:
    """Return what stands in consume queues and index files; these by number, as time names them."""
    found = {
        str(path.relative_to(store)): path.read_bytes()
        for path in (store / "consumequeue").rglob("*")
        if path.is_file()
    }
    index = sorted((store / "index").iterdir())
    return found | {f"index {number}": path.read_bytes() for number, path in enumerate(index)}


def check_against_recovery(target: Path, tmp_path: Path, settings: dict[str, str]) -> None:
    """Assert that a store derives the same from the commit log alone."""
    alone = tmp_path / "alone"
    (alone / "config").mkdir(parents=True)
    shutil.copytree(target / "commitlog", alone / "commitlog")
    RocketMQStore(system_host(), str(alone), StoreOptions(settings=settings)).close()
    found, expected = derived_files(target), derived_files(alone)
    assert found.keys() == expected.keys()
    assert [name for name in found if found[name] != expected[name]] == []
    ours, theirs = (
        StoreCheckpoint(system_host(), f"{home}/checkpoint") for home in (target, alone)
    )
    assert ours.logics_physical_offset == theirs.logics_physical_offset
    assert ours.logics_msg_timestamp_ms == theirs.logics_msg_timestamp_ms
    assert ours.index_msg_timestamp_ms == theirs.index_msg_timestamp_ms
    assert not (target / "abort").exists()


@pytest.mark.parametrize("name", ["kafka-4.3", "transactions-4.3", "legacy-3.9"])
def test_queues_and_index_are_what_recovery_makes_of_the_log(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte for byte, although nobody opens the store, which would read its log once more."""
    target = tmp_path / "target"
    monkeypatch.delattr(to_rocketmq, "RocketMQStore")
    source = str(GOLDEN / name / "data")
    convert(HereRunner(), ConvertOptions(source, str(target), "rocketmq", settings=SMALL))
    check_against_recovery(target, tmp_path, SMALL)
    checkpoint = StoreCheckpoint(system_host(), f"{target}/checkpoint")
    assert checkpoint.physic_msg_timestamp_ms == checkpoint.logics_msg_timestamp_ms > 0


def test_what_is_entered_into_a_store_is_what_its_own_tables_write(tmp_path: Path) -> None:
    """Topics, groups and offsets stand in the same files as where the store itself enters them."""
    tables: list[dict[str, bytes]] = []
    for number, settings in enumerate((SMALL, {**SMALL, "enableMultiDispatch": "true"})):
        source, target = str(GOLDEN / "kafka-4.3" / "data"), tmp_path / str(number)
        assert is_derivable(settings) is not bool(number)
        convert(HereRunner(), ConvertOptions(source, str(target), "rocketmq", settings=settings))
        files = sorted((target / "config").iterdir())
        tables.append({path.name: _TIME.sub(b"", path.read_bytes()) for path in files})
    assert "consumerOffset.json" in tables[0]
    assert tables[0] == tables[1]


def test_restored_messages_are_derived_the_same_way(tmp_path: Path) -> None:
    """Delays, tags, several keys and what no queue shows: as in the commit log that they are in."""
    for name in ("properties", "delay", "transactions"):
        case = GoldenCase(name, "5.5.0")
        folder = tmp_path / name
        kafka, target = folder / "kafka", folder / "target"
        folder.mkdir()
        convert(HereRunner(), ConvertOptions(str(case.lean_store), str(kafka), "kafka"))
        convert(HereRunner(), ConvertOptions(str(kafka), str(target), "rocketmq", settings=SMALL))
        check_against_recovery(target, folder, SMALL)


@pytest.mark.parametrize("setting", ["enableConsumeQueueExt", "enableMultiDispatch"])
def test_stores_that_only_their_own_recovery_can_complete(setting: str, tmp_path: Path) -> None:
    """Where a unit is more than its message tells, the store derives it, as it always does."""
    settings = {**SMALL, setting: "true"}
    assert is_derivable(SMALL)
    assert not is_derivable(settings)
    source, target = str(GOLDEN / "kafka-4.3" / "data"), tmp_path / "target"
    convert(HereRunner(), ConvertOptions(source, str(target), "rocketmq", settings=settings))
    check_against_recovery(target, tmp_path, settings)
