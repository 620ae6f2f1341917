"""On the way back to Kafka: which segments are made again, and what no segment tells."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from logstore.compat.spark.convert.kafka_segment_task import KafkaSegmentTask
from logstore.compat.spark.convert.options import ConvertOptions
from logstore.compat.spark.convert.preserve.kept_kafka import (
    KeptKafka,
    KeptPartition,
    batches_path,
    load_kept_kafka,
    segment_groups,
)
from logstore.compat.spark.convert.preserve.restore_segments import (
    NAME_DIGITS,
    RestoredSegments,
    RestoreSegmentsTask,
)
from logstore.compat.spark.convert.queue_units import NO_UNITS, QueueUnits
from logstore.compat.spark.convert.small_queues_task import SmallQueuesTask
from logstore.compat.spark.convert.work_folder import WorkFolder
from logstore.compat.spark.options import ReadOptions
from logstore.compat.spark.predicates import Where
from logstore.compat.spark.rocketmq_plan import wanted_queues
from logstore.os_host import system_host
from logstore.segments.kafka.checkpoints import LOG_START, write_offset_checkpoint
from logstore.segments.kafka.config import parse_topic_configs
from logstore.segments.rocketmq.store import RocketMQStore

#: by (group, topic, partition)
Commits = Mapping[tuple[str, str, int], int]
KafkaTask = KafkaSegmentTask | SmallQueuesTask | RestoreSegmentsTask


def kept_for(options: ConvertOptions) -> KeptKafka | None:
    """Return what the source has of the Kafka store that it was, if that is wanted."""
    return load_kept_kafka(options.source) if options.preserve else None


def restoring_tasks(
    store: RocketMQStore,
    options: ReadOptions,
    kept: KeptKafka,
    plain: KafkaSegmentTask,
    task_bytes: int,
) -> tuple[list[KafkaTask], dict[tuple[str, int], int]]:
    """
    Return the tasks that make old segments again, and where behind them each queue goes on.

    Partitions whose topic is there no more are none of them.
    """
    tasks: list[KafkaTask] = []
    begins: dict[tuple[str, int], int] = {}
    for topic, queue_id in sorted(wanted_queues(store, options, Where())):
        reader = plain.of_queue(topic, queue_id)
        partition = kept.partitions.get((reader.topic, queue_id))
        units = None if partition is None else _units(store, topic, queue_id, partition)
        if partition is None or units is None:
            continue
        begins[topic, queue_id] = partition.queue_end
        has_more = units.first + units.count > partition.queue_end
        left_out = partition.end_offset if has_more else -1
        beside = str(Path(plain.commit_log).parent)
        reader = attrs.evolve(reader, units=units, leader_epoch=partition.leader_epoch)
        for segments in segment_groups(partition.segments, task_bytes):
            tasks.append(RestoreSegmentsTask(len(tasks), beside, reader, tuple(segments), left_out))
    return tasks, begins


def _units(
    store: RocketMQStore, topic: str, queue_id: int, kept: KeptPartition
) -> QueueUnits | None:
    """Return all units of a queue, None if they are not one a message."""
    queue = store.consume_queues.get(topic, queue_id)
    if queue is None:
        return attrs.evolve(NO_UNITS, first=kept.queue_end)
    if queue.unit_size_bytes != NO_UNITS.unit_bytes:
        return None
    found = store.topics()[topic][queue_id]
    return QueueUnits.of(queue, found.start_offset, found.end_offset - found.start_offset)


def going_on(task: KafkaSegmentTask, kept: KeptKafka, options: ConvertOptions) -> KafkaSegmentTask:
    """Return a task whose records follow those of the old log, if there was one."""
    partition = kept.partitions.get((task.topic, task.partition))
    if partition is None:
        return task
    config = parse_topic_configs(kept.settings_of(task.topic, options.settings))
    return attrs.evolve(
        task,
        offset_shift=partition.end_offset - partition.queue_end,
        leader_epoch=partition.leader_epoch,
        config=config,
    )


def record_count(outcome: int | RestoredSegments) -> int:
    """Return how many records a task has written."""
    return outcome if isinstance(outcome, int) else outcome.count


def enter_heads(
    folder: WorkFolder,
    kept: KeptKafka,
    tasks: Sequence[KafkaTask],
    outcomes: Sequence[int | RestoredSegments],
) -> None:
    """Put beside the segments what no log tells: epochs, topic ids and log starts."""
    starts: dict[tuple[str, int], int] = {}
    for task, outcome in zip(tasks, outcomes, strict=True):
        if isinstance(task, RestoreSegmentsTask) and isinstance(outcome, RestoredSegments):
            place = (task.reader.topic, task.reader.partition)
            known = starts.get(place, kept.partitions[place].start_offset)
            starts[place] = max(known, outcome.start_offset)
    fs = system_host().fs
    for (topic, index), start in starts.items():
        directory = folder.data / f"{topic}-{index}"
        for name, text in kept.partitions[topic, index].files.items():
            (directory / name).write_text(text, encoding="utf-8")
        begins = min((int(path.stem) for path in directory.glob("*.log")), default=start)
        starts[topic, index] = max(start, begins)
    write_offset_checkpoint(fs, str(folder.data / LOG_START), starts)


def restored_commits(beside: str, kept: KeptKafka, committed: Commits) -> dict[Any, int]:
    """Return offsets of the old logs for queue offsets that groups have committed."""
    unmoved = {
        (one.group, one.topic, one.partition, one.queue_offset): one.offset for one in kept.commits
    }
    found: dict[Any, int] = {}
    for (group, topic, index), queue_offset in committed.items():
        partition = kept.partitions.get((topic, index))
        offset = unmoved.get((group, topic, index, queue_offset))
        if offset is None:
            offset = queue_offset
            if partition is not None:
                offset = _offset_of(beside, partition, queue_offset)
        found[group, topic, index] = offset
    return found


def _offset_of(beside: str, kept: KeptPartition, queue_offset: int) -> int:
    """Return the offset of the first record that is no message below a queue offset."""
    if queue_offset >= kept.queue_end:
        return queue_offset + kept.end_offset - kept.queue_end
    behind = [one for one in kept.segments if one.first_queue_offset <= queue_offset]
    if not behind:
        return kept.start_offset
    parquet: Any = importlib.import_module("pyarrow.parquet")
    segment = behind[-1]
    path = str(batches_path(beside, segment.recipe))
    with parquet.ParquetFile(path) as file:
        groups = range(segment.first_group, segment.first_group + segment.group_count)
        names = ["queue_offset", "count", "base_offset", "deltas"]
        rows = file.read_row_groups(list(groups), columns=names).to_pylist()
    for row in rows:
        index = queue_offset - row["queue_offset"]
        if 0 <= index < row["count"]:
            deltas = row["deltas"]
            delta = index if deltas is None else int(np.frombuffer(deltas, dtype="<i4")[index])
            return int(row["base_offset"]) + delta
    return kept.end_offset


def restoring_report(kept: KeptKafka, outcomes: Iterable[object]) -> dict[str, Any]:
    """Return which files are byte for byte what they were, which are not, and which are gone."""
    found = [one for one in outcomes if isinstance(one, RestoredSegments)]
    whole = [name for one in found for name in one.whole]
    changed = [name for one in found for name in one.changed]
    gone = {
        f"{topic}-{index}/{segment.base_offset:0{NAME_DIGITS}d}.log"
        for (topic, index), partition in kept.partitions.items()
        for segment in partition.segments
    }
    gone.difference_update(whole, changed)
    return {"unchanged": len(whole), "changed": sorted(changed), "gone": sorted(gone)}
