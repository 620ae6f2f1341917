"""One process at a time, where several would fetch or make the same thing on this machine."""

from __future__ import annotations

import fcntl
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path) -> Generator[None]:
    """Wait until nobody else is between here and there; a process that dies lets go of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
