"""The messages of one tick, one after the other: there may be millions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from logstore.segments.rocketmq.timer.timer_steps import DequeueStep, TimerDelivery

__all__ = ["Deliveries"]


class Deliveries:
    """
    Goes through a step, oldest unit first; unlike a generator's, its place outlasts an error.

    `delivery_at` reads what a unit of a step says is to be put, if it is anything.
    """

    def __init__(
        self, step: DequeueStep, delivery_at: Callable[[DequeueStep, int], TimerDelivery | None]
    ) -> None:
        self._step = step
        #: newest first
        self._left = step.timer_offsets[:]
        self._delivery_at = delivery_at

    def __iter__(self) -> Self:
        """Return itself."""
        return self

    def __next__(self) -> TimerDelivery:
        """Return the next one. Raises OSError if it cannot be read; it is the next one again."""
        while self._left:
            delivery = self._delivery_at(self._step, self._left[-1])
            self._left.pop()
            if delivery is not None:
                return delivery
        raise StopIteration
