"""
One socket and its connection: bytes in, chunks out, and reading only while more can be taken.

Chunks that the kernel does not take stay where they are, in the connection's output, until it asks
for more. Runs of files go by ``sendfile`` and never enter this process.
"""

from __future__ import annotations

import logging
import os
import socket
from typing import TYPE_CHECKING, cast

from logstore.compat.readiness import GONE, IN, OUT
from logstore.errors import LogStoreError
from logstore.segment import Extent

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from logstore.compat.connection import Chunk, Connection
    from logstore.compat.turns import Turns

_log = logging.getLogger(__name__)

#: the part of a file run without a descriptor that is read at a time; so much is joined at most
_CHUNK_BYTES = 256 * 1024
#: a run of a file up to which a copy is cheaper than a system call more
_SHORT_RUN_BYTES_MAX = 16 * 1024
#: who sends so much at a time keeps the others of a turn waiting: answers go out at once
_MUCH_BYTES = 16 * 1024


class Peer:
    """
    Somebody who is connected. It is served in the turns that its `turns` take.

    Implements :class:`logstore.compat.idle_peers.Peer`.
    """

    __slots__ = (
        "_connection",
        "_has_stirred",
        "_is_blocked",
        "_socket",
        "_turns",
        "_watched",
        "descriptor",
        "quiet_since_ms",
    )

    def __init__(
        self, plain: socket.socket, connection: Connection, turns: Turns, now_ms: float
    ) -> None:
        self._socket = plain
        self._connection = connection
        self._turns = turns
        #: -1 once the peer is gone; the number may soon be that of another file
        self.descriptor = plain.fileno()
        self.quiet_since_ms = now_ms
        self._has_stirred = False
        #: the kernel takes no more for now
        self._is_blocked = False
        #: what the kernel was asked to tell
        self._watched = IN
        connection.on_output = self._on_output

    @property
    def port(self) -> int:
        """The port of this side; 0 if the peer is gone."""
        try:
            port: int = self._socket.getsockname()[1]
        except OSError:
            return 0
        return port

    def ready(self, events: int) -> None:
        """Do what the socket is ready for; answers are left to the end of the turn."""
        connection = self._connection
        if events & OUT:
            self._is_blocked = False
            self._turns.answered.append(self)
            return  # what has come too is told once more
        if connection.is_waiting or connection.is_closing or self._is_blocked:
            if events & GONE:
                self.hang_up()
            else:
                self._watch(self._watched & ~IN)  # only who sends while it waits costs this call
            return
        try:
            count = self._socket.recv_into(connection.writable())
            if not count:
                self.hang_up()
                return
            self._has_stirred = True
            connection.received(count)
        except BlockingIOError:
            return
        except OSError as error:
            _log.info("a peer is gone: %s", error)
            self.hang_up()
            return
        except Exception:  # noqa: BLE001 - logged with its traceback; the others are served on
            _log.exception("hanging up on a peer")
            self.hang_up()
            return
        if connection.output or connection.is_closing:
            self._turns.answered.append(self)
        if count >= _MUCH_BYTES:
            self._turns.send()

    def answer(self) -> None:
        """Send what there is to be sent; then hang up, or see to it that more is read."""
        if self.descriptor < 0:
            return
        connection = self._connection
        while connection.output and not self._is_blocked:  # TLS has it in pieces
            self._send(connection.output)
            if self.descriptor < 0:
                return
        if connection.is_closing and not connection.output:
            self._hand_over()
        elif self._is_blocked:
            self._watch(OUT)
        elif self._watched != IN and not (connection.is_waiting or connection.is_closing):
            self._watch(IN)

    def _hand_over(self) -> None:
        """Go on with whom a connection that ends leaves the peer to; hang up if that is nobody."""
        heir: Connection | None = getattr(self._connection, "heir", None)
        if heir is None:
            self.hang_up()
            return
        self._connection = heir
        heir.on_output = self._on_output
        self.answer()

    def has_stirred(self) -> bool:
        """Tell whether bytes came or went since this was last asked."""
        has_stirred, self._has_stirred = self._has_stirred, False
        return has_stirred

    def finish(self) -> None:
        """Send what is left, and say that nothing follows; who cannot take it is hung up on."""
        self.answer()
        if self.descriptor < 0:
            return
        if self._is_blocked:
            self.hang_up()
            return
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            self.hang_up()
        else:
            self._watch(IN)

    def discard(self) -> None:
        """Throw away what has come; hang up on whoever has nothing more to send."""
        try:
            if not self._socket.recv(_CHUNK_BYTES):
                self.hang_up()
        except BlockingIOError:
            return
        except OSError:
            self.hang_up()

    def hang_up(self) -> None:
        """Drop the peer at once."""
        if self.descriptor < 0:
            return
        self._turns.leave(self)
        self.descriptor = -1
        self._connection.output.clear()
        self._socket.close()

    def lost(self) -> None:
        """Tell the service; whatever waited for this peer is dropped."""
        self._connection.lost()

    def _on_output(self) -> None:
        if self._turns.is_under_way:
            self._turns.answered.append(self)
        else:
            self.answer()

    def _watch(self, events: int) -> None:
        if events != self._watched and self.descriptor >= 0:
            self._watched = events
            self._turns.watch(self.descriptor, events)

    def _send(self, output: list[Chunk]) -> None:
        """Send chunks in order until all are gone or the kernel takes no more."""
        try:
            while output and not self._is_blocked:
                first = output[0]
                if len(output) == 1 and not isinstance(first, Extent):
                    data = first
                    output.clear()
                elif (joined := _taken(output)) is not None:
                    data = joined
                else:
                    self._send_extent(output)
                    continue
                try:
                    sent = self._socket.send(data)
                    self._has_stirred = True
                except BlockingIOError:
                    sent = 0
                if sent < len(data):
                    output.insert(0, memoryview(data)[sent:])
                    self._is_blocked = True
        except BlockingIOError:
            self._is_blocked = True
        except (OSError, EOFError, LogStoreError) as error:
            # The peer is gone, or the file cannot be read: what was promised cannot be kept.
            _log.info("hanging up on a peer: %s", error)
            self.hang_up()

    def _send_extent(self, output: list[Chunk]) -> None:
        """Send what the kernel takes of the run of a file that comes first, by itself if it can."""
        extent = cast("Extent", output[0])
        file, position, size_bytes = extent.file, extent.position, extent.size_bytes
        source = file.fileno()
        if source is None:
            data = file.read(position, min(size_bytes, _CHUNK_BYTES))
            if not data:
                raise _too_short(extent)
            sent = self._socket.send(data)
        else:
            sent = os.sendfile(self.descriptor, source, position, size_bytes)
            if not sent:
                raise _too_short(extent)
        self._has_stirred = True
        if sent < size_bytes:
            output[0] = Extent(file, position + sent, size_bytes - sent)
        else:
            del output[0]


def _taken(output: list[Chunk]) -> bytes | None:
    """
    Take from the front of `output` what goes out in one write; None if a long run comes first.

    Short runs of files are read and go with the bytes around them: a write costs more than a read,
    and every write wakes the peer.
    """
    pieces: list[Buffer] = []
    size_bytes = 0
    for chunk in output:
        if isinstance(chunk, Extent):
            if chunk.size_bytes > _SHORT_RUN_BYTES_MAX:
                break
            pieces.append(_read_whole(chunk))
            size_bytes += chunk.size_bytes
        else:
            pieces.append(chunk)
            size_bytes += len(chunk)
        if size_bytes > _CHUNK_BYTES:
            break
    del output[: len(pieces)]
    return b"".join(pieces) if pieces else None


def _read_whole(extent: Extent) -> bytes:
    data = extent.read()
    if len(data) < extent.size_bytes:
        raise _too_short(extent)
    return data


def _too_short(extent: Extent) -> EOFError:
    return EOFError(f"{extent.file.path} ends before what was promised of it")
