"""Which layout's tools a directory is for."""

from __future__ import annotations

import os

from logstore.errors import ForeignDirectoryError
from logstore.host import Host
from logstore.os_host import system_host
from logstore.segments import UnfinishedConversionError, recognise_layout
from logstore.segments.kafka.data_directory import named_directories
from logstore.segments.rocketmq.opening.directory import looks_like_store

KAFKA = "kafka"
ROCKETMQ = "rocketmq"
#: how far up a store is looked for whose part was named
_LEVELS = 3


def stores_in(text: str) -> list[str]:
    """
    Return the directories that `text` names: one store, or several of Kafka's ``log.dirs``.

    Raises:
        ForeignDirectoryError: one of several is a RocketMQ store; or as :func:`layout_of`.

    """
    paths = [os.path.abspath(one) for one in named_directories(system_host().fs, text)]
    for path in paths:
        if len(paths) > 1 and layout_of(path) == ROCKETMQ:
            raise ForeignDirectoryError(f"{path}: is a RocketMQ store, which is read on its own")
    return paths


def layout_of(directory: str, host: Host | None = None) -> str:
    """
    Return "kafka" or "rocketmq" for a directory.

    What no layout knows may still be one partition of Kafka's, a pile of its files, or nothing:
    that is for Kafka's tools to say.

    Raises:
        ForeignDirectoryError: a conversion into it is not finished, it is a part of a RocketMQ
            store, or of a layout that has no tools here.

    """
    host = host or system_host()
    try:
        name = recognise_layout(host, directory).name
    except UnfinishedConversionError:
        raise
    except ForeignDirectoryError:
        _refuse_part(host, directory)
        return KAFKA
    if name not in (KAFKA, ROCKETMQ):
        raise ForeignDirectoryError(
            f"{directory}: is of the layout {name!r}; the tools know {KAFKA} and {ROCKETMQ}"
        )
    return name


def _refuse_part(host: Host, directory: str) -> None:
    parent = directory
    for _ in range(_LEVELS):
        parent = os.path.dirname(parent)
        if looks_like_store(host, parent):
            raise ForeignDirectoryError(
                f"{directory}: is a part of the RocketMQ store {parent}; name that"
            )
