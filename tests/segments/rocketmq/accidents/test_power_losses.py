"""A whole store across every single power loss of a short life, and across seeded double ones."""

from __future__ import annotations

import os
import random
from contextlib import suppress

import pytest

from logstore.testing import CORNERS, LOSE_UNSYNCED, PowerLoss, PowerLost, SimulatedHost
from tests.segments.rocketmq.accidents.watched_host import WatchedHost
from tests.segments.rocketmq.accidents.witnessed_store import (
    StoreTestimony,
    WitnessedStore,
    live,
)
from tests.segments.rocketmq.small_store import small_store

ASKED = int(os.environ.get("LOGSTORE_DOUBLE_LOSSES", "0"))
DOUBLE_LOSSES = ASKED or 160
#: each part of a test lives the whole life, and looks at every so manieth point of it
PARTS = 4

pytestmark = pytest.mark.timeout(0 if ASKED else 240)


def losses_at(number: int) -> list[PowerLoss]:
    """Return how the power goes at a point; over the points every corner has its turn."""
    dice = [PowerLoss.random(2 * number), PowerLoss.random(2 * number + 1)]
    return [*CORNERS, *dice] if ASKED else [CORNERS[number % len(CORNERS)], dice[0]]


def check_going_on(host: SimulatedHost, testimony: StoreTestimony) -> None:
    """Recover; all promises are kept. Go on; they are kept again after another loss."""
    own = testimony.copy()
    store = small_store(host)
    own.check(store)
    end = store.commit_log.wrote_where
    own.puts = [put for put in own.puts if put.next_physical_offset <= end]
    own.durable = min(own.durable, end)
    store.abandon()
    again = WitnessedStore(host, own)
    own.check(again.store)
    assert again.store.commit_log.wrote_where == end, "a second recovery finds the same end"
    again.number = 500_000
    again.put(3)
    again.flush()
    host.power_loss(LOSE_UNSYNCED)
    last = small_store(host)
    own.check(last)
    last.close()


@pytest.mark.parametrize("part", range(PARTS))
def test_every_power_loss_keeps_what_was_flushed(part: int) -> None:
    """
    At every point of the life: no durable message lost, none served that was not put.

    Every message that stands in the log stands in its queue, at the queue offset that its producer
    was told; a second recovery finds the same, and what is put then outlives the next loss.
    """
    number = 0
    testimony = StoreTestimony()

    def visit(host: SimulatedHost) -> None:
        nonlocal number
        number += 1
        if number % PARTS != part:
            return
        for loss in losses_at(number):
            fork = host.fork()
            fork.power_loss(loss)
            try:
                check_going_on(fork, testimony)
            except Exception as error:
                error.add_note(f"power lost before change {number}; {loss}")
                raise

    live(WatchedHost(visit), testimony)
    assert number > 150, "a life is longer"


@pytest.mark.parametrize("part", range(PARTS))
def test_a_second_loss_during_the_recovery_keeps_it_too(part: int) -> None:
    """Power goes again while a store recovers: the next recovery finds the same promises kept."""
    length = 0

    def count(host: SimulatedHost) -> None:
        nonlocal length
        length += 1

    live(WatchedHost(count), StoreTestimony())
    by_point: dict[int, list[int]] = {}
    for seed in range(part, DOUBLE_LOSSES, PARTS):
        by_point.setdefault(random.Random(~seed).randrange(length), []).append(seed)
    number = done = 0
    testimony = StoreTestimony()

    def visit(host: SimulatedHost) -> None:
        nonlocal number, done
        for seed in by_point.get(number, []):
            try:
                lose_twice(host.fork(), testimony, seed)
            except Exception as error:
                error.add_note(f"seed {seed}: power lost before change {number}, and again")
                raise
            done += 1
        number += 1

    live(WatchedHost(visit), testimony)
    assert done == len(range(part, DOUBLE_LOSSES, PARTS))


def lose_twice(host: SimulatedHost, testimony: StoreTestimony, seed: int) -> None:
    """Lose power, lose it again somewhere in the recovery, and recover."""
    host.power_loss(PowerLoss.random(seed))
    sizing = host.fork()
    before = sizing.fs.operation_count
    small_store(sizing).abandon()
    host.fs.cut_power_after(random.Random(seed).randrange(sizing.fs.operation_count - before))
    with suppress(PowerLost):
        small_store(host).abandon()
    host.power_loss(PowerLoss.random(seed + 1_000_000))
    check_going_on(host, testimony)
