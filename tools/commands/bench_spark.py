"""``logstore bench spark`` and ``make``: how fast Spark reads and converts a store."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from typing import IO

import click
import orjson
from rich.console import Console

from logstore.tools.bench.layout_cells import LayoutCell
from logstore.tools.bench.layout_data import BatchShape
from logstore.tools.bench.layout_run import SUBJECT, measure
from logstore.tools.bench.report import as_json, machine, table

_GB = 1_000_000_000
ROUNDS = 3


@click.command(
    epilog="""\b
Examples:
  logstore bench make ./kafka --gigabytes 10
  logstore bench make ./kafka --gigabytes 1 --record-bytes 100 --partitions 8
""",
)
@click.argument("directory", metavar="DIR", type=click.Path(exists=False))
@click.option("--gigabytes", type=click.FloatRange(0.001), default=10.0, show_default=True)
@click.option("--record-bytes", type=click.IntRange(27), default=1024, show_default=True)
@click.option("--partitions", type=click.IntRange(1), default=4, show_default=True)
def make(directory: str, gigabytes: float, record_bytes: int, partitions: int) -> None:
    """Make a Kafka data directory of one topic, in batches of 16 KiB that cover a day."""
    from logstore.tools.bench.spark_data import make_day

    shape = BatchShape(record_bytes, max(1, 16 * 1024 // record_bytes))
    count = make_day(directory, shape, int(gigabytes * _GB), partitions)
    click.echo(f"{directory}: {count:,} records of {record_bytes} bytes in {partitions} partitions")


@click.command(
    epilog="""\b
Examples:
  logstore bench spark --gigabytes 1 --rounds 1     a first look
  logstore bench spark -s convert --json spark.json
""",
)
@click.option("-s", "--scenario", "scenarios", multiple=True, metavar="NAME",
              help="Only these; repeatable, or with commas: read, kafka-source, kafka-sink, "
              "count, window, convert, write, verify, stats, memory, plan.")  # fmt: skip
@click.option("--gigabytes", type=click.FloatRange(0.01), default=10.0, show_default=True,
              help="Size of a store; there are two.")  # fmt: skip
@click.option("--rounds", type=click.IntRange(1), default=ROUNDS, show_default=True)
@click.option("--json", "json_file", type=click.File("wb"), help="Write every sample there too.")
@click.option("--dir", "directory", type=click.Path(exists=True), help="Where data goes meanwhile.")
@click.option("--no-kafka-source", "is_alone", is_flag=True,
              help="No broker, no other Spark: without Spark's own source and sink.")  # fmt: skip
@click.option("--check", is_flag=True, help="Exit with 1 where a bar is missed.")
def spark(
    scenarios: tuple[str, ...],
    gigabytes: float,
    rounds: int,
    json_file: IO[bytes] | None,
    directory: str | None,
    *,
    is_alone: bool,
    check: bool,
) -> None:
    """
    Measure what Spark does with a store here: read, write, count, verify, plan, convert.

    Workers are up before anything is timed, and have converted 100 MB where they are to convert.
    Where rows go to Spark, 100 MB of the same shape are read first, again and again, by ours and by
    what ours is held against, so that the JVM has compiled its loops; then both take two turns, and
    the mean of two is shown.

    Spark's own Kafka source and sink are measured beside ours: with the Spark that has them
    (fetched once by pip and Maven), and a real Kafka 4.3 that serves the same records, or takes the
    same rows.
    """
    if importlib.util.find_spec("pyspark") is None:
        raise click.ClickException("Spark is missing: pip install 'logstore-segments[spark]'")
    from logstore.tools.bench.spark_cells import PEER_SCENARIOS, SparkPlace

    cells = _cells_of([name for text in scenarios for name in text.split(",")])
    stderr = Console(stderr=True)
    beside = {cell.scenario for cell in cells if cell.scenario in PEER_SCENARIOS}
    left_out = _reason_without_peer(is_alone=is_alone) if beside else None
    if left_out is not None:
        cells = [cell for cell in cells if cell.scenario not in beside]
    with tempfile.TemporaryDirectory(prefix="logstore-bench-", dir=directory) as folder:
        place = SparkPlace(folder, int(gigabytes * _GB))
        outcome = measure(
            cells, place, rounds=rounds, say=lambda what: stderr.print(what, highlight=False)
        )
    if json_file is not None:
        document = as_json(outcome, (SUBJECT,), rounds=rounds, seconds=0)
        json_file.write(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    console = Console(width=None if sys.stdout.isatty() else 160)
    found = machine()
    console.print(f"{found['cpus']} CPUs ({found['model']}), {gigabytes:g} GB a store\n")
    console.print(table(outcome, (SUBJECT,)), highlight=False)
    if left_out is not None:
        console.print(f"left out: {', '.join(sorted(beside))}: {left_out}", highlight=False)
    if check and outcome.missed:
        sys.exit(1)


def _cells_of(scenarios: list[str]) -> list[LayoutCell]:
    """Return the cells of those scenarios; all of them where none is named."""
    from logstore.tools.bench.spark_cells import CELLS

    known = {cell.scenario for cell in CELLS}
    for name in scenarios:
        if name not in known:
            raise click.UsageError(f"no scenario {name!r}; there are {', '.join(sorted(known))}")
    return [cell for cell in CELLS if not scenarios or cell.scenario in scenarios]


def _reason_without_peer(*, is_alone: bool) -> str | None:
    """Return why Spark's own Kafka source is not measured; None if it can be."""
    from logstore.tools.bench.spark_peer import kafka_jars, spark_packages
    from logstore.tools.dev.kafka_peer import VERSION_4, fetch
    from logstore.tools.dev.maven import PeerUnavailable

    if is_alone:
        return "--no-kafka-source"
    try:
        spark_packages()
        kafka_jars()
        fetch(VERSION_4)
    except PeerUnavailable as error:
        return str(error)
    return None
