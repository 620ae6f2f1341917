"""A progress bar that shows itself only when it is worth it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

#: shorter work shows no bar
PATIENCE_S = 1.0


class LateProgress:
    """
    Shows on stderr how much of `total` is done, once the work has taken a second.

    Only on a terminal; `is_wanted` says whether a bar would be in the way, as where the output
    goes to the same terminal line by line. `clock` (seconds) and `make_console` are for tests.
    """

    def __init__(
        self,
        what: str,
        total: int,
        *,
        is_wanted: bool = True,
        clock: Callable[[], float] = time.monotonic,
        make_console: Callable[[], Console] | None = None,
    ) -> None:
        self.total = total
        self.done = 0
        self._what = what
        self._clock = clock
        self._make_console = make_console or _stderr_console
        self._is_wanted = is_wanted and (make_console is not None or sys.stderr.isatty())
        self._started_s = clock()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> LateProgress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    @property
    def is_shown(self) -> bool:
        """Tell whether the bar is on the terminal."""
        return self._bar is not None

    def move_to(self, done: int) -> None:
        """Say that `done` of the total is done."""
        self.done = done
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done)
        elif self._is_wanted and self._clock() - self._started_s >= PATIENCE_S:
            self._show()

    def advance(self, amount: int = 1) -> None:
        """Say that so much more is done."""
        self.move_to(self.done + amount)

    def _show(self) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=self._make_console(), transient=True)
        self._task = self._bar.add_task(self._what, total=self.total, completed=self.done)
        self._bar.start()


def _stderr_console() -> Console:
    from rich.console import Console

    return Console(stderr=True)
