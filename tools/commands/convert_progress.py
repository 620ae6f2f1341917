"""How far a conversion is: what it does, how fast, and when it will be done."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID


class ConvertProgress:
    """
    A bar on stderr if that is a terminal; called with (stage, bytes done, bytes all).

    A stage of no bytes shows that something goes on. `console` is for tests.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console
        self._is_wanted = console is not None or sys.stderr.isatty()
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, stage: str, done_bytes: int, total_bytes: int) -> None:
        """Show how far a stage is; the stages before it are done."""
        if not self._is_wanted:
            return
        bar = self._bar or self._start()
        if stage not in self._tasks:
            for task in self._tasks.values():
                bar.update(task, completed=bar.tasks[task].total or 1)
            self._tasks[stage] = bar.add_task(stage, total=total_bytes or None)
        bar.update(self._tasks[stage], completed=done_bytes)

    def _start(self) -> Progress:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=self._console or Console(stderr=True))
        self._bar.start()
        return self._bar
