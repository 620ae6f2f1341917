"""The listeners of a broker as a server opens them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from logstore.compat.kafka.security.opening import OpenedListener
from logstore.compat.running import Entrance


def entrances(opened: Iterable[OpenedListener], everywhere: str) -> list[Entrance]:
    """Return where to listen; `everywhere` is the address of a listener that names no host."""
    found: list[Entrance] = []
    for one in opened:
        host = one.point.host or everywhere
        found.append(Entrance(host, one.point.port, one.connect, partial(one.advertise, host)))
    return found
