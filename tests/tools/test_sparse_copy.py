"""Copies of files that are nearly all holes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from logstore.tools.inspection.rebuilding.sparse_copy import copy_sparsely

MIB = 1024 * 1024


@pytest.mark.parametrize(
    "pieces",
    [
        {},
        {0: b"start"},
        {5 * MIB - 3: b"across the edge of a step"},
        {0: b"start", 3 * MIB: bytes(MIB), 40 * MIB: b"x" * 3 * MIB},
    ],
    ids=["none", "start", "edge", "many"],
)
@pytest.mark.parametrize("size", [0, 64 * MIB])
def test_a_copy_is_equal_and_takes_no_more_room(
    tmp_path: Path, pieces: dict[int, bytes], size: int
) -> None:
    """Bytes, length, mode and times; what was a hole is one again."""
    source, target = tmp_path / "source", tmp_path / "target"
    with source.open("wb") as file:
        for position, piece in pieces.items():
            file.seek(position)
            file.write(piece)
        if size:
            file.truncate(size)
    os.utime(source, ns=(1, 1_700_000_000_000_000_000))
    source.chmod(0o640)
    assert copy_sparsely(str(source), str(target)) == str(target)
    assert target.read_bytes() == source.read_bytes()
    assert target.stat().st_mtime_ns == source.stat().st_mtime_ns
    assert target.stat().st_mode == source.stat().st_mode
    assert target.stat().st_blocks * 512 <= source.stat().st_blocks * 512 + 2 * MIB
