"""``logstore sql``: questions in SQL about the records of stores."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import click

from logstore.tools.commands.extras import require

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

_ROWS_SHOWN = 1000
_STDIN = "-"


def _pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Return a table of ``NAME=VALUE``."""
    found: dict[str, str] = {}
    for text in values:
        name, is_there, value = text.partition("=")
        if not (name and is_there):
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", ctx=ctx, param=param)
        found[name] = value
    return found


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("directory", metavar="DIR")
@click.argument("query", metavar="QUERY")
@click.option("--with", "others", metavar="NAME=DIR", multiple=True, callback=_pairs,
              help="One more store, as NAME_records and NAME_partitions; repeatable.")  # fmt: skip
@click.option("--topics", metavar="NAMES",
              help="Only these, with commas in between.  "
              "[default: all but internal ones]")  # fmt: skip
@click.option("--isolation", type=click.Choice(["read_committed", "read_uncommitted"]),
              default="read_committed", show_default=True,
              help="Whether records of aborted and open transactions are rows.")  # fmt: skip
@click.option("--mode", type=click.Choice(["failfast", "permissive", "dropmalformed"]),
              default="failfast", show_default=True,
              help="What damage does: end the query, be a row with _corrupt, be passed over.",
              )  # fmt: skip
@click.option("--option", "options", metavar="NAME=VALUE", multiple=True, callback=_pairs,
              help='Any option of spark.read.format("logstore"); repeatable.')  # fmt: skip
@click.option("--master", default="local[*]", show_default=True, metavar="URL",
              help="Where Spark runs; sc://HOST:PORT is a server of Spark Connect.")  # fmt: skip
@click.option("--limit", metavar="N", type=click.IntRange(0), default=_ROWS_SHOWN,
              show_default=True, help="Rows of a table; 0: all.")  # fmt: skip
@click.option("--csv", "is_csv", is_flag=True, help="Print all rows as CSV, names first.")
@click.option("--json", "is_json", is_flag=True, help="Print a JSON object a row.")
def sql(
    directory: str,
    query: str,
    others: dict[str, str],
    topics: str | None,
    isolation: str,
    mode: str,
    options: dict[str, str],
    master: str,
    limit: int,
    *,
    is_csv: bool,
    is_json: bool,
) -> None:
    """
    Ask a store in SQL, or several: its records are rows, and no broker runs.

    DIR is a Kafka log directory, several of a cluster with commas between (read as one), or a
    RocketMQ store, or an fsspec URL of one; it is only read. There are two tables. `records` has
    key, value, topic, partition, offset, timestamp, timestampType, headers (RocketMQ: keys, tags),
    and more columns for who names them: DESCRIBE records shows all. `partitions` has topic,
    partition, count, firstOffset, lastOffset, sizeBytes, and is answered from indexes and headers
    alone. Times are UTC; string(value) makes text of bytes. QUERY may be - for stdin.

    \b
    Examples:
      logstore sql /var/lib/kafka "SELECT * FROM partitions ORDER BY sizeBytes DESC"
      logstore sql /var/lib/kafka "SELECT offset, timestamp, string(key), string(value)
          FROM records WHERE topic = 'orders' AND timestamp >= '2024-05-01 12:03:00' LIMIT 20"
      logstore sql /var/lib/kafka "SELECT get_json_object(string(value), '$.customer'), count(*)
          FROM records WHERE topic = 'orders' GROUP BY 1 ORDER BY 2 DESC"
      logstore sql /disk1/kafka,/disk2/kafka "SELECT count(*) FROM records"
      logstore sql ./store "SELECT tags, count(*) FROM records GROUP BY tags" --json
      logstore sql ./kafka --with copy=./store "SELECT r.topic, r.offset FROM records r
          LEFT ANTI JOIN copy_records c ON r.topic = c.topic AND r.value = c.value"
    """
    if is_csv and is_json:
        raise click.UsageError("say either --csv or --json")
    require("sql", ["pyspark"], "spark")
    from logstore.compat.spark import sql as ask
    from logstore.compat.spark.session import quiet_session

    statement = (sys.stdin.read() if query == _STDIN else query).strip().rstrip(";")
    wanted = {"isolation": isolation, "mode": mode, **options, **_chosen(topics)}
    _tell_absent(master, (directory, *others.values()), wanted)
    logging.disable(logging.CRITICAL)  # PySpark and py4j log what they raise, Ctrl-C too
    with quiet_session(master, _settings()) as spark:
        frame = ask(spark, statement, directory, others, **wanted)
        _say(frame, limit, is_csv=is_csv, is_json=is_json)


def _chosen(topics: str | None) -> dict[str, str]:
    return {} if topics is None else {"subscribe": topics}


def _tell_absent(master: str, locations: Sequence[str], options: Mapping[str, str]) -> None:
    """Say which partitions a cluster has elsewhere: the answer is without their records."""
    from logstore.compat.spark.absent_partitions import tell_absent
    from logstore.compat.spark.connect import SCHEME
    from logstore.compat.spark.options import parse_options
    from logstore.compat.spark.stores import layout_of, open_for_reading
    from logstore.segments.kafka.remote.fsspec_files import is_url
    from logstore.segments.kafka.store import KafkaStore

    for location in locations:
        # To open one far away takes long, and a server of Spark Connect has directories of its own.
        if master.startswith(SCHEME) or is_url(location) or layout_of(location) != "kafka":
            continue
        wants = parse_options({**options, "path": location}).wants
        with open_for_reading(location) as store:
            if isinstance(store, KafkaStore):
                tell_absent(store, wants)


def _settings() -> dict[str, str]:
    """Return Spark's: times are UTC's; on a terminal it shows how far it is."""
    is_shown = "true" if sys.stderr.isatty() else "false"
    return {"spark.sql.session.timeZone": "UTC", "spark.ui.showConsoleProgress": is_shown}


def _say(frame: DataFrame, limit: int, *, is_csv: bool, is_json: bool) -> None:
    from logstore.tools.commands.sql_rows import say_csv, say_json, say_table

    if is_json:
        say_json(frame)
    elif is_csv:
        say_csv(frame)
    else:
        say_table(frame, limit)
