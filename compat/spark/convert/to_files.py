"""``--to parquet`` and ``--to jsonl``: the records of either layout as files of rows."""

from __future__ import annotations

from typing import Any

import attrs

from logstore.compat.spark.absent_partitions import tell_absent
from logstore.compat.spark.columns import CORRUPT, DEFAULT_COLUMNS, HEADERS
from logstore.compat.spark.convert.file_task import LINE_SUFFIXES, PARQUET_CODECS, FileTask
from logstore.compat.spark.convert.job import Progress, Runner, run_tasks
from logstore.compat.spark.convert.options import ConvertOptions
from logstore.compat.spark.convert.work_folder import WorkFolder
from logstore.compat.spark.log_end import check_end
from logstore.compat.spark.open_transactions import tell_open
from logstore.compat.spark.option_values import OptionError
from logstore.compat.spark.options import parse_options
from logstore.compat.spark.predicates import Where
from logstore.compat.spark.stores import open_for_reading, plan
from logstore.compat.spark.work_unit import Unit, gathered
from logstore.segments.kafka.store import KafkaStore
from logstore.segments.rocketmq.store import RocketMQStore

FILE_LAYOUTS = ("parquet", "jsonl")
_MESSAGE_COLUMNS = ("tags", "storeTimestamp", "properties")
_DEFAULT_CODECS = {"parquet": "zstd", "jsonl": "none"}


def convert_to_files(
    runner: Runner, options: ConvertOptions, progress: Progress | None = None
) -> dict[str, Any]:
    """
    Make the target's files; return the report that is to stand beside them.

    Raises:
        OptionError: a topic is not in the source, or there is no such codec.
        ForeignDirectoryError: the source is no store.
        CorruptEntryError: the source is damaged; it names file and position.

    """
    folder = WorkFolder(options.target)
    tasks: list[FileTask] | None = folder.load_plan(options)
    if tasks is None:
        tasks = plan_to_files(options)
        folder.save_plan(options, tasks)
    counts = run_tasks(runner, folder, tasks, progress)
    return {"messages": sum(counts), "bytes": sum(task.size_bytes for task in tasks)}


def plan_to_files(options: ConvertOptions) -> list[FileTask]:
    """Return the tasks, of which each makes a file."""
    codec = options.codec or _DEFAULT_CODECS[options.layout]
    known = PARQUET_CODECS if options.layout == "parquet" else LINE_SUFFIXES
    if codec not in known:
        raise OptionError("codec", codec, f"must be one of: {', '.join(known)}")
    read_options = parse_options(
        options.read_options() | {"splitBytes": str(options.task_bytes), "includeHeaders": "true"}
    )
    with open_for_reading(options.source) as store:
        if isinstance(store, RocketMQStore):
            check_end(store)
        columns: tuple[str, ...] = (*DEFAULT_COLUMNS, HEADERS)
        if isinstance(store, KafkaStore):
            tell_absent(store, read_options.wants)
            tell_open(store, read_options.wants, is_kept=False)
        else:
            columns += _MESSAGE_COLUMNS
        if options.mode == "permissive":
            columns += (CORRUPT,)
        units: list[Unit] = plan(store, attrs.evolve(read_options, columns=columns), Where())
    groups = gathered(units, options.task_bytes, 0)
    return [
        FileTask(number, options.source, tuple(group), columns, options.layout, codec, options.mode)
        for number, group in enumerate(groups)
    ]
