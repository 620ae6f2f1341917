"""What the benchmarks of brokers have in common: taking turns, showing whose it is, printing."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType, TracebackType
from typing import IO, Self

import attrs
import click
import orjson
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from logstore.errors import LogStoreError
from logstore.tools.bench.cells import Cell
from logstore.tools.bench.report import as_json, machine, table
from logstore.tools.bench.runner import Outcome, Run, Turn
from logstore.tools.bench.targets import Target


def carry_out(
    plan: Plan, cells: Callable[[], Sequence[Cell]], json_file: IO[bytes] | None, *, check: bool
) -> None:
    """
    Measure, print, write the JSON; exit with 1 after a failure, or where `check` finds a miss.

    Raises click.ClickException with one line where it cannot be measured.
    """
    try:
        outcome = measure(plan, cells())
    except LogStoreError as error:
        raise click.ClickException(str(error)) from error
    if json_file is not None:
        document = as_json(outcome, plan.targets, rounds=plan.rounds, seconds=plan.seconds)
        json_file.write(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    _print(outcome, plan)
    if outcome.failures or (check and outcome.missed):
        sys.exit(1)


@attrs.frozen
class Plan:
    """How a run goes: who takes part, how often and how long, and where their data goes."""

    targets: tuple[str, ...]
    rounds: int
    seconds: float
    directory: str | None
    kind: type[Target] = Target
    warm: Callable[[Target, float], object] | None = None


def measure(plan: Plan, cells: Sequence[Cell]) -> Outcome:
    """Take all turns and leave nothing behind, however it ends."""
    signal.signal(signal.SIGTERM, _leave)
    with contextlib.ExitStack() as stack:
        targets: list[Target] = []
        for name in plan.targets:
            target = plan.kind(name, plan.directory)
            stack.callback(target.close)
            targets.append(target)
        show = stack.enter_context(Show())
        run = Run(
            cells,
            targets,
            rounds=plan.rounds,
            seconds=plan.seconds,
            say=show.turn,
            warm=plan.warm,
        )
        show.begin(len(run.turns()))
        run.warm_up()
        return run.run()


def _leave(signal_number: int, frame: FrameType | None) -> None:
    """End as Ctrl-C does, so that whatever was started is ended too."""
    del frame
    raise SystemExit(128 + signal_number)


class Show:
    """Progress on stderr: a bar on a terminal, a line per cell elsewhere."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("[progress.description]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
        )
        self._task = self._progress.add_task("starting and warming up", total=None)
        self._done = -1
        self._last = ""

    def begin(self, total: int) -> None:
        """Say how many turns there will be."""
        self._progress.update(self._task, total=total)

    def turn(self, turn: Turn) -> None:
        """Show whose turn it is now."""
        self._done += 1
        what = f"round {turn.round}: {turn.cell.scenario}, {turn.cell.name}"
        if self._console.is_terminal:
            self._progress.update(
                self._task, completed=self._done, description=f"{what} ({turn.target})"
            )
        elif what != self._last:
            self._console.print(what, highlight=False)
        self._last = what

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()


def _print(outcome: Outcome, plan: Plan) -> None:
    console = Console(width=None if sys.stdout.isatty() else 160)
    found = machine()
    console.print(
        f"{found['cpus']} CPUs ({found['model']}), Linux {found['kernel']}, Python "
        f"{found['python']}; {plan.rounds} round(s) of {plan.seconds:g} s a cell\n",
        highlight=False,
    )
    console.print(table(outcome, plan.targets), highlight=False)
    for failure in outcome.failures:
        turn = failure.turn
        console.print(
            f"[red]failed[/] in round {turn.round}: {turn.target}, {turn.cell.scenario}, "
            f"{turn.cell.name}: {escape(failure.error)}",
            highlight=False,
        )
    judged = [row for row in outcome.rows if row.verdict is not None]
    if judged:
        met = len(judged) - len(outcome.missed)
        console.print(f"\n{met} of {len(judged)} bars are met", highlight=False)


def print_bars(cells: Sequence[Cell]) -> None:
    """Show what would be measured, and the bars."""
    made = Table("scenario", "cell", "figure", "bar", show_edge=False, pad_edge=False)
    for cell in cells:
        for metric in cell.metrics:
            if metric.is_shown:
                bar = metric.bar.text(metric.unit.split()[0]) if metric.bar else ""
                made.add_row(cell.scenario, cell.name, metric.unit, bar)
    Console().print(made)
