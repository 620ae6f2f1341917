"""Time that a test turns by hand, and the host that it belongs to."""

from __future__ import annotations

import subprocess
import sys

import pytest

from logstore.host import Clock, Host
from logstore.testing import ManualClock, RunningClock, SimulatedHost


def test_time_stands_still() -> None:
    """Looking at the clock does not move it; advance moves both clocks alike."""
    clock: Clock = ManualClock(1_000_000, 50)
    assert (clock.wall_ms(), clock.monotonic_ms()) == (1_000_000, 50)
    assert isinstance(clock, ManualClock)
    clock.advance(0.25)
    clock.advance(0.75)
    assert (clock.wall_ms(), clock.monotonic_ms()) == (1_000_001, 51)


def test_the_wall_clock_jumps_alone() -> None:
    """jump_wall goes either way and leaves the monotonic clock as it is."""
    clock = ManualClock(1_000_000, 50)
    clock.jump_wall(-400_000)
    assert (clock.wall_ms(), clock.monotonic_ms()) == (600_000, 50)


def test_whoever_sleeps_is_told_of_a_push() -> None:
    """Once a push, when both clocks show the new time."""
    clock = ManualClock(1_000, 0)
    seen: list[tuple[int, float]] = []
    clock.on_push = lambda: seen.append((clock.wall_ms(), clock.monotonic_ms()))
    clock.advance(500)
    clock.jump_wall(-1_000)
    assert seen == [(1_500, 500), (500, 500)]


def test_a_clock_that_runs_and_is_pushed() -> None:
    """Between two pushes it runs as the other one does."""
    below = ManualClock(1_000, 10)
    clock = RunningClock(below)
    below.advance(5)
    assert (clock.wall_ms(), clock.monotonic_ms()) == (1_005, 15)
    clock.advance(100)
    clock.jump_wall(-1_000)
    below.advance(5)
    assert (clock.wall_ms(), clock.monotonic_ms()) == (110, 120)
    twin = clock.copy()
    twin.advance(1)
    assert (twin.wall_ms(), clock.wall_ms()) == (111, 110)
    assert RunningClock().wall_ms() > 1_700_000_000_000


def test_time_does_not_run_backwards() -> None:
    """A negative advance is a mistake of the test."""
    with pytest.raises(AssertionError, match="backwards"):
        ManualClock().advance(-1)


def test_files_bear_the_time_of_the_host() -> None:
    """modified_ms is the wall clock at the last write or cut, not at a read or a sync."""
    host: Host = SimulatedHost(clock=ManualClock(1_000))
    assert isinstance(host, SimulatedHost)
    file = host.fs.open("/a", create=True)
    seen = [host.fs.modified_ms("/a")]
    for call in (lambda: file.write(0, b"x"), lambda: file.truncate(9), lambda: file.read(0, 1)):
        host.clock.advance(10)
        call()
        seen.append(host.fs.modified_ms("/a"))
    assert seen == [1_000, 1_010, 1_020, 1_020]


def test_the_seed_is_the_chance() -> None:
    """Hosts of one seed throw the same dice, hosts of different seeds others."""
    assert SimulatedHost(7).rng.random() == SimulatedHost(7).rng.random()
    assert SimulatedHost(7).rng.random() != SimulatedHost(8).rng.random()


def test_no_test_framework_is_needed() -> None:
    """A server in a container may use the simulated host without pytest or Hypothesis."""
    code = "import sys, logstore.testing;print(sorted({'pytest', 'hypothesis'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
