"""
What a conversion with ``--preserve`` keeps of a RocketMQ store as a whole: queues and files.

It is the same JSON file as Kafka's, with another content; what files are made of stands in the
recipes that it names.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from logstore.compat.spark.convert.preserve.kept_kafka import (
    MANIFEST_NAME,
    MANIFEST_VERSION,
    load_manifest,
)

LOG_PATTERN = "logstore-preserved-log-*.parquet"
FILES_PATTERN = "logstore-preserved-files-*.parquet"

#: a message that is kept for good, one that its record gives back, one that is kept while its
#: topic is there
KEPT, RESTORED, BOUND = 0, 1, 2


@attrs.frozen
class KeptFile:
    """A file by its path in the store, and which groups of which recipe it is made of."""

    path: str
    size_bytes: int
    digest: str
    recipe: int
    first_group: int
    group_count: int


@attrs.frozen
class KeptLogFile:
    """
    A file of the commit log.

    `ranges` say of which queues it has messages: topic, queue id, first and last queue offset.
    """

    physical_offset: int
    recipe: int
    group_count: int
    ranges: tuple[tuple[str, int, int, int], ...]


@attrs.frozen
class KeptQueue:
    """A queue that became a partition, and the span of its queue offsets."""

    topic: str
    start: int
    end: int


@attrs.frozen
class KeptRocketMQ:
    """All that was kept of a RocketMQ store; queues by Kafka's topic and partition."""

    file_bytes: int
    log_end: int
    store_timestamp_ms_max: int
    queues: Mapping[tuple[str, int], KeptQueue]
    log_files: tuple[KeptLogFile, ...]
    files: tuple[KeptFile, ...]
    #: group, Kafka's topic, partition, offset
    commits: tuple[tuple[str, str, int, int], ...]
    #: the store's sizes of files, as settings
    sizes: Mapping[str, str]

    def save(self, path: Path) -> None:
        """Write the manifest."""
        content = {
            "version": MANIFEST_VERSION,
            "layout": "rocketmq",
            "fileBytes": self.file_bytes,
            "logEnd": self.log_end,
            "storeTimestamp": self.store_timestamp_ms_max,
            "queues": [[*place, *attrs.astuple(one)] for place, one in sorted(self.queues.items())],
            "logFiles": [attrs.asdict(one) for one in self.log_files],
            "files": [attrs.asdict(one) for one in self.files],
            "commits": self.commits,
            "sizes": self.sizes,
        }
        path.write_text(json.dumps(content, indent=1), encoding="utf-8")


def load_kept_rocketmq(directory: str) -> KeptRocketMQ | None:
    """Return what was kept of the RocketMQ store that this one was made of; None for nothing."""
    content = load_manifest(directory, "rocketmq")
    if content is None:
        return None
    listed: list[dict[str, Any]] = content["logFiles"]
    for one in listed:
        one["ranges"] = tuple(tuple(span) for span in one["ranges"])
    log_files = tuple(KeptLogFile(**one) for one in listed)
    return KeptRocketMQ(
        content["fileBytes"],
        content["logEnd"],
        content["storeTimestamp"],
        {(topic, index): KeptQueue(*rest) for topic, index, *rest in content["queues"]},
        log_files,
        tuple(KeptFile(**one) for one in content["files"]),
        tuple(tuple(one) for one in content["commits"]),
        content["sizes"],
    )


def recipe_path(directory: Path | str, pattern: str, recipe: int) -> Path:
    """Return where the recipe of that number stands."""
    return Path(directory) / pattern.replace("*", f"{recipe:06d}")


def log_schema() -> Any:
    """
    Return the columns of a commit log file's recipe, a row a message or run of other bytes.

    `position` is that in the file. `kept` are the bytes, null where the record of `queue_offset`
    gives them back; then they have this `fingerprint`. Topics are RocketMQ's.
    """
    pa: Any = importlib.import_module("pyarrow")
    return pa.schema(
        [
            ("kind", pa.int8()),
            *((name, pa.int64()) for name in ("position", "size")),
            ("topic", pa.string()),
            ("queue_id", pa.int32()),
            *((name, pa.int64()) for name in ("queue_offset", "stored_ms")),
            *((name, pa.binary()) for name in ("fingerprint", "kept")),
        ]
    )


def file_schema() -> Any:
    """Return the columns of other files' recipes: bytes that are not zero, and where they stand."""
    pa: Any = importlib.import_module("pyarrow")
    return pa.schema([("position", pa.int64()), ("kept", pa.binary())])


__all__ = [
    "BOUND",
    "FILES_PATTERN",
    "KEPT",
    "LOG_PATTERN",
    "MANIFEST_NAME",
    "RESTORED",
    "KeptFile",
    "KeptLogFile",
    "KeptQueue",
    "KeptRocketMQ",
    "file_schema",
    "load_kept_rocketmq",
    "log_schema",
    "recipe_path",
]
