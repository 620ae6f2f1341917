"""
What became of records between their first delivery and the last word about them.

======================  =====================================================================
AVAILABLE, acquire      ACQUIRED by a member, one delivery more, until its lock times out
ACQUIRED, accept        ACKNOWLEDGED
ACQUIRED, release       AVAILABLE; ARCHIVED if they were delivered as often as is allowed
ACQUIRED, timeout       the same
ACQUIRED, reject, gap   ARCHIVED
any, records deleted    ARCHIVED
======================  =====================================================================

ACKNOWLEDGED and ARCHIVED are final. Kafka also has transitions under way, which wait for the
persister; ours answers at once.

Source: ``InFlightState``, ``RecordState``, ``AcquisitionLockTimerTask``.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from logstore.compat.waiting import Timers

#: who holds records that nobody has acquired
NOBODY = ""


class RecordState(IntEnum):
    """What became of records."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def is_final(self) -> bool:
        """Tell whether the records are never delivered again."""
        return self >= RecordState.ACKNOWLEDGED


class AcquisitionLock:
    """
    The time that a member has for what it acquired at once: one timer for all of it.

    Records let go of it one by one; nobody waits for a lock without holders.
    """

    __slots__ = ("_timer", "first_offset", "holder_count", "last_offset")

    def __init__(
        self,
        timers: Timers,
        duration_ms: int,
        first_offset: int,
        last_offset: int,
        on_timeout: Callable[[AcquisitionLock], None],
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.holder_count = 0
        self._timer = timers.after(duration_ms, lambda: on_timeout(self))

    def let_go(self) -> None:
        """Take note that one holder less waits for it."""
        self.holder_count -= 1
        if self.holder_count == 0:
            self._timer.cancel()


class InFlightState:
    """The state that a batch, or one offset of it, is in."""

    __slots__ = ("_lock", "delivery_count", "member_id", "state")

    def __init__(
        self,
        state: RecordState,
        delivery_count: int,
        member_id: str = NOBODY,
        lock: AcquisitionLock | None = None,
    ) -> None:
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self._lock: AcquisitionLock | None = None
        self.lock(lock)

    def lock(self, lock: AcquisitionLock | None) -> None:
        """Wait for `lock` from now on, and for no other."""
        old, self._lock = self._lock, lock
        if lock is not None:
            lock.holder_count += 1
        if old is not None:
            old.let_go()

    def is_locked_by(self, lock: AcquisitionLock) -> bool:
        """Tell whether it is `lock` whose timeout counts."""
        return self._lock is lock

    def copy(self) -> InFlightState:
        """Return the same state, which waits for the same lock, for a part of the records."""
        return InFlightState(self.state, self.delivery_count, self.member_id, self._lock)

    def acquire(self, member_id: str, lock: AcquisitionLock) -> None:
        """Deliver once more."""
        assert self.state is RecordState.AVAILABLE, "only what nobody has is acquired"
        self.state = RecordState.ACQUIRED
        self.delivery_count += 1
        self.member_id = member_id
        self.lock(lock)

    def conclude(self, state: RecordState, delivery_count_limit: int) -> None:
        """End a delivery; the lock stays until that is kept."""
        assert self.state is RecordState.ACQUIRED, "only a delivery can end"
        if state is RecordState.AVAILABLE and self.delivery_count >= delivery_count_limit:
            state = RecordState.ARCHIVED
        self.state = state
        self.member_id = NOBODY

    def archive(self) -> None:
        """Deliver never again, whoever has it."""
        self.state = RecordState.ARCHIVED
        self.member_id = NOBODY
        self.lock(None)

    def __repr__(self) -> str:
        return f"{self.state.name}({self.delivery_count}, {self.member_id!r})"


class Run(NamedTuple):
    """Neighbouring offsets, the last included, that share one state."""

    first_offset: int
    last_offset: int
    state: InFlightState

    @property
    def offset_count(self) -> int:
        """How many offsets there are."""
        return self.last_offset - self.first_offset + 1
