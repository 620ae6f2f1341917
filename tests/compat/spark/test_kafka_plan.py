"""What planning a query over a Kafka store costs, and what it says of aborted transactions."""

from __future__ import annotations

import itertools
import os
import struct
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import attrs
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.spark.kafka_plan import AbortedSweep, plan_units
from logstore.compat.spark.options import parse_options
from logstore.compat.spark.predicates import Where
from logstore.os_host import SystemFileSystem, system_host
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.store import KafkaStore, StoreOptions
from logstore.segments.kafka.transaction_index import AbortedTransaction
from logstore.tools.bench.counted_files import CountedFileSystem
from logstore.tools.bench.spark_data import make_segments

SEGMENTS = 12


class WatchedFileSystem(SystemFileSystem):
    """Notes which files are opened."""

    def __init__(self) -> None:
        self.opened: list[str] = []

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> Any:
        """Open a file, and note it."""
        self.opened.append(path)
        return super().open(path, create=create, writable=writable)


def opened_store(directory: Path) -> tuple[KafkaStore, WatchedFileSystem]:
    """Return a store of :data:`SEGMENTS` segments in two partitions, open for reading."""
    make_segments(str(directory), SEGMENTS, 2)
    files = WatchedFileSystem()
    host = attrs.evolve(system_host(), fs=files)
    store = KafkaStore(host, str(directory), StoreOptions(is_writable=False))
    files.opened.clear()
    return store, files


def test_a_read_of_everything_is_planned_without_opening_a_file(tmp_path: Path) -> None:
    """A segment that is read whole costs its plan no open file: there may be a hundred thousand."""
    store, files = opened_store(tmp_path / "data")

    units = plan_units(store, parse_options({"path": str(tmp_path)}), Where())
    store.close()

    assert (len(units), files.opened) == (SEGMENTS, [])


def test_opening_for_a_plan_reads_the_ends_of_indexes_alone(tmp_path: Path) -> None:
    """Of a closed store's sealed indexes, gigabytes altogether, only last entries are read."""
    make_segments(str(tmp_path / "data"), SEGMENTS, 2)
    entries = b"".join(struct.pack(">qi", 1_700_000_000_000 + at, at) for at in range(50_000))
    for path in (tmp_path / "data").glob("bench-*/*.timeindex"):
        path.write_bytes(entries)
    files = CountedFileSystem()
    host = attrs.evolve(system_host(), fs=files)

    store = KafkaStore(host, str(tmp_path / "data"), StoreOptions(is_writable=False))
    sealed = store.partitions()[0].log.segments.peekitem(0)[1]
    newest_ms = sealed.largest_timestamp_ms()
    store.close()

    assert newest_ms == 1_700_000_049_999
    assert files.read_bytes < len(entries) * 3  # the two active ones, and little more


def test_a_plan_holds_no_descriptors(tmp_path: Path) -> None:
    """A file that planning had to look into is let go of before the next segment's turn."""
    store, _ = opened_store(tmp_path / "data")
    before = len(os.listdir("/proc/self/fd"))

    plan_units(store, parse_options({"path": str(tmp_path)}), Where(offset_min=1, offset_max=3))
    after = len(os.listdir("/proc/self/fd"))
    store.close()

    assert after == before


def test_an_open_partition_keeps_no_listing_of_its_segments(tmp_path: Path) -> None:
    """Names of segments are forgotten once they are open; other files are still known."""
    store, _ = opened_store(tmp_path / "data")
    files = store.partitions()[0].files

    known = (files.base_offsets(), files.found_bytes("partition.metadata") is not None)
    store.close()

    assert known == ([], True)


spans = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 60), st.integers(0, 15)), max_size=12
).map(lambda found: [AbortedTransaction(who, at, at + size, at + size) for who, at, size in found])


@given(spans, st.lists(st.integers(1, 60), unique=True, max_size=6))
def test_a_segment_is_told_the_aborted_transactions_that_reach_into_it(
    aborted: list[AbortedTransaction], cuts: list[int]
) -> None:
    """The sweep gives each segment what a search for that segment alone would have found."""
    aborted = sorted(aborted, key=lambda one: one.last_offset)
    bases = [0, *sorted(cuts), 100]
    partition = MagicMock(KafkaPartition, log=MagicMock(segments={}))
    partition.aborted_transactions.return_value = aborted
    sweep = AbortedSweep(partition, 0, 100)

    for start, end in itertools.pairwise(bases):
        wanted = [
            (one.producer_id, one.first_offset, one.last_offset)
            for one in aborted
            if one.first_offset < end and one.last_offset >= start
        ]
        found = [
            (one.producer_id, one.first_offset, one.last_offset)
            for one in sweep.spans_in(start, end)
        ]
        assert sorted(found) == sorted(wanted)
