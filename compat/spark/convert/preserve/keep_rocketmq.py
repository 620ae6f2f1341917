"""On the way from RocketMQ: what is to be kept of the store, and the manifest that tells of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from logstore.compat.spark.convert.job import Progress, Runner, run_tasks
from logstore.compat.spark.convert.options import ConvertOptions
from logstore.compat.spark.convert.preserve.keep_kafka import FIRST_NUMBER
from logstore.compat.spark.convert.preserve.keep_log import (
    NAME_DIGITS,
    KeepFilesTask,
    KeepLogTask,
    KeptFiles,
    KeptLog,
)
from logstore.compat.spark.convert.preserve.kept_kafka import MANIFEST_NAME
from logstore.compat.spark.convert.preserve.kept_rocketmq import KeptQueue, KeptRocketMQ
from logstore.compat.spark.convert.queue_units import QueueUnits
from logstore.compat.spark.convert.topic_names import kafka_name
from logstore.compat.spark.convert.work_folder import WorkFolder
from logstore.compat.spark.options import ReadOptions
from logstore.compat.spark.predicates import Where
from logstore.compat.spark.rocketmq_plan import wanted_queues
from logstore.segments.rocketmq.opening.found_sizes import found_sizes
from logstore.segments.rocketmq.store import RocketMQStore

#: what is made of messages, what a running broker holds, and what a conversion left
_LOG = "commitlog"
_LEFT_OUT = ("lock",)
_OURS = "logstore-"
_FILES_NUMBER = FIRST_NUMBER + 500_000_000


@attrs.frozen
class RocketMQKeeping:
    """What is kept of a RocketMQ store."""

    log_tasks: tuple[KeepLogTask, ...]
    file_tasks: tuple[KeepFilesTask, ...]
    file_bytes: int
    log_end: int
    queues: Mapping[tuple[str, int], KeptQueue]
    sizes: Mapping[str, str]


def plan_keeping_rocketmq(
    store: RocketMQStore, options: ConvertOptions, read_options: ReadOptions
) -> RocketMQKeeping:
    """Look at the files of a store, of which the wanted queues are converted."""
    log = store.commit_log
    units: dict[tuple[str, int], QueueUnits] = {}
    queues: dict[tuple[str, int], KeptQueue] = {}
    for (topic, queue_id), queue in sorted(wanted_queues(store, read_options, Where()).items()):
        queues[kafka_name(topic), queue_id] = KeptQueue(topic, queue.start_offset, queue.end_offset)
        found = store.consume_queues.get(topic, queue_id)
        if found is not None:
            count = queue.end_offset - queue.start_offset
            units[topic, queue_id] = QueueUnits.of(found, queue.start_offset, count)
    log_tasks = [
        KeepLogTask(
            FIRST_NUMBER + number,
            f"{options.source}/{_LOG}/{base:0{NAME_DIGITS}d}",
            base,
            min(log.file_size_bytes, log.max_physical_offset - base),
            log.file_size_bytes,
            number,
            units,
        )
        for number, base in enumerate(log.file_bases())
    ]
    in_log = {f"{base:0{NAME_DIGITS}d}" for base in log.file_bases()}
    file_tasks = tuple(_file_tasks(options, in_log))
    end = log.max_physical_offset
    sizes = found_sizes(store.host.fs, store.directory)
    return RocketMQKeeping(tuple(log_tasks), file_tasks, log.file_size_bytes, end, queues, sizes)


def _file_tasks(options: ConvertOptions, in_log: set[str]) -> Iterator[KeepFilesTask]:
    """Yield tasks for all files but those of the commit log; its own are named `in_log`."""
    group: list[str] = []
    filled_bytes = number = 0
    for path in sorted(_other_files(options.source, in_log)):
        # A file that is mostly a hole is as long as any other; what it takes on disk counts.
        size_bytes = Path(options.source, path).stat().st_blocks * 512
        if group and filled_bytes + size_bytes > options.task_bytes:
            yield KeepFilesTask(
                _FILES_NUMBER + number, options.source, number, tuple(group), filled_bytes
            )
            group, filled_bytes, number = [], 0, number + 1
        group.append(path)
        filled_bytes += size_bytes
    if group:
        yield KeepFilesTask(
            _FILES_NUMBER + number, options.source, number, tuple(group), filled_bytes
        )


def _other_files(source: str, in_log: set[str]) -> Iterator[str]:
    for directory, _, names in os.walk(source):
        below = os.path.relpath(directory, source)
        if below == ".":
            names = [name for name in names if name not in _LEFT_OUT]
            names = [name for name in names if not name.startswith(_OURS)]
        elif below == _LOG:  # a file that was made ahead is behind the end of a crashed log
            names = [name for name in names if name not in in_log]
        yield from (os.path.normpath(os.path.join(below, name)) for name in names)


def keep_rocketmq(
    runner: Runner,
    folder: WorkFolder,
    keeping: RocketMQKeeping,
    committed: Mapping[tuple[str, str, int], int],
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write the recipes and the manifest beside the target; return what is said in its report."""
    logs: list[KeptLog] = run_tasks(runner, folder, keeping.log_tasks, progress)
    others: list[KeptFiles] = run_tasks(runner, folder, keeping.file_tasks, progress)
    kept = KeptRocketMQ(
        keeping.file_bytes,
        keeping.log_end,
        max((one.store_timestamp_ms_max for one in logs), default=0),
        keeping.queues,
        tuple(one.file for one in logs),
        tuple(file for one in others for file in one.files),
        tuple((*place, offset) for place, offset in sorted(committed.items())),
        keeping.sizes,
    )
    kept.save(folder.beside / MANIFEST_NAME)
    beside = folder.beside.glob("logstore-preserved*")
    return {
        "files": len(logs) + len(kept.files),
        "bytes": sum(one.size_bytes for one in logs) + sum(one.size_bytes for one in others),
        "bytesKept": sum(one.kept_bytes for one in logs) + sum(one.size_bytes for one in others),
        "bytesBeside": sum(path.stat().st_size for path in beside),
    }
