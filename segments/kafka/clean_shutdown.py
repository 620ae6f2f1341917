"""
``.kafka_cleanshutdown``: its existence says that a log directory was closed properly.

It is written last of all and removed as soon as it was seen, so that a crash while loading counts
as unclean. The content, ``{"version":0,"brokerEpoch":42}``, only matters to a cluster's controller
(KIP-966); older brokers wrote none, and what cannot be read is no error.

Source: ``CleanShutdownFileHandler``.
"""

from __future__ import annotations

import json
from typing import Any

from logstore.host import FileSystem, read_file, write_file

FILE_NAME = ".kafka_cleanshutdown"
NO_BROKER_EPOCH = -1


def exists(fs: FileSystem, directory: str) -> bool:
    """Tell whether the last stop was clean."""
    return fs.exists(f"{directory}/{FILE_NAME}")


def read_broker_epoch(fs: FileSystem, directory: str) -> int | None:
    """Return the epoch of the broker that stopped, None if the file does not tell."""
    path = f"{directory}/{FILE_NAME}"
    if not fs.exists(path):
        return None
    try:
        content: Any = json.loads(read_file(fs, path))
        epoch: Any = content["brokerEpoch"]
    except (ValueError, TypeError, KeyError):
        return None
    return epoch if type(epoch) is int else None


def write(fs: FileSystem, directory: str, broker_epoch: int = NO_BROKER_EPOCH) -> None:
    """Say durably that the directory was closed properly: the last write of all."""
    marker = {"version": 0, "brokerEpoch": broker_epoch}
    content = json.dumps(marker, separators=(",", ":")).encode()
    write_file(fs, f"{directory}/{FILE_NAME}", content)


def remove(fs: FileSystem, directory: str) -> None:
    """Take the marker away, durably; fine if there is none."""
    if exists(fs, directory):
        fs.remove(f"{directory}/{FILE_NAME}")
        fs.sync_directory(directory)
