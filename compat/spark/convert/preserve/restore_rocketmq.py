"""
The way back to RocketMQ: the old commit log and all that stood beside it, then what is new.

First every file of the commit log is made again. That shows which queues are not what they were:
the messages of those are given stand-ins in a second go, and their records are appended as new
ones, behind the old log. Consume queues and all else come back as they were if nothing is missing;
else they are derived from the commit log, as after a crash.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from logstore.compat.spark.convert.commit_log_plan import Measured, lay_out
from logstore.compat.spark.convert.commit_log_task import CommitLogTask
from logstore.compat.spark.convert.committed_offsets import CommittedOffsets
from logstore.compat.spark.convert.job import Progress, Runner, run_tasks
from logstore.compat.spark.convert.options import ConvertOptions
from logstore.compat.spark.convert.preserve.file_chunks import digest_of
from logstore.compat.spark.convert.preserve.keep_log import NAME_DIGITS
from logstore.compat.spark.convert.preserve.kept_rocketmq import KeptRocketMQ, load_kept_rocketmq
from logstore.compat.spark.convert.preserve.restore_log import (
    Place,
    RestoredLog,
    RestoredPartition,
    RestoreFilesTask,
    RestoreLogTask,
)
from logstore.compat.spark.convert.to_rocketmq import (
    DERIVED,
    Source,
    look_at,
    measured_units,
    queue_offset_of,
)
from logstore.compat.spark.convert.topic_names import rocketmq_group, rocketmq_name
from logstore.compat.spark.convert.work_folder import WorkFolder
from logstore.compat.spark.kafka_plan import plan_units
from logstore.compat.spark.offset_bounds import EARLIEST, Bound
from logstore.compat.spark.option_values import OptionError
from logstore.compat.spark.options import parse_options
from logstore.compat.spark.predicates import Where
from logstore.compat.spark.stores import open_for_reading
from logstore.compat.spark.work_unit import WorkUnit
from logstore.os_host import system_host
from logstore.segments.kafka.store import KafkaStore
from logstore.segments.rocketmq.messages.message_layout import BLANK, BLANK_BYTES, BLANK_MAGIC
from logstore.segments.rocketmq.settings.store_config import StoreConfig
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions
from logstore.segments.rocketmq.tables.subscription_groups import SubscriptionGroupConfig
from logstore.segments.rocketmq.tables.topics import TopicConfig

_LOG_SIZE = "mappedFileSizeCommitLog"
#: numbers of tasks: a second go at old files, and what is new
_SECOND_NUMBER, _NEW_NUMBER = 100_000_000, 200_000_000
_INDEX_HEADER_BYTES, _SLOT_BYTES, _ENTRY_BYTES = 40, 4, 20


@attrs.frozen
class RestorePlan:
    """What a way back does; kept, so that a killed one goes on with it."""

    partitions: Mapping[Place, RestoredPartition]
    partition_counts: Mapping[str, int]
    start_offsets: Mapping[Place, int]
    committed: CommittedOffsets


def kept_for(options: ConvertOptions) -> KeptRocketMQ | None:
    """Return what the source has of the RocketMQ store that it was, if that is wanted."""
    return load_kept_rocketmq(options.source) if options.preserve else None


def restore_rocketmq(
    runner: Runner, options: ConvertOptions, kept: KeptRocketMQ, progress: Progress | None = None
) -> dict[str, Any]:
    """
    Make the target; return the report that stands in it.

    Raises:
        OptionError: a setting is not that of the old store.

    """
    settings = _settings(options, kept)
    options = attrs.evolve(options, settings=settings)
    folder = WorkFolder(options.target)
    plan: RestorePlan | None = folder.load_plan(options)
    if plan is None:
        plan = _planned(look_at(options), kept)
        folder.save_plan(options, plan)
    logs, changed = _restored_logs(runner, folder, options, plan, kept, progress)
    measured = measured_units(runner, options, _new_units(options, plan, kept, changed))
    _write_new(runner, folder, options, plan, kept, changed, measured, progress)
    is_intact = not any(one.replaced_count for one in logs)
    is_longer = _has_messages(measured)
    _restore_files(runner, folder, options, kept, is_intact=is_intact, is_longer=is_longer)
    if progress is not None:
        progress("indexing", 0, 0)
    _complete(folder, options, plan, kept, changed, measured, is_intact=is_intact)
    return {
        "messages": sum(one.count for one in logs) + sum(one.message_count for one in measured),
        "bytes": len(logs) * kept.file_bytes + sum(one.size_bytes for one in measured),
        "topics": {topic: rocketmq_name(topic) for topic in sorted(plan.partition_counts)},
        "restored": _report(folder, kept, logs, changed, is_appended=_has_messages(measured)),
    }


def _settings(options: ConvertOptions, kept: KeptRocketMQ) -> dict[str, str]:
    """Return the target's settings: the old store's sizes, and what is wished besides."""
    for name, size in kept.sizes.items():
        if options.settings.get(name, size) != size:
            raise OptionError(
                name, options.settings[name], f"was {size}, and files keep their size"
            )
    settings = {_LOG_SIZE: str(kept.file_bytes), **kept.sizes, **options.settings}
    config = StoreConfig(settings)
    entry_bytes = config.integer("maxIndexNum") * _ENTRY_BYTES
    wanted = _INDEX_HEADER_BYTES + config.integer("maxHashSlotNum") * _SLOT_BYTES + entry_bytes
    for file in kept.files:
        if file.path.startswith("index/") and file.size_bytes != wanted:
            raise OptionError(
                "maxIndexNum",
                config.integer("maxIndexNum"),
                f"does not make {file.path}, which has {file.size_bytes} bytes; "
                "name maxIndexNum and maxHashSlotNum of the old store with --set",
            )
    return settings


def _planned(source: Source, kept: KeptRocketMQ) -> RestorePlan:
    units: dict[Place, list[WorkUnit]] = {}
    for unit in source.units:
        units.setdefault((unit.topic, unit.partition), []).append(unit)
    partitions = {
        (queue.topic, index): RestoredPartition(
            topic, index, start_offset, tuple(units.get((topic, index), ()))
        )
        for (topic, index), queue in kept.queues.items()
        if (start_offset := source.first_offsets.get((topic, index))) is not None
    }
    starts = dict(source.first_offsets)
    return RestorePlan(partitions, source.partition_counts, starts, source.committed)


def _restored_logs(
    runner: Runner,
    folder: WorkFolder,
    options: ConvertOptions,
    plan: RestorePlan,
    kept: KeptRocketMQ,
    progress: Progress | None,
) -> tuple[list[RestoredLog], frozenset[Place]]:
    """Make the old commit log; return what came of its files, and the queues that are others."""
    tasks = _log_tasks(options, plan, kept, frozenset(), 0)
    found: list[RestoredLog] = run_tasks(runner, folder, tasks, progress)
    changed = frozenset(place for one in found for place in one.changed)
    if changed:
        again = [
            task
            for task in _log_tasks(options, plan, kept, changed, _SECOND_NUMBER)
            if any((topic, queue_id) in changed for topic, queue_id, _, _ in task.file.ranges)
        ]
        outcomes: list[RestoredLog] = run_tasks(runner, folder, again, progress)
        for task, outcome in zip(again, outcomes, strict=True):
            found[task.number - _SECOND_NUMBER] = outcome
    return found, changed


def _log_tasks(
    options: ConvertOptions,
    plan: RestorePlan,
    kept: KeptRocketMQ,
    changed: frozenset[Place],
    first_number: int,
) -> list[RestoreLogTask]:
    there = {place: one for place, one in plan.partitions.items() if place not in changed}
    bound = {place: attrs.evolve(one, units=()) for place, one in there.items()}
    tasks: list[RestoreLogTask] = []
    for number, file in enumerate(kept.log_files):
        places = [(topic, queue_id) for topic, queue_id, _, _ in file.ranges]
        partitions = {**bound, **{place: there[place] for place in places if place in there}}
        tasks.append(
            RestoreLogTask(first_number + number, options.source, file, kept.file_bytes, partitions)
        )
    return tasks


def _new_units(
    options: ConvertOptions, plan: RestorePlan, kept: KeptRocketMQ, changed: frozenset[Place]
) -> list[WorkUnit]:
    """Return what of the source was not in the old store, and all of queues that are others."""
    begins = {
        place: queue.end
        for place, queue in kept.queues.items()
        if (queue.topic, place[1]) not in changed and place in plan.start_offsets
    }
    read_options = parse_options({**options.read_options(), "splitBytes": str(options.task_bytes)})
    read_options = attrs.evolve(read_options, start=Bound(EARLIEST, begins))
    with open_for_reading(options.source) as store:
        assert isinstance(store, KafkaStore), "the source of a way back to RocketMQ"
        return list(plan_units(store, read_options, Where()))


def _write_new(
    runner: Runner,
    folder: WorkFolder,
    options: ConvertOptions,
    plan: RestorePlan,
    kept: KeptRocketMQ,
    changed: frozenset[Place],
    measured: Sequence[Measured],
    progress: Progress | None,
) -> None:
    """Write new messages to files of their own, behind the old log."""
    if not _has_messages(measured):
        return
    bases = [file.physical_offset for file in kept.log_files]
    spans = lay_out(
        measured,
        _first_queue_offsets(plan, kept, changed),
        kept.file_bytes,
        options.task_bytes,
        begin=bases[-1] + kept.file_bytes if bases else None,
        store_timestamp_ms_min=max(1, kept.store_timestamp_ms_max),
    )
    tasks = [
        CommitLogTask(_NEW_NUMBER + number, options.source, span, options.settings)
        for number, span in enumerate(spans)
    ]
    run_tasks(runner, folder, tasks, progress)
    if bases and bases[-1] <= kept.log_end <= bases[-1] + kept.file_bytes - BLANK_BYTES:
        path = folder.data / "commitlog" / f"{bases[-1]:0{NAME_DIGITS}d}"
        position = kept.log_end - bases[-1]
        file = system_host().fs.open(str(path))
        file.write(position, BLANK.pack(kept.file_bytes - position, BLANK_MAGIC))
        file.sync()
        file.close()


def _has_messages(measured: Sequence[Measured]) -> bool:
    return any(one.message_count for one in measured)


def _first_queue_offsets(
    plan: RestorePlan, kept: KeptRocketMQ, changed: frozenset[Place]
) -> dict[Place, int]:
    """Return at which queue offset new messages of each partition begin."""
    firsts = dict(plan.start_offsets)
    for place, queue in kept.queues.items():
        if place in firsts and (queue.topic, place[1]) not in changed:
            firsts[place] = queue.end
    return firsts


def _restore_files(
    runner: Runner,
    folder: WorkFolder,
    options: ConvertOptions,
    kept: KeptRocketMQ,
    *,
    is_intact: bool,
    is_longer: bool,
) -> None:
    """
    Put all other files where they were; no consume queues and index if those must differ.

    A log that `is_longer` has files of its own where those stood that were made ahead.
    """
    for name in DERIVED:  # a run that was killed may have gone on from here
        path = folder.data / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    files = [
        one
        for one in kept.files
        if (is_intact or not _is_derived(one.path))
        and not (is_longer and one.path.startswith("commitlog/"))
    ]
    tasks = [
        RestoreFilesTask(number, options.source, tuple(files[number :: runner.parallelism]))
        for number in range(min(runner.parallelism, len(files)))
    ]
    target = str(folder.target)
    runner.map(lambda task: _run(task, target), tasks)


def _run(task: RestoreFilesTask, target: str) -> None:
    folder = WorkFolder(target)
    attempt = folder.begin_attempt(_NEW_NUMBER * 2 + task.number)
    task.run(attempt)
    attempt.publish(folder)


def _is_derived(path: str) -> bool:
    folder = path.partition("/")[0]
    return folder in DERIVED and folder != "config"


def _complete(
    folder: WorkFolder,
    options: ConvertOptions,
    plan: RestorePlan,
    kept: KeptRocketMQ,
    changed: frozenset[Place],
    measured: Sequence[Measured],
    *,
    is_intact: bool,
) -> None:
    """
    Let the store take in what is new, and enter topics and groups' offsets that changed.

    It derives queues and index where the log is not `is_intact`. Where there is nothing of that
    kind it is left as it was, also if a crash has left it so: whoever opens it mends them.
    """
    is_same = is_intact and not changed and not _has_messages(measured)
    if is_same and not _has_news(folder, options, plan, kept):
        return
    store = RocketMQStore(
        system_host(), str(folder.data), StoreOptions(settings=dict(options.settings))
    )
    try:
        for topic in {topic for topic, _ in kept.queues} - plan.partition_counts.keys():
            store.topic_table.remove(rocketmq_name(topic))
            store.delete_topics({rocketmq_name(topic)})
        for topic, count in sorted(plan.partition_counts.items()):
            known = store.topic_table.get(rocketmq_name(topic))
            if known is None or max(known.read_queue_count, known.write_queue_count) < count:
                store.topic_table.put(TopicConfig(rocketmq_name(topic), count, count))
        firsts = _first_queue_offsets(plan, kept, changed)
        for (group, topic, index), offset in _moved(plan, kept):
            name = rocketmq_group(group)
            if store.subscription_groups.get(name) is None:
                store.subscription_groups.put(SubscriptionGroupConfig(name))
            queue_offset = offset
            if offset > firsts.get((topic, index), 0):
                queue_offset = queue_offset_of(options, firsts, measured, topic, index, offset)
            store.consumer_offsets.commit(name, rocketmq_name(topic), index, queue_offset)
    except BaseException:
        store.abandon()
        raise
    store.close()


def _has_news(
    folder: WorkFolder, options: ConvertOptions, plan: RestorePlan, kept: KeptRocketMQ
) -> bool:
    """Tell whether topics, their sizes or groups' offsets are not what the old store has."""
    if _moved(plan, kept) or any(topic not in plan.partition_counts for topic, _ in kept.queues):
        return True
    settings = StoreOptions(is_writable=False, settings=dict(options.settings))
    store = RocketMQStore(system_host(), str(folder.data), settings)
    try:
        for topic, count in plan.partition_counts.items():
            known = store.topic_table.get(rocketmq_name(topic))
            if known is None or max(known.read_queue_count, known.write_queue_count) < count:
                return True
        return False
    finally:
        store.close()


def _moved(plan: RestorePlan, kept: KeptRocketMQ) -> list[tuple[tuple[str, str, int], int]]:
    """Return the groups' offsets that are not what they were."""
    before = {(group, topic, index): offset for group, topic, index, offset in kept.commits}
    return [
        (place, offset)
        for place, offset in sorted(plan.committed.items())
        if place[1] in plan.partition_counts and before.get(place) != offset
    ]


def _report(
    folder: WorkFolder,
    kept: KeptRocketMQ,
    logs: Sequence[RestoredLog],
    changed: frozenset[Place],
    *,
    is_appended: bool,
) -> dict[str, Any]:
    """Return which files are byte for byte what they were."""
    others: list[str] = []
    gone: list[str] = []
    unchanged = 0
    for number, (file, outcome) in enumerate(zip(kept.log_files, logs, strict=True)):
        is_last = number == len(logs) - 1
        if outcome.replaced_count or (is_last and is_appended):
            others.append(f"commitlog/{file.physical_offset:0{NAME_DIGITS}d}")
        else:
            unchanged += 1
    for other in kept.files:
        path = Path(folder.data, other.path)
        if not path.is_file():
            gone.append(other.path)
        elif digest_of(path) == other.digest:
            unchanged += 1
        else:
            others.append(other.path)
    return {
        "unchanged": unchanged,
        "changed": sorted(others),
        "gone": sorted(gone),
        "replacedMessages": sum(one.replaced_count for one in logs),
        "queuesMadeAnew": sorted(f"{topic}-{queue_id}" for topic, queue_id in changed),
    }
