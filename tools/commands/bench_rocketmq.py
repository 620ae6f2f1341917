"""``logstore bench rocketmq``: RocketMQ brokers under the official Java client."""

from __future__ import annotations

from typing import IO

import click

from logstore.tools.bench.cells import pick
from logstore.tools.bench.rocketmq_cells import CELLS, SCENARIOS, warm
from logstore.tools.bench.rocketmq_targets import RocketMQTarget
from logstore.tools.bench.targets import OURS
from logstore.tools.commands.bench_run import (
    QUICK_SECONDS,
    ROUNDS,
    SECONDS,
    carry_out,
    plan_of,
    print_bars,
)
from logstore.tools.dev.rocketmq_jars import VERSION_4, VERSION_5


@click.command(
    epilog="""\b
Examples:
  logstore bench rocketmq --quick                      ours beside 5.5.0 and 4.9.8, in minutes
  logstore bench rocketmq -t ours -t 5.5.0 -s sync     one scenario, two brokers
  logstore bench rocketmq -t ours -t 127.0.0.1:9876    ours beside one that runs already
  logstore bench rocketmq --json rocketmq.json         every sample kept
""",
)
@click.option("-t", "--target", "targets", multiple=True, metavar="TARGET",
              default=(OURS, VERSION_5, VERSION_4), show_default="all three",
              help=f"ours, {VERSION_5}, {VERSION_4} (the real ones, through Maven) or the "
                   "HOST:PORT[,PID] of a name server; several take turns.")  # fmt: skip
@click.option("-s", "--scenario", "scenarios", multiple=True, metavar="NAME",
              help="Only these; repeatable, or with commas. There are: "
                   f"{', '.join(SCENARIOS)}.")  # fmt: skip
@click.option("-c", "--cell", metavar="TEXT", help="Only cells whose name contains this text.")
@click.option("--rounds", type=click.IntRange(1), help=f"Rounds.  [default: {ROUNDS}; quick: 1]")
@click.option("--seconds", type=click.FloatRange(0.1),
              help=f"Length of one cell.  [default: {SECONDS}; quick: {QUICK_SECONDS}]"
              )  # fmt: skip
@click.option("--quick", is_flag=True, help="One short round: a first look, in some minutes.")
@click.option("--json", "json_file", type=click.File("wb"), help="Write every sample there too.")
@click.option("--dir", "directory", type=click.Path(exists=True), help="Where data goes meanwhile.")
@click.option("--check", is_flag=True, help="Exit with 1 where a bar is missed.")
@click.option("--list", "is_list", is_flag=True, help="Show what would be measured, and the bars.")
def rocketmq(
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
    Drive RocketMQ brokers with the official Java client, and compare them.

    The targets take turns within each round under one client process; shown are medians over the
    rounds, ratios are taken round by round against 5.5.0. All brokers run at their default
    settings. Everything started is ended, everything written is removed.
    """
    plan = plan_of(
        targets,
        rounds=rounds,
        seconds=seconds,
        directory=directory,
        is_quick=quick,
        kind=RocketMQTarget,
        warm=warm,
    )
    names = [name for text in scenarios for name in text.split(",")]
    if is_list:
        print_bars(pick(CELLS, names, cell))
        return
    carry_out(plan, lambda: pick(CELLS, names, cell), json_file, check=check)
