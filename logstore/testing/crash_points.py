"""
Every single power loss, and every single failure, of a workload.

::

    def workload(host: SimulatedHost) -> None:
        log = open_log(host)
        for number in range(20):
            log.append(entry(number))
            if number % 5 == 4:
                log.flush()
                host.fs.journal.note("flushed", number)

    for point in every_power_loss(workload):
        log = open_log(point.host)
        promised = point.host.fs.journal.notes("flushed", int)
        assert log.next_offset > max(promised, default=-1), point

The workload runs again and again, each time on a new host, and the power goes before its
operation n = 1, 2, 3, ... until a run passes through; there the power goes after the last
operation. At each point every loss asked for happens to a fork of the disk. A power loss *during*
an operation needs no run of its own: see :mod:`logstore.testing.simulated_disk`.

The points nest: give ``point.host.fork`` as `make_host` to lose power during the recovery as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs

from logstore.testing.disk_faults import FaultKind
from logstore.testing.disk_journal import Operation
from logstore.testing.power_loss import CORNERS, PowerLoss, PowerLost
from logstore.testing.simulated_host import SimulatedHost

Workload = Callable[[SimulatedHost], object]


@attrs.frozen
class CrashPoint:
    """A world after one power loss, and how it came to be."""

    host: SimulatedHost
    #: how many state-changing operations of the workload happened
    operation_count: int
    loss: PowerLoss
    #: the power went when nothing was left to do
    is_last: bool
    #: what was done last, None if nothing was
    last: Operation | None

    def __str__(self) -> str:
        return f"power lost after {self.operation_count} operations, last {self.last}; {self.loss}"


@attrs.frozen
class FailurePoint:
    """A world in which operation `operation_number` (from 1) of one kind failed."""

    host: SimulatedHost
    operation_number: int
    #: what the workload raised, None if it coped
    error: Exception | None


def every_power_loss(
    workload: Workload,
    *,
    make_host: Callable[[], SimulatedHost] = SimulatedHost,
    losses: Sequence[PowerLoss] = CORNERS,
    random_losses: int = 2,
) -> Iterator[CrashPoint]:
    """
    Yield the world after every power loss that can hit `workload`, and after its end.

    `random_losses` more losses per point roll dice, other ones at every point.
    """
    count = 0
    is_last = False
    while not is_last:
        host = make_host()
        is_last = passes_through(workload, host, count)
        done = [o for o in host.fs.journal if o.kind not in ("note", "open", "lock")]
        dice = (PowerLoss.random(count * random_losses + n) for n in range(random_losses))
        for loss in (*losses, *dice):
            fork = host.fork()
            fork.power_loss(loss)
            yield CrashPoint(fork, count, loss, is_last, done[-1] if done else None)
        count += 1


def passes_through(workload: Workload, host: SimulatedHost, count: int) -> bool:
    """Run `workload` with power for `count` operations; tell whether that was enough."""
    host.fs.cut_power_after(count)
    try:
        workload(host)
    except PowerLost:
        return False
    assert not host.fs.is_off, "the workload caught PowerLost and went on"
    return True


def every_failure(
    workload: Workload,
    kind: FaultKind,
    code: int,
    *,
    make_host: Callable[[], SimulatedHost] = SimulatedHost,
    path: str = "*",
    is_persistent: bool = False,
    partial_bytes: int = 0,
) -> Iterator[FailurePoint]:
    """
    Yield the world after each single failure of one kind of operation, until none is left to fail.

    `is_persistent`: from the n-th on all fail, as on a full disk; else only the n-th.
    """
    number = 0
    while True:
        host = make_host()
        number += 1
        host.fs.faults.fail_next(
            kind,
            code,
            path=path,
            after=number - 1,
            count=None if is_persistent else 1,
            partial_bytes=partial_bytes,
        )
        fault = host.fs.faults.planned[-1]
        error: Exception | None = None
        try:
            workload(host)
        except Exception as caught:  # noqa: BLE001 - what the workload makes of it is the result
            error = caught
        if not fault.has_struck:
            assert error is None, "the workload fails on its own"
            return
        host.fs.faults.clear()
        yield FailurePoint(host, number, error)
