"""
Which release of Kafka's tool a data directory belongs to.

``DumpLogSegments`` changed its text between 3.9 and 4.0. What the directory says of itself decides:
a ``meta.properties`` of version 0 is of the time of ZooKeeper, which 4.0 ended, and the first
records of the cluster's metadata name its ``metadata.version``.
"""

from __future__ import annotations

import enum

import attrs

from logstore.errors import LogStoreError
from logstore.host import FileSystem, read_file
from logstore.segments.kafka.directory_name import METADATA_DIRECTORY
from logstore.segments.kafka.internal_topics.codec import MessageError, decode_message
from logstore.segments.kafka.internal_topics.schema import Int16, Message
from logstore.segments.kafka.java_properties import PropertiesError, parse_properties
from logstore.segments.kafka.record import CorruptRecordError, decode_records
from logstore.tools.inspection.batch_walk import walk_batches

_META_PROPERTIES = "meta.properties"
_FEATURE = "metadata.version"
#: the level of 4.0-IV0
_LEVEL_OF_4 = 22
#: a frame of version 1, the feature level's api key, version 0
_FEATURE_LEVEL_FRAME = b"\x01\x0c\x00"
#: features stand at the very start, where the controller loads what the directory was made with
_LOOKED_AT_BYTES = 1024 * 1024


class ToolRelease(enum.Enum):
    """A release whose text can be had."""

    V3_9 = "3.9"
    V4_3 = "4.3"


@attrs.frozen(kw_only=True)
class _FeatureLevel(Message):
    """What a FeatureLevelRecord says."""

    FLEXIBLE_FROM = 0

    name: str
    feature_level: Int16


def writer_release(fs: FileSystem, directory: str) -> ToolRelease:
    """Return the release for files of a partition, or of a data directory, at `directory`."""
    for folder in (directory, directory.rpartition("/")[0] or "/"):
        if fs.exists(f"{folder}/{_META_PROPERTIES}"):
            if _is_zookeepers(fs, folder):
                return ToolRelease.V3_9
            level = _metadata_level(fs, folder)
            is_old = level is not None and level < _LEVEL_OF_4
            return ToolRelease.V3_9 if is_old else ToolRelease.V4_3
    return ToolRelease.V4_3


def _is_zookeepers(fs: FileSystem, folder: str) -> bool:
    try:
        text = read_file(fs, f"{folder}/{_META_PROPERTIES}").decode("iso-8859-1")
        return parse_properties(text).get("version") == "0"
    except (OSError, PropertiesError):
        return False


def _metadata_level(fs: FileSystem, folder: str) -> int | None:
    for path in _metadata_files(fs, folder):
        try:
            level = _level_in(fs, path)
        except (OSError, LogStoreError):
            continue
        if level is not None:
            return level
    return None


def _metadata_files(fs: FileSystem, folder: str) -> list[str]:
    """Return the files that may tell, best first: newest snapshot, oldest log, bootstrap."""
    found: list[str] = []
    metadata = f"{folder}/{METADATA_DIRECTORY}"
    if fs.exists(metadata):
        names = [entry.name for entry in fs.list_directory(metadata) if not entry.is_directory]
        found += [f"{metadata}/{name}" for name in names if name.endswith(".checkpoint")][::-1]
        found += [f"{metadata}/{name}" for name in names if name.endswith(".log")]
    bootstrap = f"{folder}/bootstrap.checkpoint"
    return [*found, bootstrap] if fs.exists(bootstrap) else found


def _level_in(fs: FileSystem, path: str) -> int | None:
    found: int | None = None
    file = fs.open(path, writable=False)
    try:
        for walked in walk_batches(file, is_whole=True):
            if walked.position >= _LOOKED_AT_BYTES:
                break
            if walked.batch.is_control:
                continue
            for record in decode_records(walked.batch.data):
                found = _level_of(record.value or b"", found)
    except (CorruptRecordError, LogStoreError):
        return found
    finally:
        file.close()
    return found


def _level_of(value: bytes, fallback: int | None) -> int | None:
    if not value.startswith(_FEATURE_LEVEL_FRAME):
        return fallback
    try:
        record = decode_message(_FeatureLevel, value, 0, len(_FEATURE_LEVEL_FRAME))
    except MessageError:
        return fallback
    return record.feature_level if record.name == _FEATURE else fallback
