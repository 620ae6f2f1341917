"""``logstore bench rocketmq``: RocketMQ brokers under the official Java client, and a raw one."""

from __future__ import annotations

from functools import partial

import click

from logstore.tools.bench.cells import pick
from logstore.tools.bench.rocketmq_cells import CELLS, SCENARIOS, warm
from logstore.tools.bench.rocketmq_targets import RocketMQTarget
from logstore.tools.bench.targets import OURS
from logstore.tools.commands.bench_options import TurnOptions, turn_options
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
@turn_options(SCENARIOS)
def rocketmq(targets: tuple[str, ...], options: TurnOptions) -> None:
    """
    Drive RocketMQ brokers with the official Java client and with a raw one, and compare them.

    The targets take turns within each round under one client process; shown are medians over the
    rounds, ratios are taken round by round against 5.5.0. All brokers run at their default
    settings, but for the filters of SQL, which `filter` switches on. `deferred`, `pop` and `filter`
    are the raw client's. Everything started is ended, everything written is removed.
    """
    options.run(targets, partial(pick, CELLS), kind=RocketMQTarget, warm=warm)
