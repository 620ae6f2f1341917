"""A disk that refuses while the commit log goes on in its next file costs no message its place."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

import pytest

from logstore.errors import WriteFailedError
from logstore.segments.rocketmq.log.commit_log import CommitLog, CommitLogSettings
from logstore.testing import KEEP_EVERYTHING, LOSE_UNSYNCED, PowerLoss, SimulatedHost
from logstore.testing.disk_faults import FaultKind
from tests.segments.rocketmq.small_commit_log import DIRECTORY, SIZE, append, opened

KINDS: list[FaultKind] = ["write", "open", "truncate", "sync_directory", "sync"]


def _faults() -> Iterator[tuple[FaultKind, int, int]]:
    """Yield (kind, how many of it go well before, how many fail)."""
    for kind in KINDS:
        for after in range(5):
            for count in (1, 3):
                yield kind, after, count


def _append(log: CommitLog, number: int) -> int | None:
    """Return where a message was put, None if it was refused."""
    try:
        return append(log, body=b"%03d" % number * 230)
    except WriteFailedError:
        return None


@pytest.mark.parametrize("loss", [KEEP_EVERYTHING, LOSE_UNSYNCED], ids=["killed", "unsynced"])
@pytest.mark.parametrize("has_pool", [False, True])
@pytest.mark.parametrize(("kind", "after", "count"), list(_faults()))
def test_what_was_put_stands_where_it_was_said_to(
    kind: FaultKind, after: int, count: int, loss: PowerLoss, *, has_pool: bool
) -> None:
    """Whatever the disk refuses on the way, before and after the next start."""
    settings = CommitLogSettings(file_size_bytes=SIZE, has_transient_store_pool=has_pool)
    host = SimulatedHost()
    log = opened(host, settings)
    places: dict[int, int] = {}
    for number in range(30):
        if number == 3:
            host.fs.faults.fail_next(kind, errno.ENOSPC, after=after, count=count)
        place = _append(log, number)
        if place is not None:
            places[place] = number
        if number % 4 == 1:
            with contextlib.suppress(WriteFailedError):
                log.commit()
    host.fs.faults.clear()
    if log.refusal is None:  # else a sync has failed, and the log wants to be opened anew
        log.flush()
        log.commit()
        log.flush()
    safe = log.flushed_where
    _check(log, {place: one for place, one in places.items() if place < log.committed_where})
    host.power_loss(loss)
    _check(opened(host, settings), {place: one for place, one in places.items() if place < safe})
    sizes = {entry.size_bytes for entry in host.fs.list_directory(DIRECTORY)}
    assert sizes == {SIZE}


def _check(log: CommitLog, places: dict[int, int]) -> None:
    for place, number in places.items():
        assert b"%03d" % number * 230 in log.read(place, 1000), f"{number} at {place}"
