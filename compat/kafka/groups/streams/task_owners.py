"""
Which process has which task, so that nobody gets what another has not let go of.

Source: the maps ``current...TaskToProcessId`` of ``StreamsGroup``.
"""

from __future__ import annotations

from logstore.compat.kafka.groups.streams.member import StreamsMember
from logstore.compat.kafka.groups.streams.tasks import TaskId, Tasks, task_ids

_NOBODY: frozenset[str] = frozenset()


class TaskOwners:
    """The processes of a group's tasks; what a member has to give back is still its own."""

    def __init__(self) -> None:
        self._active: dict[TaskId, str] = {}
        self._standby: dict[TaskId, set[str]] = {}
        self._warmup: dict[TaskId, set[str]] = {}

    def of_active(self, task: TaskId) -> str | None:
        """Return the process in which a task is active."""
        return self._active.get(task)

    def has_copy(self, process_id: str, task: TaskId) -> bool:
        """Tell whether a process has a task as standby or warm-up."""
        return (
            process_id in self._standby.get(task, _NOBODY)
            or process_id in self._warmup.get(task, _NOBODY)
        )  # fmt: skip

    def add(self, member: StreamsMember) -> None:
        """Note what a member has."""
        for held in (member.assigned, member.pending_revocation):
            for task in task_ids(held.active):
                self._active[task] = member.process_id
            _add(self._standby, held.standby, member.process_id)
            _add(self._warmup, held.warmup, member.process_id)

    def remove(self, member: StreamsMember) -> None:
        """Forget what a member had, where nobody else has taken it since."""
        for held in (member.assigned, member.pending_revocation):
            for task in task_ids(held.active):
                if self._active.get(task) == member.process_id:
                    del self._active[task]
            _discard(self._standby, held.standby, member.process_id)
            _discard(self._warmup, held.warmup, member.process_id)


def _add(owners: dict[TaskId, set[str]], tasks: Tasks, process_id: str) -> None:
    for task in task_ids(tasks):
        owners.setdefault(task, set()).add(process_id)


def _discard(owners: dict[TaskId, set[str]], tasks: Tasks, process_id: str) -> None:
    for task in task_ids(tasks):
        processes = owners.get(task)
        if processes is not None:
            processes.discard(process_id)
            if not processes:
                del owners[task]
