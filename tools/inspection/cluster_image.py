"""What a data directory's own copy of the cluster's metadata says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.errors import LogStoreError
from logstore.host import FileSystem

if TYPE_CHECKING:
    from logstore.segments.kafka.cluster_metadata.image import MetadataImage


def cluster_image(fs: FileSystem, directory: str) -> MetadataImage | None:
    """Return the metadata; None where there is no log of them that can be read."""
    from logstore.segments.kafka.cluster_metadata.metadata_log import DIRECTORY, MetadataLog
    from logstore.segments.kafka.cluster_metadata.release import parse_release

    if not fs.exists(f"{directory}/{DIRECTORY}"):
        return None
    from logstore.os_host import system_host

    host = attrs.evolve(system_host(), fs=fs)
    try:
        log = MetadataLog(host, directory, -1, release=parse_release("4.3"), is_writable=False)
    except (LogStoreError, OSError):
        return None
    return log.image
