"""
Checkpoints and other small files of Kafka's are damaged; a real Kafka and ours start on them.

To run many: ``./dev run python -m tests.interop.damage.kafka_text_rounds --first 0 --count 50``.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from logstore.tools.dev.kafka_peer import KafkaPeer
from tests.interop.damage.kafka_base import BROKER, PARTITIONS, TOPIC, make_bases
from tests.interop.damage.kafka_comparison import (
    RECOVERY_POINTS,
    Outcome,
    entries_of,
    lost_batches,
)
from tests.interop.damage.kafka_rounds import run_ours, run_real
from tests.interop.damage.text_kinds import DAMAGES
from tests.interop.our_broker import OurBroker

META = "meta.properties"
OF_PARTITION = ("partition.metadata", "leader-epoch-checkpoint")
OF_DIRECTORY = (
    RECOVERY_POINTS,
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    META,
)
NO_ENTRIES = b"0\n0\n"
REMEDIES = ("restore it", "remove it", "to serve this data")


class TextRound(NamedTuple):
    """What was done, whether Kafka started with it, and what is wrong with ours."""

    done: str
    is_refused: bool
    differences: list[str]


def damage_texts(data: Path, chance: Random) -> str:
    """Damage one file of the directory or of a partition; return what was done."""
    name = chance.choice((*OF_PARTITION, *OF_DIRECTORY))
    place = f"{TOPIC}-{chance.randrange(PARTITIONS)}/{name}" if name in OF_PARTITION else name
    kind = chance.choice(list(DAMAGES)[1:])
    file = data / place
    found = file.read_bytes() if file.exists() else b""
    wanted = DAMAGES[kind](found or NO_ENTRIES, chance)
    if wanted is None:
        file.unlink(missing_ok=True)
    else:
        file.write_bytes(wanted)
    return f"{place} {kind}"


def run_round(base: Path, work: Path, seed: str) -> TextRound:
    """Damage a copy of `base`, start both on it, and compare where logs end and what they hold."""
    shutil.rmtree(work, ignore_errors=True)
    kafka, ours = KafkaPeer("4", work / "real", settings=BROKER), OurBroker(work / "ours", BROKER)
    damaged = work / "damaged"
    shutil.copytree(base, damaged)
    done = damage_texts(damaged, Random(seed))
    for one in (kafka, ours):
        shutil.copytree(damaged, one.data)
    real_told, told = run_real(kafka), run_ours(ours)
    if told is not None:
        is_right = META in done and any(remedy in told for remedy in REMEDIES)
        return TextRound(done, real_told is not None, [] if is_right else [told])
    if real_told is not None:  # what Kafka left is what it found
        shutil.rmtree(kafka.data)
        shutil.copytree(base, kafka.data)
    outcome = Outcome(damaged, kafka.data, ours.data, {})
    wrong = list(differences(outcome, has_ends=real_told is None))
    return TextRound(done, real_told is not None, wrong)


def differences(outcome: Outcome, *, has_ends: bool) -> Iterator[str]:
    """
    Yield the partitions of which ours has less.

    One without its metadata Kafka takes for a stray: it goes aside, and an empty one is made.
    """
    real, ours = (entries_of(side / RECOVERY_POINTS) for side in (outcome.real, outcome.ours))
    for number in range(PARTITIONS):
        key, partition = f"{TOPIC} {number}", f"{TOPIC}-{number}"
        if lost := lost_batches(outcome, partition):
            yield f"{partition}: {lost} batches are nowhere"
        elif has_ends and real[key] > ours[key]:
            yield f"{partition}: real ends at {real[key]}, ours at {ours[key]}"


def rounds(directory: Path, base_seed: int, seeds: Sequence[int]) -> Iterator[TextRound]:
    """Yield the rounds of these seeds, in turn on what a killed and a stopped broker left."""
    bases = make_bases(KafkaPeer("4", directory / "base", settings=BROKER), directory, base_seed)
    for seed in seeds:
        name = ("killed", "stopped")[seed % 2]
        yield run_round(bases[name], directory / "work", f"texts {name} {seed}")


def main() -> int:
    """Run rounds and tell what is different."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    options = parser.parse_args()
    count = 0
    with tempfile.TemporaryDirectory() as scratch:
        seeds = range(options.first, options.first + options.count)
        for found in rounds(Path(scratch), 7, seeds):
            count += len(found.differences)
            said = "refused by the real one" if found.is_refused else "served by both"
            print(found.done, said, *found.differences, sep=": ", flush=True)  # noqa: T201
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
