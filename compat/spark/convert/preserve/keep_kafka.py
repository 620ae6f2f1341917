"""On the way from Kafka: what is to be kept of the store, and the manifest that tells of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from logstore.compat.spark.convert.commit_log_plan import Measured
from logstore.compat.spark.convert.job import Progress, Runner, run_tasks
from logstore.compat.spark.convert.options import ConvertOptions
from logstore.compat.spark.convert.preserve.keep_segments import (
    KeepSegmentsTask,
    KeptSegments,
    SegmentPlace,
)
from logstore.compat.spark.convert.preserve.kept_kafka import (
    MANIFEST_NAME,
    KeptCommit,
    KeptKafka,
    KeptPartition,
    KeptSegment,
)
from logstore.compat.spark.convert.work_folder import WorkFolder
from logstore.compat.spark.options import parse_options
from logstore.compat.spark.stores import open_for_reading
from logstore.host import FileSystem, read_file
from logstore.segments.kafka.checkpoints import LEADER_EPOCHS
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.partition_metadata import FILE_NAME as PARTITION_METADATA
from logstore.segments.kafka.store import KafkaStore

#: tasks that keep are numbered from here, those that convert from 0
FIRST_NUMBER = 1_000_000_000
#: small files of a partition that no log tells again
_COMPANIONS = (LEADER_EPOCHS, PARTITION_METADATA)


@attrs.frozen
class KafkaKeeping:
    """What is kept of a Kafka store; the segments of `partitions` come from the tasks."""

    tasks: tuple[KeepSegmentsTask, ...]
    settings: Mapping[str, Mapping[str, str]]
    partitions: Mapping[tuple[str, int], KeptPartition]


def plan_keeping(
    options: ConvertOptions,
    measured: Sequence[Measured],
    first_queue_offsets: Mapping[tuple[str, int], int],
) -> KafkaKeeping:
    """Look at the source's segments, of which the units in `measured` are converted."""
    read_options = parse_options(options.read_options())
    units: dict[str, list[Measured]] = {}
    for one in measured:
        units.setdefault(one.unit.path, []).append(one)
    places: list[SegmentPlace] = []
    settings: dict[str, Mapping[str, str]] = {}
    partitions: dict[tuple[str, int], KeptPartition] = {}
    with open_for_reading(options.source) as store:
        assert isinstance(store, KafkaStore), "the plan of a conversion from Kafka"
        for topic, found in sorted(store.topics().items()):
            for index, partition in sorted(found.items()):
                if not read_options.wants(topic, index):
                    continue
                first = first_queue_offsets.get((topic, index), 0)
                last = _add_places(places, partition, units, first)
                partitions[topic, index] = _head(store.host.fs, partition, last)
                settings[topic] = dict(store.topics_by_name[topic].settings)
    tasks = [
        KeepSegmentsTask(FIRST_NUMBER + number, options.source, number, group)
        for number, group in enumerate(_grouped(places, options.task_bytes))
    ]
    return KafkaKeeping(tuple(tasks), settings, partitions)


def _add_places(
    places: list[SegmentPlace],
    partition: KafkaPartition,
    units: Mapping[str, list[Measured]],
    queue_offset: int,
) -> int:
    """Add the segments of a partition; return the queue offset behind its last message."""
    for segment in partition.log.segments.values():
        found = units.get(segment.path, [])
        places.append(
            SegmentPlace(
                partition.topic,
                partition.index,
                segment.path,
                segment.base_offset,
                segment.end_position,
                queue_offset,
                tuple(one.unit for one in found),
            )
        )
        queue_offset += sum(one.message_count for one in found)
    return queue_offset


def _head(fs: FileSystem, partition: KafkaPartition, queue_end: int) -> KeptPartition:
    files: dict[str, str] = {}
    for name in _COMPANIONS:
        path = f"{partition.files.directory}/{name}"
        if fs.exists(path):
            files[name] = read_file(fs, path).decode()
    return KeptPartition(
        partition.start_offset,
        partition.end_offset,
        queue_end,
        partition.leader_epochs.latest_epoch,
        files,
        (),
    )


def _grouped(places: Sequence[SegmentPlace], task_bytes: int) -> list[tuple[SegmentPlace, ...]]:
    """Put neighbours together into tasks of about `task_bytes`."""
    groups: list[list[SegmentPlace]] = []
    filled_bytes = 0
    for place in places:
        if not groups or filled_bytes + place.size_bytes > task_bytes:
            groups.append([])
            filled_bytes = 0
        groups[-1].append(place)
        filled_bytes += place.size_bytes
    return [tuple(group) for group in groups]


def keep_kafka(
    runner: Runner,
    folder: WorkFolder,
    keeping: KafkaKeeping,
    commits: Sequence[KeptCommit],
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write the recipes and the manifest beside the target; return what is said in its report."""
    found: list[KeptSegments] = run_tasks(runner, folder, keeping.tasks, progress)
    segments: dict[tuple[str, int], list[KeptSegment]] = {}
    for one in found:
        for topic, index, segment in one.segments:
            segments.setdefault((topic, index), []).append(segment)
    partitions = {
        place: attrs.evolve(head, segments=tuple(segments.get(place, ())))
        for place, head in keeping.partitions.items()
    }
    KeptKafka(keeping.settings, partitions, tuple(commits)).save(folder.beside / MANIFEST_NAME)
    return {
        "files": sum(map(len, segments.values())),
        "bytes": sum(one.size_bytes for one in found),
        "bytesKept": sum(one.kept_bytes for one in found),
        "bytesBeside": sum(
            path.stat().st_size for path in folder.beside.glob("logstore-preserved*")
        ),
    }
