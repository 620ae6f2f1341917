"""The drivers that let every operation of a workload be the last one, or the one that fails."""

from __future__ import annotations

import errno

import pytest

from logstore.host import read_file, write_file
from logstore.testing import (
    CORNERS,
    KEEP_EVERYTHING,
    LOSE_UNSYNCED,
    PowerLost,
    SimulatedHost,
    every_failure,
    every_power_loss,
)


def workload(host: SimulatedHost) -> None:
    """Append ten bytes one by one, each synced and noted, to a file whose name is durable."""
    file = host.fs.open("/log", create=True)
    host.fs.sync_directory("/")
    for number in range(10):
        file.write(number, b"x")
        file.sync()
        host.fs.journal.note("synced", number)


def test_there_is_a_point_before_and_after_every_operation() -> None:
    """22 operations have 23 places around them, and each loss happens at each of them."""
    points = list(every_power_loss(workload))
    assert [point.operation_count for point in points] == [
        count for count in range(23) for _ in range(len(CORNERS) + 2)
    ]
    assert [point.is_last for point in points] == [point.operation_count == 22 for point in points]
    assert len({point.loss for point in points}) == len(CORNERS) + 2 * 23


def test_every_loss_hits_a_world_of_its_own() -> None:
    """At one point the losses differ in what they leave; none sees what another one lost."""
    sizes: dict[object, int] = {}
    for point in every_power_loss(workload):
        assert len(point.host.fs.journal.matching("power_loss")) == 1
        if point.operation_count == 3:  # created, name synced, one byte written
            assert str(point.last) == "2: write /log [0, 1)"
            sizes[point.loss] = point.host.fs.open("/log").size()
    assert [sizes[loss] for loss in CORNERS] == [0, 1, 0, 1, 1, 0]


def test_what_was_promised_is_there_at_every_point() -> None:
    """The honest workload keeps its promises, whatever is lost."""
    promised: list[int] = []
    for point in every_power_loss(workload):
        promised = point.host.fs.journal.notes("synced", int)
        if promised:
            assert len(read_file(point.host.fs, "/log")) > promised[-1], point
    assert promised == list(range(10))


def test_a_promise_without_a_sync_is_found() -> None:
    """A workload that promises too early is caught, at the first point where it did."""

    def hasty(host: SimulatedHost) -> None:
        file = host.fs.open("/log", create=True)
        file.sync()
        host.fs.journal.note("created")
        host.fs.sync_directory("/")

    caught = [
        point
        for point in every_power_loss(hasty, losses=[LOSE_UNSYNCED], random_losses=0)
        if point.host.fs.journal.notes("created") and not point.host.fs.exists("/log")
    ]
    assert [point.operation_count for point in caught] == [2]
    assert "after 2 operations, last 1: sync /log" in str(caught[0])


def test_the_power_is_off_for_everyone() -> None:
    """Cleaning up and swallowing errors does nothing any more once the power is off."""

    def stubborn(host: SimulatedHost) -> None:
        file = host.fs.open("/log", create=True)
        try:
            file.write(0, b"x")
            file.sync()
        except Exception:  # noqa: BLE001 - what PowerLost must not be caught by
            host.fs.journal.note("caught")
        finally:
            host.fs.remove("/log")

    for point in every_power_loss(stubborn, losses=[KEEP_EVERYTHING], random_losses=0):
        assert point.host.fs.exists("/log") == (1 <= point.operation_count <= 3), point
        assert point.host.fs.journal.notes("caught") == []


def test_while_the_power_is_off_nothing_answers() -> None:
    """Looking is as impossible as writing until power_loss brings the machine back."""
    host = SimulatedHost()
    host.fs.open("/log", create=True)
    host.fs.cut_power_after(0)
    with pytest.raises(PowerLost):
        host.fs.open("/log").sync()
    for look in (
        lambda: host.fs.exists("/log"),
        lambda: host.fs.open("/log"),
        lambda: host.fs.list_directory("/"),
        lambda: host.fs.modified_ms("/log"),
    ):
        with pytest.raises(PowerLost):
            look()
    host.power_loss(KEEP_EVERYTHING)
    host.fs.open("/log").sync()


def test_a_workload_that_swallows_the_power_loss_is_found() -> None:
    """Catching PowerLost and going on is a mistake of the workload."""

    def immortal(host: SimulatedHost) -> None:
        try:
            host.fs.open("/log", create=True)
        except PowerLost:
            host.fs.journal.note("caught")

    with pytest.raises(AssertionError, match="caught PowerLost"):
        list(every_power_loss(immortal))


def test_points_nest() -> None:
    """A recovery can lose power as well: its points start from the outer point's host."""

    def recover(host: SimulatedHost) -> None:
        if not host.fs.exists("/log"):
            host.fs.open("/log", create=True)
        file = host.fs.open("/log")
        file.truncate(file.size() // 2 * 2)
        file.sync()
        host.fs.sync_directory("/")

    count = 0
    for point in every_power_loss(workload, random_losses=1):
        promised = len(point.host.fs.journal.notes("synced", int))
        for second in every_power_loss(recover, make_host=point.host.fork, random_losses=1):
            recover(second.host)
            assert second.host.fs.open("/log").size() >= promised // 2 * 2
            count += 1
    assert count > 23 * 7 * 3 * 7


def test_every_single_failure_happens() -> None:
    """Each of the ten syncs fails once, then the workload passes and the driver ends."""
    points = list(every_failure(workload, "sync", errno.EIO))
    assert [point.operation_number for point in points] == list(range(1, 11))
    for point in points:
        assert isinstance(point.error, OSError)
        assert len(point.host.fs.journal.notes("synced")) == point.operation_number - 1
        assert not point.host.fs.faults.planned


def test_a_workload_that_copes_is_told_from_one_that_does_not() -> None:
    """Transient failures are survived by trying twice, persistent ones are not."""

    def patient(host: SimulatedHost) -> None:
        try:
            write_file(host.fs, "/checkpoint", b"data")
        except OSError:
            write_file(host.fs, "/checkpoint", b"data")

    transient = list(every_failure(patient, "write", errno.ENOSPC, partial_bytes=2))
    assert [point.error for point in transient] == [None]
    assert read_file(transient[0].host.fs, "/checkpoint") == b"data"
    persistent = list(every_failure(patient, "write", errno.ENOSPC, is_persistent=True))
    assert [type(point.error) for point in persistent] == [OSError]


def test_a_workload_that_fails_on_its_own_is_found() -> None:
    """A workload that raises without any planned failure is a mistake of the test."""

    def broken(host: SimulatedHost) -> None:
        host.fs.open("/missing")

    with pytest.raises(AssertionError, match="fails on its own"):
        list(every_failure(broken, "sync", errno.EIO))
