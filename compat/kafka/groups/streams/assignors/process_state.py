"""
A process of an application: its members, and how much each has to do.

Source: ``ProcessState``.
"""

from __future__ import annotations

from logstore.compat.kafka.groups.modern.hash_order import members_in_order
from logstore.compat.kafka.groups.streams.assignors.java_queue import JavaQueue
from logstore.compat.kafka.groups.streams.tasks import TaskId


class ProcessState:
    """What is given to the members of one process."""

    def __init__(self) -> None:
        #: tasks by member
        self.counts: dict[str, int] = {}
        self.active: dict[str, set[TaskId]] = {}
        self.standby: dict[str, set[TaskId]] = {}
        self._tasks: set[TaskId] = set()
        self._count = 0
        self._by_load: JavaQueue[tuple[str, int]] | None = None

    @property
    def load(self) -> float:
        """The tasks that a member has, on average."""
        return self._count / len(self.counts)

    def add_member(self, member_id: str) -> None:
        """Take a member in, who has nothing to do yet."""
        self.counts[member_id] = 0

    def has_task(self, task: TaskId) -> bool:
        """Tell whether a member has the task, whatever it does with it."""
        return task in self._tasks

    def add_task(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        """Give a task to a member; return how many it has then."""
        # The queue does not notice what it is not told: it is made anew when it is needed.
        self._by_load = None
        return self._add(member_id, task, is_active=is_active)

    def add_to_least_loaded(self, task: TaskId, *, is_active: bool) -> int:
        """Give a task to the member who has least to do; return how many it has then."""
        if len(self.counts) == 1:
            return self._add(next(iter(self.counts)), task, is_active=is_active)
        if self._by_load is None:
            members = members_in_order(self.counts)
            self._by_load = JavaQueue(_count_in, [(one, self.counts[one]) for one in members])
        found = self._by_load.poll()
        assert found is not None, "a process has members"
        count = self._add(found[0], task, is_active=is_active)
        self._by_load.add((found[0], count))
        return count

    def _add(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        self._count += 1
        self._tasks.add(task)
        (self.active if is_active else self.standby).setdefault(member_id, set()).add(task)
        self.counts[member_id] += 1
        return self.counts[member_id]


def _count_in(entry: tuple[str, int]) -> int:
    return entry[1]
