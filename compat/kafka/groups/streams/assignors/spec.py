"""What a task assignor is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import attrs

from logstore.compat.kafka.groups.streams.tasks import NO_TASKS, TargetTasks


class SubtopologyShape(NamedTuple):
    """A subtopology, as far as assignments depend on it."""

    task_count: int
    is_stateful: bool


@attrs.frozen
class MemberSpec:
    """A member: its process, and what it was to have until now."""

    process_id: str
    target: TargetTasks = NO_TASKS


@attrs.frozen
class GroupSpec:
    """
    Members in the order in which Java would go through them; subtopologies in that of their ids.

    `standby_count` is how many copies of its state a stateful task shall have besides itself.
    """

    members: Mapping[str, MemberSpec]
    subtopologies: Mapping[str, SubtopologyShape]
    standby_count: int = 0


#: what each member shall have
Assignment = Mapping[str, TargetTasks]
