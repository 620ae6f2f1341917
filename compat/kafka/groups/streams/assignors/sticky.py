"""
The assignor ``sticky``: who had a task keeps it, as long as nobody has too much to do.

1. Active tasks stay with the member that had them, if its share is not full yet;
2. or go to one that had them as standby;
3. what is left goes to the processes that have least to do, subtopology by subtopology.
4. Standbys go where the task was active or standby before, and then to who has least to do; never
   into a process that has the task already. If there are too few processes, there are fewer.

Source: ``StickyTaskAssignor``, with its ties and its oddities: who asks it gets the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from logstore.compat.kafka.groups.modern.hash_order import members_in_sized_order
from logstore.compat.kafka.groups.streams.assignors.java_queue import JavaQueue
from logstore.compat.kafka.groups.streams.assignors.process_state import ProcessState
from logstore.compat.kafka.groups.streams.assignors.spec import Assignment, GroupSpec
from logstore.compat.kafka.groups.streams.tasks import TargetTasks, TaskId, task_ids


class _Member(NamedTuple):
    process_id: str
    member_id: str


class _Share:
    """What a member may get so that all get about the same; who is full leaves the others more."""

    def __init__(self, task_count: int, member_count: int) -> None:
        self._task_count = task_count
        self._member_count = member_count
        self.size = _divided(task_count, member_count)

    def note(self, count: int) -> None:
        """Take note that a member has so many tasks now."""
        if count == self.size:
            self._member_count -= 1
            self._task_count -= count
            self.size = _divided(self._task_count, self._member_count)


def assign_stickily(spec: GroupSpec) -> Assignment:
    """Return who shall run what."""
    return _StickyAssignment(spec).made()


class _StickyAssignment:
    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        shapes = spec.subtopologies.values()
        active_count = sum(shape.task_count for shape in shapes)
        copied = sum(shape.task_count for shape in shapes if shape.is_stateful)
        self._active_share = _Share(active_count, len(spec.members))
        self._share = _Share(active_count + copied * spec.standby_count, len(spec.members))
        self._processes: dict[str, ProcessState] = {}
        self._active_before: dict[TaskId, _Member] = {}
        self._standby_before: dict[TaskId, list[_Member]] = {}
        for member_id, member in spec.members.items():
            self._processes.setdefault(member.process_id, ProcessState()).add_member(member_id)
            who = _Member(member.process_id, member_id)
            self._active_before |= dict.fromkeys(task_ids(member.target.active), who)
            for task in task_ids(member.target.standby):
                self._standby_before.setdefault(task, []).append(who)

    def made(self) -> Assignment:
        """Return the assignment; asked once."""
        self._assign_active()
        if self._spec.standby_count > 0:
            self._assign_standby()
        return {
            member_id: TargetTasks(
                _compacted(self._processes[member.process_id].active.get(member_id, ())),
                _compacted(self._processes[member.process_id].standby.get(member_id, ())),
            )
            for member_id, member in self._spec.members.items()
        }

    def _tasks(self, *, only_stateful: bool = False) -> list[TaskId]:
        return [
            (name, partition)
            for name, shape in self._spec.subtopologies.items()
            if shape.is_stateful or not only_stateful
            for partition in range(shape.task_count)
        ]

    # active tasks

    def _assign_active(self) -> None:
        tasks = sorted(self._tasks(), key=_by_partition)
        tasks = [task for task in tasks if not self._keep(task, self._active_before.get(task))]
        tasks = [
            task
            for task in tasks
            if not self._keep(task, self._least_loaded(self._standby_before.get(task), None))
        ]
        queue = self._by_load()
        for task in sorted(tasks):
            process = queue.poll()
            assert process is not None, "a group has members when tasks are assigned"
            self._note_active(process.add_to_least_loaded(task, is_active=True))
            queue.add(process)

    def _keep(self, task: TaskId, member: _Member | None) -> bool:
        if member is None:
            return False
        process = self._processes[member.process_id]
        if process.counts[member.member_id] >= self._active_share.size:
            return False
        self._note_active(process.add_task(member.member_id, task, is_active=True))
        return True

    def _note_active(self, count: int) -> None:
        self._active_share.note(count)
        self._share.note(count)

    # standby tasks

    def _assign_standby(self) -> None:
        tasks = sorted(self._tasks(only_stateful=True), key=_by_partition, reverse=True)
        left: dict[TaskId, int] = {}
        for task in tasks:
            for placed in range(self._spec.standby_count):
                if not self._keep_standby(task):
                    left[task] = self._spec.standby_count - placed
                    break
        queue = self._by_load()
        for task in sorted(left, reverse=True):
            for _ in range(left[task]):
                if not self._place_standby(queue, task):
                    break

    def _keep_standby(self, task: TaskId) -> bool:
        before = self._active_before.get(task)
        is_away = before is not None and not self._processes[before.process_id].has_task(task)
        if is_away and self._keep_copy(task, before):
            return True
        return self._keep_copy(task, self._least_loaded(self._standby_before.get(task), task))

    def _keep_copy(self, task: TaskId, member: _Member | None) -> bool:
        if member is None:
            return False
        process = self._processes[member.process_id]
        if process.counts[member.member_id] >= self._share.size:
            return False
        self._share.note(process.add_task(member.member_id, task, is_active=False))
        return True

    def _place_standby(self, queue: JavaQueue[ProcessState], task: TaskId) -> bool:
        """Give a copy to the process that has least to do of those that do not have the task."""
        process = queue.poll()
        if process is None:
            return False
        is_placed = False
        if not process.has_task(task):
            self._share.note(process.add_to_least_loaded(task, is_active=False))
            is_placed = True
        elif len(queue):
            is_placed = self._place_standby(queue, task)
        queue.add(process)
        return is_placed

    # who has least to do

    def _by_load(self) -> JavaQueue[ProcessState]:
        names = members_in_sized_order(self._processes, len(self._spec.members))
        return JavaQueue(_load, [self._processes[name] for name in names])

    def _least_loaded(self, members: list[_Member] | None, task: TaskId | None) -> _Member | None:
        """
        Return the member of the process that has least to do; for a `task`, one without it.

        As in Kafka only the first process is refused in the end, whoever was chosen.
        """
        if not members:
            return None
        chosen = members[0]
        first = self._processes[chosen.process_id]
        least, count = first.load, first.counts[chosen.member_id]
        for member in members[1:]:
            process = self._processes[member.process_id]
            is_fit = process.load < least and (task is None or not process.has_task(task))
            if is_fit and process.counts[member.member_id] < count:
                least, count = process.load, process.counts[member.member_id]
                chosen = member
        return None if task is not None and first.has_task(task) else chosen


def _by_partition(task: TaskId) -> tuple[int, str]:
    return task[1], task[0]


def _load(process: ProcessState) -> float:
    return process.load


def _divided(task_count: int, member_count: int) -> int:
    return -(-task_count // member_count) if member_count else 0


def _compacted(tasks: Iterable[TaskId]) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for name, partition in tasks:
        found.setdefault(name, set()).add(partition)
    return {name: frozenset(partitions) for name, partitions in sorted(found.items())}
