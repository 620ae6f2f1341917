"""
Damages are drawn from a seed; a real Kafka and `logstore serve` start on them, and are compared.

To run many of them: ``./dev run python -m tests.interop.damage.kafka_rounds --first 0 --count 50``.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from confluent_kafka.admin import AdminClient

from logstore.tools.dev.kafka_peer import KafkaPeer
from logstore.tools.dev.maven import PeerUnavailable
from tests.interop.clients import settings
from tests.interop.conftest import led_partitions
from tests.interop.damage.kafka_base import BROKER, PARTITIONS, TOPIC, make_bases
from tests.interop.damage.kafka_comparison import RECOVERY_POINTS, Outcome, differences, entries_of
from tests.interop.damage.kafka_kinds import Place, damage
from tests.interop.eventually import eventually
from tests.interop.our_broker import OurBroker, StartRefusedError

LOG_STARTS = "log-start-offset-checkpoint"
#: of the partitions, how many have a wrong entry in a checkpoint
WRONG_CHECKPOINTS = 0.1
STARTS_MAX = 12
CULPRIT = re.compile(rf"[/ ]{TOPIC}-(\d+)")


class Round(NamedTuple):
    """What came of the damages of one seed: how many were compared, and what is wrong."""

    compared: int
    differences: list[str]
    #: what Kafka does not start with, and ours with a reason
    refused: list[str]


def place(data: Path, number: int, chance: Random) -> Place:
    """Return the place of a partition's damages."""
    others = [data / f"{TOPIC}-{one}" for one in range(PARTITIONS) if one != number]
    return Place(data / f"{TOPIC}-{number}", others, chance)


def damage_all(data: Path, chance: Random) -> dict[int, list[str]]:
    """Damage each partition, and entries of the checkpoints; return what was done."""
    done = {number: damage(place(data, number, chance)) for number in range(PARTITIONS)}
    for name in (RECOVERY_POINTS, LOG_STARTS):
        entries = entries_of(data / name)
        for number in range(PARTITIONS):
            if chance.random() < WRONG_CHECKPOINTS:
                far = 10**6 if name == RECOVERY_POINTS else 90
                offset = chance.choice((0, chance.randrange(90), far))
                entries[f"{TOPIC} {number}"] = offset
                done[number].append(f"{name} {offset}")
        lines = [f"{key} {offset}\n" for key, offset in entries.items()]
        (data / name).write_text(f"0\n{len(entries)}\n{''.join(lines)}")
    return done


def run_real(kafka: KafkaPeer) -> str | None:
    """Let the real one start, lead and stop; return what it said if it did not start."""
    try:
        kafka.start()
    except PeerUnavailable as refusal:
        return f"{refusal}\n{kafka.log.read_text(errors='replace')}"
    admin = AdminClient(settings(kafka.bootstrap))
    eventually(lambda: len(led_partitions(admin, TOPIC)) == PARTITIONS, what="leaders")
    kafka.stop()
    return None


def run_ours(broker: OurBroker) -> str | None:
    """Let ours start and stop; return what it said if it did not start."""
    try:
        broker.start()
    except StartRefusedError as refusal:
        return refusal.stderr
    broker.stop()
    return None


def culprit(name: str, told: str, done: dict[int, list[str]]) -> int:
    """Return the partition that a broker did not start with."""
    if name == "ours":
        told = told.rpartition("\nlogstore: ")[2]
    elif error := re.search(rf"Error while loading logs? in \S*/{TOPIC}-(\d+)", told):
        told = error[0]
    found = [int(one) for one in CULPRIT.findall(told)]
    return next(one for one in found if one in done)


def run_round(base: Path, work: Path, seed: str) -> Round:
    """
    Damage a copy of `base`, start both on it, and compare what they leave.

    A partition that one of them does not start with is put back as it was for both.
    """
    shutil.rmtree(work, ignore_errors=True)
    chance = Random(seed)
    kafka, ours = KafkaPeer("4", work / "real", settings=BROKER), OurBroker(work / "ours", BROKER)
    damaged = work / "damaged"
    shutil.copytree(base, damaged)
    done = damage_all(damaged, chance)
    wrong: list[str] = []
    refused: list[str] = []
    for _ in range(STARTS_MAX):
        for one in (kafka, ours):
            shutil.rmtree(one.data, ignore_errors=True)
            one.log.unlink(missing_ok=True)
            shutil.copytree(damaged, one.data)
        name, told = "ours", run_ours(ours)
        if told is None:
            name, told = "real", run_real(kafka)
        if told is None:
            outcome = Outcome(damaged, kafka.data, ours.data, done)
            return Round(len(done), [*wrong, *differences(outcome)], refused)
        number = culprit(name, told, done)
        line = f"{name} refuses {number} {done.pop(number)}: {told.strip().splitlines()[-1]}"
        (refused if name == "real" else wrong).append(line)
        shutil.rmtree(damaged / f"{TOPIC}-{number}")
        shutil.copytree(base / f"{TOPIC}-{number}", damaged / f"{TOPIC}-{number}")
    raise AssertionError(f"{seed}: one of them never started: {refused}")


def rounds(directory: Path, base_seed: int, seeds: Sequence[int]) -> Iterator[tuple[str, Round]]:
    """Yield the rounds of these seeds, on what a killed broker left and on what a stopped did."""
    bases = make_bases(KafkaPeer("4", directory / "base", settings=BROKER), directory, base_seed)
    for seed in seeds:
        for name, base in bases.items():
            yield f"{name} {seed}", run_round(base, directory / "work", f"{name} {seed}")


def main() -> int:
    """Run rounds and tell what is different."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--base", type=int, default=0, help="the seed of what is damaged")
    parser.add_argument("--directory", type=Path, help="keep what was written there")
    options = parser.parse_args()
    different = 0
    with tempfile.TemporaryDirectory() as scratch:
        directory = options.directory or Path(scratch)
        seeds = range(options.first, options.first + options.count)
        for name, found in rounds(directory, options.base, seeds):
            different += len(found.differences)
            print(f"== {name}: {found.compared} damaged")  # noqa: T201
            if found.differences and options.directory:
                shutil.copytree(directory / "work", directory / name.replace(" ", "-"))
            for line in (*found.refused, *found.differences):
                print(line, flush=True)  # noqa: T201
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
