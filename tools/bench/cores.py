"""
So many cores, and no more, for all that a measurement runs: this process and what it has started.

Spark with one worker is not yet a machine with one core: the JVM, and whatever the worker does in
a second thread, would run on another one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator

from logstore.tools.bench.processes import tree


@contextlib.contextmanager
def only(core_count: int) -> Generator[None]:
    """
    Keep this process and its children to so many cores; what they start meanwhile stays there too.

    Where the system cannot do that (it is Linux that can), nothing is done.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    all_cores = os.sched_getaffinity(0)
    _keep_to(set(sorted(all_cores)[:core_count]))
    try:
        yield
    finally:
        _keep_to(all_cores)


def _keep_to(cores: set[int]) -> None:
    for process in tree(os.getpid()):
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):  # it has just ended
            for thread in os.listdir(f"/proc/{process}/task"):
                os.sched_setaffinity(int(thread), cores)
