"""``logstore ls`` of a RocketMQ store."""

from __future__ import annotations

import sys
from typing import Any

import click

from logstore.os_host import system_host
from logstore.tools.inspection.columns import aligned
from logstore.tools.inspection.json_line import json_line
from logstore.tools.inspection.late_progress import LateProgress
from logstore.tools.inspection.rocketmq.log_end import FileEnd
from logstore.tools.inspection.rocketmq.survey import QueueView, StoreSurvey, survey_store
from logstore.tools.inspection.times import iso_time

_STATES = {
    "clean": "closed cleanly",
    "unclean": "not closed cleanly (abort is there): the next start recovers it",
    "in use": "in use by process {process}",
}


def list_store(directory: str, topic: str | None, *, has_files: bool, is_json: bool) -> None:
    """Print what a store holds; exits with 1 if something in it is damaged."""
    with LateProgress("looking at queues", 0) as progress:

        def note(done: int, total: int) -> None:
            progress.total = total
            progress.move_to(done)

        survey = survey_store(system_host().fs, directory, topic, note)
    if is_json:
        click.echo(json_line(_content(survey, has_files=has_files)))
    else:
        for line in _lines(survey, has_files=has_files):
            click.echo(line)
    for problem in survey.problems:
        click.echo(f"logstore: {problem}", err=True)
    if survey.problems:
        sys.exit(1)


def _lines(survey: StoreSurvey, *, has_files: bool) -> list[str]:
    state = _STATES[survey.state].format(process=survey.process)
    span = f"[{survey.min_physical_offset}, {survey.max_physical_offset})"
    log = (
        f"commit log: {_counted(len(survey.log_files), 'file')}, {survey.size_bytes:,} bytes, "
        f"physical offsets {span}; {_counted(len(survey.index_files), 'index file')}"
    )
    lines = [
        f"{survey.directory}: RocketMQ {survey.release}, {state}",
        log,
        "",
    ]
    if survey.queues:
        names = (
            "topic", "queue", "kind", "start", "end", "first physical", "last physical", "files",
            "bytes",
        )  # fmt: skip
        lines += aligned(names, [_row(view) for view in survey.queues])
    elif survey.rocksdb_folder is not None:
        lines.append(f"queues: in {survey.rocksdb_folder} as RocksDB, which is not read here")
    else:
        lines.append("no queues")
    if survey.topics_without_queues:
        lines += ["", f"topics without a queue: {', '.join(survey.topics_without_queues)}"]
    if has_files:
        columns = ("commit log file", "start", "end", "bytes", "oldest", "newest")
        lines += ["", *aligned(columns, [_file_row(end) for end in survey.log_files])]
        heads = ("consume queue file", "start", "end", "bytes")
        lines += ["", *aligned(heads, [row for v in survey.queues for row in _queue_files(v)])]
    return lines


def _row(view: QueueView) -> tuple[object, ...]:
    span = view.span
    return (
        view.queue.topic,
        view.queue.queue_id,
        _kind(view),
        span.min_queue_offset,
        span.max_queue_offset,
        _number(span.min_physical_offset),
        _number(span.max_physical_offset),
        span.file_count,
        f"{span.size_bytes:,}",
    )


def _kind(view: QueueView) -> str:
    return "batches" if view.queue.is_batch else "ext" if view.queue.ext else "plain"


def _file_row(end: FileEnd) -> tuple[object, ...]:
    return (
        end.file.relative,
        end.file.base,
        end.file.end if end.is_padded else end.physical_offset,
        f"{end.file.size_bytes:,}",
        _time(end.first_ms),
        _time(end.last_ms),
    )


def _queue_files(view: QueueView) -> list[tuple[object, ...]]:
    size = view.queue.unit_bytes
    return [
        (
            file.relative,
            file.base // size,
            max(min(file.end // size, view.span.end), file.base // size),
            f"{file.size_bytes:,}",
        )
        for file in view.queue.files.files
    ]


def _content(survey: StoreSurvey, *, has_files: bool) -> dict[str, Any]:
    content: dict[str, Any] = {
        "directory": survey.directory,
        "layout": "rocketmq",
        "release": survey.release,
        "state": survey.state,
        "process": survey.process,
        "minPhysicalOffset": survey.min_physical_offset,
        "maxPhysicalOffset": survey.max_physical_offset,
        "bytes": survey.size_bytes,
        "queues": [_queue_content(view, has_files=has_files) for view in survey.queues],
        "topicsWithoutQueues": list(survey.topics_without_queues),
        "rocksdb": survey.rocksdb_folder,
        "problems": [
            {"file": problem.path, "position": problem.position, "reason": problem.reason}
            for problem in survey.problems
        ],
    }
    if has_files:
        content["commitLog"] = [_file_content(end) for end in survey.log_files]
        content["indexFiles"] = [path.rpartition("/")[2] for path in survey.index_files]
    return content


def _queue_content(view: QueueView, *, has_files: bool) -> dict[str, Any]:
    span = view.span
    content: dict[str, Any] = {
        "topic": view.queue.topic,
        "queueId": view.queue.queue_id,
        "kind": _kind(view),
        "minOffset": span.min_queue_offset,
        "maxOffset": span.max_queue_offset,
        "firstPhysicalOffset": _none(span.min_physical_offset),
        "lastPhysicalOffset": _none(span.max_physical_offset),
        "fileCount": span.file_count,
        "bytes": span.size_bytes,
    }
    if has_files:
        names = ("file", "start", "end", "bytes")
        content["files"] = [
            dict(zip(names, (*row[:3], int(str(row[3]).replace(",", ""))), strict=True))
            for row in _queue_files(view)
        ]
    return content


def _file_content(end: FileEnd) -> dict[str, Any]:
    return {
        "file": end.file.relative,
        "start": end.file.base,
        "end": end.file.end if end.is_padded else end.physical_offset,
        "bytes": end.file.size_bytes,
        "oldest": _none(end.first_ms),
        "newest": _none(end.last_ms),
    }


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _number(value: int) -> object:
    return "-" if value < 0 else value


def _none(value: int) -> int | None:
    return value if value >= 0 else None


def _time(ms: int) -> str:
    return "-" if ms < 0 else iso_time(ms)
