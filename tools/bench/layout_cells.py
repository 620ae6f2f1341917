"""The files themselves, without a broker: decoded, looked into, recovered, verified, opened."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

import attrs

from logstore.os_host import system_host
from logstore.segments.kafka.compaction.cleanable import find_cleanable
from logstore.segments.kafka.compaction.compaction import Compaction, CompactionLimits, compact
from logstore.segments.kafka.store import KafkaStore, StoreOptions
from logstore.tools.bench.figures import Bar, Metric
from logstore.tools.bench.frames import BenchError
from logstore.tools.bench.layout_data import (
    KIB_RECORDS,
    LONELY_RECORDS,
    SMALL_RECORDS,
    TIME_MS,
    TOPIC,
    BatchShape,
    make_keyed,
    make_many,
    make_store,
    make_unclean,
)
from logstore.tools.inspection.verification.directory_check import DirectoryCheck

MIB = 1024 * 1024
PARTITION_COUNT = 10_000
_LOOKUPS = 20_000
#: run in a Python of its own: seconds, MiB resident, descriptors that stay open
_OPEN = """
import os, sys, time
from logstore.os_host import system_host
from logstore.segments.kafka.store import KafkaStore
from logstore.tools.bench.processes import resident_mib
before = len(os.listdir("/proc/self/fd"))
started = time.perf_counter()
store = KafkaStore(system_host(), sys.argv[1])
seconds = time.perf_counter() - started
descriptors = len(os.listdir("/proc/self/fd")) - before
print(seconds, resident_mib(os.getpid()), descriptors, len(store.partitions()))
os._exit(0)
"""


class Workplace:
    """Where data are made, once a run each. `scale` shrinks them for a first look."""

    def __init__(self, directory: str, scale: float = 1.0) -> None:
        self.directory = directory
        self.scale = scale
        self._made: dict[str, int] = {}

    def store(
        self, name: str, shape: BatchShape, mebibytes: int, partition_count: int = 1
    ) -> tuple[str, int]:
        """Return a data directory that was not closed cleanly, and the bytes in its logs."""
        path = f"{self.directory}/{name}"
        if name in self._made:
            make_unclean(path)
        else:
            size_bytes = int(mebibytes * MIB * self.scale)
            self._made[name] = make_store(path, shape, size_bytes, partition_count)
        return path, self._made[name]

    def keyed(self, name: str, shape: BatchShape, mebibytes: float) -> str:
        """Return a cleanly closed data directory with something to compact, new at each call."""
        make_keyed(f"{self.directory}/{name}", shape, int(mebibytes * MIB * self.scale))
        return f"{self.directory}/{name}"

    def many(self) -> str:
        """Return a cleanly closed data directory of 10,000 partitions (fewer at a small scale)."""
        path = f"{self.directory}/many"
        if "many" not in self._made:
            self._made["many"] = int(PARTITION_COUNT * self.scale)
            make_many(path, self._made["many"])
        return path

    def drop(self, name: str) -> None:
        """Remove one data directory; the next call makes it anew."""
        self._made.pop(name, None)
        shutil.rmtree(f"{self.directory}/{name}", ignore_errors=True)


@attrs.frozen
class LayoutCell:
    """One measurement: `run(workplace)` returns figures by name."""

    scenario: str
    name: str
    metrics: tuple[Metric, ...]
    run: Callable[[Workplace], Mapping[str, float]]


@attrs.frozen
class Decode:
    """All of a log to columns, CRCs checked: CPU time of the one thread that does it."""

    name: str
    shape: BatchShape

    def __call__(self, workplace: Workplace) -> Mapping[str, float]:
        """Decode in steps of the usual size; once before, so that everything is compiled."""
        try:
            from logstore.segments.kafka.columns import iterate_columns
        except ImportError as error:
            raise BenchError(f"{error}; install the extra `columns`") from error
        path, size_bytes = workplace.store(self.name, self.shape, 256)
        log = f"{path}/{TOPIC}-0/00000000000000000000.log"
        file = system_host().fs.open(log, writable=False)
        for _ in iterate_columns(file, log, 0, min(size_bytes, len(self.shape.batch()) * 100)):
            pass
        started, began, count = time.thread_time(), time.perf_counter(), 0
        for columns in iterate_columns(file, log):
            count += len(columns)
        busy, elapsed = time.thread_time() - started, time.perf_counter() - began
        file.close()
        return {
            "records": count / busy / 1e6,
            "bytes": size_bytes / busy / 1e9,
            "wall_bytes": size_bytes / elapsed / 1e9,
        }


@attrs.frozen
class Recover:
    """A store opened that was not closed: every CRC checked, all indexes made anew."""

    name: str
    shape: BatchShape
    mebibytes: int = 1024
    partition_count: int = 1

    def __call__(self, workplace: Workplace) -> Mapping[str, float]:
        """Open with as many threads as there are processors; once before, to have files cached."""
        self._once(workplace)
        return self._once(workplace)

    def _once(self, workplace: Workplace) -> Mapping[str, float]:
        path, size_bytes = workplace.store(
            self.name, self.shape, self.mebibytes, self.partition_count
        )
        options = StoreOptions(recovery_thread_count=len(os.sched_getaffinity(0)))
        began, busy = time.perf_counter(), time.process_time()
        store = KafkaStore(system_host(), path, options)
        elapsed, busy = time.perf_counter() - began, time.process_time() - busy
        partitions = store.topics()[TOPIC].values()
        is_whole = all(p.recovery is not None and p.recovery.is_clean for p in partitions)
        found_bytes = sum(partition.log.size_bytes for partition in partitions)
        store.close()
        if not is_whole or found_bytes != size_bytes:
            raise BenchError(f"{path}: {found_bytes} of {size_bytes} bytes were recovered")
        return {"bytes": size_bytes / elapsed / 1e9, "core_bytes": size_bytes / busy / 1e9}


def verify(workplace: Workplace) -> Mapping[str, float]:
    """``logstore verify`` of a store of 1 GiB that was closed cleanly, its start-up left out."""
    path, size_bytes = workplace.store("verify", SMALL_RECORDS, 1024, 2)
    KafkaStore(system_host(), path).close()
    began, busy = time.perf_counter(), time.process_time()
    damages = [f for f in DirectoryCheck(system_host().fs, path).findings() if f.is_damage]
    elapsed, busy = time.perf_counter() - began, time.process_time() - busy
    if damages:
        raise BenchError(f"{path}: {damages[0]}")
    return {"bytes": size_bytes / elapsed / 1e9, "core_bytes": size_bytes / busy / 1e9}


@attrs.frozen
class Compact:
    """
    One pass over a log of which half is superseded; counted are the bytes of the log.

    With `is_fast` by compiled loops, as a broker's cleaner does where numba is installed; they are
    loaded before, by a pass over a small log.
    """

    name: str
    shape: BatchShape
    is_fast: bool = True

    def __call__(self, workplace: Workplace) -> Mapping[str, float]:
        """Compact the sealed segments, three quarters of 256 MiB; the log is new each time."""
        if self.is_fast:
            self._compact(workplace, min(256, 4 / workplace.scale))
        before, after, elapsed, busy = self._compact(workplace, 256)
        if not 0 < after < before:
            raise BenchError(f"{self.name}: {before} bytes were compacted to {after}")
        return {"bytes": before / elapsed / 1e6, "core_bytes": before / busy / 1e6}

    def _compact(self, workplace: Workplace, mebibytes: float) -> tuple[int, int, float, float]:
        """Return bytes before and after, seconds, and seconds of CPU time."""
        path = workplace.keyed(self.name, self.shape, mebibytes)
        store = KafkaStore(system_host(), path)
        try:
            partition = store.topics()[TOPIC][0]
            found = find_cleanable(partition, None, TIME_MS)
            before = found.total_bytes
            began, busy = time.perf_counter(), time.process_time()
            compaction = Compaction(found, TIME_MS, CompactionLimits(), is_fast=self.is_fast)
            compact(compaction)
            elapsed, busy = time.perf_counter() - began, time.process_time() - busy
            after = find_cleanable(partition, compaction.end_offset, TIME_MS).total_bytes
        finally:
            store.close()
        workplace.drop(self.name)
        return before, after, elapsed, busy


def look_up(workplace: Workplace) -> Mapping[str, float]:
    """Positions of offsets all over one segment, everything in memory that will ever be."""
    path, _ = workplace.store("lookup", SMALL_RECORDS, 1024)
    store = KafkaStore(system_host(), path)
    try:
        segment = store.topics()[TOPIC][0].log.active
        chance = random.Random(4711)
        offsets = [chance.randrange(segment.next_offset) for _ in range(_LOOKUPS)]
        for offset in offsets:
            segment.locate(offset)
        began, busy = time.perf_counter(), time.thread_time()
        for offset in offsets:
            segment.locate(offset)
        elapsed, busy = time.perf_counter() - began, time.thread_time() - busy
    finally:
        store.close()
    return {"us": elapsed / _LOOKUPS * 1e6, "cpu_us": busy / _LOOKUPS * 1e6}


def open_many(workplace: Workplace) -> Mapping[str, float]:
    """
    A store of 10,000 partitions opened after a clean stop, in a process of its own.

    Where there are fewer, at a small scale, the seconds are scaled up, the memory is not.
    """
    path = workplace.many()
    done = subprocess.run(
        [sys.executable, "-c", _OPEN, path], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BenchError(f"opening {path} failed:\n{done.stderr[-2000:]}")
    seconds, mebibytes, descriptors, count = map(float, done.stdout.split())
    workplace.drop("many")  # it was not closed
    share = count / PARTITION_COUNT
    return {"seconds": seconds / share, "mib": mebibytes, "descriptors": descriptors}


_GB_1 = Bar("value", ">=", 1)

CELLS: list[LayoutCell] = [
    LayoutCell(
        "decode",
        "100 B records to columns",
        (
            Metric("records", "M records/s a core", Bar("value", ">=", 8)),
            Metric("bytes", "GB/s a core"),
            Metric("wall_bytes", "GB/s", is_shown=False),
        ),
        Decode("decode-100", SMALL_RECORDS),
    ),
    LayoutCell(
        "decode",
        "1 KiB records to columns",
        (
            Metric("records", "M records/s a core"),
            Metric("bytes", "GB/s a core", _GB_1),
            Metric("wall_bytes", "GB/s", is_shown=False),
        ),
        Decode("decode-1024", KIB_RECORDS),
    ),
    LayoutCell(
        "lookup",
        "offset in a 1 GiB segment, warm",
        (
            Metric("us", "us", Bar("value", "<", 30)),
            Metric("cpu_us", "us CPU", is_shown=False),
        ),
        look_up,
    ),
    LayoutCell(
        "verify",
        "1 GiB in 2 partitions",
        (Metric("bytes", "GB/s", Bar("value", ">=", 1.5)), Metric("core_bytes", "GB/s a core")),
        verify,
    ),
    LayoutCell(
        "recovery",
        "1 GiB, batches of 16 KiB",
        (Metric("bytes", "GB/s", _GB_1), Metric("core_bytes", "GB/s a core")),
        Recover("recovery-1", SMALL_RECORDS),
    ),
    LayoutCell(
        "recovery",
        "256 MiB, batches of one 1 KiB record",
        (Metric("bytes", "GB/s"), Metric("core_bytes", "GB/s a core")),
        Recover("recovery-small", LONELY_RECORDS, 256),
    ),
    LayoutCell(
        "recovery",
        "1 GiB in 8 partitions",
        (Metric("bytes", "GB/s", _GB_1), Metric("core_bytes", "GB/s a core")),
        Recover("recovery-8", SMALL_RECORDS, partition_count=8),
    ),
    *(
        LayoutCell(
            "compaction",
            f"{what} records, half superseded",
            (
                Metric("bytes", "MB/s", Bar("value", ">=", 200)),
                Metric("core_bytes", "MB/s a core"),
            ),
            Compact(f"compaction-{shape.record_bytes}", shape),
        )
        for what, shape in (("100 B", SMALL_RECORDS), ("1 KiB", KIB_RECORDS))
    ),
    LayoutCell(
        "compaction",
        "1 KiB records, half superseded, without compiled loops",
        (Metric("bytes", "MB/s"), Metric("core_bytes", "MB/s a core")),
        Compact("compaction-plain", KIB_RECORDS, is_fast=False),
    ),
    LayoutCell(
        "open",
        f"{PARTITION_COUNT:,} partitions, cleanly stopped",
        (
            Metric("seconds", "s", Bar("value", "<", 5)),
            Metric("mib", "MiB resident", Bar("value", "<", 500)),
            Metric("descriptors", "descriptors left open", Bar("value", "<=", 100)),
        ),
        open_many,
    ),
]
