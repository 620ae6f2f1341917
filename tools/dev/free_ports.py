"""Ports that are free now, for servers that must be told theirs beforehand."""

from __future__ import annotations

import random
import socket
from collections.abc import Sequence


def free_port(*neighbours: int) -> int | None:
    """
    Return a port P such that P and P + each of `neighbours` are free now, None if none is found.

    It is drawn below the range that the kernel hands out by itself, so that no outgoing
    connection takes it in the moment until the server binds it.
    """
    chance = random.SystemRandom()  # test runners seed the global one alike in every process
    for _ in range(200):
        port = chance.randrange(12_000, 32_000)
        if are_free([port, *(port + one for one in neighbours)]):
            return port
    return None


def are_free(ports: Sequence[int]) -> bool:
    """Tell whether each of them can be bound on the loopback address now."""
    return all(_is_free(port) for port in ports)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
