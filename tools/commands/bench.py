"""``logstore bench``: how fast a broker is, held against the original in the same run."""

from __future__ import annotations

from typing import IO

import click

from logstore.tools.bench.suite import SCENARIOS, chosen
from logstore.tools.bench.targets import KAFKA, OURS
from logstore.tools.commands.bench_bridge import bridge
from logstore.tools.commands.bench_layout import layout
from logstore.tools.commands.bench_rocketmq import rocketmq
from logstore.tools.commands.bench_run import (
    QUICK_SECONDS,
    ROUNDS,
    SECONDS,
    carry_out,
    plan_of,
    print_bars,
)
from logstore.tools.commands.bench_spark import make, spark


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def bench() -> None:
    """
    Measure brokers from outside, beside the original, and the files without a broker.

    \b
    Examples:
      logstore bench kafka --quick
      logstore bench rocketmq --quick
      logstore bench bridge --quick
      logstore bench layout --quick
      logstore bench spark --gigabytes 1 --rounds 1
      logstore bench kafka --help
    """


bench.add_command(bridge)
bench.add_command(layout)
bench.add_command(rocketmq)
bench.add_command(spark)
bench.add_command(make)


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
    plan = plan_of(targets, rounds=rounds, seconds=seconds, directory=directory, is_quick=quick)
    names = [name for text in scenarios for name in text.split(",")]
    if is_list:
        print_bars(chosen(names, cell))
        return
    carry_out(plan, lambda: chosen(names, cell), json_file, check=check)
