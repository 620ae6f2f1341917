"""The golden set of old formats: topics of message format 0.9 and 0.10 of a 3.9 broker."""

from __future__ import annotations

import shutil
from pathlib import Path

import attrs

from logstore.segments.kafka.batch_walk import iterate_entries
from logstore.segments.kafka.config import LogConfig, parse_topic_configs
from logstore.segments.kafka.legacy.message import LegacyMessage
from logstore.segments.kafka.record_batch import RecordBatch
from tests.segments.kafka.golden_case import GOLDEN, GoldenCase

SET = "legacy-3.9"
#: here an append was a set of several messages, which leaves fewer index entries and other files
SEVERAL_AN_APPEND = ("magic0-none", "magic1-none")
UPGRADED = "magic-upgrade"


@attrs.frozen(slots=False)
class LegacyCase(GoldenCase):
    """A topic of the set of old formats."""

    @property
    def config(self) -> LogConfig:
        """The topic's settings, but for the one that brokers have no more."""
        settings: dict[str, str] = {**self.content["topic_configs"]}
        del settings["message.format.version"]
        settings["internal.segment.bytes"] = settings.pop("segment.bytes")
        settings["segment.index.bytes"] = "65536"
        return parse_topic_configs(settings)

    @property
    def magic(self) -> int:
        """The magic that the name tells."""
        return int(self.name.removeprefix("magic")[0])

    @property
    def golden_folder(self) -> Path:
        """The directory of the only partition."""
        return self.partition_folders[0]

    def stored_batches(self, partition: int) -> list[RecordBatch]:
        """Return the batches and messages of all .log files in order."""
        return [
            entry
            for path in sorted(self.partition_folders[partition].glob("*.log"))
            for entry in iterate_entries(memoryview(bytearray(path.read_bytes())), path.name)
        ]

    def stored_messages(self) -> list[LegacyMessage]:
        """Return those of magic 0 and 1."""
        return [entry for entry in self.stored_batches(0) if isinstance(entry, LegacyMessage)]


def legacy_cases(*, without: tuple[str, ...] = ()) -> list[LegacyCase]:
    """Return all cases of the set but those of these names."""
    folders = sorted((GOLDEN / SET / "cases").iterdir())
    return [LegacyCase(SET, folder.name) for folder in folders if folder.name not in without]


def copy_of_logs(folder: Path, *, is_clean: bool = True) -> Path:
    """Copy the set's data directory; an unclean one lacks what says how far to trust it."""
    target = folder / SET
    shutil.copytree(GOLDEN / SET / "data", target)
    if not is_clean:
        (target / ".kafka_cleanshutdown").unlink()
        (target / "recovery-point-offset-checkpoint").unlink()
    return target
