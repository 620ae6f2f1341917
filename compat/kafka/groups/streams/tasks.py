"""
Tasks, the three kinds together: what members shall have, and what they have.

A task is a subtopology over one partition of its topics. An *active* one reads, computes and
writes; a *standby* keeps a copy of its state; a *warm-up* builds one up, to become active.

Source: ``TasksTuple`` and ``TasksTupleWithEpochs``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

#: a subtopology's id and a partition
TaskId = tuple[str, int]
#: partitions by subtopology
Tasks = Mapping[str, frozenset[int]]
#: partitions by subtopology, each with the epoch in which it was given
EpochTasks = Mapping[str, Mapping[int, int]]


def _no_tasks() -> dict[str, frozenset[int]]:
    return {}


def _no_epoch_tasks() -> dict[str, dict[int, int]]:
    return {}


@attrs.frozen
class HeldTasks:
    """What a member has; active tasks with the epochs in which they were given."""

    active: EpochTasks = attrs.field(factory=_no_epoch_tasks)
    standby: Tasks = attrs.field(factory=_no_tasks)
    warmup: Tasks = attrs.field(factory=_no_tasks)

    @property
    def is_empty(self) -> bool:
        """Tell whether there are none."""
        return not (self.active or self.standby or self.warmup)

    def merged(self, other: HeldTasks) -> HeldTasks:
        """Return the tasks of both."""
        active = {name: dict(partitions) for name, partitions in self.active.items()}
        for name, partitions in other.active.items():
            active.setdefault(name, {}).update(partitions)
        return HeldTasks(
            active, _merged(self.standby, other.standby), _merged(self.warmup, other.warmup)
        )


@attrs.frozen
class TargetTasks:
    """What a member shall have, or says that it has in its hands."""

    active: Tasks = attrs.field(factory=_no_tasks)
    standby: Tasks = attrs.field(factory=_no_tasks)
    warmup: Tasks = attrs.field(factory=_no_tasks)

    @property
    def is_empty(self) -> bool:
        """Tell whether there are none."""
        return not (self.active or self.standby or self.warmup)

    def has_any_of(self, held: HeldTasks) -> bool:
        """Tell whether there is a task in both, of the same kind."""
        return (
            any(not self.active.get(name, _NOTHING).isdisjoint(held.active[name])
                for name in held.active)
            or _overlap(self.standby, held.standby)
            or _overlap(self.warmup, held.warmup)
        )  # fmt: skip

    def are_all_in(self, held: HeldTasks) -> bool:
        """Tell whether every task is in `held`; of a subtopology in which `held` has some."""
        return (
            all(name in held.active and partitions <= held.active[name].keys()
                for name, partitions in self.active.items())
            and _contains(held.standby, self.standby)
            and _contains(held.warmup, self.warmup)
        )  # fmt: skip


_NOTHING: frozenset[int] = frozenset()
NO_TASKS = TargetTasks()
NONE_HELD = HeldTasks()


def task_ids(tasks: Mapping[str, frozenset[int] | Mapping[int, int]]) -> Iterator[TaskId]:
    """Yield the tasks one by one."""
    for name, partitions in tasks.items():
        for partition in partitions:
            yield name, partition


def _merged(left: Tasks, right: Tasks) -> dict[str, frozenset[int]]:
    return {
        name: left.get(name, _NOTHING) | right.get(name, _NOTHING)
        for name in dict.fromkeys([*left, *right])
    }


def _overlap(left: Tasks, right: Tasks) -> bool:
    return any(not partitions.isdisjoint(right.get(name, ())) for name, partitions in left.items())


def _contains(larger: Tasks, smaller: Tasks) -> bool:
    return all(name in larger and parts <= larger[name] for name, parts in smaller.items())
