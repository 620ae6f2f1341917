"""Answers that one event gives to many requests go out with one write a connection."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Outbox:
    """
    Knows which connections have something new to send while somebody goes on answering.

    ::

        with broker.outbox.gathering():
            for later in flushed:
                later.answer(...)
    """

    def __init__(self) -> None:
        self._depth = 0
        self._due: dict[Callable[[], None], None] = {}

    @contextmanager
    def gathering(self) -> Generator[None]:
        """Hold back what is said until the end of the block; blocks may stand in each other."""
        self.hold()
        try:
            yield
        finally:
            self.release()

    def hold(self) -> None:
        """Begin to gather; each call needs its :meth:`release`."""
        self._depth += 1

    def release(self) -> None:
        """End what :meth:`hold` began; the outermost one sends."""
        self._depth -= 1
        if not self._depth and self._due:
            self.send_now()

    def send(self, on_output: Callable[[], None]) -> None:
        """Call `on_output` now, or once at the end of the outermost block."""
        if self._depth:
            self._due[on_output] = None
        else:
            on_output()

    def send_now(self) -> None:
        """Send what was gathered so far; a block that is open goes on."""
        while self._due:
            due, self._due = self._due, {}
            for on_output in due:
                on_output()
