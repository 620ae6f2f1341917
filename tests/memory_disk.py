"""Where tests make their files: in memory where there is room, for a quarter off their time."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path

_SHARED_MEMORY = Path("/dev/shm")
#: many times of what all tests together have there at once
_FREE_BYTES_MIN = 4 << 30
#: where pytest is told to begin its temporary directories
_VARIABLE = "PYTEST_DEBUG_TEMPROOT"


def use_memory(
    environment: MutableMapping[str, str],
    directory: Path = _SHARED_MEMORY,
    free_bytes_min: int = _FREE_BYTES_MIN,
) -> bool:
    """
    Have pytest make its temporary directories in `directory`; tell whether it will.

    It must not have been told of another place, and there must be room; JVMs unpack native
    libraries there, which must be allowed to run.
    """
    if _VARIABLE in environment or not hasattr(os, "statvfs") or not os.access(directory, os.W_OK):
        return False
    found = os.statvfs(directory)
    may_run = not found.f_flag & os.ST_NOEXEC
    if not may_run or found.f_bavail * found.f_frsize < free_bytes_min:
        return False
    environment[_VARIABLE] = str(directory)
    return True
