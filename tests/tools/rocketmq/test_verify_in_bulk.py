"""``logstore verify`` says the same of a store whether it takes messages one by one or in bulk."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from logstore.os_host import system_host
from logstore.segments.rocketmq.columns import RecordScan
from logstore.tools.inspection.rocketmq.verification import store_check
from logstore.tools.inspection.rocketmq.verification.compiled.bulk_index_check import BulkIndexCheck
from logstore.tools.inspection.rocketmq.verification.queues_check import QueuesCheck
from logstore.tools.inspection.rocketmq.verification.store_check import StoreCheck
from logstore.tools.inspection.verification.finding import Finding
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases
from tests.tools.rocketmq.damaged_store import damage

pytest.importorskip("numba")

CASES = [pytest.param(case, id=case.id) for case in golden_cases(without=("damage",))]
#: of these many damages are tried
TRIED = [
    pytest.param(case, id=case.id)
    for case in golden_cases("plain", "delay", "filters", "batch-queue", "ipv6", "transactions")
]
LONG = 1 << 60


def findings(store: Path, bulk_bytes_min: int, monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    """Return what a verification finds; in bulk where the log is as long as that."""
    monkeypatch.setattr(store_check, "bulk_bytes_min", lambda: bulk_bytes_min)
    return list(StoreCheck(system_host().fs, str(store), {}).findings())


@pytest.mark.parametrize("case", CASES)
def test_sound_stores_are_found_sound_in_bulk(
    case: GoldenCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stores of every kind that brokers left: the same notes, and no damage."""
    for store in case.stores.values():
        slowly = findings(store, LONG, monkeypatch)
        assert findings(store, 0, monkeypatch) == slowly
        assert not [one for one in slowly if one.is_damage]


@pytest.mark.parametrize("version", ["4.9.8", "5.5.0"])
def test_what_is_sound_is_not_looked_at_by_itself(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither queues nor index ask for single messages of a store in which all is as it must be."""
    (case,) = golden_cases("plain", version=version)
    scanned: list[int] = []
    take = BulkIndexCheck.take_scan

    def refuse(*found: object) -> None:
        raise AssertionError(found)

    def noted(self: BulkIndexCheck, scan: RecordScan) -> None:
        scanned.append(len(scan))
        take(self, scan)

    monkeypatch.setattr(BulkIndexCheck, "take_scan", noted)
    monkeypatch.setattr(BulkIndexCheck, "take", refuse)
    monkeypatch.setattr(QueuesCheck, "take", refuse)
    assert not [one for one in findings(case.store, 0, monkeypatch) if one.is_damage]
    assert sum(scanned) == len(case.expected)


@pytest.mark.parametrize("case", TRIED)
def test_damage_is_told_alike(
    case: GoldenCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any byte of log, units or index changed, any file cut or gone: the same findings in order."""
    chance = random.Random(case.id)
    told = 0
    for number in range(8):
        store = case.copy_store(tmp_path / str(number))
        for _ in range(chance.choice((1, 1, 2, 5))):
            damage(store, chance)
        slowly = findings(store, LONG, monkeypatch)
        assert findings(store, 0, monkeypatch) == slowly, number
        told += any(one.is_damage for one in slowly)
        shutil.rmtree(store)
    assert told > 1


@pytest.mark.parametrize("case", [*golden_cases("damage")], ids=lambda case: case.id)
def test_the_damaged_golden_stores_are_told_alike(
    case: GoldenCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What real brokers were given to recover, and what they made of it."""
    for pair in case.pairs:
        for store in (pair.before, pair.after):
            slowly = findings(store, LONG, monkeypatch)
            assert findings(store, 0, monkeypatch) == slowly, pair.name
