"""
What belongs to a store and does not stand in its files.

A broker keeps its commit log on other disks where ``storePathCommitLog`` says so, or in files of
DLedger's, and queues and tables in RocksDB with ``storeType=defaultRocksDB``. By its directory
alone such a store looks empty: queues that lead nowhere would be cut, and groups would begin anew.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from logstore.errors import ForeignDirectoryError, MissingSegmentError
from logstore.segments.rocketmq.opening.found_sizes import found_sizes

if TYPE_CHECKING:
    from logstore.host import FileSystem

_log = logging.getLogger(__name__)
#: the file that every RocksDB has
_MARK = "CURRENT"
_DLEDGER = "dledger-"
_QUEUES = ("consumequeue", "consumequeue_rocksdb")
_TABLES = ("config/topics", "config/metadata")
_QUEUE_SIZES = frozenset({"mappedFileSizeConsumeQueue", "mapperFileSizeBatchConsumeQueue"})


def has_queue_files(fs: FileSystem, directory: str) -> bool:
    """Tell whether any queue of a store has a file."""
    return not _QUEUE_SIZES.isdisjoint(found_sizes(fs, directory))


def check_is_whole(
    fs: FileSystem, directory: str, log_directory: str, *, is_writable: bool
) -> None:
    """
    Refuse a store of which a part stands elsewhere; of one that is only read say what is not known.

    Raises:
        MissingSegmentError: the commit log is not there.
        ForeignDirectoryError: it is to be written, and a part of it stands in RocksDB.

    """
    refuse_without_log(fs, directory, log_directory)
    if is_writable:
        refuse_rocksdb(fs, directory)
    else:
        tell_rocksdb(fs, directory)


def refuse_without_log(fs: FileSystem, directory: str, log_directory: str) -> None:
    """
    Refuse a store whose queues lead into a commit log that is not where it must be.

    Raises:
        MissingSegmentError: says how tools find a log of several disks, or that it is DLedger's.

    """
    refuse_dledger(fs, directory)
    if fs.is_directory(log_directory) or not has_queue_files(fs, directory):
        return
    raise MissingSegmentError(
        f"{directory}: has consume queues, and no commit log in {log_directory}: where a broker's "
        "storePathCommitLog names other directories, link the one as that folder, or all files of "
        "several into it (ln -s)"
    )


def refuse_dledger(fs: FileSystem, directory: str) -> None:
    """
    Refuse a store whose commit log is DLedger's, with queues and a log of before beside it or not.

    Raises:
        MissingSegmentError: says where it stands.

    """
    if not fs.is_directory(directory):
        return
    names = [entry.name for entry in fs.list_directory(directory) if entry.is_directory]
    dledger = next((name for name in names if name.startswith(_DLEDGER)), None)
    if dledger is not None:
        raise MissingSegmentError(
            f"{directory}: the commit log is DLedger's, in {dledger} (enableDLegerCommitLog), "
            "which is not read here: let consumers of its broker read it, or name another directory"
        )


def queues_in_rocksdb(fs: FileSystem, directory: str) -> str | None:
    """Return the folder in which a store keeps its queues as RocksDB; None where they are files."""
    found = next((name for name in _QUEUES if fs.exists(f"{directory}/{name}/{_MARK}")), None)
    return None if found is None or has_queue_files(fs, directory) else found


def tables_in_rocksdb(fs: FileSystem, directory: str) -> str | None:
    """Return the folder in which a store keeps its topics as RocksDB; None where they are JSON."""
    if fs.exists(f"{directory}/config/topics.json"):
        return None
    return next((name for name in _TABLES if fs.exists(f"{directory}/{name}/{_MARK}")), None)


def refuse_rocksdb(fs: FileSystem, directory: str) -> None:
    """
    Refuse to go on with a store of which a part stands in RocksDB.

    Raises:
        ForeignDirectoryError: says what can be done with it.

    """
    found = queues_in_rocksdb(fs, directory) or tables_in_rocksdb(fs, directory)
    if found is None:
        return
    raise ForeignDirectoryError(
        f"{directory}: {found} is RocksDB (storeType=defaultRocksDB), which is not read here: "
        "topics, groups or queues would begin anew; query and convert it, or copy its commitlog "
        "alone into a new directory, for which logstore reindex makes queues"
    )


def tell_rocksdb(fs: FileSystem, directory: str) -> None:
    """Say of a store that is only read what of it is not, because it stands in RocksDB."""
    folder = tables_in_rocksdb(fs, directory)
    if folder is not None:
        _log.warning(
            "%s: topics and groups stand in %s as RocksDB, which is not read here: settings of "
            "topics and offsets of groups are not known",
            directory,
            folder,
        )
    folder = queues_in_rocksdb(fs, directory)
    if folder is not None:
        _log.warning(
            "%s: the queues stand in %s as RocksDB, which is not read here: what the commit log "
            "holds is known, where queues start is not",
            directory,
            folder,
        )
