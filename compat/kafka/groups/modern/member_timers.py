"""What must happen in time in a consumer group, member by member."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from logstore.compat.kafka.groups.surroundings import Surroundings
from logstore.compat.waiting import Timer


class Deadline(Enum):
    """What a member is waited for."""

    #: a sign of life
    SESSION = "session"
    #: giving back what it must
    REBALANCE = "rebalance"
    #: a member of the classic protocol: to join again
    JOIN = "join"
    #: a member of the classic protocol: to ask for what it was given
    SYNC = "sync"
    #: all members of a new streams group: to join before it is assigned
    INITIAL_REBALANCE = "initial rebalance"


class MemberTimers:
    """The pending deadlines of all members of all groups."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._timers: dict[tuple[str, str], dict[Deadline, Timer]] = {}

    def start(
        self,
        group_id: str,
        member_id: str,
        deadline: Deadline,
        delay_ms: int,
        call: Callable[[], None],
    ) -> None:
        """Make `call` in `delay_ms` unless it is stopped or started anew before."""
        self.stop(group_id, member_id, deadline)
        timers = self._timers.setdefault((group_id, member_id), {})
        timers[deadline] = self._surroundings.after(delay_ms, call)

    def is_running(self, group_id: str, member_id: str, deadline: Deadline) -> bool:
        """Tell whether a member is being waited for."""
        timer = self._timers.get((group_id, member_id), {}).get(deadline)
        return timer is not None and timer.is_pending

    def stop(self, group_id: str, member_id: str, deadline: Deadline) -> None:
        """Wait no more for one thing."""
        timer = self._timers.get((group_id, member_id), {}).pop(deadline, None)
        if timer is not None:
            timer.cancel()

    def stop_all(self, group_id: str, member_id: str) -> None:
        """Wait no more for a member."""
        for timer in self._timers.pop((group_id, member_id), {}).values():
            timer.cancel()

    def close(self) -> None:
        """Wait for nobody any more."""
        for key in list(self._timers):
            self.stop_all(*key)
