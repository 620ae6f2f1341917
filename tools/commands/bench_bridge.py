"""``logstore bench bridge``: each protocol on the other's layout, beside its own."""

from __future__ import annotations

from typing import IO

import click

from logstore.tools.bench.bridge_cells import CELLS, SCENARIOS, warm
from logstore.tools.bench.bridge_targets import FOREIGN, KINDS, OWN, BridgeTarget
from logstore.tools.bench.cells import pick
from logstore.tools.commands.bench_run import (
    QUICK_SECONDS,
    ROUNDS,
    SECONDS,
    carry_out,
    plan_of,
    print_bars,
)


@click.command(
    epilog="""\b
Examples:
  logstore bench bridge --quick                     either protocol on either layout, in minutes
  logstore bench bridge -s kafka-produce            one scenario
  logstore bench bridge -t shared -t own            what the other protocol beside it costs
  logstore bench bridge --json bridge.json          every sample kept
""",
)
@click.option("-t", "--target", "targets", multiple=True, type=click.Choice(KINDS),
              default=(FOREIGN, OWN), show_default="foreign and own",
              help="A protocol on the other's layout; on its own with the other protocol served "
                   "beside it; on its own and alone.")  # fmt: skip
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
def bridge(
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
    Drive our brokers on their own layout and on the other one, and compare.

    Kafka's protocol is loaded with librdkafka and a raw client, RocketMQ's with the official Java
    client. The targets take turns within each round; shown are medians over the rounds, ratios are
    taken round by round against the last target. Everything started is ended, everything written
    is removed.
    """
    plan = plan_of(
        targets,
        rounds=rounds,
        seconds=seconds,
        directory=directory,
        is_quick=quick,
        kind=BridgeTarget,
        warm=warm,
    )
    names = [name for text in scenarios for name in text.split(",")]
    if is_list:
        print_bars(pick(CELLS, names, cell))
        return
    carry_out(plan, lambda: pick(CELLS, names, cell), json_file, check=check)
