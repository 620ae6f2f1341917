"""All that is to go wrong with the requests to one broker."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from logstore.compat.faults.request_fault import RequestFault

ResultT = TypeVar("ResultT")


def _here(work: Callable[[], ResultT]) -> ResultT:
    return work()


class RequestFaults:
    """
    Plans faults, and finds the one that a request meets: the oldest that matches.

    Servers look at `planned` from their own thread. `run` makes a call there, which is how
    :meth:`release` and :meth:`clear` reach requests that are held.
    """

    def __init__(self) -> None:
        self.planned: tuple[RequestFault, ...] = ()
        self.run: Callable[[Callable[[], Any]], Any] = _here
        self._numbers = itertools.count(1)
        self._apis: set[str] = set()
        self._errors: set[str] = set()

    def know(self, apis: Iterable[str], errors: Iterable[str]) -> None:
        """Learn a protocol's words, so that a fault that can never strike is told at once."""
        self._apis |= set(apis)
        self._errors |= set(errors)

    @property
    def apis(self) -> list[str]:
        """What requests are called, of all protocols served."""
        return sorted(self._apis)

    @property
    def errors(self) -> list[str]:
        """What errors are called, of all protocols served."""
        return sorted(self._errors)

    # planning

    def fail(self, api: str, error: str, **how: Any) -> RequestFault:
        """
        Answer with `error`, by its name in the protocol, instead of serving.

        `how` are the other fields of a :class:`RequestFault`, here and below.

        Raises:
            ValueError: there is no such API or error, or the rest makes no sense.

        """
        return self.plan(RequestFault(action="fail", api=api, error=error, **how))

    def delay(self, api: str, delay_ms: float, **how: Any) -> RequestFault:
        """Serve so much later; with ``when="after"`` answer so much later."""
        return self.plan(RequestFault(action="delay", api=api, delay_ms=delay_ms, **how))

    def drop(self, api: str, **how: Any) -> RequestFault:
        """Hang up instead of serving; with ``when="after"`` instead of answering."""
        return self.plan(RequestFault(action="drop", api=api, **how))

    def hold(self, api: str, **how: Any) -> RequestFault:
        """Serve, or answer with ``when="after"``, once it is released: so others come first."""
        return self.plan(RequestFault(action="hold", api=api, **how))

    def plan(self, fault: RequestFault) -> RequestFault:
        """Let `fault` strike from now on."""
        self._refuse_unknown(fault)
        fault.number = next(self._numbers)
        self.planned = (*self.planned, fault)
        return fault

    def _refuse_unknown(self, fault: RequestFault) -> None:
        if not any(fnmatchcase(name, fault.api) for name in self._apis):
            raise ValueError(f"no request is called {fault.api!r}{_like(fault.api, self._apis)}")
        if fault.error and fault.error not in self._errors:
            near = _like(fault.error, self._errors)
            raise ValueError(f"no error is called {fault.error!r}{near}")

    # and its end

    def release(self, fault: RequestFault | None = None) -> None:
        """Let those go on that a fault holds, or any; it holds nobody from now on."""
        for one in self.planned if fault is None else (fault,):
            if one.action == "hold":
                self.cancel(one)

    def cancel(self, fault: RequestFault) -> None:
        """Let it strike no more; whoever it holds goes on."""
        self.planned = tuple(one for one in self.planned if one is not fault)

        def let_go() -> None:
            held, fault.held = fault.held, []
            for go_on in held:
                go_on()

        self.run(let_go)

    def clear(self) -> None:
        """Let everything go well from now on."""
        for fault in self.planned:
            self.cancel(fault)

    # striking

    def strike(
        self, api: str, client: str, topics: Callable[[], Collection[str]]
    ) -> RequestFault | None:
        """Return the fault that a request meets, if any."""
        for fault in self.planned:
            if fault.strikes(api, client, topics):
                return fault
        return None


def _like(word: str, known: Collection[str]) -> str:
    from difflib import get_close_matches  # only who errs needs it

    near = get_close_matches(word, known)
    return f"; did you mean {' or '.join(near)}?" if near else ""
