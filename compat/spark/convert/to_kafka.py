"""
``--to kafka``: a RocketMQ store becomes a Kafka data directory that a broker starts on.

Spark's tasks write the segments with their indexes. The new store is then opened as after a clean
stop, which enters the topics into the cluster's metadata, and the groups' offsets are committed.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from logstore.compat.spark.convert.job import Progress, Runner, run_tasks
from logstore.compat.spark.convert.kafka_segment_task import KafkaSegmentTask
from logstore.compat.spark.convert.options import ConvertOptions
from logstore.compat.spark.convert.preserve.keep_rocketmq import (
    RocketMQKeeping,
    keep_rocketmq,
    plan_keeping_rocketmq,
)
from logstore.compat.spark.convert.preserve.kept_kafka import KeptKafka
from logstore.compat.spark.convert.preserve.restore_kafka import (
    KafkaTask,
    enter_heads,
    going_on,
    kept_for,
    record_count,
    restored_commits,
    restoring_report,
    restoring_tasks,
)
from logstore.compat.spark.convert.queue_units import NO_UNITS, QueueUnits
from logstore.compat.spark.convert.small_queues_task import shared
from logstore.compat.spark.convert.topic_names import kafka_group, kafka_name
from logstore.compat.spark.convert.work_folder import WorkFolder
from logstore.compat.spark.log_end import check_end
from logstore.compat.spark.option_values import OptionError
from logstore.compat.spark.options import ReadOptions, parse_options
from logstore.compat.spark.predicates import Where
from logstore.compat.spark.rocketmq_plan import queue_bounds, wanted_queues
from logstore.compat.spark.stores import open_for_reading
from logstore.deferred_sync import DeferredFileSystem, sync_volume
from logstore.errors import ForeignDirectoryError
from logstore.host import Host
from logstore.java_hash import java_hash
from logstore.os_host import system_host
from logstore.partition import Record
from logstore.segments.kafka import clean_shutdown, segment_files
from logstore.segments.kafka.checkpoints import LEADER_EPOCHS, LOG_START
from logstore.segments.kafka.cluster_metadata.metadata_log import TOPIC as METADATA_TOPIC
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.config import parse_topic_configs
from logstore.segments.kafka.internal_topics.codec import encode_versioned
from logstore.segments.kafka.internal_topics.offset_commit import (
    OffsetCommitKey,
    OffsetCommitValue,
)
from logstore.segments.kafka.meta_properties import FILE_NAME as META_PROPERTIES
from logstore.segments.kafka.partition_metadata import FILE_NAME as PARTITION_METADATA
from logstore.segments.kafka.store import KafkaStore, StoreOptions
from logstore.segments.kafka.topic import Topic
from logstore.segments.rocketmq.store import RocketMQStore
from logstore.segments.rocketmq.tables.consumer_offsets import SEPARATOR

GROUPS_TOPIC = "__consumer_offsets"
_GROUPS_PARTITIONS = 50
_GROUPS_SETTINGS = {
    "cleanup.policy": "compact",
    "compression.type": "producer",
    "segment.bytes": "104857600",
}
_KEY_VERSION, _VALUE_VERSION = 1, 3
_CHUNK_UNITS = 300_000
#: what the store writes into partitions; where an old log goes on it stands there before
_MADE_IN_PARTITIONS = (PARTITION_METADATA, LEADER_EPOCHS, "*.snapshot")


@attrs.frozen
class KafkaPlan:
    """What a conversion does; kept, so that a killed one goes on with it."""

    tasks: list[KafkaTask]
    partition_counts: dict[str, int]
    committed: dict[tuple[str, str, int], int]
    kept: KeptKafka | None = None
    keeping: RocketMQKeeping | None = None


def plan_to_kafka(options: ConvertOptions) -> KafkaPlan:
    """
    Look at the source's queues and share them out.

    Raises:
        OptionError: a topic is not in the source.
        ForeignDirectoryError: the source is no RocketMQ store.
        CorruptEntryError: it was closed cleanly, and its log ends in damage.

    """
    read_options = parse_options(options.read_options())
    kept = kept_for(options)
    with open_for_reading(options.source) as store:
        if not isinstance(store, RocketMQStore):
            raise ForeignDirectoryError(
                f"{options.source}: is no RocketMQ store: nothing to convert"
            )
        check_end(store)
        plain = _plain_task(store, options)
        tasks: list[KafkaTask] = []
        begins: dict[tuple[str, int], int] = {}
        if kept is not None:
            tasks, begins = restoring_tasks(store, read_options, kept, plain, options.task_bytes)
        shares = [
            attrs.evolve(plain.of_queue(topic, queue_id), units=units, size_bytes=size_bytes)
            for topic, queue_id, units, size_bytes in _shares(
                store, read_options, options.task_bytes, begins
            )
        ]
        if kept is None:
            tasks.extend(shared(shares, options.task_bytes))
        else:  # what goes on behind an old log has a task of its own, by which its head is known
            shares = [going_on(task, kept, options) for task in shares]
            tasks += [attrs.evolve(task, number=n) for n, task in enumerate(shares, len(tasks))]
        counts = _partition_counts(store, read_options)
        keeping = None
        if options.preserve and kept is None:
            keeping = plan_keeping_rocketmq(store, options, read_options)
        return KafkaPlan(tasks, counts, _committed(store), kept, keeping)


def _plain_task(store: RocketMQStore, options: ConvertOptions) -> KafkaSegmentTask:
    """Return what the tasks of all queues have in common."""
    return KafkaSegmentTask(
        0,
        f"{options.source}/commitlog",
        store.commit_log.file_size_bytes,
        NO_UNITS,
        "",
        "",
        "",
        0,
        _codec(options),
        parse_topic_configs(dict(options.settings)),
        0,
        mode=options.mode,
    )


def _partition_counts(store: RocketMQStore, options: ReadOptions) -> dict[str, int]:
    """Return how many partitions every topic has that is made, as Kafka calls it."""
    counts: dict[str, int] = {}
    for topic, queue_id in wanted_queues(store, options, Where()):
        counts[kafka_name(topic)] = max(counts.get(kafka_name(topic), 0), queue_id + 1)
    return counts


def _codec(options: ConvertOptions) -> Codec:
    """Return what new batches are compressed with."""
    name = options.codec or "none"
    if name.upper() not in Codec.__members__:
        known = ", ".join(codec.lower() for codec in Codec.__members__)
        raise OptionError("codec", name, f"must be one of: {known}")
    return Codec[name.upper()]


def _shares(
    store: RocketMQStore,
    options: ReadOptions,
    task_bytes: int,
    begins: Mapping[tuple[str, int], int],
) -> Iterator[tuple[str, int, QueueUnits, int]]:
    """Yield parts of queues, of about `task_bytes` each; nothing of one below its `begins`."""
    starts = queue_bounds(store, options, options.start)
    ends = queue_bounds(store, options, options.end)
    for (topic, queue_id), start in sorted(starts.items()):
        queue = store.consume_queues.get(topic, queue_id)
        start = max(start, begins.get((topic, queue_id), 0))
        if queue is None or ends[topic, queue_id] <= start:
            continue
        is_batch = queue.unit_size_bytes > 20
        first, last = (start, ends[topic, queue_id])
        if is_batch:  # its units count otherwise; all of them are taken
            first, last = queue.written_span.start, queue.written_span.end
            last += len(queue.unwritten_units) // queue.unit_size_bytes
        whole = QueueUnits.of(queue, first, last - first)
        for units, size_bytes in _parts(store, whole, task_bytes):
            yield topic, queue_id, units, size_bytes


def _parts(
    store: RocketMQStore, whole: QueueUnits, task_bytes: int
) -> Iterator[tuple[QueueUnits, int]]:
    """Yield runs of units whose messages have about `task_bytes` together, and how many."""
    begun, filled_bytes = whole.first, 0
    end = whole.first + whole.count
    for first in range(whole.first, end, _CHUNK_UNITS):
        count = min(_CHUNK_UNITS, end - first)
        chunk = whole.part(first, count)
        sums = np.cumsum(chunk.read(store.host.fs).size_bytes)
        done = 0
        while filled_bytes + int(sums[-1]) - done > task_bytes:
            cut = int(np.searchsorted(sums, done + task_bytes - filled_bytes, side="right"))
            cut = max(cut, begun - first + 1)  # one that is longer than a task has one of its own
            sum_before = int(sums[cut - 1]) if cut > 0 else 0
            yield (
                whole.part(begun, first + cut - begun),
                filled_bytes + sum_before - done,
            )
            begun, filled_bytes, done = first + cut, 0, sum_before
        filled_bytes += int(sums[-1]) - done
    if begun < end:
        yield whole.part(begun, end - begun), filled_bytes


def _committed(store: RocketMQStore) -> dict[tuple[str, str, int], int]:
    """Return the groups' offsets by (group, topic as Kafka calls it, partition)."""
    found: dict[tuple[str, str, int], int] = {}
    for key, queues in store.consumer_offsets.offsets.items():
        topic, _, group = key.partition(SEPARATOR)
        for queue_id, queue_offset in queues.items():
            found[kafka_group(group), kafka_name(topic), queue_id] = queue_offset
    return found


def convert_to_kafka(
    runner: Runner, options: ConvertOptions, progress: Progress | None = None
) -> dict[str, Any]:
    """Make the target's data; return the report that is to stand in it."""
    folder = WorkFolder(options.target)
    plan: KafkaPlan | None = folder.load_plan(options)
    if plan is None:
        plan = plan_to_kafka(options)
        folder.save_plan(options, plan)
    outcomes = run_tasks(runner, folder, plan.tasks, progress)
    if progress is not None:
        progress("indexing", 0, 0)
    if plan.kept is not None:
        enter_heads(folder, plan.kept, plan.tasks, outcomes)
    _complete(folder, options, plan)
    report: dict[str, Any] = {
        "messages": sum(record_count(one) for one in outcomes),
        "bytes": sum(task.size_bytes for task in plan.tasks),
        "topics": sorted(plan.partition_counts),
    }
    if plan.kept is not None:
        report["restored"] = restoring_report(plan.kept, outcomes)
    if plan.keeping is not None:
        report["kept"] = keep_rocketmq(runner, folder, plan.keeping, plan.committed, progress)
    return report


def _complete(folder: WorkFolder, options: ConvertOptions, plan: KafkaPlan) -> None:
    """Let the store find and index what was written, and commit the groups' offsets."""
    for topic, count in plan.partition_counts.items():
        for index in range(count):
            (folder.data / f"{topic}-{index}").mkdir(parents=True, exist_ok=True)
    # What was preserved is checked once more, as after a crash; so is what a killed run has opened.
    is_untouched = not (folder.data / META_PROPERTIES).exists()
    if plan.kept is None and is_untouched:
        clean_shutdown.write(system_host().fs, str(folder.data))
    if not is_untouched:
        _forget_completion(folder.data, plan)
    # Each partition gets files of its own; none of them counts before all of them are there.
    host = attrs.evolve(system_host(), fs=DeferredFileSystem())
    store_options = StoreOptions(node_id=1, log_defaults=dict(options.settings))
    store = _indexed(host, str(folder.data), store_options)
    try:
        # Messages may be old: a broker that starts with its defaults would remove them at once.
        settings = {"retention.ms": "-1", **options.settings}
        for topic in plan.partition_counts:
            if plan.kept is not None:
                settings = plan.kept.settings_of(topic, options.settings)
            store.change_settings(store.topics_by_name[topic], settings)
            _begin_epochs(store.topics_by_name[topic])
        _commit_offsets(store, options, plan)
    except BaseException:
        store.abandon()
        raise
    store.close()
    sync_volume(str(folder.data))


def _indexed(host: Host, directory: str, options: StoreOptions) -> KafkaStore:
    """Open the store; that it makes indexes which no task has made is no news to anybody."""
    log = logging.getLogger(segment_files.__name__)
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        return KafkaStore(host, directory, options)
    finally:
        log.setLevel(level)


def _forget_completion(data: Path, plan: KafkaPlan) -> None:
    """Remove what a killed run has made behind its tasks: a power loss may have torn it."""
    own_topics = [METADATA_TOPIC, *({GROUPS_TOPIC} - {*plan.partition_counts})]
    for topic in own_topics:
        for directory in data.glob(f"{topic}-*"):
            shutil.rmtree(directory)
    made = [path for path in data.iterdir() if path.is_file()]
    if plan.kept is not None:  # its heads were entered just now
        made = [path for path in made if path.name != LOG_START]
    else:
        for pattern in _MADE_IN_PARTITIONS:
            made += data.glob(f"*-*/{pattern}")
    for path in made:
        path.unlink()


def _begin_epochs(topic: Topic) -> None:
    """Say in every partition which leader wrote its records, as a recovery would."""
    for partition in topic.partitions.values():
        is_unsaid = not partition.leader_epochs.entries
        if is_unsaid and partition.end_offset > partition.start_offset:
            partition.leader_epochs.assign(0, partition.start_offset)


def _commit_offsets(store: KafkaStore, options: ConvertOptions, plan: KafkaPlan) -> None:
    committed = plan.committed
    if plan.kept is not None:
        committed = restored_commits(options.source, plan.kept, committed)
    wanted = {key: one for key, one in committed.items() if key[1] in plan.partition_counts}
    if not wanted:
        return
    commit_offsets(store, wanted)


def commit_offsets(store: KafkaStore, wanted: Mapping[tuple[str, str, int], int]) -> None:
    """Let groups have committed offsets, by (group, topic, partition)."""
    groups = store.topics_by_name.get(GROUPS_TOPIC)
    if groups is None:
        groups = store.create_topic(GROUPS_TOPIC, _GROUPS_PARTITIONS, _GROUPS_SETTINGS)
    now_ms = store.host.clock.wall_ms()
    for (group, topic, index), offset in sorted(wanted.items()):
        key = encode_versioned(
            OffsetCommitKey(group=group, topic=topic, partition=index), _KEY_VERSION
        )
        value = OffsetCommitValue(offset=offset, metadata="", commit_timestamp=now_ms)
        home = groups.partitions[(java_hash(group) & 0x7FFF_FFFF) % len(groups.partitions)]
        record = Record(key, encode_versioned(value, _VALUE_VERSION), now_ms)
        home.append_records([record])
