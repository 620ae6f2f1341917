"""
``meta.properties``: which node of which cluster a log directory belongs to.

::

    #
    #Sat Nov 21 03:40:42 UTC 2026
    node.id=1                              broker.id in version 0
    directory.id=eHwpBKwYCHLonlMREhFidg    may be missing
    version=1
    cluster.id=d2d02pMQRdKX_i8LoYQXuQ

Version 0 (ZooKeeper) guarantees no field, version 1 (KRaft) has cluster and node id.

Source: ``MetaProperties``, ``MetaPropertiesVersion``, ``PropertiesUtils``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from logstore.errors import CorruptFileError, ForeignDirectoryError
from logstore.host import FileSystem, read_file, write_file
from logstore.segments.kafka.java_properties import (
    PropertiesError,
    format_properties,
    parse_properties,
)
from logstore.segments.kafka.kafka_uuid import (
    UuidTextError,
    random_uuid,
    uuid_from_text,
    uuid_to_text,
)

if TYPE_CHECKING:
    import random

FILE_NAME = "meta.properties"

_log = logging.getLogger(__name__)


class MetaProperties(NamedTuple):
    """What the file says; `directory_id` is 16 bytes."""

    cluster_id: str | None
    node_id: int | None
    directory_id: bytes | None = None
    version: int = 1

    @classmethod
    def generate(
        cls, node_id: int, rng: random.Random, *, cluster_id: str | None = None
    ) -> MetaProperties:
        """Return the properties of a new directory, of a new cluster unless one is given."""
        if cluster_id is None:
            cluster_id = uuid_to_text(random_uuid(rng))
        return cls(cluster_id, node_id, random_uuid(rng))

    @classmethod
    def read(cls, fs: FileSystem, directory: str) -> MetaProperties:
        """
        Return what the file in `directory` says; the log tells if that is nothing.

        Raises:
            CorruptFileError: an unknown version, a number or id that is none, or one missing that
                version 1 demands.

        """
        path = f"{directory}/{FILE_NAME}"
        try:
            found = parse_properties(read_file(fs, path).decode("iso-8859-1"))
        except PropertiesError as error:
            raise CorruptFileError(path, str(error)) from None
        version = _integer(path, "version", found.get("version", "0").strip())
        if version not in (0, 1):
            raise CorruptFileError(path, f"unknown version {version}")
        node_key = "node.id" if version else "broker.id"
        if not found.keys() & {"version", node_key, "cluster.id"}:
            _log.warning("%s: names neither a node nor a cluster; taken as anybody's", path)
        node_id = found.get(node_key)
        cluster_id = found.get("cluster.id")
        if version and (node_id is None or cluster_id is None):
            missing = "cluster.id" if node_id is not None else node_key
            raise CorruptFileError(path, f"{missing} is missing")
        directory_id = found.get("directory.id")
        try:
            return cls(
                cluster_id,
                None if node_id is None else _integer(path, node_key, node_id),
                None if directory_id is None else uuid_from_text(directory_id),
                version,
            )
        except UuidTextError as error:
            raise CorruptFileError(path, f"directory.id: {error}") from None

    def check_node_id(self, directory: str, node_id: int) -> None:
        """
        Make sure that `directory`, which has this file, is not another node's than `node_id`.

        A file that names no node (version 0) is anybody's.

        Source: ``MetaPropertiesEnsemble.verify``.

        Raises:
            ForeignDirectoryError: it is another node's.

        """
        if self.node_id is not None and self.node_id != node_id:
            key = "node.id" if self.version else "broker.id"
            raise ForeignDirectoryError(
                f"{directory}/{FILE_NAME}: {key} is {self.node_id}, but this broker is to be node "
                f"{node_id}; to serve this data set node.id={self.node_id} or leave it out, for a "
                "new node name an empty directory"
            )

    def write(self, fs: FileSystem, directory: str, wall_ms: int, *, sync: bool = True) -> None:
        """Replace the file; `wall_ms` is the time for its comment."""
        found = {
            "node.id" if self.version else "broker.id": self.node_id,
            "directory.id": None if self.directory_id is None else uuid_to_text(self.directory_id),
            "version": self.version,
            "cluster.id": self.cluster_id,
        }
        properties = {key: str(value) for key, value in found.items() if value is not None}
        text = format_properties(properties, wall_ms=wall_ms)
        write_file(fs, f"{directory}/{FILE_NAME}", text.encode(), sync=sync)


def _integer(path: str, name: str, text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 10):
        raise CorruptFileError(path, f"{name} {text!r} is no number")
    return int(text)
