"""``logstore bench bridge``: each protocol on the other's layout, beside its own."""

from __future__ import annotations

from functools import partial

import click

from logstore.tools.bench.bridge_cells import CELLS, SCENARIOS, warm
from logstore.tools.bench.bridge_targets import FOREIGN, KINDS, OWN, BridgeTarget
from logstore.tools.bench.cells import pick
from logstore.tools.commands.bench_options import TurnOptions, turn_options


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
@turn_options(SCENARIOS)
def bridge(targets: tuple[str, ...], options: TurnOptions) -> None:
    """
    Drive our brokers on their own layout and on the other one, and compare.

    Kafka's protocol is loaded with librdkafka and a raw client, RocketMQ's with the official Java
    client. The targets take turns within each round; shown are medians over the rounds, ratios are
    taken round by round against the last target. Everything started is ended, everything written
    is removed.
    """
    options.run(targets, partial(pick, CELLS), kind=BridgeTarget, warm=warm)
