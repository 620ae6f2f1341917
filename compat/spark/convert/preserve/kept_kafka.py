"""
What a conversion with ``--preserve`` keeps of a Kafka store as a whole: topics and segments.

It is the JSON file `MANIFEST_NAME` in the target; a segment's batches stand in the recipe that it
names.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

#: in a converted store; says of which layout the first one was
MANIFEST_NAME = "logstore-preserved.json"
BATCHES_PATTERN = "logstore-preserved-batches-*.parquet"
MANIFEST_VERSION = 1


@attrs.frozen
class KeptSegment:
    """
    One ``.log``: its name, and which groups of which recipe it is made of.

    `first_queue_offset` is that of the first of its records that became messages.
    """

    base_offset: int
    size_bytes: int
    first_queue_offset: int
    recipe: int
    first_group: int
    group_count: int


@attrs.frozen
class KeptPartition:
    """
    One partition: offsets at its ends, where its queue ended, and small files by name.

    `leader_epoch` is its last one, -1 if it knows of none.
    """

    start_offset: int
    end_offset: int
    queue_end: int
    leader_epoch: int
    files: Mapping[str, str]
    segments: tuple[KeptSegment, ...]


@attrs.frozen
class KeptCommit:
    """What a group had committed, and what that became as a queue offset."""

    group: str
    topic: str
    partition: int
    offset: int
    queue_offset: int


@attrs.frozen
class KeptKafka:
    """All that was kept of a Kafka store; partitions by topic and index."""

    settings: Mapping[str, Mapping[str, str]]
    partitions: Mapping[tuple[str, int], KeptPartition]
    commits: tuple[KeptCommit, ...]

    def settings_of(self, topic: str, wished: Mapping[str, str]) -> dict[str, str]:
        """Return a topic's settings: its old ones, and what is wished."""
        return {"retention.ms": "-1", **self.settings.get(topic, {}), **wished}

    def save(self, path: Path) -> None:
        """Write the manifest."""
        content = {
            "version": MANIFEST_VERSION,
            "layout": "kafka",
            "settings": self.settings,
            "partitions": [
                [topic, index, attrs.asdict(one)]
                for (topic, index), one in sorted(self.partitions.items())
            ],
            "commits": [attrs.astuple(one) for one in self.commits],
        }
        path.write_text(json.dumps(content, indent=1), encoding="utf-8")


def load_kept_kafka(directory: str) -> KeptKafka | None:
    """Return what was kept of the Kafka store that this one was made of; None if nothing was."""
    content = load_manifest(directory, "kafka")
    if content is None:
        return None
    partitions: dict[tuple[str, int], KeptPartition] = {}
    for topic, index, one in content["partitions"]:
        segments = tuple(KeptSegment(**segment) for segment in one.pop("segments"))
        partitions[topic, index] = KeptPartition(**one, segments=segments)
    commits = tuple(KeptCommit(*one) for one in content["commits"])
    return KeptKafka(content["settings"], partitions, commits)


def load_manifest(directory: str, layout: str) -> dict[str, Any] | None:
    """Return the manifest beside a store if it is that of a store of this layout."""
    path = Path(directory) / MANIFEST_NAME
    if not path.is_file():
        return None
    content: dict[str, Any] = json.loads(path.read_bytes())
    is_known = content.get("version") == MANIFEST_VERSION and content.get("layout") == layout
    return content if is_known else None


def batches_path(directory: Path | str, recipe: int) -> Path:
    """Return where the recipe of that number stands."""
    return Path(directory) / BATCHES_PATTERN.replace("*", f"{recipe:06d}")


def batch_schema() -> Any:
    """
    Return the columns of a recipe's rows, a row a batch or message of old.

    `queue_offset` and `count` say which messages its records became; `deltas` are the records'
    offsets counted from `base_offset` (4 bytes each, little-endian), null if they are 0, 1, 2 ...
    Of `header` and `kept` one is null: a batch is its header and its records as anybody would
    write them, or it is what was kept. `fingerprint` is that of its records.
    """
    pa: Any = importlib.import_module("pyarrow")
    names = ("position", "base_offset", "next_offset", "queue_offset")
    return pa.schema(
        [
            *((name, pa.int64()) for name in names),
            ("count", pa.int32()),
            *((name, pa.binary()) for name in ("deltas", "fingerprint", "header", "kept")),
        ]
    )


def segment_groups(segments: Sequence[KeptSegment], size_bytes: int) -> list[list[KeptSegment]]:
    """Return neighbours together, about `size_bytes` each."""
    groups: list[list[KeptSegment]] = []
    filled_bytes = 0
    for segment in segments:
        if not groups or filled_bytes + segment.size_bytes > size_bytes:
            groups.append([])
            filled_bytes = 0
        groups[-1].append(segment)
        filled_bytes += segment.size_bytes
    return groups
