"""``logstore bench``: how fast a broker is, held against the original in the same run."""

from __future__ import annotations

import click

from logstore.tools.bench.suite import SCENARIOS, chosen
from logstore.tools.bench.targets import KAFKA, OURS
from logstore.tools.commands.bench_bridge import bridge
from logstore.tools.commands.bench_layout import layout
from logstore.tools.commands.bench_options import TurnOptions, turn_options
from logstore.tools.commands.bench_proxy import proxy
from logstore.tools.commands.bench_rocketmq import rocketmq
from logstore.tools.commands.bench_spark import make, spark


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def bench() -> None:
    """
    Measure brokers from outside, beside the original, and the files without a broker.

    \b
    Examples:
      logstore bench kafka --quick
      logstore bench rocketmq --quick
      logstore bench proxy --quick
      logstore bench bridge --quick
      logstore bench layout --quick
      logstore bench spark --gigabytes 1 --rounds 1
      logstore bench kafka --help
    """


bench.add_command(bridge)
bench.add_command(layout)
bench.add_command(proxy)
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
@turn_options(SCENARIOS)
def kafka(targets: tuple[str, ...], options: TurnOptions) -> None:
    """
    Compare Kafka brokers under librdkafka, Kafka's own performance tools and a raw client.

    The targets take turns within each round; shown are medians over the rounds, ratios are taken
    round by round. The server's CPU time is read from its process. One row per figure, with the
    bar that it must meet and whether it does. Everything started is ended, everything written is
    removed.
    """
    options.run(targets, chosen)
