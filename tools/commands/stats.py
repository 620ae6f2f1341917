"""``logstore stats``: how much is in a store, since when, how fast, with which keys and codecs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from logstore.tools.commands.extras import require
from logstore.tools.commands.record_choice import moment, topic_names
from logstore.tools.commands.spark_master import HERE, spark_at
from logstore.tools.inspection.json_line import json_line
from logstore.tools.inspection.late_progress import LateProgress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logstore.tools.inspection.stats.store_stats import StoreStats
    from logstore.tools.inspection.stats.topic_stats import TopicStats

_NEEDED = ("numpy", "pyarrow")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("directory", metavar="DIR")
@click.option("--topics", metavar="NAMES",
              help="Only these, with commas in between.  "
              "[default: all but internal ones]")  # fmt: skip
@click.option("--from", "from_ms", metavar="TIME", callback=moment,
              help="Only records from then on: ISO 8601, or ms since 1970.")  # fmt: skip
@click.option("--until", "until_ms", metavar="TIME", callback=moment,
              help="Only records before.")  # fmt: skip
@click.option("--partitions", "has_partitions", is_flag=True,
              help="Show every partition or queue, too.")  # fmt: skip
@click.option("--plot", "picture", metavar="FILE.png", type=click.Path(dir_okay=False),
              help="Draw records per second over time there.")  # fmt: skip
@click.option("--master", default=HERE, show_default=True, metavar="URL",
              help="Measure in Spark's workers there, as in local[*]: for big stores.")  # fmt: skip
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object.")
def stats(
    directory: str,
    topics: str | None,
    from_ms: int | None,
    until_ms: int | None,
    picture: str | None,
    master: str,
    *,
    has_partitions: bool,
    is_json: bool,
) -> None:
    """
    Measure a store: records, bytes, rate over time, keys, codecs, sizes, spread over partitions.

    DIR is a Kafka log directory, several of a cluster with commas between (read as one), or a
    RocketMQ store, or an fsspec URL of one; it is only read. Every record is looked at, also those
    of transactions that were aborted. How many keys differ is an estimate, off by 1.6 percent as a
    rule. What cannot be read is counted and passed over.

    \b
    Examples:
      logstore stats /var/lib/kafka
      logstore stats /var/lib/kafka --topics orders,payments --partitions
      logstore stats ./store --from 2024-05-01T00:00:00Z --until 2024-05-02T00:00:00Z
      logstore stats /var/lib/kafka --master local[*] --plot rate.png
      logstore stats /var/lib/kafka --json | jq '.topics[] | {topic, distinctKeys, skew}'
    """
    require("stats", _NEEDED if picture is None else (*_NEEDED, "matplotlib"), "stats")
    from logstore.compat.spark.stores import absolute_location
    from logstore.tools.inspection.stats.store_stats import StatsOptions, measure_store

    options = StatsOptions(absolute_location(directory), topic_names(topics), from_ms, until_ms)
    with spark_at(master, "stats") as spark, LateProgress("measuring", 0) as progress:

        def tell(done: int, total: int) -> None:
            progress.total = total
            progress.move_to(done)

        found = measure_store(options, spark, tell)
    _say(found, picture, has_partitions=has_partitions, is_json=is_json)


def _say(found: StoreStats, picture: str | None, *, has_partitions: bool, is_json: bool) -> None:
    from logstore.tools.inspection.stats.topic_stats import topics_of

    measured = list(topics_of(found))
    if picture is not None:
        from logstore.tools.inspection.stats.rendering import plot

        plot(measured, picture)
    if is_json:
        content = {
            "directory": found.path,
            "layout": found.layout,
            "damaged": found.damaged_count,
            "topics": [topic.content() for topic in measured],
        }
        click.echo(json_line(content))
        return
    _say_lines(found, measured, has_partitions=has_partitions)


def _say_lines(found: StoreStats, measured: Sequence[TopicStats], *, has_partitions: bool) -> None:
    from logstore.tools.inspection.stats.rendering import topic_lines

    entry = "batches" if found.layout == "kafka" else "messages"
    for number, topic in enumerate(measured):
        if number:
            click.echo()
        for line in topic_lines(topic, entry, has_partitions=has_partitions):
            click.echo(line)
    if not measured:
        click.echo(f"{found.path}: no topic")
    if found.damaged_count:
        click.echo(f"{found.damaged_count:,} damaged places were passed over: logstore verify")
