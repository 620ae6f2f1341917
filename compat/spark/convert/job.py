"""Tasks, each run once for good: those of an earlier run are not run again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import attrs

from logstore.compat.spark.connect import core_count, is_connected, map_connected
from logstore.compat.spark.convert.carried_errors import Carrying, unpacked
from logstore.compat.spark.convert.work_folder import Attempt, WorkFolder
from logstore.compat.spark.worker_process import WorkerFunction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK_SECONDS = 0.5
#: told (what is being done, bytes of the source done, bytes all)
Progress = Callable[[str, int, int], None]
ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


class Runner(Protocol):
    """Runs a function for many items, somewhere."""

    @property
    def parallelism(self) -> int:
        """How many at a time."""
        ...

    def map(self, function: Callable[[ItemT], ResultT], items: Sequence[ItemT]) -> list[ResultT]:
        """Return what the function returned for each item; what it raised is raised."""
        ...


@attrs.frozen
class SparkRunner:
    """Runs a Spark task for each item; function and items must be picklable."""

    spark: SparkSession

    @property
    def parallelism(self) -> int:
        """How many cores Spark has."""
        if is_connected(self.spark):
            return core_count(self.spark)
        return self.spark.sparkContext.defaultParallelism

    def map(self, function: Callable[[ItemT], ResultT], items: Sequence[ItemT]) -> list[ResultT]:
        """Run them all in Spark's workers."""
        if not items:
            return []
        try:
            if is_connected(self.spark):
                return map_connected(self.spark, Carrying(function), items)
            rows: Any = self.spark.sparkContext.parallelize(items, len(items))
            results: list[ResultT] = rows.map(WorkerFunction(Carrying(function))).collect()
        except Exception as error:
            told = unpacked(str(error))
            if told is None:
                raise
            raise told from None
        return results


@attrs.frozen
class HereRunner:
    """Runs one item after the other in this process: for small stores, and for tests."""

    parallelism: int = 1

    def map(self, function: Callable[[ItemT], ResultT], items: Sequence[ItemT]) -> list[ResultT]:
        """Run them all."""
        return [function(item) for item in items]


class Task(Protocol):
    """A piece of a conversion: reads files, writes files; may run twice."""

    @property
    def number(self) -> int:
        """Which of the tasks it is."""
        ...

    @property
    def size_bytes(self) -> int:
        """How much of the source it reads."""
        ...

    def run(self, attempt: Attempt) -> object:
        """Make its files, durably; return what the driver wants to know."""
        ...


def run_tasks(
    runner: Runner,
    folder: WorkFolder,
    tasks: Sequence[Task],
    progress: Progress | None = None,
) -> list[Any]:
    """Run every task that is not done yet; return what all of them reported, in order."""
    missing = [task for task in tasks if not folder.is_done(task.number)]
    folder.clear_attempts()
    target = str(folder.target)
    watch = _Watch(folder, tasks, progress)
    try:
        runner.map(lambda task: _run(task, target), missing)
    finally:
        watch.stop()
    return [folder.outcome(task.number) for task in tasks]


def _run(task: Task, target: str) -> None:
    """
    Run one task in a worker, and say that it is done.

    Its files get their names when all of them are whole: of two that run the same task, as Spark
    does with slow ones, neither can spoil what the other has made.
    """
    folder = WorkFolder(target)
    attempt = folder.begin_attempt(task.number)
    try:
        outcome = task.run(attempt)
        attempt.publish(folder)
    except BaseException:
        attempt.remove()  # it may be that there is no room for it
        raise
    folder.report(task.number, outcome)


class _Watch:
    """Tells how much is done while tasks run."""

    def __init__(
        self, folder: WorkFolder, tasks: Sequence[Task], progress: Progress | None
    ) -> None:
        self._folder = folder
        self._sizes = {task.number: task.size_bytes for task in tasks}
        self._progress = progress
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        if progress is not None:
            self._thread.start()

    def _look(self) -> None:
        while not self._is_over.wait(_LOOK_SECONDS):
            self._tell()

    def _tell(self) -> None:
        assert self._progress is not None
        done = sum(self._sizes.get(number, 0) for number in self._folder.numbers_done())
        self._progress("writing", done, sum(self._sizes.values()))

    def stop(self) -> None:
        """Tell it a last time."""
        self._is_over.set()
        if self._progress is not None:
            self._thread.join()
            self._tell()
