"""Stores as Spark's options name them: a directory, or any URL that fsspec knows."""

from __future__ import annotations

import random
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from logstore.compat.spark.kafka_plan import Places, check_kept, partition_bounds, plan_units
from logstore.errors import ForeignDirectoryError
from logstore.host import FileSystem
from logstore.os_host import system_host
from logstore.partition import Store
from logstore.segments import recognise_layout
from logstore.segments.kafka.remote.fsspec_files import is_url, open_url
from logstore.segments.kafka.store import KafkaStore

if TYPE_CHECKING:
    from logstore.compat.spark.options import Bound, ReadOptions
    from logstore.compat.spark.predicates import Where
    from logstore.compat.spark.work_unit import WorkUnit


def file_system_of(location: str) -> FileSystem:
    """Return what the files of a store at `location` are read by."""
    return open_url(location)[0] if is_url(location) else system_host().fs


@contextmanager
def open_for_reading(location: str) -> Generator[Store]:
    """
    Open the store of a directory or URL; nothing is written or locked.

    Raises:
        ForeignDirectoryError: no store of a known layout is there.

    """
    host = system_host()
    directory = str(Path(location).absolute())
    if is_url(location):
        files, directory = open_url(location)
        host = attrs.evolve(host, fs=files, rng=random.Random(0))
    store = recognise_layout(host, directory).open(host, directory, writable=False)
    try:
        yield store
    finally:
        store.close()


def plan(store: Store, options: ReadOptions, where: Where) -> list[WorkUnit]:
    """
    Return the work units of a query over `store`.

    Raises:
        ForeignDirectoryError: its layout cannot be read in Spark.

    """
    return plan_units(_kafka(store), options, where)


def bounds(store: Store, options: ReadOptions, bound: Bound) -> Places:
    """Return the offset that `bound` means in every wanted partition; never an undecided one."""
    return partition_bounds(_kafka(store), options, bound)


def check_loss(store: Store, places: Places) -> None:
    """Raise DataLossError if records from these offsets on are there no more."""
    check_kept(_kafka(store), places)


def _kafka(store: Store) -> KafkaStore:
    if isinstance(store, KafkaStore):
        return store
    raise ForeignDirectoryError(f"{store.directory}: only Kafka's layout is read by Spark so far")
