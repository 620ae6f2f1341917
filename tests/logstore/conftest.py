"""What tests of real files may use."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory of the test's own on a disk: pytest's may be in memory, see memory_disk.py."""
    with tempfile.TemporaryDirectory(prefix="logstore-test-") as directory:
        yield Path(directory)
