"""
Where a conversion works until it is done: ``<target>.converting`` beside the target.

::

    data/            the store as it grows; the target is this folder, renamed at the very end
    beside/          what goes into it last: offset maps and rests, which no broker reads
    derived/         what tasks know already of files that are made when all of them are done
    attempts/        a folder for each try of a task: its files until they are whole
    plan.pickle      the tasks; a second run with the same wishes goes on with them
    done/<number>    what a finished task reported
    lock             held by the run that works here

A task may run twice, here or there, even at once: each try writes files of its own, which are
renamed into place, and so is its report.
"""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import shutil
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from errno import EDQUOT, ENOSPC
from pathlib import Path
from typing import Any

import attrs

from logstore.deferred_sync import sync_volume
from logstore.errors import LogStoreError, WriteFailedError
from logstore.segments import UNFINISHED_SUFFIX

#: in a finished target: what it was made of; Spark passes over files that begin with "_"
REPORT_NAME = "logstore-conversion.json"
FILES_REPORT_NAME = "_" + REPORT_NAME
_PLAN_NAME = "plan.pickle"
_CLEARED = "cleared"
#: more directories than that are not synced one by one
_SYNCED_SINGLY_MAX = 4


class TargetError(LogStoreError):
    """The target is there already and is not what this conversion makes."""


class DiskFullError(LogStoreError):
    """There is no room for the target; what is done stays, and the same command goes on."""


@attrs.frozen
class Attempt:
    """One try of a task; it writes into two folders as if it were alone there."""

    path: Path

    @property
    def data(self) -> Path:
        """What is to become a part of the target's data."""
        return self.path / "data"

    @property
    def beside(self) -> Path:
        """What no broker reads."""
        return self.path / "beside"

    @property
    def derived(self) -> Path:
        """What is used to complete the target, and then removed."""
        return self.path / "derived"

    def publish(self, folder: WorkFolder) -> None:
        """
        Give all files the names that they have in the work folder; they must be durable.

        Raises:
            TargetError: another run has cleared the try away, and makes the files itself.

        """
        touched: set[Path] = set()
        for source, target in (
            (self.data, folder.data),
            (self.beside, folder.beside),
            (self.derived, folder.derived),
        ):
            for file in sorted(path for path in source.rglob("*") if path.is_file()):
                place = target / file.relative_to(source)
                place.parent.mkdir(parents=True, exist_ok=True)
                file.replace(place)
                touched.add(place.parent)
        if len(touched) > _SYNCED_SINGLY_MAX:
            sync_volume(str(folder.path))
        else:
            for directory in sorted(touched):
                _sync(directory)
        if not self.path.is_dir():  # a worker may outlive its driver by some moments
            raise TargetError(f"{self.path}: another run goes on with this conversion")
        self.remove()

    def remove(self) -> None:
        """Remove what there still is of it."""
        shutil.rmtree(self.path, ignore_errors=True)


class WorkFolder:
    """The folder of one conversion."""

    def __init__(self, target: str) -> None:
        self.target = Path(target).absolute()
        self.path = self.target.with_name(self.target.name + UNFINISHED_SUFFIX)
        self.data = self.path / "data"
        self.beside = self.path / "beside"
        self.derived = self.path / "derived"
        self._attempts = self.path / "attempts"
        self._done = self.path / "done"

    def finished_report(self) -> dict[str, Any] | None:
        """Return what the target was made of if it stands, made by a conversion."""
        for name in (REPORT_NAME, FILES_REPORT_NAME):
            path = self.target / name
            if path.is_file():
                report: dict[str, Any] = json.loads(path.read_bytes())
                return report
        return None

    @contextmanager
    def locked(self) -> Generator[None]:
        """
        Keep other runs out.

        Raises:
            TargetError: another one works here.

        """
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / "lock").open("wb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise TargetError(
                    f"{self.target}: another conversion into it is running; wait for its end"
                ) from None
            try:
                yield
            finally:
                if not (self.path / _PLAN_NAME).is_file():
                    self.remove()  # it was refused before anything was done

    @contextmanager
    def told_when_full(self) -> Generator[None]:
        """
        Turn a full disk, wherever in between it was met, into an error that says what to do.

        Raises:
            DiskFullError: it was met.

        """
        try:
            yield
        except (OSError, WriteFailedError) as error:
            cause = error if isinstance(error, OSError) else error.__cause__
            if not isinstance(cause, OSError) or cause.errno not in (ENOSPC, EDQUOT):
                raise
            raise DiskFullError(
                f"{self.path}: the disk is full; make room and run the same command again: it goes "
                "on with what is done"
            ) from error

    def remove(self) -> None:
        """Remove what a run leaves when it ends right behind its last step."""
        shutil.rmtree(self.path, ignore_errors=True)

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
        plan = self.path / _PLAN_NAME
        if plan.is_file():
            found_wishes, found = pickle.loads(plan.read_bytes())  # noqa: S301 - our own file
            if found_wishes == wishes:
                return found
        if self._attempts.is_dir():
            self.clear_attempts()
        for entry in self.path.iterdir() if self.path.is_dir() else ():
            if entry.is_dir():
                shutil.rmtree(entry)
            elif entry.name != "lock":
                entry.unlink()
        return None

    def save_plan(self, wishes: object, plan: object) -> None:
        """Keep a plan before its first task runs."""
        for folder in (self.data, self.beside, self.derived, self._attempts, self._done):
            folder.mkdir(parents=True)
        self._put(self.path / _PLAN_NAME, pickle.dumps((wishes, plan)))

    def begin_attempt(self, number: int) -> Attempt:
        """Return folders of its own for one try of a task."""
        attempt = Attempt(self._attempts / f"{number}-{uuid.uuid4().hex}")
        attempt.data.mkdir(parents=True)
        attempt.beside.mkdir()
        attempt.derived.mkdir()
        return attempt

    def clear_attempts(self) -> None:
        """Remove what killed runs have left: nobody goes on with a try."""
        # At once, so that a worker which is still at it cannot publish some of its files.
        if self._attempts.is_dir():
            self._attempts.rename(self.path / f"{_CLEARED}-{uuid.uuid4().hex}")
        self._attempts.mkdir(exist_ok=True)
        for entry in self.path.glob(f"{_CLEARED}-*"):
            shutil.rmtree(entry, ignore_errors=True)

    def is_done(self, number: int) -> bool:
        """Tell whether a task is done; what it reported may be None."""
        return (self._done / str(number)).is_file()

    def report(self, number: int, outcome: object) -> None:
        """Say that a task is done, and what came of it; its files must be durable."""
        self._put(self._done / str(number), pickle.dumps(outcome))

    def outcome(self, number: int) -> Any | None:
        """Return what a task reported, None if it is not done."""
        if not self.is_done(number):
            return None
        return pickle.loads((self._done / str(number)).read_bytes())  # noqa: S301 - our own

    def numbers_done(self) -> list[int]:
        """Return which tasks are done."""
        return [int(entry.name) for entry in self._done.iterdir() if entry.name.isdigit()]

    def finish(self, report: dict[str, Any], name: str = REPORT_NAME) -> None:
        """Give the data the target's name: from now on it is there, whole."""
        if self.beside.is_dir():
            for file in sorted(self.beside.iterdir()):
                file.rename(self.data / file.name)
        self._put(self.data / name, json.dumps(report, indent=2).encode())
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
