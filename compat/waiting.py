"""
Waiting as a value: answers that come later, and timers that a test can turn by hand.

Nothing here sleeps. A handler that cannot answer yet returns a :class:`Later`; whoever learns of
the awaited event calls :meth:`Later.answer`. Deadlines stand in :class:`Timers`, which the server
(or a test with a manual clock) runs.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Generic, TypeVar

from logstore.host import Clock

AnswerT = TypeVar("AnswerT")
ChangedT = TypeVar("ChangedT")
_HEAP_SIZE_MIN = 1000


class Later(Generic[AnswerT]):
    """
    One answer that is not known yet. The first answer counts; later ones are ignored.

    If finding the answer went wrong, :meth:`fail` says so instead.
    """

    __slots__ = ("_answer", "_failure", "_listener", "_on_failure", "done")

    def __init__(self) -> None:
        self.done = False
        self._answer: AnswerT | None = None
        self._failure: Exception | None = None
        self._listener: Callable[[AnswerT], None] | None = None
        self._on_failure: Callable[[Exception], None] | None = None

    def answer(self, answer: AnswerT) -> None:
        """Say what the answer is; whoever waits is told at once."""
        if self.done:
            return
        self.done = True
        if self._listener is None:
            self._answer = answer
        else:
            self._listener(answer)

    def fail(self, error: Exception) -> None:
        """Say that there will be no answer, and why; without a listener for that, raise it."""
        if self.done:
            return
        self.done = True
        self._failure = error
        if self._listener is not None:
            self._tell_failure(error)

    def then(
        self,
        listener: Callable[[AnswerT], None],
        on_failure: Callable[[Exception], None] | None = None,
    ) -> None:
        """Call `listener` with the answer, or `on_failure`; now if it is known already."""
        assert self._listener is None, "an answer has one listener"
        self._listener, self._on_failure = listener, on_failure
        if self._failure is not None:
            self._tell_failure(self._failure)
        elif self.done:
            assert self._answer is not None, "an answer is never None"
            listener(self._answer)

    def changed(self, change: Callable[[AnswerT], ChangedT]) -> Later[ChangedT]:
        """Return another one, whose answer is what `change` makes of this one's."""
        found: Later[ChangedT] = Later()

        def answered(answer: AnswerT) -> None:
            try:
                other = change(answer)
            except Exception as error:  # noqa: BLE001 - told to whoever waits, not to who answers
                found.fail(error)
            else:
                found.answer(other)

        self.then(answered, found.fail)
        return found

    def _tell_failure(self, error: Exception) -> None:
        if self._on_failure is None:
            raise error
        self._on_failure(error)


class Timer:
    """One pending call. Cancelling is cheap and idempotent."""

    __slots__ = ("_call", "due_ms")

    def __init__(self, due_ms: float, call: Callable[[], None]) -> None:
        self.due_ms = due_ms
        self._call: Callable[[], None] | None = call

    @property
    def is_pending(self) -> bool:
        """Tell whether the call is still to come."""
        return self._call is not None

    def cancel(self) -> None:
        """Forget the call."""
        self._call = None

    def fire(self) -> None:
        """Make the call unless it was cancelled or made before."""
        call, self._call = self._call, None
        if call is not None:
            call()


class Timers:
    """
    Pending calls by due time, on the host's monotonic clock.

    `on_earlier` is called when a new timer becomes the next one due, so that a server that sleeps
    until the old one can shorten its sleep. Cancelled calls are cleared away in time.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.on_earlier: Callable[[float], None] | None = None
        #: set by a server: makes a call as soon as what is under way is done
        self.on_soon: Callable[[Callable[[], None]], object] | None = None
        self._heap: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._size_max = _HEAP_SIZE_MIN

    def __len__(self) -> int:
        """Return how many calls are kept; some may be cancelled."""
        return len(self._heap)

    def after(self, delay_ms: float, call: Callable[[], None]) -> Timer:
        """Call `call` once `delay_ms` from now have passed."""
        if len(self._heap) >= self._size_max:
            self._clear_away()
        timer = Timer(self.clock.monotonic_ms() + delay_ms, call)
        heapq.heappush(self._heap, (timer.due_ms, next(self._order), timer))
        if self._heap[0][2] is timer and self.on_earlier is not None:
            self.on_earlier(timer.due_ms)
        return timer

    def soon(self, call: Callable[[], None]) -> None:
        """Call `call` with no delay, but not from here; it costs a server less than a timer."""
        if self.on_soon is not None:
            self.on_soon(call)
        else:
            self.after(0, call)

    def _clear_away(self) -> None:
        """Drop cancelled calls: those of long polls that were answered early are many."""
        self._heap = [entry for entry in self._heap if entry[2].is_pending]
        heapq.heapify(self._heap)
        self._size_max = max(_HEAP_SIZE_MIN, 2 * len(self._heap))

    def next_due_ms(self) -> float | None:
        """Return when the next pending call is due, or None."""
        while self._heap and not self._heap[0][2].is_pending:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def catch_up(self) -> None:
        """Make the calls that are due after somebody pushed the clock, and let a server know."""
        self.run()
        if self.on_earlier is not None:
            self.on_earlier(0)

    def run(self) -> int:
        """Make every call that is due by now, in order; return how many were made."""
        now_ms = self.clock.monotonic_ms()
        made = 0
        while self._heap and self._heap[0][0] <= now_ms:
            timer = heapq.heappop(self._heap)[2]
            if timer.is_pending:
                timer.fire()
                made += 1
        return made
