"""``logstore ls``: what is in a data directory."""

from __future__ import annotations

import sys
from typing import Any

import click

from logstore.os_host import system_host
from logstore.segments.kafka.kafka_uuid import uuid_to_text
from logstore.tools.inspection.columns import aligned
from logstore.tools.inspection.json_line import json_line
from logstore.tools.inspection.known_names import no_such_topic
from logstore.tools.inspection.late_progress import LateProgress
from logstore.tools.inspection.layout import ROCKETMQ, layout_of, stores_in
from logstore.tools.inspection.survey import (
    PartitionView,
    SegmentView,
    Survey,
    survey_directory,
    topics_in,
)
from logstore.tools.inspection.times import iso_time

_STATES = {
    "clean": "closed cleanly",
    "unclean": "not closed cleanly: the next start recovers it",
    "in use": "in use by process {process}",
    "unknown": "no broker's directory: how it was left is not known",
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("directory", metavar="DIR")
@click.option("--topic", metavar="NAME", help="Only this topic.")
@click.option("--segments", "--log-files", "has_segments", is_flag=True,
              help="List every segment (RocketMQ: every file) too.")  # fmt: skip
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object a directory.")
def ls(directory: str, topic: str | None, has_segments: bool, is_json: bool) -> None:
    """
    List the topics, partitions and segments of a Kafka data directory, or of a RocketMQ store.

    DIR is an entry of log.dirs or several with commas between, one partition's directory, or a
    copy of either; or a storePathRootDir. Reads only and takes no lock, so a broker may be running.
    Exits with 1 if something in it is damaged, or the topic is not there.

    \b
    Examples:
      logstore ls /var/lib/kafka
      logstore ls --topic orders --segments /var/lib/kafka
      logstore ls /var/lib/kafka/orders-0
      logstore ls --json /var/lib/kafka | jq '.partitions[] | {topic, end}'
      logstore ls --segments /var/lib/rocketmq/store
      logstore ls --json /var/lib/rocketmq/store | jq '.queues[] | {topic, queueId, maxOffset}'
    """
    paths = stores_in(directory)
    is_rocketmq = layout_of(paths[0]) == ROCKETMQ
    if topic is not None and not is_rocketmq:
        _check_topic(paths, topic)
    if is_rocketmq:
        from logstore.tools.commands.ls_rocketmq import list_store

        list_store(paths[0], topic, has_files=has_segments, is_json=is_json)
        return
    is_damaged = False
    for number, path in enumerate(paths):
        if number and not is_json:
            click.echo()
        is_damaged |= _list(path, topic, has_segments, is_json=is_json)
    if is_damaged:
        sys.exit(1)


def _check_topic(paths: list[str], topic: str) -> None:
    """Raise MissingSegmentError unless one of the directories has something of the topic."""
    fs = system_host().fs
    names = {name for path in paths for name in topics_in(fs, path)}
    if topic not in names:
        raise no_such_topic(",".join(paths), topic, names)


def _list(path: str, topic: str | None, has_segments: bool, *, is_json: bool) -> bool:
    """Print what is in one of Kafka's directories; tell whether something is damaged."""
    with LateProgress("looking at partitions", 0) as progress:

        def note(done: int, total: int) -> None:
            progress.total = total
            progress.move_to(done)

        survey = survey_directory(system_host().fs, path, topic, note)
    if is_json:
        click.echo(json_line(_content(survey, has_segments)))
    else:
        for line in _lines(survey, has_segments):
            click.echo(line)
    for problem in survey.problems:
        click.echo(f"logstore: {problem}", err=True)
    return bool(survey.problems)


def _lines(survey: Survey, has_segments: bool) -> list[str]:
    lines = [f"{survey.directory}: {_identity(survey)}", ""]
    if not survey.partitions:
        return [*lines, "no partitions"]
    rows = [
        (
            _topic_shown(view),
            view.index if view.index >= 0 else "-",
            view.start_offset,
            view.end_offset,
            len(view.segments),
            f"{view.size_bytes:,}",
            _time(view.largest_timestamp_ms),
        )
        for view in survey.partitions
    ]
    names = ("topic", "partition", "start", "end", "segments", "bytes", "largest timestamp")
    lines += aligned(names, rows)
    if has_segments:
        lines += ["", *_segment_lines(survey.partitions)]
    return lines


def _identity(survey: Survey) -> str:
    parts: list[str] = []
    meta = survey.meta
    if meta is not None:
        parts = [
            f"cluster {meta.cluster_id}",
            f"node {meta.node_id}",
            *(
                []
                if meta.directory_id is None
                else [f"directory {uuid_to_text(meta.directory_id)}"]
            ),
        ]
    return ", ".join([*parts, _STATES[survey.state].format(process=survey.process or "?")])


def _topic_shown(view: PartitionView) -> str:
    return f"{view.topic} ({view.role})" if view.role else view.topic


def _time(ms: int) -> str:
    return "-" if ms < 0 else iso_time(ms)


def _segment_lines(views: tuple[PartitionView, ...]) -> list[str]:
    rows = [
        (
            view.directory.rpartition("/")[2],
            f"{segment.base_offset:020d}",
            segment.base_offset,
            segment.next_offset,
            f"{segment.size_bytes:,}",
            segment.index_entry_count,
            segment.time_index_entry_count,
            "yes" if segment.has_aborted_transactions else "-",
            _time(segment.largest_timestamp_ms),
        )
        for view in views
        for segment in view.segments
    ]
    names = (
        "partition", "segment", "start", "end", "bytes",
        "index", "timeindex", "txnindex", "largest timestamp",
    )  # fmt: skip
    return aligned(names, rows)


def _content(survey: Survey, has_segments: bool) -> dict[str, Any]:
    meta = survey.meta
    directory_id = None if meta is None else meta.directory_id
    return {
        "directory": survey.directory,
        "layout": "kafka",
        "clusterId": None if meta is None else meta.cluster_id,
        "nodeId": None if meta is None else meta.node_id,
        "directoryId": None if directory_id is None else uuid_to_text(directory_id),
        "state": survey.state,
        "process": survey.process,
        "partitions": [_partition_content(view, has_segments) for view in survey.partitions],
        "problems": [
            {"file": problem.path, "position": problem.position, "reason": problem.reason}
            for problem in survey.problems
        ],
    }


def _partition_content(view: PartitionView, has_segments: bool) -> dict[str, Any]:
    content: dict[str, Any] = {
        "topic": view.topic,
        "partition": view.index if view.index >= 0 else None,
        "role": view.role or "live",
        "topicId": view.topic_id,
        "start": view.start_offset,
        "end": view.end_offset,
        "segmentCount": len(view.segments),
        "bytes": view.size_bytes,
        "largestTimestamp": _time_number(view.largest_timestamp_ms),
    }
    if has_segments:
        content["segments"] = [_segment_content(segment) for segment in view.segments]
    return content


def _segment_content(segment: SegmentView) -> dict[str, Any]:
    return {
        "start": segment.base_offset,
        "end": segment.next_offset,
        "bytes": segment.size_bytes,
        "indexEntries": segment.index_entry_count,
        "timeIndexEntries": segment.time_index_entry_count,
        "hasTransactionIndex": segment.has_aborted_transactions,
        "largestTimestamp": _time_number(segment.largest_timestamp_ms),
    }


def _time_number(ms: int) -> int | None:
    return ms if ms >= 0 else None
