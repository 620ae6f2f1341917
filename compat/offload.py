"""Blocking work (an fsync) that may be done elsewhere, so that the loop goes on meanwhile."""

from __future__ import annotations

from collections.abc import Callable

#: does (work, done): blocking work somewhere, then `done` with what it raised, or None
Offload = Callable[[Callable[[], None], Callable[[BaseException | None], None]], None]


def run_at_once(work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
    """Do blocking work right here: the offload of a service that no server drives."""
    error: BaseException | None = None
    try:
        work()
    except Exception as failure:  # noqa: BLE001 - handed to `done`, whatever it is
        error = failure
    done(error)
