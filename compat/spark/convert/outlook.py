"""What a conversion would do, told by indexes and file sizes; nothing is written."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs

from logstore.compat.spark.convert.convert import finished_report
from logstore.compat.spark.convert.options import ConvertOptions
from logstore.compat.spark.convert.to_files import FILE_LAYOUTS, plan_to_files
from logstore.compat.spark.convert.to_kafka import plan_to_kafka
from logstore.compat.spark.convert.to_rocketmq import commit_log_file_bytes, plan_units_of
from logstore.compat.spark.convert.topic_names import kafka_name, rocketmq_name
from logstore.compat.spark.convert.work_folder import WorkFolder
from logstore.compat.spark.options import parse_options
from logstore.compat.spark.stores import bounds, open_for_reading
from logstore.segments.kafka.store import KafkaStore


@attrs.frozen
class TopicOutlook:
    """What is to come of one topic; `record_count` counts offsets, so that it may be less."""

    topic: str
    target: str
    partition_count: int
    record_count: int


@attrs.frozen
class Outlook:
    """
    What a conversion would do.

    `size_bytes` is what of the source would be read, as it stands there, so that compressed
    batches become more; `task_count` tasks share it. `free_bytes` is the target's disk.
    """

    source: str
    target: str
    layout: str
    topics: tuple[TopicOutlook, ...]
    size_bytes: int
    task_count: int
    free_bytes: int
    is_finished: bool = False
    is_begun: bool = False

    def content(self) -> dict[str, Any]:
        """Return it for a program."""
        return {
            "source": self.source,
            "target": self.target,
            "layout": self.layout,
            "finished": self.is_finished,
            "begun": self.is_begun,
            "bytes": self.size_bytes,
            "tasks": self.task_count,
            "freeBytes": self.free_bytes,
            "topics": [
                {
                    "topic": one.topic,
                    "target": one.target,
                    "partitions": one.partition_count,
                    "records": one.record_count,
                }
                for one in self.topics
            ],
        }


def outlook(options: ConvertOptions) -> Outlook:
    """
    Look at the source's indexes and tell what would be done.

    Raises:
        TargetError: something else stands in the target's place.
        OptionError: a topic is not in the source.
        ForeignDirectoryError: the source is no store, or of the target's own layout.

    """
    is_finished = finished_report(options) is not None
    folder = WorkFolder(options.target)
    sizes = _task_sizes(options)
    return Outlook(
        options.source,
        options.target,
        options.layout,
        tuple(_topics(options)),
        sum(sizes),
        len(sizes),
        shutil.disk_usage(_existing(folder.target)).free,
        is_finished,
        not is_finished and folder.path.is_dir(),
    )


def _task_sizes(options: ConvertOptions) -> list[int]:
    """Return how much each task would read."""
    if options.layout in FILE_LAYOUTS:
        return [task.size_bytes for task in plan_to_files(options)]
    if options.layout == "kafka":
        return [task.size_bytes for task in plan_to_kafka(options).tasks]
    size_bytes = sum(unit.size_bytes for unit in plan_units_of(options))
    task_bytes = max(commit_log_file_bytes(options), options.task_bytes)
    full, rest = divmod(size_bytes, task_bytes)
    return [task_bytes] * full + ([rest] if rest else [])


def _topics(options: ConvertOptions) -> Iterable[TopicOutlook]:
    spelled = {"kafka": kafka_name, "rocketmq": rocketmq_name}.get(options.layout, str)
    read_options = parse_options(options.read_options())
    with open_for_reading(options.source) as store:
        starts = bounds(store, read_options, read_options.start)
        ends = bounds(store, read_options, read_options.end)
        is_kafka = isinstance(store, KafkaStore)
    found: dict[str, list[int]] = {}
    for place, start in sorted(starts.items()):
        found.setdefault(place[0], []).append(max(0, ends[place] - start))
    for topic, counts in found.items():
        name = spelled(topic) if is_kafka != (options.layout == "kafka") else topic
        yield TopicOutlook(topic, name, len(counts), sum(counts))


def _existing(path: Path) -> Path:
    """Return the next folder upwards that is there."""
    while not path.is_dir():
        path = path.parent
    return path
