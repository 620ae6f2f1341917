"""Files whose syncs wait for one of the whole volume."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import pytest

from logstore import deferred_sync
from logstore.deferred_sync import DeferredFileSystem, sync_volume


def test_no_file_and_no_directory_is_synced_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written is there for all to read; nobody waited for the disk."""

    def refuse(_: int) -> None:
        raise AssertionError("synced")

    monkeypatch.setattr(os, "fsync", refuse)
    monkeypatch.setattr(os, "fdatasync", refuse, raising=False)
    fs = DeferredFileSystem()
    file = fs.open(str(tmp_path / "a"), create=True)
    file.write(0, b"abc")
    file.sync()
    fs.sync_directory(str(tmp_path))
    file.close()
    assert (tmp_path / "a").read_bytes() == b"abc"
    reader = fs.open(str(tmp_path / "a"), writable=False)
    assert reader.read(0, 10) == b"abc"
    reader.close()


def test_the_volume_is_synced_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the system's call for one volume; where it has none, by the one for all."""
    sync_volume(str(tmp_path))
    called: list[bool] = []
    monkeypatch.setattr(deferred_sync, "_syncfs", lambda: None)
    monkeypatch.setattr(os, "sync", lambda: called.append(True))
    sync_volume(str(tmp_path))
    assert called == [True]


def test_a_disk_that_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the disk is raised and names the path; so is one about the path itself."""

    def fails(_: int) -> int:
        ctypes.set_errno(5)
        return -1

    found: Any = fails
    monkeypatch.setattr(deferred_sync, "_syncfs", lambda: found)
    with pytest.raises(OSError, match=str(tmp_path)) as failure:
        sync_volume(str(tmp_path))
    assert failure.value.errno == 5
    with pytest.raises(FileNotFoundError):
        sync_volume(str(tmp_path / "missing"))
