"""Requests that take several steps, written as coroutines, with no event loop below them."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

from logstore.compat.waiting import Later

AnswerT = TypeVar("AnswerT")


class Step(Generic[AnswerT]):
    """What a coroutine waits for: ``answer = await Step(later)``."""

    __slots__ = ("later",)

    def __init__(self, later: Later[AnswerT]) -> None:
        self.later = later

    def __await__(self) -> Generator[Later[AnswerT], AnswerT, AnswerT]:
        return (yield self.later)


def begin(work: Coroutine[Later[Any], Any, AnswerT]) -> Later[AnswerT]:
    """Go through the steps of `work` as they are answered; return what it returns or raises."""
    outcome: Later[AnswerT] = Later()

    def go_on(answer: Any) -> None:
        take(lambda: work.send(answer))

    def fail(error: Exception) -> None:
        take(lambda: work.throw(error))

    def take(step: Any) -> None:
        try:
            awaited: Later[Any] = step()
        except StopIteration as end:
            outcome.answer(end.value)
        except Exception as error:  # noqa: BLE001 - whoever waits is told
            outcome.fail(error)
        else:
            awaited.then(go_on, fail)

    go_on(None)
    return outcome
