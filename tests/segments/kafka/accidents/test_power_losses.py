"""
The whole store across every single power loss of a scripted life, and across seeded double ones.

`./dev test` takes two ways of losing power at each point and some hundred double losses;
``LOGSTORE_DOUBLE_LOSSES=20000 ./dev accidents`` so many, and every corner at every point.
"""

from __future__ import annotations

import os
import random

import pytest

from logstore.testing import CORNERS, PowerLoss, SimulatedHost
from tests.segments.kafka.accidents.recovered import (
    check_idempotence,
    lose_twice,
)
from tests.segments.kafka.accidents.watched_host import WatchedHost, keep_metadata_indexes_small
from tests.segments.kafka.accidents.workload import Workload

ASKED = int(os.environ.get("LOGSTORE_DOUBLE_LOSSES", "0"))
FIRST_SEED = int(os.environ.get("LOGSTORE_DOUBLE_LOSSES_FROM", "0"))
DOUBLE_LOSSES = ASKED or 160
#: each part of a test lives the whole life, and looks at every so manieth point of it
PARTS = 8

pytestmark = pytest.mark.timeout(0 if ASKED else 120)


@pytest.fixture(autouse=True)
def small_metadata_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is preallocated is small."""
    keep_metadata_indexes_small(monkeypatch)


def losses_at(number: int) -> list[PowerLoss]:
    """Return how the power goes at a point: by chance, or each corner in turn; all if asked."""
    dice = [PowerLoss.random(2 * number), PowerLoss.random(2 * number + 1)]
    if ASKED:
        return [*CORNERS, *dice]
    return [dice[0] if number % 2 else CORNERS[number // 2 % len(CORNERS)]]


@pytest.mark.parametrize("part", range(PARTS))
def test_every_power_loss_keeps_what_was_flushed(part: int) -> None:
    """
    At every point of the life: no flushed record lost, none served that was not appended.

    Nor one under read_committed that is aborted or open; acknowledged topics, ids and settings are
    there, deleted ones are not, and a second recovery changes nothing.
    """
    number = 0

    def visit(host: SimulatedHost) -> None:
        nonlocal number
        number += 1
        if number % PARTS != part:
            return
        for loss in losses_at(number):
            fork = host.fork()
            fork.power_loss(loss)
            try:
                check_idempotence(fork, workload.testimony)
            except Exception as error:
                error.add_note(f"power lost before operation {number}; {loss}")
                raise

    workload = Workload(WatchedHost(visit))
    workload.run()
    assert number > 500, "a life is longer"


@pytest.mark.parametrize("part", range(PARTS))
def test_a_second_loss_during_the_recovery_keeps_it_too(part: int) -> None:
    """Power goes during a recovery, or soon after it: the next one finds the same promises kept."""
    seeds = range(FIRST_SEED + part, FIRST_SEED + DOUBLE_LOSSES, PARTS)
    length = length_of_life()
    by_point: dict[int, list[int]] = {}
    for seed in seeds:
        by_point.setdefault(random.Random(~seed).randrange(length), []).append(seed)
    number = done = 0

    def visit(host: SimulatedHost) -> None:
        nonlocal number, done
        for seed in by_point.get(number, []):
            try:
                lose_twice(host.fork(), workload.testimony, seed)
            except Exception as error:
                error.add_note(f"seed {seed}: power lost before operation {number}, and again")
                raise
            done += 1
        number += 1

    workload = Workload(WatchedHost(visit))
    workload.run()
    assert done == len(seeds)


def length_of_life() -> int:
    """Return how many operations the life has."""
    host = WatchedHost(lambda _: None)
    Workload(host).run()
    return host.fs.operation_count
