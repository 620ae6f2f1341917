"""
After how many bytes a partition's indexes get their next entry: a setting that no log tells.

The cluster's metadata has it if the topic sets it. Else the entries that are there tell: at each
more bytes than the interval had gone by, at no batch between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import attrs

from logstore.errors import CorruptEntryError
from logstore.host import FileSystem, Host
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.segment_files import LOG, offset_file_name
from logstore.tools.inspection.batch_walk import walk_batches
from logstore.tools.inspection.cluster_image import cluster_image
from logstore.tools.inspection.rebuilding.partition_rebuild import log_bases
from logstore.tools.inspection.verification.indexes import read_index

DEFAULT_INDEX_INTERVAL_BYTES = LogConfig().index_interval_bytes
_STEPS = (4096, 1024, 1000, 512, 500, 256, 100, 64, 50, 32, 16, 10, 8, 5)
_SETTING = "index.interval.bytes"


class IndexIntervals:
    """The intervals of a data directory's partitions; the cluster's metadata are read once."""

    def __init__(self, host: Host, data_directory: str) -> None:
        self._fs = host.fs
        self._configured = _configured(host.fs, data_directory)

    def of(self, directory: str, topic: str) -> int:
        """Return what the metadata say of a topic, or what its partition there looks like."""
        value = self._configured(topic).get(_SETTING, "")
        if value.isascii() and value.isdigit():
            return int(value)
        return inferred_interval(self._fs, directory, log_bases(self._fs, directory))


def _configured(fs: FileSystem, data_directory: str) -> Callable[[str], Mapping[str, str]]:
    """Return what tells a topic's settings."""
    from logstore.segments.kafka.cluster_metadata.image import ResourceType

    image = cluster_image(fs, data_directory)
    return _no_settings if image is None else partial(image.configs_of, ResourceType.TOPIC)


def _no_settings(topic: str) -> Mapping[str, str]:
    """Know of no topic."""
    del topic
    return {}


def inferred_interval(fs: FileSystem, directory: str, bases: list[int]) -> int:
    """Return an interval that fits the entries that are there; the default where it does."""
    bounds = [found for base in bases if (found := _bounds(fs, directory, base)) is not None]
    high = min((found.high for found in bounds), default=2**31)
    low = max((found.low for found in bounds), default=0)
    # Entries may be missing at the end of an index, or there was no need for one.
    tails = [found.tail for found in bounds if found.tail < high]
    low = max([low, *tails])
    if low <= DEFAULT_INDEX_INTERVAL_BYTES < high:
        return DEFAULT_INDEX_INTERVAL_BYTES
    return _roundest(low, high)


def _roundest(low: int, high: int) -> int:
    """Return the number from `low` to below `high` that people would have set."""
    for step in _STEPS:
        found = -(-low // step) * step
        if found < high:
            return found
    return min(low, high - 1)  # restarts make it look longer than it is


@attrs.frozen
class _Bounds:
    """The interval is at least `low` and less than `high`; `tail`: at least, if none is missing."""

    low: int
    high: int
    tail: int


def _bounds(fs: FileSystem, directory: str, base: int) -> _Bounds | None:
    """Return what the offset index of a segment tells, None if it is empty or damaged."""
    positions = {position for _, position in read_index(fs, directory, base).entries}
    if not positions:
        return None
    low, high, tail, bytes_since = 0, 2**31, 0, 0
    last = max(positions)
    file = fs.open(f"{directory}/{offset_file_name(base, LOG)}", writable=False)
    try:
        for found in walk_batches(file):
            if found.position in positions:
                positions.discard(found.position)
                high, bytes_since = min(high, bytes_since), 0
            elif found.position < last:
                low = max(low, bytes_since)
            else:
                tail = max(tail, bytes_since)
            bytes_since += found.batch.size_bytes
    except CorruptEntryError:
        return None
    finally:
        file.close()
    return None if positions else _Bounds(low, high, tail)
