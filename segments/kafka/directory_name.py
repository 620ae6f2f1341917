"""
Names of topics, and of the directories of their partitions.

=====================================  ========================================================
``topic-0``                            a partition
``topic-0.<32 hex>-delete``            deleted; the files go later. Topic cut so that it fits 255
``topic-0.<32 hex>-stray``             not in the cluster's metadata; kept. Topic cut likewise
``topic-0.<32 hex>-future``            where a partition moves to, from another log directory
=====================================  ========================================================

A topic is named with 1 to 249 of ``a-z A-Z 0-9 . _ -``, but not ``.`` or ``..``. Two topics whose
names differ in ``.`` against ``_`` only must not both exist: their metrics would be the same.

Source: ``LocalLog.parseTopicPartitionName``, ``org.apache.kafka.common.internals.Topic``.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from logstore.errors import LogStoreError

DIRECTORY_NAME_BYTES_MAX = 255
TOPIC_NAME_LENGTH_MAX = 249
#: where the metadata log of the cluster is, in one of the node's directories
METADATA_DIRECTORY = "__cluster_metadata-0"
#: Directories beside the partitions that hold something else. Kafka itself stumbles over the last.
SKIPPED_DIRECTORIES = (METADATA_DIRECTORY, "remote-log-index-cache", "lost+found")

_TOPIC = re.compile(r"[a-zA-Z0-9._-]+")
_MARKED = re.compile(r"(\S+)-(\S+)\.(\S+)-(?:delete|future|stray)")
_PARTITION = re.compile(r"[0-9]{1,10}")
_PARTITION_MAX = 2**31 - 1


class DirectoryNameError(LogStoreError, ValueError):
    """A directory's name is not that of a partition."""


class InvalidTopicError(LogStoreError, ValueError):
    """A topic must not have that name."""


class Role(Enum):
    """What a partition directory is there for; the value is the end of its name."""

    LIVE = ""
    DELETE = "-delete"
    FUTURE = "-future"
    STRAY = "-stray"


class PartitionDirectory(NamedTuple):
    """
    What a directory's name says.

    `unique` is the part between ``.`` and the mark; empty for a live partition. `topic` may be cut
    short in a directory that is deleted or stray.
    """

    topic: str
    partition: int
    role: Role = Role.LIVE
    unique: str = ""

    @property
    def is_live(self) -> bool:
        """Tell whether this is a partition that is served."""
        return self.role is Role.LIVE

    @property
    def name(self) -> str:
        """The directory's name."""
        if self.is_live:
            return f"{self.topic}-{self.partition}"
        end = f"-{self.partition}.{self.unique}{self.role.value}"
        if self.role is Role.FUTURE:
            return self.topic + end
        return self.topic[: DIRECTORY_NAME_BYTES_MAX - len(end)] + end

    def deleted_name(self, unique: str) -> str:
        """Return the name to rename this directory to before its files are removed."""
        return self._replace(role=Role.DELETE, unique=unique).name

    def stray_name(self, unique: str) -> str:
        """Return the name to rename this directory to when nobody knows its topic."""
        return self._replace(role=Role.STRAY, unique=unique).name


def parse_directory_name(name: str) -> PartitionDirectory:
    """Return what a directory's name says. Raises DirectoryNameError; Kafka would not start."""
    role, unique, stem = Role.LIVE, "", name
    for marked in (Role.DELETE, Role.FUTURE, Role.STRAY):
        if name.endswith(marked.value):
            if _MARKED.fullmatch(name) is None:
                raise DirectoryNameError(f"{name!r} ends in {marked.value} but has no unique part")
            stem, _, unique = name.removesuffix(marked.value).rpartition(".")
            role = marked
    topic, dash, partition = stem.rpartition("-")
    if not dash or not topic or _PARTITION.fullmatch(partition) is None:
        raise DirectoryNameError(f"{name!r} is not a topic, a dash and a number")
    if int(partition) > _PARTITION_MAX:
        raise DirectoryNameError(f"{name!r} has a partition number of more than 31 bits")
    return PartitionDirectory(topic, int(partition), role, unique)


def is_skipped_directory(name: str) -> bool:
    """Tell whether a directory in a log directory holds something else than a partition."""
    return name in SKIPPED_DIRECTORIES


def check_topic_name(name: str) -> None:
    """Raise InvalidTopicError unless a topic may have that name."""
    if not name:
        raise InvalidTopicError("the name of a topic must not be empty")
    if name in (".", ".."):
        raise InvalidTopicError(f"a topic must not be called {name!r}")
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        raise InvalidTopicError(
            f"the name has {len(name)} characters, {TOPIC_NAME_LENGTH_MAX} are allowed"
        )
    if _TOPIC.fullmatch(name) is None:
        raise InvalidTopicError(
            f"{name!r} has other characters than ASCII letters, digits, '.', '_' and '-'"
        )


def is_valid_topic_name(name: str) -> bool:
    """Tell whether a topic may have that name."""
    try:
        check_topic_name(name)
    except InvalidTopicError:
        return False
    return True


def collision_key(name: str) -> str:
    """Return what must differ between topics: the name with every ``.`` as ``_``."""
    return name.replace(".", "_")
