"""``logstore query``: where an offset or a time is, and how the indexes lead there."""

from __future__ import annotations

import sys
from typing import Any

import click

from logstore.errors import MissingSegmentError
from logstore.host import FileSystem
from logstore.os_host import system_host
from logstore.segments.kafka.directory_name import (
    DirectoryNameError,
    PartitionDirectory,
    parse_directory_name,
)
from logstore.tools.commands.record_choice import moment
from logstore.tools.commands.store_settings import store_settings
from logstore.tools.inspection.explanation import explain_offset, explain_time
from logstore.tools.inspection.json_line import json_line
from logstore.tools.inspection.layout import ROCKETMQ, layout_of, stores_in
from logstore.tools.inspection.replicas import directories_with
from logstore.tools.inspection.road import Explanation
from logstore.tools.inspection.stored_partition import StoredPartition
from logstore.tools.inspection.survey import is_partition, listed, log_starts
from logstore.tools.inspection.times import iso_time

_NAMES_SHOWN = 10
#: outcomes that answer the question
_ANSWERED = {"found", "marker", "hole"}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("directory", metavar="DIR")
@click.option("--topic", metavar="NAME", help="The topic.")
@click.option("--partition", "--queue", "index", metavar="N", type=click.IntRange(0),
              help="Its partition, or its queue.")  # fmt: skip
@click.option("--offset", metavar="N", type=click.IntRange(0),
              help="Look for this offset, of a RocketMQ queue the queue offset.")  # fmt: skip
@click.option("--time", "asked_ms", metavar="TIME", callback=moment,
              help="Look for the first record that is at least that young: ISO-8601 (UTC unless it "
              "names a zone) or ms since the epoch.")  # fmt: skip
@click.option("--physical-offset", metavar="N", type=click.IntRange(0),
              help="RocketMQ: look for this byte of the commit log.")  # fmt: skip
@click.option("--key", metavar="KEY", help="RocketMQ: look for messages of --topic with this key.")
@click.option("--unique-key", metavar="KEY", help="RocketMQ: the same by the client's message id.")
@click.option("--message-id", metavar="ID", help="RocketMQ: look for the broker's message id.")
@click.option("--count", "count_max", metavar="N", type=click.IntRange(1), default=32,
              show_default=True, help="RocketMQ: so many messages of a key.")  # fmt: skip
@store_settings
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object.")
def query(
    directory: str,
    topic: str | None,
    index: int | None,
    offset: int | None,
    asked_ms: int | None,
    physical_offset: int | None,
    key: str | None,
    unique_key: str | None,
    message_id: str | None,
    count_max: int,
    settings: dict[str, str],
    is_json: bool,
) -> None:
    """
    Ask where an offset, a time, a key or an id is, and how the indexes lead there.

    DIR is a Kafka data directory, several with commas between, one partition's own directory (no
    topic is needed then) or a RocketMQ store. Reads only and takes no lock. Exits with 1 where
    there is no such record, or the way to it is damaged.

    \b
    Examples:
      logstore query /var/lib/kafka --topic orders --partition 0 --offset 4711
      logstore query /var/lib/kafka --topic orders --partition 0 --time 2023-11-14T22:15:00Z
      logstore query /var/lib/kafka/orders-0 --time 1700000100000 --json | jq .batch
      logstore query store --topic TopicTest --queue 0 --offset 4711
      logstore query store --topic TopicTest --key order-17
      logstore query store --message-id 7F00000100002A9F0000000000000A3C
      logstore query store --physical-offset 2620
    """
    paths = stores_in(directory)
    having = directories_with(system_host().fs, paths, f"{topic}-{index}")
    path = (having or paths)[0]
    if layout_of(path) == ROCKETMQ:
        from logstore.tools.commands.query_rocketmq import StoreQuestion, query_store

        question = StoreQuestion(
            topic, index, offset, asked_ms, physical_offset, key, unique_key, message_id, count_max
        )
        query_store(path, question, settings, is_json=is_json)
        return
    if any(one is not None for one in (physical_offset, key, unique_key, message_id)):
        raise click.UsageError(f"{path}: Kafka knows neither keys nor physical offsets nor ids")
    if len(paths) > 1 and not having and topic is not None and index is not None:
        raise _no_partition(system_host().fs, paths, topic, index)
    place = path if len(having) > 1 else None
    _query_partition(path, topic, index, (offset, asked_ms), place, is_json=is_json)


def _query_partition(
    path: str,
    topic: str | None,
    index: int | None,
    asked: tuple[int | None, int | None],
    place: str | None,
    *,
    is_json: bool,
) -> None:
    """Print the road to an offset or a time of a partition, which is said to be in `place`."""
    offset, asked_ms = asked
    if (offset is None) == (asked_ms is None):
        raise click.UsageError("say either --offset N or --time TIME")
    partition = _find(system_host().fs, path, topic, index)
    if offset is not None:
        explanation = explain_offset(partition, offset)
    else:
        assert asked_ms is not None, "one of the two is given"
        explanation = explain_time(partition, asked_ms)
    if is_json:
        click.echo(json_line(_content(partition, offset, asked_ms, explanation)))
    else:
        where = "" if place is None else f" in {place}"
        click.echo(_headline(partition, offset, asked_ms, where))
        for step in explanation.steps:
            click.echo(f"  {step.name:<10} {step.sentence}")
        click.echo(f"  {'answer':<10} {explanation.verdict}")
    if explanation.outcome == "damaged":
        click.echo(f"logstore: {explanation.verdict}", err=True)
    if explanation.outcome not in _ANSWERED:
        sys.exit(1)


def _find(fs: FileSystem, directory: str, topic: str | None, index: int | None) -> StoredPartition:
    entries = listed(fs, directory)
    if is_partition(entries):
        starts = log_starts(fs, directory)
        partition = StoredPartition(fs, directory)
        key = (partition.place.topic, partition.place.partition)
        partition.start_offset = max(partition.start_offset, starts.get(key, 0))
        asked = (key[0] if topic is None else topic, key[1] if index is None else index)
        if asked != key:
            raise MissingSegmentError(
                f"{directory}: this is partition {partition.name}, not {asked[0]}-{asked[1]}"
            )
        return partition
    if topic is None or index is None:
        raise click.UsageError(
            "say --topic NAME and --partition N, or name a partition's directory"
        )
    path = f"{directory}/{topic}-{index}"
    if not fs.is_directory(path):
        raise _no_partition(fs, [directory], topic, index)
    start = log_starts(fs, directory).get((topic, index))
    return StoredPartition(fs, path, log_start_offset=start)


def _no_partition(
    fs: FileSystem, directories: list[str], topic: str, index: int
) -> MissingSegmentError:
    """Return the error for a partition that none has: what there is of its topic, or at all."""
    found = {
        (place.topic, place.partition)
        for directory in directories
        for entry in fs.list_directory(directory)
        if entry.is_directory and (place := _live_place(entry.name)) is not None
    }
    ids = [number for name, number in sorted(found) if name == topic]
    names = [str(one) for one in ids] or [f"{name}-{number}" for name, number in sorted(found)]
    shown = ", ".join(names[:_NAMES_SHOWN]) + (", ..." if len(names) > _NAMES_SHOWN else "")
    there_are = f"{topic} has {shown}" if ids else f"there are {shown}"
    return MissingSegmentError(
        f"{','.join(directories)}: there is no partition {topic}-{index}; "
        + (there_are if found else "there is none at all")
    )


def _live_place(name: str) -> PartitionDirectory | None:
    try:
        place = parse_directory_name(name)
    except DirectoryNameError:
        return None
    return place if place.is_live else None


def _headline(
    partition: StoredPartition, offset: int | None, asked_ms: int | None, where: str
) -> str:
    what = f"offset {offset}" if asked_ms is None else f"time {iso_time(asked_ms)} ({asked_ms})"
    span = f"[{partition.start_offset}, {partition.end_offset})"
    count = len(partition.segments)
    segments = "1 segment" if count == 1 else f"{count} segments"
    return f"{what} in {partition.name}{where}, which holds {span} in {segments}"


def _content(
    partition: StoredPartition,
    offset: int | None,
    asked_ms: int | None,
    explanation: Explanation,
) -> dict[str, Any]:
    content: dict[str, Any] = {
        "directory": partition.directory,
        "topic": partition.place.topic,
        "partition": partition.place.partition if partition.place.partition >= 0 else None,
        "start": partition.start_offset,
        "end": partition.end_offset,
        "asked": {"offset": offset} if asked_ms is None else {"timestamp": asked_ms},
        "outcome": explanation.outcome,
        "answer": explanation.verdict,
    }
    content.update({step.name: step.fields for step in explanation.steps})
    content["explanation"] = [f"{step.name}: {step.sentence}" for step in explanation.steps]
    return content
