"""A script that is served over real sockets, and blocking clients of it."""

from __future__ import annotations

import contextlib
import socket
import struct

from logstore.compat.running import ServerThread
from tests.compat.scripted_service import SECONDS_MAX, Answer, ScriptedService, echo

MIB = 1024 * 1024


class Client:
    """A blocking socket that gives up after a while."""

    def __init__(self, port: int, *, receive_buffer_bytes: int = 0) -> None:
        self.socket = socket.socket()
        if receive_buffer_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.settimeout(SECONDS_MAX)
        self.socket.connect(("127.0.0.1", port))

    def send(self, *payloads: bytes) -> None:
        """Send frames."""
        self.socket.sendall(b"".join(struct.pack(">i", len(p)) + p for p in payloads))

    def take(self, size_bytes: int, *, step_bytes: int = MIB) -> bytes:
        """Receive exactly so much, in small steps if asked to; less only at the end."""
        pieces: list[bytes] = []
        while size_bytes:
            piece = self.socket.recv(min(step_bytes, size_bytes))
            if not piece:
                break
            pieces.append(piece)
            size_bytes -= len(piece)
        return b"".join(pieces)

    def receive(self) -> bytes:
        """Receive one frame."""
        return self.take(int.from_bytes(self.take(4), "big"))

    def is_hung_up_on(self) -> bool:
        """Tell whether the server ends the connection before it sends anything."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def reset(self) -> None:
        """Vanish as a killed process on a lossy network does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


class Stage:
    """A served script, and what belongs to it."""

    def __init__(self) -> None:
        self._exits = contextlib.ExitStack()

    def serve(self, answer: Answer = echo) -> ScriptedService:
        """Start to serve a script."""
        self.service = ScriptedService(answer)
        ports: list[int] = []
        self.thread = ServerThread(self.service, ports.append)
        self.thread.start("127.0.0.1", 0)
        self._exits.callback(self.thread.stop)
        self.port = ports[0]
        return self.service

    def client(self, *, receive_buffer_bytes: int = 0) -> Client:
        """Connect."""
        client = Client(self.port, receive_buffer_bytes=receive_buffer_bytes)
        self._exits.callback(client.socket.close)
        return client

    def close(self) -> None:
        """End all."""
        self._exits.close()
