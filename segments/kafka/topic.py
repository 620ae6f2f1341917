"""A topic: its id, the settings that differ from the broker's, and its partitions."""

from __future__ import annotations

import json

import attrs

from logstore.errors import CorruptFileError
from logstore.host import FileSystem, read_file
from logstore.segments.kafka.partition import KafkaPartition

#: beside the partitions: where settings stood before there was a metadata log
SETTINGS_FILE = "topic-settings.json"


@attrs.define(eq=False)
class Topic:
    """
    One topic of a store.

    `topic_id` is the 16 bytes of its UUID; `settings` are the topic configs set by somebody, by
    Kafka's names; `partitions` by number. Some may be missing, of a topic whose others are in
    another of ``log.dirs`` or on another node: the cluster knows of the first `known_count`.
    """

    name: str
    topic_id: bytes
    settings: dict[str, str] = attrs.field(factory=dict[str, str])
    partitions: dict[int, KafkaPartition] = attrs.field(factory=dict[int, KafkaPartition])
    known_count: int = 0

    @property
    def partition_count(self) -> int:
        """How many partitions the topic has, with those that are not here."""
        return max(self.known_count, max(self.partitions, default=-1) + 1)


def load_settings(fs: FileSystem, directory: str) -> dict[str, dict[str, str]]:
    """Return the settings of every topic that has some."""
    path = f"{directory}/{SETTINGS_FILE}"
    if not fs.exists(path):
        return {}
    try:
        found = json.loads(read_file(fs, path))
        return {
            str(name): {str(key): str(value) for key, value in settings.items()}
            for name, settings in found["topics"].items()
        }
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise CorruptFileError(path, f"not a table of topic settings ({error})") from error


def remove_settings(fs: FileSystem, directory: str) -> None:
    """Take the file away once the metadata log has what it says; fine if there is none."""
    path = f"{directory}/{SETTINGS_FILE}"
    if fs.exists(path):
        fs.remove(path)
        fs.sync_directory(directory)
