"""What the system is asked to fetch before a walk over headers comes to it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from logstore.compat.spark.read_ahead import ReadAhead
from logstore.os_host import system_host

_MB = 1024 * 1024


def asked(
    monkeypatch: pytest.MonkeyPatch, path: Path, bounds: tuple[int, int], gap_bytes: int
) -> list[tuple[int, int]]:
    """Walk over a file; return (start, end) of what was asked for."""
    path.touch()
    found: list[tuple[int, int]] = []

    def advise(descriptor: int, start: int, size_bytes: int, advice: int) -> None:
        assert os.fstat(descriptor).st_ino == path.stat().st_ino
        assert advice == os.POSIX_FADV_WILLNEED
        found.append((start, start + size_bytes))

    monkeypatch.setattr(os, "posix_fadvise", advise)
    file = system_host().fs.open(str(path), writable=False)
    ahead = ReadAhead(file, *bounds)
    for position in range(*bounds, gap_bytes):
        ahead.look(position, gap_bytes)
        assert not found or found[-1][1] <= position + 24 * _MB
    file.close()
    return found


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system has no posix_fadvise")
@pytest.mark.parametrize("bounds", [(0, 100 * _MB), (5, 8 * _MB), (33, 20 * _MB + 1)])
def test_all_is_asked_for_once_in_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bounds: tuple[int, int]
) -> None:
    """Each piece follows the one before it, and nothing behind the end is asked for."""
    found = asked(monkeypatch, tmp_path / "0.log", bounds, 16 * 1024)
    assert found[0][0] == bounds[0]
    assert found[-1][1] == bounds[1]
    assert [end for _, end in found[:-1]] == [start for start, _ in found[1:]]


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system has no posix_fadvise")
def test_large_gaps_are_left_to_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of a file with large batches only the headers are fetched."""
    assert asked(monkeypatch, tmp_path / "0.log", (0, 100 * _MB), _MB) == []
