"""A function for many pieces of work in Spark's workers; only what it returns crosses the JVM."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from logstore.compat.spark.connect import core_count, is_connected, map_connected
from logstore.compat.spark.worker_process import WorkerFunction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK_SECONDS = 0.5
#: about how many tasks a core gets, so that a slow one is not what all wait for
_TASKS_A_CORE = 8
_TASK_BYTES_MAX = 512 * 1024 * 1024
#: told (bytes done, bytes all)
Progress = Callable[[int, int], None]


class Sized(Protocol):
    """A piece of work; it must be picklable."""

    @property
    def size_bytes(self) -> int:
        """How much it reads."""
        ...


PieceT = TypeVar("PieceT", bound=Sized)
ResultT = TypeVar("ResultT")


def run_in_workers(
    spark: SparkSession,
    function: Callable[[list[PieceT]], list[ResultT]],
    pieces: Sequence[PieceT],
    progress: Progress | None = None,
) -> list[ResultT]:
    """
    Return what the picklable `function` made of the pieces of each task, in their order.

    Small pieces share a task, and the function may put together what it makes of them; a piece is
    never cut. What it raises is raised, inside of Spark's own error. `progress` is told from
    another thread as tasks end.
    """
    if not pieces:
        return []
    if is_connected(spark):
        return _run_connected(spark, function, pieces, progress)
    context: Any = spark.sparkContext
    done: Any = context.accumulator(0)
    tasks = _shared_out(pieces, context.defaultParallelism)

    def run(task: list[PieceT]) -> list[ResultT]:
        found = function(task)
        done.add(sum(piece.size_bytes for piece in task))
        return found

    watch = _Watch(done, sum(piece.size_bytes for piece in pieces), progress)
    try:
        found: list[ResultT] = (
            context.parallelize(tasks, len(tasks)).flatMap(
                WorkerFunction(run), preservesPartitioning=True
            )
        ).collect()
    finally:
        watch.stop()
    return found


def _run_connected(
    spark: SparkSession,
    function: Callable[[list[PieceT]], list[ResultT]],
    pieces: Sequence[PieceT],
    progress: Progress | None,
) -> list[ResultT]:
    """Do the same where there are no accumulators: by how many tasks are done."""
    tasks = _shared_out(pieces, core_count(spark))
    total = sum(piece.size_bytes for piece in pieces)

    def tell(done: int) -> None:
        assert progress is not None
        progress(total * done // len(tasks), total)

    told = None if progress is None else tell
    return [one for task in map_connected(spark, function, tasks, told) for one in task]


def _shared_out(pieces: Sequence[PieceT], core_count: int) -> list[list[PieceT]]:
    """Put neighbours together to tasks of about the same size."""
    total = sum(piece.size_bytes for piece in pieces)
    limit = min(_TASK_BYTES_MAX, total // (core_count * _TASKS_A_CORE) + 1)
    count_max = len(pieces) // (core_count * _TASKS_A_CORE) + 1  # opening a file costs, too
    tasks: list[list[PieceT]] = []
    filled = 0
    for piece in pieces:
        is_full = filled + piece.size_bytes > limit and filled > 0
        if not tasks or is_full or len(tasks[-1]) >= count_max:
            tasks.append([])
            filled = 0
        tasks[-1].append(piece)
        filled += piece.size_bytes
    return tasks


class _Watch:
    """Tells how much is done while a job runs."""

    def __init__(self, done: Any, total: int, progress: Progress | None) -> None:
        self._done = done
        self._total = total
        self._progress = progress
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="spark-progress", daemon=True)
        if progress is not None:
            self._thread.start()

    def _look(self) -> None:
        assert self._progress is not None
        while not self._is_over.wait(_LOOK_SECONDS):
            self._progress(int(self._done.value), self._total)

    def stop(self) -> None:
        """Tell no more."""
        self._is_over.set()
        if self._progress is not None:
            self._thread.join()
