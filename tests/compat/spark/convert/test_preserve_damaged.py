"""``--preserve`` of stores that a crash or damage has left: byte for byte, or what is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from logstore.errors import CorruptEntryError
from tests.compat.spark.convert.test_preserve_rocketmq import (
    differing,
    files_of,
    made,
    topics_in,
)
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases

VERSIONS = ("4.9.8", "5.5.0")
#: queues that lag or lead too far, files that are missing, damage that the next start cuts off
MENDED = (
    "consumequeue-ahead", "consumequeue-ahead-clean", "consumequeue-behind", "flipped-body",
    "no-checkpoint", "no-consumequeue", "no-consumequeue-clean", "no-index", "torn-tail",
    "zero-checkpoint",
)  # fmt: skip
#: stores that say of themselves that they are sound, and have damage in their log
REFUSED = ("flipped-body-clean/before", "torn-tail-clean/before", "flipped-body/after")
CRASHED = [
    pytest.param(case, name, id=f"{case.id}/{name}")
    for case in golden_cases("crash", "crash-pool")
    for name in ("before", "after")
]
DAMAGED = [
    pytest.param(case, f"{name}/before", id=f"{case.id}/{name}")
    for case in golden_cases("damage")
    for name in MENDED
]
REPLICATED = [
    pytest.param(case, name, id=f"{case.id}/{name}")
    for case in golden_cases("replication-async", "replication-sync")
    for name in ("master", "slave")
]


@pytest.mark.parametrize(("case", "name"), CRASHED + DAMAGED + REPLICATED)
def test_a_store_comes_back_as_it_was_left(case: GoldenCase, name: str, tmp_path: Path) -> None:
    """Files made ahead, units that are missing or lead nowhere, remains, ``abort``: all of it."""
    store = case.folder / name
    made(store, tmp_path / "kafka", "kafka", topics=topics_in(store))
    back = made(tmp_path / "kafka", tmp_path / "rocketmq", "rocketmq", settings=case.settings)
    before, after = files_of(store), files_of(tmp_path / "rocketmq")
    assert differing(before, after) == []
    assert after.keys() == before.keys()
    assert (back["restored"]["changed"], back["restored"]["gone"]) == ([], [])


@pytest.mark.parametrize("case", golden_cases("crash", "crash-pool"), ids=lambda case: case.id)
def test_all_that_recovery_brings_back_is_converted(case: GoldenCase, tmp_path: Path) -> None:
    """Also messages of which no queue has a unit on disk: as many as the real broker served."""
    [pair] = case.pairs
    topics = topics_in(pair.after)
    report = made(pair.before, tmp_path / "kafka", "kafka", topics=topics)
    assert report["messages"] == sum(one["topic"] in topics for one in pair.expected) > 0


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("version", VERSIONS)
def test_damage_that_would_be_lost_is_refused_by_its_place(
    version: str, name: str, tmp_path: Path
) -> None:
    """The file of the commit log and the position in it are named; there is no target."""
    (case,) = golden_cases("damage", version=version)
    store = case.folder / name
    place = rf"{re.escape(str(store))}/commitlog/\d{{20}}: position \d+: .*salvage"
    with pytest.raises(CorruptEntryError, match=place):
        made(store, tmp_path / "kafka", "kafka", topics=topics_in(store))
    assert not (tmp_path / "kafka").exists()
