"""
One step of a member towards what it shall have: give back first, get afterwards.

::

                    must give something back
        Stable ------------------------------> Unrevoked tasks
          | ^                                         |
          | |  others have let go                     |  has let go
          v |                                         v
      Unreleased tasks <------------- nothing to give back: gets what is free

An active task is free once no process has it active, and the member's own process has no copy of
it; a copy, once the member's process has it in no way.

Source: ``CurrentAssignmentBuilder`` of package ``streams``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.streams.member import StreamsMember
from logstore.compat.kafka.groups.streams.states import MemberState
from logstore.compat.kafka.groups.streams.task_owners import TaskOwners
from logstore.compat.kafka.groups.streams.tasks import (
    NONE_HELD,
    EpochTasks,
    HeldTasks,
    TargetTasks,
    TaskId,
    Tasks,
)
from logstore.compat.kafka.refused_request import RefusedRequestError

_EpochTasks = dict[str, dict[int, int]]


@attrs.define
class _Step:
    """What becomes of a member's tasks: kept, given back, new; and whether some are not free."""

    kept: HeldTasks
    revoked: HeldTasks
    added: HeldTasks
    has_unreleased: bool


@attrs.frozen
class Reconciliation:
    """
    What a member's next step depends on.

    `owned` is what the member says that it has in its hands, None if it does not say.
    """

    target: TargetTasks
    target_epoch: int
    owned: TargetTasks | None
    owners: TaskOwners

    def next_of(self, member: StreamsMember) -> StreamsMember:
        """
        Return the member after the step, the same one if there is none to take.

        Raises:
            RefusedRequestError: 110, a newer broker left it in a state that nobody knows here.

        """
        if member.is_reconciled_to(self.target_epoch):
            return member
        epoch = member.member_epoch
        if member.state is MemberState.UNREVOKED_TASKS:
            if self.owned is None or self.owned.has_any_of(member.pending_revocation):
                return member
            epoch += 1
        elif member.state is MemberState.UNKNOWN:
            if self.owned is None or not self.owned.is_empty:
                raise RefusedRequestError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The streams group member is in a unknown state. The member must abandon all "
                    "its tasks and rejoin.",
                )
            epoch = self.target_epoch
        return self._advanced(member, epoch)

    def _advanced(self, member: StreamsMember, epoch: int) -> StreamsMember:
        step = self._step(member)
        if not step.revoked.is_empty and (
            self.owned is None or self.owned.has_any_of(step.revoked)
        ):
            return attrs.evolve(
                member.in_epoch(epoch),
                state=MemberState.UNREVOKED_TASKS,
                assigned=step.kept,
                pending_revocation=step.revoked,
            )
        return attrs.evolve(
            member.in_epoch(self.target_epoch),
            state=MemberState.UNRELEASED_TASKS if step.has_unreleased else MemberState.STABLE,
            assigned=step.kept if step.added.is_empty else step.kept.merged(step.added),
            pending_revocation=NONE_HELD,
        )

    def _step(self, member: StreamsMember) -> _Step:
        has, target, process_id = member.assigned, self.target, member.process_id

        def is_active_elsewhere(task: TaskId) -> bool:
            is_active = self.owners.of_active(task) is not None
            return is_active or self.owners.has_copy(process_id, task)

        def is_in_process(task: TaskId) -> bool:
            is_active = self.owners.of_active(task) == process_id
            return is_active or self.owners.has_copy(process_id, task)

        kept, revoked = _divided_with_epochs(has.active, target.active)
        added, is_held = _free(has.active, target.active, is_active_elsewhere)
        standby = _moved(has.standby, target.standby, is_in_process)
        warmup = _moved(has.warmup, target.warmup, is_in_process)
        return _Step(
            HeldTasks(kept, standby[0], warmup[0]),
            HeldTasks(revoked, standby[1], warmup[1]),
            HeldTasks(
                {name: dict.fromkeys(parts, self.target_epoch) for name, parts in added.items()},
                standby[2],
                warmup[2],
            ),
            is_held or standby[3] or warmup[3],
        )


def _divided_with_epochs(has: EpochTasks, target: Tasks) -> tuple[_EpochTasks, _EpochTasks]:
    """Return what stays and what goes."""
    kept: _EpochTasks = {}
    revoked: _EpochTasks = {}
    for name, epochs in has.items():
        wanted = target.get(name, frozenset())
        for partition, epoch in epochs.items():
            side = kept if partition in wanted else revoked
            side.setdefault(name, {})[partition] = epoch
    return kept, revoked


def _moved(
    has: Tasks, target: Tasks, is_taken: Callable[[TaskId], bool]
) -> tuple[Tasks, Tasks, Tasks, bool]:
    """Return what stays, what goes, what comes, and whether something cannot come yet."""
    wanted = {name: target.get(name, frozenset[int]()) for name in has}
    kept = {name: parts & wanted[name] for name, parts in has.items() if parts & wanted[name]}
    revoked = {name: parts - wanted[name] for name, parts in has.items() if parts - wanted[name]}
    added, is_held = _free(has, target, is_taken)
    return kept, revoked, added, is_held


def _free(
    has: Mapping[str, frozenset[int] | Mapping[int, int]],
    target: Tasks,
    is_taken: Callable[[TaskId], bool],
) -> tuple[Tasks, bool]:
    """Return what of the target is new and free, and whether something of it is not free."""
    added: dict[str, frozenset[int]] = {}
    is_held = False
    for name, partitions in target.items():
        missing = partitions.difference(has.get(name, ()))
        free = frozenset(one for one in missing if not is_taken((name, one)))
        is_held = is_held or len(free) < len(missing)
        if free:
            added[name] = free
    return added, is_held
