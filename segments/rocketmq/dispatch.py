"""
Dispatch: what stands new in the commit log is folded into queues, index and whoever listens.

Java calls it *reput* (``ReputMessageService``): from `reput_from` on every message is read again
and handed to the dispatchers in turn. A message that this store has just put itself need not be
read again: its request waits in memory, in the order of the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from logstore.segments.rocketmq.commit_log import CommitLog
    from logstore.segments.rocketmq.dispatch_request import DispatchRequest

#: told of every message that can now be read from its queue (``MessageArrivingListener``)
ArrivalListener = Callable[["DispatchRequest"], None]


class Dispatcher(Protocol):
    """Takes each message of the commit log in turn (``CommitLogDispatcher``)."""

    def dispatch(self, request: DispatchRequest) -> None:
        """Take note of one message; those seen before are to be passed over."""
        ...


class Dispatch:
    """
    The one place that moves messages from the commit log to what is derived from it.

    `reput_from` is the physical offset up to which all is dispatched; `behind_bytes` says how far
    that is from the end (``dispatchBehindBytes``).
    """

    def __init__(self, commit_log: CommitLog, dispatchers: list[Dispatcher]) -> None:
        self.commit_log = commit_log
        self.dispatchers = dispatchers
        self.arrival_listeners: list[ArrivalListener] = []
        self.reput_from = 0

    @property
    def behind_bytes(self) -> int:
        """Bytes of the commit log that are not dispatched yet."""
        return self.commit_log.max_physical_offset - self.reput_from

    def run(self) -> int:
        """Dispatch all there is and tell the listeners; return how many messages that were."""
        raise NotImplementedError
