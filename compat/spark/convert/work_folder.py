"""
Where a conversion works until it is done: ``<target>.converting`` beside the target.

::

    data/            the store as it grows; the target is this folder, renamed at the very end
    beside/          what goes into it last: offset maps and rests, which no broker reads
    plan.pickle      the tasks; a second run with the same wishes goes on with them
    done/<number>    what a finished task reported

A task may run twice, here or there: it writes its files anew, and its report is renamed into place.
"""

from __future__ import annotations

import os
import pickle
import shutil
import uuid
from pathlib import Path
from typing import Any

from logstore.errors import LogStoreError
from logstore.segments import UNFINISHED_SUFFIX

#: in a finished target: what it was made of
REPORT_NAME = "logstore-conversion.json"


class TargetError(LogStoreError):
    """The target is there already and is not what this conversion makes."""


class WorkFolder:
    """The folder of one conversion."""

    def __init__(self, target: str) -> None:
        self.target = Path(target).absolute()
        self.path = self.target.with_name(self.target.name + UNFINISHED_SUFFIX)
        self.data = self.path / "data"
        self.beside = self.path / "beside"
        self._done = self.path / "done"

    @property
    def is_finished(self) -> bool:
        """Tell whether the target stands, made by a conversion."""
        return (self.target / REPORT_NAME).is_file()

    def check_target(self) -> None:
        """
        Check that the target's name is free.

        Raises:
            TargetError: something else has it.

        """
        if self.target.exists() and (not self.target.is_dir() or any(self.target.iterdir())):
            raise TargetError(
                f"{self.target}: is there already and no conversion made it; name another target"
            )

    def load_plan(self, wishes: object) -> Any | None:
        """Return the plan of an earlier run if that wanted the same; else begin anew."""
        plan = self.path / "plan.pickle"
        if plan.is_file():
            found_wishes, found = pickle.loads(plan.read_bytes())  # noqa: S301 - our own file
            if found_wishes == wishes:
                return found
        shutil.rmtree(self.path, ignore_errors=True)
        return None

    def save_plan(self, wishes: object, plan: object) -> None:
        """Keep a plan before its first task runs."""
        self.data.mkdir(parents=True)
        self.beside.mkdir()
        self._done.mkdir()
        self._put(self.path / "plan.pickle", pickle.dumps((wishes, plan)))

    def report(self, number: int, outcome: object) -> None:
        """Say that a task is done, and what came of it; its files must be durable."""
        self._put(self._done / str(number), pickle.dumps(outcome))

    def outcome(self, number: int) -> Any | None:
        """Return what a task reported, None if it is not done."""
        path = self._done / str(number)
        return pickle.loads(path.read_bytes()) if path.is_file() else None  # noqa: S301 - our own

    def count_done(self) -> int:
        """Return how many tasks are done."""
        return sum(entry.name.isdigit() for entry in self._done.iterdir())

    def finish(self, report: bytes) -> None:
        """Give the data the target's name: from now on it is there, whole."""
        if self.beside.is_dir():
            for file in sorted(self.beside.iterdir()):
                file.rename(self.data / file.name)
        self._put(self.data / REPORT_NAME, report)
        _sync(self.data)
        if self.target.is_dir():
            self.target.rmdir()
        self.data.rename(self.target)
        _sync(self.target.parent)
        shutil.rmtree(self.path, ignore_errors=True)

    def _put(self, path: Path, data: bytes) -> None:
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync(path.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
