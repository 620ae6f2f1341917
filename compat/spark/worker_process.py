"""The Python process that Spark keeps for one task after another."""

from __future__ import annotations

import gc
import os

_settled: set[int] = set()


def settle() -> None:
    """
    Keep what this worker has imported out of its garbage collections; to be called behind a task.

    PySpark collects garbage behind each task, and looks at every object of every library anew:
    30 to 40 ms. Only the first call in a process does anything, so that nothing piles up.
    """
    pid = os.getpid()
    if pid not in _settled:
        _settled.clear()  # of the process that this one was forked from
        _settled.add(pid)
        gc.freeze()
