"""``logstore bench layout``: how fast the files are read, checked, recovered and opened."""

from __future__ import annotations

import sys
import tempfile
from typing import IO

import click
import orjson
from rich.console import Console

from logstore.errors import LogStoreError
from logstore.tools.bench.layout_cells import Workplace
from logstore.tools.bench.layout_run import ALL_CELLS, SUBJECT, chosen, measure
from logstore.tools.bench.report import as_json, machine, table

ROUNDS = 3
QUICK_SCALE = 0.125
_SCENARIOS = ", ".join(dict.fromkeys(cell.scenario for cell in ALL_CELLS))


@click.command(
    epilog="""\b
Examples:
  logstore bench layout --quick              an eighth of the data, one round
  logstore bench layout -s decode -s lookup  two scenarios only
  logstore bench layout --json layout.json --check
""",
)
@click.option(
    "-s",
    "--scenario",
    "scenarios",
    multiple=True,
    metavar="NAME",
    help=f"Only these; repeatable, or with commas. There are: {_SCENARIOS}.",
)
@click.option("--rounds", type=click.IntRange(1), help=f"Rounds.  [default: {ROUNDS}; quick: 1]")
@click.option("--quick", is_flag=True, help="One round over an eighth of the data.")
@click.option("--json", "json_file", type=click.File("wb"), help="Write every sample there too.")
@click.option("--dir", "directory", type=click.Path(exists=True), help="Where data goes meanwhile.")
@click.option("--check", is_flag=True, help="Exit with 1 where a bar is missed.")
def layout(
    scenarios: tuple[str, ...],
    rounds: int | None,
    json_file: IO[bytes] | None,
    directory: str | None,
    *,
    quick: bool,
    check: bool,
) -> None:
    """
    Measure the layouts without a broker, on data that are made for it (RocketMQ's: -s rocketmq).

    Figures "a core" are by CPU time, the others by the clock; what is read stands in the file
    cache. Needs 3 GiB of disk, which are given back. One row per figure, with the bar that it must
    meet and whether it does.
    """
    rounds = rounds or (1 if quick else ROUNDS)
    stderr = Console(stderr=True)
    try:
        cells = chosen([name for text in scenarios for name in text.split(",")])
        with tempfile.TemporaryDirectory(prefix="logstore-bench-", dir=directory) as folder:
            workplace = Workplace(folder, QUICK_SCALE if quick else 1.0)
            outcome = measure(
                cells,
                workplace,
                rounds=rounds,
                say=lambda what: stderr.print(what, highlight=False),
            )
    except LogStoreError as error:
        raise click.ClickException(str(error)) from error
    if json_file is not None:
        document = as_json(outcome, (SUBJECT,), rounds=rounds, seconds=0)
        json_file.write(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    console = Console(width=None if sys.stdout.isatty() else 160)
    found = machine()
    console.print(
        f"{found['cpus']} CPUs ({found['model']}), Linux {found['kernel']}, Python "
        f"{found['python']}; {rounds} round(s){', an eighth of the data' if quick else ''}\n",
        highlight=False,
    )
    console.print(table(outcome, (SUBJECT,)), highlight=False)
    judged = [row for row in outcome.rows if row.verdict is not None]
    console.print(f"\n{len(judged) - len(outcome.missed)} of {len(judged)} bars are met")
    if check and outcome.missed:
        sys.exit(1)
