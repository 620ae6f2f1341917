"""``logstore bench proxy``: RocketMQ's proxies under the official Java client of 5.x."""

from __future__ import annotations

from functools import partial

import click

from logstore.tools.bench.cells import pick
from logstore.tools.bench.proxy_cells import CELLS, SCENARIOS, warm
from logstore.tools.bench.proxy_targets import ProxyTarget
from logstore.tools.bench.targets import OURS
from logstore.tools.commands.bench_options import TurnOptions, turn_options
from logstore.tools.dev.rocketmq_jars import VERSION_5


@click.command(
    epilog="""\b
Examples:
  logstore bench proxy --quick            ours beside the real one of 5.5.0, in a minute or two
  logstore bench proxy -s consume         one scenario
  logstore bench proxy --json proxy.json  every sample kept
""",
)
@click.option("-t", "--target", "targets", multiple=True, metavar="TARGET",
              default=(OURS, VERSION_5), show_default="both",
              help=f"ours or {VERSION_5} (the real one, by Maven); they take turns.")  # fmt: skip
@turn_options(SCENARIOS)
def proxy(targets: tuple[str, ...], options: TurnOptions) -> None:
    """
    Drive RocketMQ's proxies with the official Java client that speaks gRPC, and compare them.

    The targets take turns within each round under one client process, by TLS as that client does
    by itself; shown are medians over the rounds, ratios are taken round by round. Everything
    started is ended, everything written is removed.
    """
    options.run(targets, partial(pick, CELLS), kind=ProxyTarget, warm=warm)
