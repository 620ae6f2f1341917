"""
The listening sockets of a server.

libuv takes one new connection a turn of its loop, and a turn of a busy loop serves everybody who
is there already: of some hundred clients that come at once, the last would wait for seconds. Here
all that wait in the backlog are taken in one go.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import weakref
from collections.abc import Callable
from typing import Any

from logstore.compat.connection import HeldBackError, TurnedAwayError

_log = logging.getLogger(__name__)

_BACKLOG = 1024
#: what the system may be out of for a while; others who are connected are served on
_SHORTAGES = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
_SHORTAGE_SECONDS = 1.0

#: every socket that listens in this process
_listening_here: weakref.WeakSet[socket.socket] = weakref.WeakSet()

#: host and port, and with IPv6 two numbers more
Address = tuple[Any, ...]
Connect = Callable[[socket.socket, Address], None]


class Listener:
    """
    Accepts connections on every address of one host name; `connect` gets each, not blocking.

    It may raise HeldBackError or TurnedAwayError, and is asked again after the first.
    """

    def __init__(self, sockets: list[socket.socket], connect: Connect) -> None:
        self._sockets = sockets
        self._addresses = [(one.family, one.getsockname()) for one in sockets]
        self._connect = connect
        #: who is there and neither let in yet nor hung up on
        self._held: set[socket.socket] = set()
        #: what clients connect to
        self.port: int = sockets[0].getsockname()[1]
        self._loop = asyncio.get_running_loop()
        self._watch()

    def _watch(self) -> None:
        for one in self._sockets:
            self._loop.add_reader(one.fileno(), self._accept, one)

    @classmethod
    async def open(cls, host: str, port: int, connect: Connect) -> Listener:
        """
        Listen; `port` 0 lets the system choose one, the same for every address.

        Raises:
            OSError: an address cannot be had.

        """
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        sockets: list[socket.socket] = []
        try:
            for family, address in dict.fromkeys((info[0], info[4]) for info in found):
                chosen = port or (sockets[0].getsockname()[1] if sockets else 0)
                sockets.append(_listening(family, (address[0], chosen)))
        except OSError:
            for one in sockets:
                one.close()
            raise
        return cls(sockets, connect)

    def _accept(self, listening: socket.socket) -> None:
        """Take everybody who waits."""
        for _ in range(_BACKLOG):
            try:
                peer, address = listening.accept()
            except (BlockingIOError, ConnectionAbortedError, InterruptedError):
                return
            except OSError as error:
                if error.errno not in _SHORTAGES:
                    raise
                _log.error("cannot accept a connection: %s; trying again soon", error)
                self._loop.remove_reader(listening.fileno())
                self._loop.call_later(_SHORTAGE_SECONDS, self._resume, listening)
                return
            peer.setblocking(False)
            if not self._let_in(listening, peer, address):
                return

    def _let_in(self, listening: socket.socket, peer: socket.socket, address: Address) -> bool:
        """Hand somebody over, or turn him away; False if he has to wait, and all behind him."""
        try:
            self._connect(peer, address)
        except HeldBackError as held:
            self._held.add(peer)
            self._loop.remove_reader(listening.fileno())
            self._loop.call_later(
                held.delay_ms / 1000, self._let_in_later, listening, peer, address
            )
            return False
        except TurnedAwayError as refusal:
            _log.info("hanging up on somebody who connects: %s", refusal)
            self._held.add(peer)
            self._loop.call_later(refusal.delay_ms / 1000, self._turn_away, peer)
        return True

    def _let_in_later(
        self, listening: socket.socket, peer: socket.socket, address: Address
    ) -> None:
        if peer in self._held:
            self._held.discard(peer)
            if self._let_in(listening, peer, address):
                self._resume(listening)

    def _turn_away(self, peer: socket.socket) -> None:
        self._held.discard(peer)
        peer.close()

    def _resume(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            self._loop.add_reader(listening.fileno(), self._accept, listening)

    def reopen(self) -> None:
        """
        Listen on the same addresses again.

        Raises:
            OSError: one is not to be had any more.

        """
        if self._sockets:
            return
        sockets: list[socket.socket] = []
        try:
            for family, address in self._addresses:
                sockets.append(_listening(family, address[:2]))
        except OSError:
            for one in sockets:
                one.close()
            raise
        self._sockets = sockets
        self._watch()

    def close(self) -> None:
        """Accept nobody any more."""
        while self._held:
            self._held.pop().close()
        sockets, self._sockets = self._sockets, []
        for one in sockets:
            self._loop.remove_reader(one.fileno())
            one.close()


def _listening(family: int, address: Address) -> socket.socket:
    found = socket.create_server((address[0], address[1]), family=family, backlog=_BACKLOG)
    found.setblocking(False)
    _listening_here.add(found)
    return found


def _let_go() -> None:
    """
    Listen no more in a process that was forked, and serves nobody.

    As long as it had the sockets the address would be taken, and clients wait in a backlog that
    nobody looks at. They are replaced, not closed: whoever has them may yet close their numbers.
    """
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for one in list(_listening_here):
        if one.fileno() >= 0:
            os.dup2(nothing, one.fileno(), inheritable=False)
    os.close(nothing)


os.register_at_fork(after_in_child=_let_go)
