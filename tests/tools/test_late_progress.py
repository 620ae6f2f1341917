"""A progress bar comes when work takes long, on a terminal, and never otherwise."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from logstore.testing import ManualClock
from logstore.tools.inspection.late_progress import LateProgress


def progress_on(clock: ManualClock, screen: io.StringIO, *, is_wanted: bool = True) -> LateProgress:
    """Return a bar over 100 that shows itself on `screen`."""
    return LateProgress(
        "reading",
        100,
        is_wanted=is_wanted,
        clock=lambda: clock.monotonic_ms() / 1000,
        make_console=lambda: Console(file=screen, force_terminal=True, width=80),
    )


def test_short_work_shows_nothing() -> None:
    """What takes less than a second leaves the terminal as it was."""
    clock, screen = ManualClock(), io.StringIO()
    with progress_on(clock, screen) as progress:
        for _ in range(10):
            progress.advance(10)
            clock.advance(90)
        assert not progress.is_shown
    assert screen.getvalue() == ""


def test_long_work_shows_how_far_it_is() -> None:
    """After a second the bar appears, with what was done before counted in."""
    clock, screen = ManualClock(), io.StringIO()
    with progress_on(clock, screen) as progress:
        progress.advance(40)
        clock.advance(1000)
        progress.advance(10)
        assert progress.is_shown
        progress.move_to(75)
    assert "reading" in screen.getvalue()
    assert "75%" in screen.getvalue()


def test_a_bar_that_would_be_in_the_way_stays_away() -> None:
    """Not wanted, or stderr no terminal: never shown however long it takes."""
    clock, screen = ManualClock(), io.StringIO()
    with progress_on(clock, screen, is_wanted=False) as progress:
        clock.advance(5000)
        progress.advance(1)
        assert not progress.is_shown
    assert screen.getvalue() == ""


def test_without_a_terminal_there_is_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe or a file gets no escape sequences."""
    clock = ManualClock()
    with LateProgress("reading", 10, clock=lambda: clock.monotonic_ms() / 1000) as progress:
        clock.advance(5000)
        progress.advance(1)
        assert not progress.is_shown
    assert capsys.readouterr().err == ""
