"""
Stores as Spark's options name them: a directory, any URL that fsspec knows, or several directories.

Several are named with commas between, as in Kafka's ``log.dirs``, and read as one store
(:mod:`logstore.segments.kafka.gathered_store`).
"""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from logstore.compat.spark.columns import check_layout
from logstore.compat.spark.kafka_plan import partition_bounds, plan_parts, plan_units
from logstore.compat.spark.option_values import OptionError
from logstore.compat.spark.rocketmq_plan import plan_messages, queue_bounds
from logstore.compat.spark.work_unit import Unit, gathered
from logstore.errors import ForeignDirectoryError
from logstore.host import FileSystem, Host
from logstore.os_host import system_host
from logstore.partition import Layout, Store
from logstore.passing_files import PassingFileSystem, is_in_passing
from logstore.segments import UnfinishedConversionError, recognise_layout
from logstore.segments.kafka.data_directory import named_directories
from logstore.segments.kafka.directory_name import (
    DirectoryNameError,
    parse_directory_name,
)
from logstore.segments.kafka.gathered_store import GatheredStore
from logstore.segments.kafka.remote.fsspec_files import is_url, open_url
from logstore.segments.kafka.segment_files import LOG
from logstore.segments.kafka.store import KafkaLayout, KafkaStore
from logstore.segments.rocketmq.store import RocketMQStore

if TYPE_CHECKING:
    from logstore.compat.spark.offset_bounds import Bound
    from logstore.compat.spark.options import ReadOptions
    from logstore.compat.spark.predicates import Where


def file_system_of(location: str, scan_bytes: int = 0, *, is_read_once: bool = False) -> FileSystem:
    """
    Return what the files of a store at `location` are read by, in a scan of so many bytes.

    What `is_read_once` is read in passing, however little it is.
    """
    if is_url(location):
        return open_url(location)[0]
    # Units name their files by absolute paths, whichever directory they are in.
    is_passing = is_read_once or is_in_passing(scan_bytes)
    return PassingFileSystem() if is_passing else system_host().fs


def layout_of(location: str) -> str:
    """
    Return the name of the layout of what is there, without opening it.

    Raises:
        ForeignDirectoryError: no store of a known layout is there, or several that are not Kafka's.

    """
    directories = directories_of(location)
    names = [_recognised(*_place(one)).name for one in directories]
    for one, name in zip(directories, names, strict=True):
        if len(directories) > 1 and name != KafkaLayout.name:
            raise ForeignDirectoryError(f"{one}: is a {name} store, which is read on its own")
    return names[0]


def directories_of(location: str) -> list[str]:
    """Return the directories, or the URL, that a location names."""
    return [location] if is_url(location) else named_directories(system_host().fs, location)


def absolute_location(location: str) -> str:
    """Return a location that means the same in every working directory."""
    if is_url(location):
        return location
    return ",".join(str(Path(one).absolute()) for one in directories_of(location))


def _place(location: str) -> tuple[Host, str]:
    """Return what the files are read by, and their directory in it."""
    host = system_host()
    if not is_url(location):
        return host, str(Path(location).absolute())
    files, directory = open_url(location)
    return attrs.evolve(host, fs=files, rng=random.Random(0)), directory


@contextmanager
def open_for_reading(location: str) -> Generator[Store]:
    """
    Open the store of a location; nothing is written or locked.

    Raises:
        ForeignDirectoryError: no store of a known layout is there, or several that are not one.

    """
    store = _opened(location)
    try:
        yield store
    finally:
        store.close()


def _opened(location: str) -> Store:
    directories = directories_of(location)
    if len(directories) > 1:
        layout_of(location)
        return GatheredStore(system_host(), [str(Path(one).absolute()) for one in directories])
    host, directory = _place(location)
    return _recognised(host, directory).open(host, directory, writable=False)


def _recognised(host: Host, directory: str) -> Layout:
    """Return the layout of a directory; of one partition's, say which one to name instead."""
    try:
        return recognise_layout(host, directory)
    except UnfinishedConversionError:
        raise
    except ForeignDirectoryError:
        topic = _topic_of_partition(host.fs, directory)
        if topic is None:
            raise
        raise ForeignDirectoryError(
            f"{directory}: is one partition's directory; name the one that it is in, and "
            f"topics={topic}"
        ) from None


def _topic_of_partition(fs: FileSystem, directory: str) -> str | None:
    """Return whose partition is in a directory, None if it is no partition's."""
    try:
        topic = parse_directory_name(directory.rstrip("/").rpartition("/")[2]).topic
    except DirectoryNameError:
        return None
    is_there = fs.is_directory(directory) and any(
        entry.name.endswith(LOG) for entry in fs.list_directory(directory)
    )
    return topic if is_there else None


def plan(store: Store, options: ReadOptions, where: Where) -> list[Unit]:
    """
    Return the work units of a query over `store`.

    Raises:
        UnknownColumnError: its layout lacks a column that is asked for.
        ForeignDirectoryError: its layout cannot be read in Spark.

    """
    if isinstance(store, KafkaStore):
        check_layout(options.columns, "kafka")
        return list(plan_units(store, options, where))
    check_layout(options.columns, "rocketmq")
    return list(plan_messages(_rocketmq(store), options, where))


def plan_tasks(store: Store, options: ReadOptions, where: Where) -> list[list[Unit]]:
    """
    Return the units of a query over `store`, task by task.

    Raises:
        UnknownColumnError: its layout lacks a column that is asked for.
        ForeignDirectoryError: its layout cannot be read in Spark.
        OptionError: an option is not for its layout.

    """
    split_bytes, count_min = options.split_bytes, options.partition_count_min
    if isinstance(store, KafkaStore) and (count_min or options.records_per_partition_max):
        check_layout(options.columns, "kafka")
        parts: list[list[Unit]] = [[*part] for part in plan_parts(store, options, where)]
        return [task for part in parts for task in gathered(part, split_bytes, 0)]
    if options.records_per_partition_max:
        raise OptionError(
            "maxRecordsPerPartition",
            options.records_per_partition_max,
            "is for the layout kafka: of a commit log splitBytes makes smaller tasks",
        )
    return gathered(plan(store, options, where), split_bytes, count_min)


def bounds(store: Store, options: ReadOptions, bound: Bound) -> Mapping[tuple[str, int], int]:
    """Return the offset that `bound` means in every wanted partition; never an undecided one."""
    if isinstance(store, KafkaStore):
        return partition_bounds(store, options, bound)
    return queue_bounds(_rocketmq(store), options, bound)


def _rocketmq(store: Store) -> RocketMQStore:
    if isinstance(store, RocketMQStore):
        return store
    raise ForeignDirectoryError(f"{store.directory}: Spark knows the layouts kafka and rocketmq")
