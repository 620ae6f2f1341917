"""The options that all benchmarks of brokers share, as one value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import IO, Any

import attrs
import click

from logstore.tools.bench.cells import Cell
from logstore.tools.bench.targets import Target
from logstore.tools.commands.bench_run import Plan, carry_out, print_bars

ROUNDS = 3
SECONDS = 2.0
QUICK_SECONDS = 0.6


@attrs.frozen(kw_only=True)
class TurnOptions:
    """What of a command line says which cells are measured, how long, and where to."""

    scenarios: tuple[str, ...]
    cell: str | None
    rounds: int | None
    seconds: float | None
    quick: bool
    json_file: IO[bytes] | None
    directory: str | None
    check: bool
    is_list: bool

    def run(
        self,
        targets: tuple[str, ...],
        chosen: Callable[[list[str], str | None], Sequence[Cell]],
        *,
        kind: type[Target] = Target,
        warm: Callable[[Target, float], object] | None = None,
    ) -> None:
        """Measure the cells that `chosen` finds for (scenarios, text in the name), or list them."""
        names = [name for text in self.scenarios for name in text.split(",")]
        if self.is_list:
            print_bars(chosen(names, self.cell))
            return
        plan = Plan(
            targets=targets,
            rounds=self.rounds or (1 if self.quick else ROUNDS),
            seconds=self.seconds or (QUICK_SECONDS if self.quick else SECONDS),
            directory=self.directory,
            kind=kind,
            warm=warm,
        )
        carry_out(plan, lambda: chosen(names, self.cell), self.json_file, check=self.check)


def turn_options(scenarios: Sequence[str]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the options; the command takes (targets, TurnOptions)."""
    options = [
        click.option("-s", "--scenario", "scenarios", multiple=True, metavar="NAME",
                     help="Only these; repeatable, or with commas. There are: "
                          f"{', '.join(scenarios)}."),
        click.option("-c", "--cell", metavar="TEXT",
                     help="Only cells whose name contains this text."),
        click.option("--rounds", type=click.IntRange(1),
                     help=f"Rounds.  [default: {ROUNDS}; quick: 1]"),
        click.option("--seconds", type=click.FloatRange(0.1),
                     help=f"Length of one cell.  [default: {SECONDS}; quick: {QUICK_SECONDS}]"),
        click.option("--quick", is_flag=True,
                     help="One short round: a first look, in some minutes."),
        click.option("--json", "json_file", type=click.File("wb"),
                     help="Write every sample there too."),
        click.option("--dir", "directory", type=click.Path(exists=True),
                     help="Where data goes meanwhile."),
        click.option("--check", is_flag=True, help="Exit with 1 where a bar is missed."),
        click.option("--list", "is_list", is_flag=True,
                     help="Show what would be measured, and the bars."),
    ]  # fmt: skip

    def add(command: Callable[..., None]) -> Callable[..., None]:
        def gathered(targets: tuple[str, ...], **given: Any) -> None:
            command(targets, TurnOptions(**given))

        gathered.__name__ = command.__name__
        gathered.__doc__ = command.__doc__
        decorated: Callable[..., None] = gathered
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return add
