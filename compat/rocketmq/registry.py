"""
Which request codes are served, and by which module: one table per service, read by everyone.

The handler of a code stands in a file of its own, ``code_NNN_name.py`` with the code's number (at
least three digits) and name, as ``handle`` or as ``handle_raw``, and is imported when somebody
asks for the first time. ::

    def handle(broker, channel, request) -> Response | Later[Response] | None
    def handle_raw(broker, channel, request) -> list[Chunk] | Later[list[Chunk]] | None

A raw handler writes whole frames by itself: what is asked often. None is no answer at all. Either
may raise :class:`~logstore.compat.rocketmq.refusals.RefusedError`. Answers to one-way requests
are dropped.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any

from logstore.compat.rocketmq.codes import RequestCode

#: (service, channel, request) -> Response, Later[Response] or None; raw: frames
AnyHandler = Callable[[Any, Any, Any], Any]


class Handler:
    """One code's entry in the table. One of `handle` and `handle_raw` is set once it is loaded."""

    __slots__ = ("code", "handle", "handle_raw", "module")

    def __init__(self, code: RequestCode, package: str) -> None:
        self.code = code
        self.module = f"{package}.code_{code:03}_{code.name.lower()}"
        self.handle: AnyHandler | None = None
        self.handle_raw: AnyHandler | None = None

    def load(self) -> None:
        """Import the code's file."""
        module = importlib.import_module(self.module)
        self.handle = getattr(module, "handle", None)
        self.handle_raw = getattr(module, "handle_raw", None)


Handlers = dict[int, Handler]


def handlers_of(package: str, codes: Iterable[RequestCode]) -> Handlers:
    """Return the table of a service whose handlers stand in `package`."""
    return {int(code): Handler(code, package) for code in codes}


#: what the broker serves
HANDLERS = handlers_of("logstore.compat.rocketmq.handlers", ())
