"""One case of the golden data: what a real broker stored, and what a consumer read back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs

from logstore.os_host import system_host
from logstore.segments.kafka.config import LogConfig, parse_topic_configs
from logstore.segments.kafka.record_batch import RecordBatch, iterate_batches
from logstore.segments.kafka.store import KafkaStore, StoreOptions

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
SETS = ("kafka-4.3", "kafka-3.9", "epochs-4.3", "transactions-4.3")
#: what a broker compacted or deleted, or wrote in several lives, is not what one life appended
COMPACTED = "compacted"
DELETED = ("delete-records", "retention-bytes", "retention-ms")
RESTARTED = "leader-epochs"


@attrs.frozen(slots=False)
class GoldenCase:
    """A topic of one golden set; the data are never written to, only copied."""

    set_name: str
    name: str

    @property
    def id(self) -> str:
        """What pytest calls it."""
        return f"{self.set_name}/{self.name}"

    @cached_property
    def folder(self) -> Path:
        """Where the descriptions are."""
        return GOLDEN / self.set_name / "cases" / self.name

    @cached_property
    def content(self) -> Mapping[str, Any]:
        """What case.json says."""
        content: Mapping[str, Any] = json.loads((self.folder / "case.json").read_text())
        return content

    @property
    def topic(self) -> str:
        """The topic's name."""
        topic: str = self.content["topic"]
        return topic

    @cached_property
    def partition_folders(self) -> Mapping[int, Path]:
        """The directories of the partitions, as the broker left them."""
        folders = [(self.folder / name).resolve() for name in self.content["partition_dirs"]]
        return {int(folder.name.rpartition("-")[2]): folder for folder in folders}

    @cached_property
    def expected(self) -> list[dict[str, Any]]:
        """Every record that a consumer got, by partition and offset."""
        lines = (self.folder / "expected.jsonl").read_text().splitlines()
        records: list[dict[str, Any]] = [json.loads(line) for line in lines]
        return sorted(records, key=lambda record: (record["partition"], record["offset"]))

    @property
    def watermarks(self) -> Mapping[int, tuple[int, int]]:
        """Log start offset and last stable offset by partition."""
        found = self.content["expect"]["watermarks"]
        return {int(partition): (start, stable) for partition, (start, stable) in found.items()}

    @cached_property
    def dump(self) -> str:
        """What DumpLogSegments printed, without its stderr."""
        text = (self.folder / "dump.txt").read_bytes().decode()
        return text.partition("\n--- stderr")[0]

    @property
    def config(self) -> LogConfig:
        """The topic's settings over those of its broker."""
        settings: dict[str, str] = {**self.content["topic_configs"]}
        if settings.pop("internal", None):
            settings |= {"cleanup.policy": "compact", "segment.bytes": str(100 * 1024 * 1024)}
        described = json.loads((GOLDEN / self.set_name / "set.json").read_text())
        index_bytes: str = described["broker_settings"]["log.index.size.max.bytes"]
        settings.setdefault("segment.index.bytes", index_bytes)
        if "segment.bytes" in settings:  # 3.9 took any; in 4.x small ones have another name
            settings["internal.segment.bytes"] = settings.pop("segment.bytes")
        return parse_topic_configs(settings)

    def stored_batches(self, partition: int) -> list[RecordBatch]:
        """Return the batches of all .log files in order, each with bytes of its own."""
        paths = sorted(self.partition_folders[partition].glob("*.log"))
        return [
            RecordBatch(memoryview(bytearray(batch.data)), batch.size_bytes)
            for path in paths
            for batch in iterate_batches(memoryview(path.read_bytes()))
        ]


def golden_cases(*, without: tuple[str, ...] = ()) -> list[GoldenCase]:
    """Return the cases of all sets but those of these names."""
    return [
        GoldenCase(set_name, folder.name)
        for set_name in SETS
        for folder in sorted((GOLDEN / set_name / "cases").iterdir())
        if folder.name not in without
    ]


def copy_of_data(set_name: str, folder: Path) -> Path:
    """Copy a set's data directory into `folder`."""
    target = folder / set_name
    shutil.copytree(GOLDEN / set_name / "data", target)
    return target


def open_copy(directory: Path, *, is_writable: bool) -> KafkaStore:
    """Open a copied data directory."""
    return KafkaStore(system_host(), str(directory), StoreOptions(is_writable=is_writable))
