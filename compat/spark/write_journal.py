"""
What stands beside a store while jobs write to it: the job under way, and the batches taken.

``journal.json`` names the job whose records are being appended, from before the first of them to
after the last; ``taken.json`` says how far each stream has come. Both are replaced as a whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from logstore.compat.spark.staged_file import StagedFile


@attrs.frozen
class Job:
    """
    Staged files that are appended, and where each partition ended before: topic, partition, offset.

    `batch` numbers it in the stream of `writer`, None where it is no part of one. What
    `is_given_up` is taken back, not finished.
    """

    files: tuple[str, ...]
    batch: int | None
    writer: str
    ends: Mapping[str, Mapping[str, int]]
    is_given_up: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether all of its files are there as they were written."""
        return all(StagedFile(path).is_whole() for path in self.files)


@attrs.frozen
class WriteJournal:
    """The two files, in the folder of a store's writers."""

    folder: Path

    @property
    def _journal(self) -> Path:
        return self.folder / "journal.json"

    @property
    def _taken(self) -> Path:
        return self.folder / "taken.json"

    def job(self) -> Job | None:
        """Return the job that was begun and has not ended, None where there is none."""
        if not self._journal.is_file():
            return None
        found: dict[str, Any] = json.loads(self._journal.read_bytes())
        files: list[str] = found.pop("files")
        return Job(tuple(files), **found)

    def begin(self, job: Job) -> None:
        """Note durably that the job's records are appended from now on, or are taken back."""
        self._put(self._journal, attrs.asdict(job))

    def finish(self, job: Job) -> None:
        """Note durably that all of them are there, or none."""
        if job.batch is not None and not job.is_given_up:
            self._put(self._taken, self._batches_taken() | {job.writer: job.batch})
        self._journal.unlink()

    def is_taken(self, writer: str, batch: int) -> bool:
        """Tell whether this batch of the stream was appended already."""
        return self._batches_taken().get(writer, -1) >= batch

    def _batches_taken(self) -> dict[str, int]:
        found: dict[str, int] = (
            json.loads(self._taken.read_bytes()) if self._taken.is_file() else {}
        )
        return found

    def _put(self, path: Path, content: object) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".new")
        with temporary.open("w") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
