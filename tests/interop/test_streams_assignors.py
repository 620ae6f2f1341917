"""Kafka's task assignor and ours, asked the same: who shall run what in a streams group."""

from __future__ import annotations

import random
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

from logstore.compat.kafka.groups.modern.hash_order import members_in_order
from logstore.compat.kafka.groups.streams.assignors.spec import (
    Assignment,
    GroupSpec,
    MemberSpec,
    SubtopologyShape,
)
from logstore.compat.kafka.groups.streams.assignors.sticky import assign_stickily
from logstore.compat.kafka.groups.streams.tasks import TargetTasks
from tests.interop.java_programs import kafka_program

pytestmark = pytest.mark.interop

ASKED = Path(__file__).with_name("StreamsAssignors.java")
GROUP_COUNT, CHANGES = 250, 5


@attrs.define
class Group:
    """An application whose members and tasks change at random."""

    rng: random.Random
    standby_count: int
    shapes: dict[str, SubtopologyShape] = attrs.field(factory=dict[str, SubtopologyShape])
    members: dict[str, MemberSpec] = attrs.field(factory=dict[str, MemberSpec])

    def change(self) -> None:
        """Let topics grow, and members come, go and be in processes together."""
        rng = self.rng
        if not self.shapes:
            for number in range(rng.choice([1, 2, 3, 12])):
                count = rng.choice([1, 2, 3, 6, 17])
                self.shapes[str(number)] = SubtopologyShape(count, rng.random() < 0.6)
        elif rng.random() < 0.2:
            name = rng.choice(list(self.shapes))
            count, is_stateful = self.shapes[name]
            self.shapes[name] = SubtopologyShape(count + rng.choice([1, 5]), is_stateful)
        if rng.random() < 0.2:
            self.standby_count = rng.choice([0, 1, 2])
        for member_id in rng.sample(sorted(self.members), len(self.members) // 3):
            del self.members[member_id]
        processes = [member.process_id for member in self.members.values()]
        for _ in range(rng.choice([0, 1, 1, 2, 5, 20]) if self.members else rng.choice([1, 4])):
            if not processes or rng.random() < 0.6:
                processes.append(str(uuid.UUID(int=rng.getrandbits(128))))
            member_id = str(uuid.UUID(int=rng.getrandbits(128)))
            self.members[member_id] = MemberSpec(rng.choice(processes))

    def spec(self) -> GroupSpec:
        """Return the group as it stands."""
        members = {name: self.members[name] for name in members_in_order(self.members)}
        return GroupSpec(members, dict(sorted(self.shapes.items())), self.standby_count)

    def take(self, assignment: Assignment) -> None:
        """Let everybody have what was assigned."""
        for member_id, member in self.members.items():
            self.members[member_id] = attrs.evolve(member, target=assignment[member_id])


def question(group: Group) -> str:
    """Return the line that asks the real assignor."""
    shapes = ",".join(
        f"{name}={count}{'s' if is_stateful else ''}"
        for name, (count, is_stateful) in sorted(group.shapes.items())
    )
    members = [
        f"{name}/{member.process_id}/{shown(member.target)}"
        for name, member in group.members.items()
    ]
    return " ".join([str(group.standby_count), shapes, *members])


def shown(target: TargetTasks) -> str:
    """Return active and standby tasks as the questions and answers have them."""
    kinds = [
        ",".join(
            f"{name}={'.'.join(map(str, sorted(partitions)))}"
            for name, partitions in sorted(tasks.items())
        )
        for tasks in (target.active, target.standby)
    ]
    return "/".join(kind or "-" for kind in kinds)


def answer(assignment: Mapping[str, TargetTasks]) -> str:
    """Return an assignment as the real one is answered."""
    return " ".join(f"{one}/{shown(target)}" for one, target in sorted(assignment.items()))


def test_the_same_members_get_the_same_tasks() -> None:
    """Over applications that change at random, ``sticky`` gives what that of Kafka 4.3 gives."""
    rng = random.Random(1071)
    questions: list[str] = []
    answers: list[str] = []
    for _ in range(GROUP_COUNT):
        group = Group(rng, rng.choice([0, 0, 1, 2]))
        for _ in range(CHANGES):
            group.change()
            assignment = assign_stickily(group.spec())
            questions.append(question(group))
            answers.append(answer(assignment))
            group.take(assignment)
    done = subprocess.run(
        kafka_program(ASKED), input="\n".join(questions) + "\n",
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert len(told) == GROUP_COUNT * CHANGES
    for asked, ours, theirs in zip(questions, answers, told, strict=True):
        assert ours == theirs, asked
