"""Members come, go and are silent at random, and the coordinator restarts."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.compat.kafka.groups.rehearsal import GROUP
from tests.compat.kafka.groups.streams.rehearsal import (
    SESSION_MS,
    Member,
    StreamsRehearsal,
    internal,
    subtopology,
    topology,
)

TOLD = topology(
    subtopology("0", "t", state_changelog_topics=(internal("log"),)), subtopology("1", "t", "u")
)
ALL_TASKS = {f"{name}_{index}" for name, count in (("0", 4), ("1", 7)) for index in range(count)}
STEPS = 60


def process_of(name: str) -> str:
    """Return the process of a member: two of them share one."""
    return f"process {ord(name) // 2}"


def check(members: dict[str, Member]) -> None:
    """No task is active twice, and no process has a task twice, as the members know it."""
    active = Counter(task for member in members.values() for task in member.active)
    assert [task for task, count in active.items() if count > 1] == []
    in_process = Counter(
        (process_of(name), task)
        for name, member in members.items()
        for task in (*member.active, *member.standby)
    )
    assert [one for one, count in in_process.items() if count > 1] == []


@pytest.mark.parametrize("seed", range(12))
def test_a_task_is_active_once(seed: int) -> None:
    """While members move, and once the group is at rest every task is active in one of them."""
    rng = random.Random(seed)
    stage = StreamsRehearsal({"t": 4, "u": 7, "log": 4})
    stage.cluster.group_settings[GROUP] = {"streams.num.standby.replicas": str(rng.randrange(3))}
    members: dict[str, Member] = {}
    for _ in range(STEPS):
        name = rng.choice("ABCDEF")
        chance = rng.random()
        if name not in members:
            members[name] = stage.member(name, TOLD, process_of(name))
        elif chance < 0.1:
            members.pop(name).leave()
        elif chance < 0.15:
            stage.wait(SESSION_MS - 1)
            for other in members.values():
                if other is not members[name]:
                    other.live()
            stage.wait(1)
            # Who is out goes on working until it hears of it; nobody takes that for a member.
            kept = stage.streams_group.members
            members = {name: member for name, member in members.items() if name in kept}
        elif chance < 0.2:
            stage.restart()
        else:
            members[name].live()
        check(members)
    if not members:
        members["A"] = stage.member("A", TOLD, process_of("A"))
    stage.rest(*members.values())
    check(members)
    assert {task for member in members.values() for task in member.active} == ALL_TASKS
    assert set(stage.streams_group.members) == set(members)
