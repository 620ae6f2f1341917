"""
Damages are drawn from a seed; Java's store and ours open on them, stop, and are compared.

Java's is opened without its broker, by ``OpenStores.java``: a hundred of them take as long as one.
To run many: ``./dev run python -m tests.interop.damage.rocketmq_rounds --first 0 --count 200``.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from logstore.errors import StorageError
from logstore.host import Host
from logstore.os_host import SystemFileSystem
from logstore.segments.rocketmq.reading.get_message import get_message
from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions
from logstore.testing import ManualClock
from logstore.tools.dev import rocketmq_jars
from tests.interop.damage.rocketmq_comparison import Outcome, differences
from tests.interop.damage.rocketmq_kinds import Place, damage
from tests.segments.rocketmq.golden_case import ONLY_IN_5, GoldenCase, copy_of_store

PROGRAM = Path(__file__).with_name("OpenStores.java")
VERSIONS = {"4": "4.9.8", "5": "5.5.0"}
#: which stores are damaged: of the golden cases, and where in them
BASES: tuple[tuple[str, str], ...] = (
    ("damage", "base"), ("damage", "base"), ("damage", "base"), ("crash", "before"),
    ("crash-pool", "before"), ("properties", "store"), ("filters", "store"),
    ("transactions", "store"), ("delay", "store"), ("multi-dispatch", "store"),
    ("batch-queue", "store"), ("property-crc", "store"),
)  # fmt: skip
#: 4.9.8's store delivers what is delayed, as time goes by, and has no queues of batches
LEFT_OUT = {"4": {"delay", *ONLY_IN_5}, "5": set[str]()}
#: of the stores that were stopped cleanly, how many look as if they had been killed
KILLED = 0.5
SECONDS_MAX = 300
JVM = "-Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"


class Damaged(NamedTuple):
    """A damaged store in three copies, and what was done to it."""

    case: GoldenCase
    before: Path
    real: Path
    ours: Path
    done: list[str]

    @property
    def line(self) -> str:
        """What ``OpenStores.java`` is told."""
        settings = self.case.settings.items()
        return "\t".join([str(self.real), *(f"{key}={value}" for key, value in settings)])


def drawn(version: str, seed: int, directory: Path) -> Damaged:
    """Return a store with the damages of a seed."""
    chance = Random(f"{version} {seed}")
    name, folder = chance.choice([base for base in BASES if base[0] not in LEFT_OUT[version]])
    case = GoldenCase(name, VERSIONS[version])
    real = copy_of_store(case.folder / folder, directory / f"{seed}-real")
    done = [f"{case.id}/{folder}"]
    if folder != "before" and chance.random() < KILLED:
        (real / "abort").write_text("")
        done.append("killed")
    done += damage(Place(real, chance))
    before = copy_of_store(real, directory / f"{seed}-before")
    return Damaged(case, before, real, copy_of_store(real, directory / f"{seed}-ours"), done)


def read_by_java(version: str, stores: Sequence[Damaged], home: Path) -> dict[str, list[str]]:
    """Have Java open all stores; return what it read of each, or why it did not."""
    classes = rocketmq_jars.compiled(version, [PROGRAM])
    command = rocketmq_jars.java(version, PROGRAM.stem, jvm=JVM, behind=classes, home=home)
    text = "\n".join(store.line for store in stores)
    done = subprocess.run(
        command, input=text, text=True, capture_output=True, timeout=SECONDS_MAX, check=True
    )
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in done.stdout.splitlines():
        if line.startswith("== "):
            lines = found.setdefault(line.removeprefix("== "), [])
        else:
            lines.append(line)
    return found


def read_by_ours(damaged: Damaged) -> list[str]:
    """Open a store as a broker does, read it and stop; return what was read, or why it was not."""
    options = StoreOptions(settings=damaged.case.settings, release=release_of(damaged.case))
    host = Host(SystemFileSystem(), ManualClock(), random.Random(0))
    try:
        store = RocketMQStore(host, str(damaged.ours), options)
    except StorageError as error:
        return [f"!! {type(error).__name__} {error}"]
    found = sorted(messages(store))
    store.close()
    return found


def release_of(case: GoldenCase) -> Release:
    """Return the release that wrote a case."""
    return Release.V4 if case.version == VERSIONS["4"] else Release.V5


def messages(store: RocketMQStore) -> Iterator[str]:
    """Yield a line for each message that is handed out, as ``OpenStores.java`` prints it."""
    for queue in store.consume_queues:
        for offset in range(queue.min_queue_offset, queue.max_queue_offset):
            found = get_message(queue, store.commit_log, offset, 1)
            if found.count:
                data = found.read()
                digest = hashlib.sha256(data).hexdigest()
                yield f"{queue.topic} {queue.queue_id} {offset} {len(data)} {digest}"


def run_rounds(version: str, seeds: Sequence[int], directory: Path) -> dict[int, list[str]]:
    """Return what is different, by seed."""
    stores = {seed: drawn(version, seed, directory) for seed in seeds}
    read = read_by_java(version, list(stores.values()), directory / f"home-{version}")
    found: dict[int, list[str]] = {}
    for seed, one in stores.items():
        outcome = Outcome(*one, read[str(one.real)], read_by_ours(one))
        if different := differences(outcome):
            found[seed] = [str(one.done), *different]
    return found


def main() -> int:
    """Run rounds and tell what is different."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--version", choices=VERSIONS, action="append")
    parser.add_argument("--directory", type=Path, help="keep what was written there")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    count = 0
    with tempfile.TemporaryDirectory() as scratch:
        directory = options.directory or Path(scratch)
        seeds = range(options.first, options.first + options.count)
        for version in options.version or VERSIONS:
            shutil.rmtree(directory / version, ignore_errors=True)
            found = run_rounds(version, seeds, directory / version)
            count += len(found)
            print(f"== {VERSIONS[version]}: {len(seeds)} damaged, {len(found)} different")  # noqa: T201
            for seed, lines in found.items():
                print(seed, *lines, sep="\n    ")  # noqa: T201
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
