"""
``--to rocketmq``: a Kafka store becomes a RocketMQ store that a broker starts on.

Spark's tasks write the commit log, and what they know of consume queues and index, of which those
are then put together; where settings make that impossible the recovery of the new store derives
them. Then topics and the groups' offsets are entered.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from logstore.compat.spark.absent_partitions import tell_absent
from logstore.compat.spark.convert.commit_log_plan import FileSpan, Measured, lay_out
from logstore.compat.spark.convert.commit_log_task import CommitLogTask, MeasureTask
from logstore.compat.spark.convert.committed_columns import committed_columns
from logstore.compat.spark.convert.committed_offsets import (
    CommittedOffsets,
    read_committed_offsets,
)
from logstore.compat.spark.convert.damage import FAILFAST, Damage
from logstore.compat.spark.convert.derived_parts import Derived
from logstore.compat.spark.convert.derived_store import put_together
from logstore.compat.spark.convert.job import Progress, Runner, run_tasks
from logstore.compat.spark.convert.options import ConvertOptions
from logstore.compat.spark.convert.preserve.keep_kafka import (
    KafkaKeeping,
    keep_kafka,
    plan_keeping,
)
from logstore.compat.spark.convert.preserve.kept_kafka import KeptCommit
from logstore.compat.spark.convert.topic_names import rocketmq_group, rocketmq_name
from logstore.compat.spark.convert.work_folder import WorkFolder
from logstore.compat.spark.kafka_plan import plan_units
from logstore.compat.spark.open_transactions import tell_open
from logstore.compat.spark.option_values import OptionError
from logstore.compat.spark.options import parse_options
from logstore.compat.spark.predicates import Where
from logstore.compat.spark.stores import file_system_of, open_for_reading
from logstore.compat.spark.work_unit import WorkUnit, gathered
from logstore.errors import ForeignDirectoryError
from logstore.os_host import system_host
from logstore.segments.kafka.store import KafkaStore
from logstore.segments.rocketmq.opening.directory import CONFIG_FOLDER
from logstore.segments.rocketmq.opening.loading import StoreTables
from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.settings.store_config import StoreConfig
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions
from logstore.segments.rocketmq.tables.subscription_groups import SubscriptionGroupConfig
from logstore.segments.rocketmq.tables.topics import TopicConfig

_log = logging.getLogger(__name__)
#: tasks are put together of pieces of this size, so that all of them are about the same
_UNIT_BYTES = 32 * 1024 * 1024
#: what a store derives from its commit log; a run that was killed may have left a part
DERIVED = (
    "consumequeue",
    "batchconsumequeue",
    "consumequeue_ext",
    "index",
    "checkpoint",
    "abort",
    "config",
    "lock",
)


@attrs.frozen
class RocketMQPlan:
    """What a conversion does; kept, so that a killed one goes on with it."""

    spans: list[FileSpan]
    measured: list[Measured]
    first_queue_offsets: dict[tuple[str, int], int]
    partition_counts: dict[str, int]
    committed: CommittedOffsets
    keeping: KafkaKeeping | None = None

    @property
    def message_count(self) -> int:
        """How many messages there will be."""
        return sum(one.message_count for one in self.measured)

    @property
    def size_bytes(self) -> int:
        """How many bytes they have."""
        return sum(one.size_bytes for one in self.measured)


def plan_to_rocketmq(
    runner: Runner, options: ConvertOptions, progress: Progress | None = None
) -> RocketMQPlan:
    """
    Measure the source and lay out the target's commit log.

    Raises:
        OptionError: a topic is not in the source.
        UnfitMessageError: a record does not fit into a commit log file.
        ForeignDirectoryError: the source is no Kafka store.

    """
    source = look_at(options)
    units, firsts = source.units, source.first_offsets
    for unit in reversed(units):  # the first of each partition counts: times may choose a part
        firsts[unit.topic, unit.partition] = unit.start_offset
    if progress is not None:
        progress("measuring", 0, sum(unit.size_bytes for unit in units))
    measured = measured_units(runner, options, units)
    spans = lay_out(
        measured,
        firsts,
        commit_log_file_bytes(options),
        options.task_bytes,
        parallelism=runner.parallelism,
    )
    keeping = plan_keeping(options, measured, firsts) if options.preserve else None
    return RocketMQPlan(spans, measured, firsts, source.partition_counts, source.committed, keeping)


@attrs.frozen
class Source:
    """What a look at the source's indexes tells."""

    units: list[WorkUnit]
    first_offsets: dict[tuple[str, int], int]
    partition_counts: dict[str, int]
    committed: CommittedOffsets


def plan_units_of(options: ConvertOptions) -> list[WorkUnit]:
    """Return what of the source is to be read; raises as :func:`plan_to_rocketmq`."""
    return look_at(options).units


def commit_log_file_bytes(options: ConvertOptions) -> int:
    """Return how long a file of the target's commit log is."""
    return StoreConfig(options.settings).commit_log_file_size_bytes


def look_at(options: ConvertOptions) -> Source:
    """Look at the source's indexes; raises as :func:`plan_to_rocketmq`."""
    if options.codec not in (None, "none"):
        raise OptionError("codec", options.codec, "is for batches of Kafka; leave it out")
    split_bytes = max(1, min(_UNIT_BYTES, options.task_bytes, commit_log_file_bytes(options) // 4))
    read_options = parse_options({**options.read_options(), "splitBytes": str(split_bytes)})
    with open_for_reading(options.source) as store:
        if not isinstance(store, KafkaStore):
            raise ForeignDirectoryError(f"{options.source}: is no Kafka store: nothing to convert")
        tell_absent(store, read_options.wants)
        tell_open(store, read_options.wants, is_kept=options.preserve)
        units = plan_units(store, read_options, Where())
        partitions = [
            partition
            for topic, found in store.topics().items()
            for index, partition in found.items()
            if read_options.wants(topic, index)
        ]
        firsts = {(p.topic, p.index): p.start_offset for p in partitions}
        counts: dict[str, int] = {}
        for partition in partitions:
            counts[partition.topic] = max(counts.get(partition.topic, 0), partition.index + 1)
        return Source(units, firsts, counts, read_committed_offsets(store))


def measured_units(
    runner: Runner, options: ConvertOptions, units: list[WorkUnit]
) -> list[Measured]:
    """Return the measure of every unit as messages."""
    groups = gathered(units, options.task_bytes, runner.parallelism)
    scan_bytes = sum(unit.size_bytes for unit in units)
    tasks = [
        MeasureTask(options.source, tuple(group), options.mode, scan_bytes) for group in groups
    ]
    return [one for found in runner.map(_measure, tasks) for one in found]


def _measure(task: MeasureTask) -> list[Measured]:
    return task.run()


def convert_to_rocketmq(
    runner: Runner, options: ConvertOptions, progress: Progress | None = None
) -> dict[str, Any]:
    """
    Make the target; return the report that stands in it.

    Raises:
        TargetError: something else stands there.

    """
    folder = WorkFolder(options.target)
    plan: RocketMQPlan | None = folder.load_plan(options)
    if plan is None:
        plan = plan_to_rocketmq(runner, options, progress)
        folder.save_plan(options, plan)
    scan_bytes = sum(placed.unit.size_bytes for span in plan.spans for placed in span.units)
    tasks = [
        CommitLogTask(number, options.source, span, options.settings, options.mode, scan_bytes)
        for number, span in enumerate(plan.spans)
    ]
    derived: list[Derived | None] = run_tasks(runner, folder, tasks, progress)
    if progress is not None:
        progress("indexing", 0, 0)
    is_whole = _derive(folder, options, derived)
    commits = _complete(folder, options, plan, is_whole=is_whole)
    report: dict[str, Any] = {
        "messages": plan.message_count,
        "bytes": plan.size_bytes,
        "topics": {topic: rocketmq_name(topic) for topic in sorted(plan.partition_counts)},
    }
    if plan.keeping is not None:
        report["kept"] = keep_kafka(runner, folder, plan.keeping, commits, progress)
    return report


def _derive(folder: WorkFolder, options: ConvertOptions, derived: Sequence[Derived | None]) -> bool:
    """Make what belongs to the log as far as the tasks know it; tell whether that is all."""
    for name in DERIVED:
        path = folder.data / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return put_together(folder.data, folder.derived, options.settings, derived)


def _complete(
    folder: WorkFolder, options: ConvertOptions, plan: RocketMQPlan, *, is_whole: bool
) -> list[KeptCommit]:
    """Enter topics and groups' offsets; where the store is not whole, let it derive the rest."""
    host, data = system_host(), str(folder.data)
    if is_whole:  # opening it would check the log once more, which costs a second a GiB
        tables = StoreTables.load(host, f"{data}/{CONFIG_FOLDER}", Release.V5)
        commits = _enter(tables, options, plan)
        for table in tables.all():
            table.persist_if_dirty()
        return commits
    store = RocketMQStore(host, data, StoreOptions(settings=dict(options.settings)))
    try:
        commits = _enter(store.tables, options, plan)
    except BaseException:
        store.abandon()
        raise
    store.close()
    return commits


def _enter(tables: StoreTables, options: ConvertOptions, plan: RocketMQPlan) -> list[KeptCommit]:
    """Enter topics, and what groups have committed."""
    commits: list[KeptCommit] = []
    for topic, count in sorted(plan.partition_counts.items()):
        tables.topics.put(TopicConfig(rocketmq_name(topic), count, count))
    for (group, topic, index), offset in sorted(plan.committed.items()):
        if topic in plan.partition_counts:
            name = rocketmq_group(group)
            if tables.subscription_groups.get(name) is None:
                tables.subscription_groups.put(SubscriptionGroupConfig(name))
            firsts = plan.first_queue_offsets
            queue_offset = queue_offset_of(options, firsts, plan.measured, topic, index, offset)
            tables.consumer_offsets.commit(name, rocketmq_name(topic), index, queue_offset)
            commits.append(KeptCommit(group, topic, index, offset, queue_offset))
    return commits


def queue_offset_of(
    options: ConvertOptions,
    first_queue_offsets: Mapping[tuple[str, int], int],
    measured: Sequence[Measured],
    topic: str,
    index: int,
    offset: int,
) -> int:
    """Return the queue offset of the first message at or behind a source offset."""
    queue_offset = first_queue_offsets.get((topic, index), 0)
    for one in measured:
        unit = one.unit
        if (unit.topic, unit.partition) != (topic, index):
            continue
        below = _count_below(options, unit, one.message_count, offset)
        queue_offset += below
        if below < one.message_count:
            break
    return queue_offset


def _count_below(options: ConvertOptions, unit: WorkUnit, count: int, offset: int) -> int:
    """Return how many messages of a unit were at offsets below one."""
    if offset >= unit.end_offset:
        return count
    below = 0
    pass_over = None if options.mode == FAILFAST else list[Damage]().append
    for columns in committed_columns(file_system_of(options.source), unit, on_damage=pass_over):
        below += int((columns.offset < offset).sum())
        if len(columns) and int(columns.offset[-1]) >= offset:
            break
    return below
