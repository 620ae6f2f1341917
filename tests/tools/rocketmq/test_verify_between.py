"""Stores of releases between the two that are compared in full are found sound, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from logstore.os_host import system_host
from logstore.segments.rocketmq.index.index_file import HEADER
from logstore.tools.inspection.rocketmq.stored_store import StoredStore
from logstore.tools.inspection.rocketmq.verification import store_check
from logstore.tools.inspection.rocketmq.verification.store_check import StoreCheck
from tests.segments.rocketmq.golden_case import GoldenCase

Damages = Callable[[Path], list[str]]


@pytest.fixture(params=["one by one", "in bulk"])
def damages(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Damages:
    """Return who verifies a store, whether it takes messages one by one or in bulk."""
    if request.param == "in bulk":
        pytest.importorskip("numba")
    bulk_bytes_min = 0 if request.param == "in bulk" else 1 << 60
    monkeypatch.setattr(store_check, "bulk_bytes_min", lambda: bulk_bytes_min)

    def damages(store: Path) -> list[str]:
        found = StoreCheck(system_host().fs, str(store), {}).findings()
        return [one.text for one in found if one.is_damage]

    return damages


def test_tags_have_no_entries_before_5_4(damages: Damages, tmp_path: Path) -> None:
    """As in 4.x; what ends a transaction has a tag and no key, so the index lacks it."""
    store = GoldenCase("transactions", "4.9.8").copy_store(tmp_path / "store")
    (store / "timerwheel").mkdir()  # no 4.x has one
    assert StoredStore(system_host().fs, str(store)).release.has_tag_entries
    assert damages(store) == []


def test_an_entry_of_a_tag_is_missed_where_tags_have_one(damages: Damages, tmp_path: Path) -> None:
    """An index that ends in front of the last messages is behind, whatever those have."""
    store = GoldenCase("transactions", "5.5.0").copy_store(tmp_path / "store")
    assert damages(store) == []
    last = max((store / "index").iterdir())
    last.unlink()
    assert "have keys and no entry" in damages(store)[0]


def test_slots_are_counted_with_every_entry_before_4_7(damages: Damages, tmp_path: Path) -> None:
    """The header has as many slots as entries then."""
    store = GoldenCase("plain", "4.9.8").copy_store(tmp_path / "store")
    for path in (store / "index").iterdir():
        data = bytearray(path.read_bytes())
        *before, _, next_number = HEADER.unpack_from(data)
        data[: HEADER.size] = HEADER.pack(*before, next_number - 1, next_number)
        path.write_bytes(data)
    assert damages(store) == []
