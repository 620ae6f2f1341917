"""
Which of many sockets are ready, and when: by ``epoll``, or by the event loop where there is none.

Linux alone has ``epoll``. Elsewhere the loop, which knows the system's own way, tells of each
socket; what it has told is gathered until somebody asks.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio

#: epoll's events have the same numbers
IN, OUT = select.POLLIN, select.POLLOUT
GONE = select.POLLERR | select.POLLHUP

#: how soon it is noticed without ``epoll`` that somebody is gone of whom nothing is waited for
_LOOK_SECONDS = 0.1

#: takes how many seconds to wait and how many to name; returns descriptors and their events
Poll = Callable[[float, int], list[tuple[int, int]]]


class Readiness(Protocol):
    """Sockets, each with the events that are waited for."""

    @property
    def poll(self) -> Poll:
        """What tells who is ready now."""
        ...

    def register(self, descriptor: int, events: int) -> None:
        """Wait for events of a socket from now on."""
        ...

    def modify(self, descriptor: int, events: int) -> None:
        """Wait for other events of it."""
        ...

    def unregister(self, descriptor: int) -> None:
        """Wait for nothing of it any more."""
        ...

    def mute(self) -> None:
        """Call nobody any more; who asks is still told."""
        ...

    def close(self) -> None:
        """Give back what the system lent."""
        ...


def readiness(loop: asyncio.AbstractEventLoop, on_ready: Callable[[], None]) -> Readiness:
    """Return the best that this system has; `on_ready` is called in the loop while some are."""
    if hasattr(select, "epoll"):
        return EpollReadiness(loop, on_ready)
    return LoopReadiness(loop, on_ready)


class EpollReadiness:
    """Implements :class:`Readiness` by one ``epoll``, which is all that the loop watches."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_ready: Callable[[], None]) -> None:
        self._epoll = select.epoll()
        self._loop = loop
        #: the system's own: it is asked before every turn
        self.poll: Poll = self._epoll.poll
        loop.add_reader(self._epoll.fileno(), on_ready)

    def register(self, descriptor: int, events: int) -> None:
        """Wait for events of a socket from now on."""
        self._epoll.register(descriptor, events)

    def modify(self, descriptor: int, events: int) -> None:
        """Wait for other events of it."""
        self._epoll.modify(descriptor, events)

    def unregister(self, descriptor: int) -> None:
        """Wait for nothing of it any more."""
        self._epoll.unregister(descriptor)

    def mute(self) -> None:
        """Call nobody any more; who asks is still told."""
        self._loop.remove_reader(self._epoll.fileno())

    def close(self) -> None:
        """Give back what the system lent."""
        self.mute()
        self._epoll.close()


class LoopReadiness:
    """Implements :class:`Readiness` by what the loop tells of each socket, again and again."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_ready: Callable[[], None]) -> None:
        self._loop = loop
        self._on_ready = on_ready
        self._watched: dict[int, int] = {}
        #: what was told since it was last asked for
        self._ready: dict[int, int] = {}
        #: of whom nothing is waited for but that they go, which the loop cannot tell
        self._unheard: set[int] = set()
        self._is_muted = self._is_call_due = self._is_look_due = False

    @property
    def poll(self) -> Poll:
        """What tells who is ready, as far as the loop has told by now."""
        return self._poll

    def register(self, descriptor: int, events: int) -> None:
        """Wait for events of a socket from now on."""
        self._watched[descriptor] = 0
        self.modify(descriptor, events)

    def modify(self, descriptor: int, events: int) -> None:
        """Wait for other events of it."""
        before, self._watched[descriptor] = self._watched[descriptor], events
        began, ended = events & ~before, before & ~events
        if began & IN:
            self._loop.add_reader(descriptor, self._note, descriptor, IN)
        if began & OUT:
            self._loop.add_writer(descriptor, self._note, descriptor, OUT)
        if ended & IN:
            self._loop.remove_reader(descriptor)
        if ended & OUT:
            self._loop.remove_writer(descriptor)
        if self._ready.get(descriptor, 0) & ~events:
            del self._ready[descriptor]  # what of it still holds is told again
        if events:
            self._unheard.discard(descriptor)
        else:
            self._unheard.add(descriptor)
            self._look_later()

    def unregister(self, descriptor: int) -> None:
        """Wait for nothing of it any more."""
        self.modify(descriptor, 0)
        self._unheard.discard(descriptor)
        del self._watched[descriptor]

    def mute(self) -> None:
        """Call nobody any more; who asks is still told."""
        self._is_muted = True

    def close(self) -> None:
        """Forget all sockets."""
        self.mute()
        for descriptor in list(self._watched):
            self.unregister(descriptor)

    def _note(self, descriptor: int, event: int) -> None:
        self._ready[descriptor] = self._ready.get(descriptor, 0) | event
        self._call_soon()

    def _call_soon(self) -> None:
        if not (self._is_call_due or self._is_muted):
            self._is_call_due = True
            self._loop.call_soon(self._call)

    def _call(self) -> None:
        self._is_call_due = False
        if self._ready and not self._is_muted:
            self._on_ready()

    def _look_later(self) -> None:
        if not (self._is_look_due or self._is_muted):
            self._is_look_due = True
            self._loop.call_later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        """Look who is gone of those of whom nothing is waited for."""
        self._is_look_due = False
        asked = select.poll()
        for descriptor in self._unheard:
            asked.register(descriptor, 0)
        for descriptor, events in asked.poll(0):
            self._note(descriptor, events)
        if self._unheard:
            self._look_later()

    def _poll(self, timeout_seconds: float, count_max: int) -> list[tuple[int, int]]:
        """Return whom the loop has told of; only the loop itself can wait for more."""
        del timeout_seconds
        asked = select.poll()
        for descriptor, events in list(self._ready.items())[:count_max]:
            del self._ready[descriptor]
            asked.register(descriptor, events & (IN | OUT))
        if self._ready:
            self._call_soon()
        return asked.poll(0)  # the loop does not tell who is gone from who has sent something
