"""What a commit log on disk holds, read from front to back without a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.dispatch_request import (
    Blank,
    DispatchRequest,
    read_dispatch_request,
)


def stored_requests(store: Path) -> Iterator[DispatchRequest]:
    """Yield a request for every message of the commit log of a store that was stopped cleanly."""
    for path in sorted((store / "commitlog").iterdir()):
        data, position = path.read_bytes(), 0
        while position < len(data):
            try:
                found = read_dispatch_request(data, position)
            except CorruptMessageError:
                break  # zeros: the log ends
            if isinstance(found, Blank):
                break
            yield found
            position += found.size_bytes
