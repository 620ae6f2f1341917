"""``logstore convert``: a store from one layout to the other, or to files of rows, on Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from logstore.compat.meant_names import did_you_mean
from logstore.segments.kafka.topic_config_keys import TOPIC_CONFIG_KEYS
from logstore.segments.rocketmq.settings.store_config import STORE_CONFIG_KEYS
from logstore.tools.commands.convert_progress import ConvertProgress
from logstore.tools.commands.extras import require
from logstore.tools.commands.record_choice import moment, topic_names
from logstore.tools.commands.spark_master import HERE, LOCAL, is_small
from logstore.tools.inspection.columns import aligned
from logstore.tools.inspection.json_line import json_line

if TYPE_CHECKING:
    from logstore.compat.spark.convert.job import Runner
    from logstore.compat.spark.convert.options import ConvertOptions
    from logstore.compat.spark.convert.outlook import Outlook

#: modules of the extra `columns`
_NEEDED = ("numpy", "numba", "pyarrow")
_MB = 1_000_000


F = TypeVar("F", bound=Callable[..., Any])
_OPTIONS = (
    click.argument("source", metavar="SRC"),
    click.argument("target", metavar="DST"),
    click.option(
        "--to",
        "layout",
        required=True,
        help="What DST becomes.",
        type=click.Choice(["kafka", "rocketmq", "parquet", "jsonl"]),
    ),
    click.option(
        "--topics",
        metavar="NAMES",
        help="Only these, with commas in between.  [default: all but internal ones]",
    ),
    click.option(
        "--from",
        "from_ms",
        metavar="TIME",
        callback=moment,
        help="Only records from then on: ISO 8601, or ms since 1970.",
    ),
    click.option(
        "--until", "until_ms", metavar="TIME", callback=moment, help="Only records before."
    ),
    click.option(
        "--codec",
        metavar="NAME",
        help="Compress with it: none, gzip, snappy, lz4 or zstd (jsonl: none, gzip, zstd).  "
        "[default: zstd for parquet, else none]",
    ),
    click.option(
        "--set",
        "settings",
        metavar="KEY=VALUE",
        multiple=True,
        help="A setting of the target, as segment.bytes=1048576 or "
        "mappedFileSizeCommitLog=67108864; can be given again.",
    ),
    click.option(
        "--mode",
        default="failfast",
        show_default=True,
        type=click.Choice(["failfast", "dropmalformed", "permissive"]),
        help="What becomes of damage in SRC: an error, left out and written down in "
        "logstore-damage-*.parquet, or (parquet, jsonl) a row that tells of it.",
    ),
    click.option(
        "--master",
        metavar="URL",
        help="Where Spark runs; 'none' does without Spark, on one core.  [default: local[*]; none "
        "where SRC has less than 64 MB, which is done before Spark has started]",
    ),
    click.option(
        "--preserve",
        "is_preserving",
        is_flag=True,
        help="Keep beside DST what a way back needs to write SRC's files byte for byte; on that "
        "way back use it.",
    ),
    click.option("--dry-run", "is_dry", is_flag=True, help="Only say what would be done."),
    click.option("--json", "is_json", is_flag=True, help="Print one JSON object."),
)


def _options(command: F) -> F:
    """Give the command its arguments and options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@_options
def convert(
    source: str,
    target: str,
    layout: str,
    topics: str | None,
    from_ms: int | None,
    until_ms: int | None,
    codec: str | None,
    settings: tuple[str, ...],
    mode: str,
    master: str | None,
    *,
    is_preserving: bool,
    is_dry: bool,
    is_json: bool,
) -> None:
    """
    Make DST of the store in SRC: in the other layout, or as Parquet files or lines of JSON.

    SRC is a Kafka log directory, several of a cluster with commas between (read as one), or a
    RocketMQ store, best with no broker running; it is only read. DST must not be there; it appears
    when it is whole, ready for the real broker. A run that was killed is gone on with by the same
    command; where DST is finished, it ends at once with 0.

    \b
    Examples:
      logstore convert /var/lib/kafka ./store --to rocketmq
      logstore convert ./store ./kafka --to kafka --codec zstd
      logstore convert ./kafka ./rows --to parquet --topics orders --from 2024-05-01T00:00:00Z
      logstore convert /disk1/kafka,/disk2/kafka ./store --to rocketmq --preserve --dry-run
      logstore convert ./kafka ./store --to rocketmq --master spark://host:7077
    """
    if master is None:
        master = HERE if is_small(source) else LOCAL
    _require_extras(is_spark=master != HERE and not is_dry)
    from logstore.compat.spark.convert.options import ConvertOptions

    options = ConvertOptions(
        source, target, layout, topic_names(topics), from_ms, until_ms, codec,
        _settings(settings, layout), preserve=is_preserving, mode=mode,
    )  # fmt: skip
    if is_dry:
        _tell_outlook(options, is_json=is_json)
    else:
        _carry_out(options, master, is_json=is_json)


def _require_extras(*, is_spark: bool) -> None:
    if is_spark:
        require("convert", (*_NEEDED, "pyspark"), "spark", f"; without Spark, --master {HERE}")
    else:
        require("convert", _NEEDED, "columns")


def _carry_out(options: ConvertOptions, master: str, *, is_json: bool) -> None:
    """Convert, if that is not done already, and say what was done."""
    from logstore.compat.spark.convert.convert import finished_report

    began = time.monotonic()
    found = finished_report(options)
    report = _converted(options, master) if found is None else found
    seconds = time.monotonic() - began
    if is_json:
        content = {**report, "new": found is None, "seconds": round(seconds, 3)}
        click.echo(json_line(content))
    elif found is None:
        click.echo(f"{options.target}: {_summary(report, seconds)}")
        for line in _preserved_lines(report):
            click.echo(line)
    else:
        click.echo(f"{options.target}: is finished already: {report['messages']:,} records")


def _converted(options: ConvertOptions, master: str) -> Mapping[str, Any]:
    from logstore.compat.spark.convert.convert import convert as make

    with _runner(master) as runner, ConvertProgress() as progress:
        try:
            return make(runner, options, progress)
        except KeyboardInterrupt:
            click.echo("logstore: stopped; the same command goes on with it", err=True)
            raise


@contextmanager
def _runner(master: str) -> Generator[Runner]:
    from logstore.compat.spark.convert.job import HereRunner, SparkRunner
    from logstore.compat.spark.session import quiet_session

    if master == HERE:
        yield HereRunner()
        return
    with quiet_session(master) as spark:
        yield SparkRunner(spark)


def _settings(texts: tuple[str, ...], layout: str) -> dict[str, str]:
    """Return the settings by name; one that the target does not have is a usage error."""
    found: dict[str, str] = {}
    for text in texts:
        key, is_given, value = text.partition("=")
        if not is_given or not key.strip():
            raise click.UsageError(f"--set {text}: is not KEY=VALUE")
        found[key.strip()] = value.strip()
    known = {"rocketmq": set(STORE_CONFIG_KEYS), "kafka": set(TOPIC_CONFIG_KEYS)}.get(layout, set())
    unknown = sorted(found.keys() - known)
    if unknown:
        meant = did_you_mean(unknown[0], known)
        raise click.UsageError(f"--set {unknown[0]}: a {layout} target has no such setting{meant}")
    return found


def _summary(report: Mapping[str, Any], seconds: float) -> str:
    rate = report["bytes"] / max(seconds, 0.001) / _MB
    return (
        f"{report['messages']:,} records, {report['bytes']:,} bytes in {seconds:.1f} s "
        f"({rate:,.0f} MB/s)"
    )


def _preserved_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is to be said of damage and of ``--preserve``."""
    if report.get("damaged"):
        yield f"passed over {report['damaged']} damages: see logstore-damage-*.parquet in it"
    kept, restored = report.get("kept"), report.get("restored")
    if kept is not None:
        yield f"kept {kept['bytesBeside']:,} bytes beside for the way back of {kept['files']} files"
    if restored is not None:
        yield f"{restored['unchanged']} files are byte for byte what they were"
        for name in restored["changed"]:
            yield f"  {name} is not: what it holds has changed since"
        for name in restored["gone"]:
            yield f"  {name} is gone: so is all that it held"


def _tell_outlook(options: ConvertOptions, *, is_json: bool) -> None:
    from logstore.compat.spark.convert.outlook import outlook

    found = outlook(options)
    if is_json:
        click.echo(json_line(found.content()))
        return
    for line in _outlook_lines(found):
        click.echo(line)


def _outlook_lines(found: Outlook) -> list[str]:
    if found.is_finished:
        return [f"{found.target}: is finished already"]
    rows = [
        (one.topic, one.target, one.partition_count, f"{one.record_count:,}")
        for one in found.topics
    ]
    begun = "; was begun, what is done stays" if found.is_begun else ""
    return [
        f"{found.source} -> {found.target} ({found.layout})",
        "",
        *aligned(("topic", "becomes", "partitions", "records, at most"), rows),
        "",
        f"{found.size_bytes:,} bytes to read in {found.task_count} tasks{begun}",
        f"{found.free_bytes:,} bytes are free at the target",
    ]
