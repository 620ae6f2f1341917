"""``logstore bench``: how fast a broker is, held against the original in the same run."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Sequence
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
from logstore.tools.bench.suite import SCENARIOS, chosen
from logstore.tools.bench.targets import KAFKA, OURS, Target
from logstore.tools.commands.bench_layout import layout

ROUNDS = 3
SECONDS = 2.0
QUICK_SECONDS = 0.6


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def bench() -> None:
    """
    Measure brokers from outside, beside the original, and the files without a broker.

    \b
    Examples:
      logstore bench kafka --quick
      logstore bench layout --quick
      logstore bench kafka --help
    """


bench.add_command(layout)


@bench.command(
    epilog="""\b
Examples:
  logstore bench kafka --quick                      ours beside the real Kafka, in minutes
  logstore bench kafka -s raw-produce -s start      two scenarios only
  logstore bench kafka -t ours -t 127.0.0.1:9092    ours beside a broker that runs already
  logstore bench kafka -t kafka --json kafka.json   the real one alone, every sample kept
""",
)
@click.option(
    "-t",
    "--target",
    "targets",
    multiple=True,
    metavar="TARGET",
    default=(OURS, KAFKA),
    show_default="ours and kafka",
    help="ours, kafka (the real one, through Maven) or HOST:PORT[,PID]; several take turns.",
)
@click.option(
    "-s",
    "--scenario",
    "scenarios",
    multiple=True,
    metavar="NAME",
    help=f"Only these; repeatable, or with commas. There are: {', '.join(SCENARIOS)}.",
)
@click.option("-c", "--cell", metavar="TEXT", help="Only cells whose name contains this text.")
@click.option("--rounds", type=click.IntRange(1), help=f"Rounds.  [default: {ROUNDS}; quick: 1]")
@click.option(
    "--seconds",
    type=click.FloatRange(0.1),
    help=f"Length of one cell.  [default: {SECONDS}; quick: {QUICK_SECONDS}]",
)
@click.option("--quick", is_flag=True, help="One short round: a first look, in some minutes.")
@click.option("--json", "json_file", type=click.File("wb"), help="Write every sample there too.")
@click.option("--dir", "directory", type=click.Path(exists=True), help="Where data goes meanwhile.")
@click.option("--check", is_flag=True, help="Exit with 1 where a bar is missed.")
@click.option("--list", "is_list", is_flag=True, help="Show what would be measured, and the bars.")
def kafka(
    targets: tuple[str, ...],
    scenarios: tuple[str, ...],
    cell: str | None,
    rounds: int | None,
    seconds: float | None,
    json_file: IO[bytes] | None,
    directory: str | None,
    *,
    quick: bool,
    check: bool,
    is_list: bool,
) -> None:
    """
    Drive Kafka brokers with librdkafka and with a raw client, and compare them.

    The targets take turns within each round; shown are medians over the rounds, ratios are taken
    round by round. The server's CPU time is read from its process. One row per figure, with the
    bar that it must meet and whether it does. Everything started is ended, everything written is
    removed.
    """
    plan = Plan(
        targets=targets,
        rounds=rounds or (1 if quick else ROUNDS),
        seconds=seconds or (QUICK_SECONDS if quick else SECONDS),
        directory=directory,
    )
    try:
        cells = chosen([name for text in scenarios for name in text.split(",")], cell)
        if is_list:
            _print_bars(cells)
            return
        outcome = measure(plan, cells)
    except LogStoreError as error:
        raise click.ClickException(str(error)) from error
    if json_file is not None:
        document = as_json(outcome, targets, rounds=plan.rounds, seconds=plan.seconds)
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


def measure(plan: Plan, cells: Sequence[Cell]) -> Outcome:
    """Take all turns and leave nothing behind, however it ends."""
    signal.signal(signal.SIGTERM, _leave)
    with contextlib.ExitStack() as stack:
        targets: list[Target] = []
        for name in plan.targets:
            target = Target(name, plan.directory)
            stack.callback(target.close)
            targets.append(target)
        show = stack.enter_context(Show())
        run = Run(cells, targets, rounds=plan.rounds, seconds=plan.seconds, say=show.turn)
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


def _print_bars(cells: Sequence[Cell]) -> None:
    made = Table("scenario", "cell", "figure", "bar", show_edge=False, pad_edge=False)
    for cell in cells:
        for metric in cell.metrics:
            if metric.is_shown:
                bar = metric.bar.text(metric.unit.split()[0]) if metric.bar else ""
                made.add_row(cell.scenario, cell.name, metric.unit, bar)
    Console().print(made)
