"""
Where partitions are, kept beside the data, so that a restart finds them where they were.

Kafka's own metadata in the directory says that the first node has everything, for a real broker
that starts there is alone. What a cluster knows besides stands in a file of its own, a line of JSON
for each topic that was placed or moved::

    {"topic": "0f3c…", "partitions": {"0": [[2, 3], 3], "1": [[3, 1], 3]}}

by the partitions' numbers the replicas, the preferred one first, and the leader. The last line of a
topic counts, one that cannot be read does not. Lines are synced, as Kafka's metadata is.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from logstore.host import FileSystem, read_file, write_file

if TYPE_CHECKING:
    from logstore.compat.kafka.nodes.placement import Placement

FILE_NAME = "node-placements.jsonl"
_log = logging.getLogger(__name__)


class Kept(NamedTuple):
    """Where a partition was: its replicas, and who led it."""

    replicas: tuple[int, ...]
    leader: int


#: by topic id and partition
KeptPlacements = dict[bytes, dict[int, Kept]]


class PlacementLog:
    """The file in a `directory`, to which lines are added."""

    def __init__(self, fs: FileSystem, directory: str) -> None:
        self._fs = fs
        self._directory = directory
        self._path = f"{directory}/{FILE_NAME}"
        self._end = 0

    def load(self, topic_ids: Container[bytes]) -> KeptPlacements:
        """
        Return what is kept of these topics, and write the file anew without what is not.

        Raises:
            OSError: the file cannot be read or written.

        """
        if not self._fs.exists(self._path):
            return {}
        data = read_file(self._fs, self._path)
        kept = {topic: found for topic, found in _read(data) if topic in topic_ids}
        lines = b"".join(_line(topic, found) for topic, found in kept.items())
        if lines != data:
            write_file(self._fs, self._path, lines)
        self._end = len(lines)
        return kept

    def note(self, topic_id: bytes, placements: Mapping[int, Placement]) -> None:
        """Add, durably, where a topic's partitions are; a disk that refuses it is warned of."""
        line = _line(topic_id, {i: Kept(it.replicas, it.leader) for i, it in placements.items()})
        try:
            is_new = not self._fs.exists(self._path)
            file = self._fs.open(self._path, create=True)
            try:
                file.write(self._end, line)
                file.sync()
            finally:
                file.close()
            if is_new:
                self._fs.sync_directory(self._directory)
        except OSError as error:
            _log.warning("%s: a restart will not know what moved: %s", self._path, error)
            return
        self._end += len(line)


def _line(topic_id: bytes, placements: Mapping[int, Kept]) -> bytes:
    partitions = {str(index): [list(it.replicas), it.leader] for index, it in placements.items()}
    return orjson.dumps({"topic": topic_id.hex(), "partitions": partitions}) + b"\n"


def _read(data: bytes) -> Iterator[tuple[bytes, dict[int, Kept]]]:
    for line in data.splitlines():
        try:
            entry: Any = orjson.loads(line)
            found = {int(index): _kept(*it) for index, it in entry["partitions"].items()}
            yield bytes.fromhex(entry["topic"]), found
        except (ValueError, TypeError, KeyError, AttributeError):
            _log.warning("%s: a line that cannot be read is left out", FILE_NAME)


def _kept(replicas: Any, leader: Any) -> Kept:
    if not replicas or not all(isinstance(one, int) for one in (*replicas, leader)):
        raise ValueError("replicas and leaders are numbers of nodes")
    return Kept(tuple(replicas), leader)
