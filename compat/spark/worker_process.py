"""The Python process that Spark keeps for one task after another."""

from __future__ import annotations

import gc
import os
import socket
from collections.abc import Callable
from typing import Any, Generic, TypeVar

ArgumentT = TypeVar("ArgumentT")
ResultT = TypeVar("ResultT")
_settled: set[int] = set()
_OPEN_FILES = "/proc/self/fd"


class SentToWorker:
    """
    What a task brings along: when it arrives, the rest of the task does not wait for it.

    The JVM sends what a task runs, and then what it is run on; on a socket that holds small writes
    back until the one before is acknowledged, while the worker's system puts that off: 40 ms a
    task in which nobody does anything.
    """

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        acknowledge()


class WorkerFunction(SentToWorker, Generic[ArgumentT, ResultT]):
    """A picklable function that begins and ends as a task should."""

    def __init__(self, function: Callable[[ArgumentT], ResultT]) -> None:
        self._function = function

    def __call__(self, argument: ArgumentT) -> ResultT:
        """Return what the function returns."""
        result = self._function(argument)
        settle()
        return result


def acknowledge() -> None:
    """Acknowledge what has come on this process's TCP connections now, where the system can."""
    if not hasattr(socket, "TCP_QUICKACK"):
        return
    for name in os.listdir(_OPEN_FILES):
        try:
            connection = socket.socket(fileno=int(name))
        except OSError:
            continue  # a file, or the listing itself, which is closed by now
        try:
            if connection.family in {socket.AF_INET, socket.AF_INET6}:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        except OSError:
            continue  # it carries datagrams
        finally:
            connection.detach()  # it is not ours


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
