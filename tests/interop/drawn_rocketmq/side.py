"""One of the two: its broker and its name server, and all connections to them."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable, Mapping

from tests.compat.rocketmq.frames import Answer, answers, framed

#: What stands in place of an answer.
CLOSED, SILENT = "closed", "silent"
#: what a client answers when the broker asks it
Reply = Callable[[Answer], bytes]


class Line:
    """A connection: answers by their number, and what the other end asked by itself."""

    def __init__(self, address: str, replies: Mapping[int, bytes]) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), 10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.is_closed = False
        self.answers: dict[int, list[Answer]] = {}
        self.told: list[Answer] = []
        self._replies = replies
        self._received = b""
        self._opaque = 0

    def next_opaque(self) -> int:
        """Return the number of the next request."""
        self._opaque += 1
        return self._opaque

    def send(self, data: bytes) -> None:
        """Send bytes; nobody may listen any more."""
        try:
            self.socket.sendall(data)
        except OSError:
            self.is_closed = True

    def read(self) -> None:
        """Take in what has come."""
        try:
            piece = self.socket.recv(1 << 20)
        except OSError:
            piece = b""
        if not piece:
            self.is_closed = True
        self._received += piece
        while len(self._received) >= 4:
            (size,) = struct.unpack_from(">I", self._received)
            if len(self._received) < 4 + size:
                break
            frame, self._received = self._received[: 4 + size], self._received[4 + size :]
            (answer,) = answers(frame)
            if answer.flag & 1:
                self.answers.setdefault(answer.opaque, []).append(answer)
            else:
                self._take(answer)

    def _take(self, asked: Answer) -> None:
        self.told.append(asked)
        if not asked.flag & 2:
            body = self._replies.get(asked.code, b"")
            header = b'{"code":0,"flag":1,"language":"JAVA","opaque":%d,"version":513}'
            self.send(framed(header % asked.opaque, body))

    def take(self, opaque: int) -> Answer | str | None:
        """Return the answer of this number, CLOSED if none can come, None if it may yet."""
        found = self.answers.get(opaque)
        if found:
            return found.pop(0)
        return CLOSED if self.is_closed else None


class Side:
    """One name server with one broker."""

    def __init__(self, names: str, broker: str, replies: Mapping[int, bytes]) -> None:
        self._addresses = {"names": names, "broker": broker}
        self._lines: dict[str, Line] = {}
        self._replies = replies

    def line(self, name: str) -> Line:
        """Return the connection of that name: to the name server where it begins so."""
        found = self._lines.get(name)
        if found is None or found.is_closed:
            which = "names" if name.startswith("names") else "broker"
            found = self._lines[name] = Line(self._addresses[which], self._replies)
        return found

    def receive(self, name: str, opaque: int, seconds: float) -> Answer | str:
        """Return an answer, CLOSED or SILENT; all lines are attended to meanwhile."""
        deadline = time.monotonic() + seconds
        line = self._lines[name]
        while (found := line.take(opaque)) is None:
            left = deadline - time.monotonic()
            if left < 0:
                return SILENT
            self._attend(left)
        return found

    def attend(self) -> None:
        """Take in what has come by now on all lines."""
        while self._attend(0):
            pass

    def _attend(self, seconds: float) -> bool:
        sockets = {one.socket: one for one in self._lines.values() if not one.is_closed}
        ready, _, _ = select.select(list(sockets), [], [], seconds)
        for one in ready:
            sockets[one].read()
        return bool(ready)

    def hang_up(self, name: str) -> None:
        """Close a connection."""
        line = self._lines.pop(name, None)
        if line is not None:
            line.socket.close()

    def told(self) -> dict[str, list[Answer]]:
        """Return what has been asked of us on each line."""
        return {name: line.told for name, line in self._lines.items()}

    def close(self) -> None:
        """Hang up everywhere."""
        for name in list(self._lines):
            self.hang_up(name)
