"""Tests use memory for their files only where nothing speaks against it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.memory_disk import use_memory

VARIABLE = "PYTEST_DEBUG_TEMPROOT"


def test_memory_is_used_where_there_is_room(tmp_path: Path) -> None:
    """Pytest is told by the variable that it looks at."""
    environment: dict[str, str] = {}
    assert use_memory(environment, tmp_path, free_bytes_min=1)
    assert environment == {VARIABLE: str(tmp_path)}


def test_who_names_a_place_gets_it(tmp_path: Path) -> None:
    """Even where memory would do."""
    environment = {VARIABLE: "elsewhere"}
    assert not use_memory(environment, tmp_path, free_bytes_min=1)
    assert environment == {VARIABLE: "elsewhere"}


@pytest.mark.parametrize("name", ["", "missing"])
def test_without_room_or_directory_the_disk_is_used(tmp_path: Path, name: str) -> None:
    """No file system has that much left."""
    environment: dict[str, str] = {}
    assert not use_memory(environment, tmp_path / name, free_bytes_min=2**62 if not name else 1)
    assert environment == {}


def test_nothing_may_run_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As containers often have it."""
    found = list(os.statvfs(tmp_path))
    found[8] |= os.ST_NOEXEC

    def mounted_so(directory: Path) -> os.statvfs_result:
        assert directory == tmp_path
        return os.statvfs_result(found)

    monkeypatch.setattr(os, "statvfs", mounted_so)
    environment: dict[str, str] = {}
    assert not use_memory(environment, tmp_path, free_bytes_min=1)
    assert environment == {}
