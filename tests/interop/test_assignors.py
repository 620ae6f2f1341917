"""Kafka's assignors and ours, asked the same: who shall read what in a group."""

from __future__ import annotations

import random
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

from logstore.compat.kafka.groups.consumer.target_assignment import ASSIGNORS
from logstore.compat.kafka.groups.modern.assignor_spec import (
    Assignment,
    GroupSpec,
    MemberSpec,
)
from logstore.compat.kafka.groups.modern.group import Target
from logstore.compat.kafka.groups.share.simple_assignor import assign_simply
from logstore.segments.kafka.kafka_uuid import uuid_to_text
from tests.interop.java_programs import kafka_program

pytestmark = pytest.mark.interop

ASKED = Path(__file__).with_name("Assignors.java")
GROUP_COUNT, CHANGES = 300, 4


@attrs.define
class Group:
    """A group whose members and topics change at random, and the assignor it uses."""

    assignor: str
    rng: random.Random
    is_homogeneous: bool
    counts: dict[uuid.UUID, int] = attrs.field(factory=dict[uuid.UUID, int])
    members: dict[str, MemberSpec] = attrs.field(factory=dict[str, MemberSpec])

    def change(self) -> None:
        """Let topics come and grow, members come and go, and want something else."""
        rng = self.rng
        for _ in range(rng.choice([0, 1, 1, 3]) if self.counts else rng.choice([1, 2, 5, 14])):
            self.counts[uuid.UUID(int=rng.getrandbits(128))] = rng.choice([1, 2, 3, 6, 17, 40])
        grown = rng.choice(list(self.counts))
        self.counts[grown] += rng.choice([0, 0, 1, 5])
        for member_id in rng.sample(sorted(self.members), len(self.members) // 4):
            del self.members[member_id]
        for _ in range(rng.choice([1, 1, 2, 5, 20])):
            member_id = str(uuid.UUID(int=rng.getrandbits(128)))
            instance_id = f"i{rng.randrange(1000)}" if rng.random() < 0.3 else None
            taken = {member.instance_id for member in self.members.values()}
            self.members[member_id] = MemberSpec(
                frozenset(), {}, 0, None if instance_id in taken else instance_id
            )
        for member_id, member in self.members.items():
            wants = set(self.counts)
            if not self.is_homogeneous and (rng.random() < 0.2 or not member.topic_ids):
                wants = set(rng.sample(sorted(wants), rng.randrange(len(wants) + 1)))
            elif not self.is_homogeneous:
                wants = set(member.topic_ids)
            self.members[member_id] = attrs.evolve(
                member, topic_ids=frozenset(wants), name_count=len(wants)
            )

    def spec(self) -> GroupSpec:
        """Return the group as it stands."""
        wanted = {one for member in self.members.values() for one in member.topic_ids}
        counts = {one: count for one, count in self.counts.items() if one in wanted}
        return GroupSpec(dict(self.members), counts, self.is_homogeneous)

    def take(self, assignment: Assignment) -> None:
        """Let everybody have what was assigned."""
        for member_id, member in self.members.items():
            target = assignment.get(member_id, {})
            self.members[member_id] = attrs.evolve(member, target=target)


def question(assignor: str, group: GroupSpec) -> str:
    """Return the line that asks the real assignor."""
    counts = ",".join(f"{text(one)}={count}" for one, count in group.partition_counts.items())
    members = [
        "/".join(
            [
                member_id,
                member.instance_id or "-",
                ",".join(map(text, topics_of(assignor, group, member))) or "-",
                # In the order in which they were given: it decides where two ids collide.
                ",".join(listed(member.target)) or "-",
            ]
        )
        for member_id, member in group.members.items()
    ]
    kind = "HOMOGENEOUS" if group.is_homogeneous else "HETEROGENEOUS"
    return " ".join([assignor, kind, counts or "-", *members])


def topics_of(assignor: str, group: GroupSpec, member: MemberSpec) -> list[uuid.UUID]:
    """Return what a member wants in the order in which our assignor walks through it."""
    if assignor in ASSIGNORS:
        return list(member.topic_ids)
    return [one for one in group.partition_counts if one in member.topic_ids]


def text(topic_id: uuid.UUID) -> str:
    """Return a topic's id as Kafka prints it."""
    return uuid_to_text(topic_id.bytes)


def listed(target: Target) -> list[str]:
    """Return each topic's partitions as the questions have them: also of none, which counts."""
    return [
        f"{text(topic_id)}={'.'.join(map(str, sorted(indexes)))}"
        for topic_id, indexes in target.items()
    ]


def shown(target: Target) -> list[str]:
    """Return each topic's partitions as the answers have them."""
    return listed({topic_id: indexes for topic_id, indexes in target.items() if indexes})


def answer(assignment: Mapping[str, Target]) -> str:
    """Return an assignment as the real one is answered."""
    return " ".join(
        f"{one}/{','.join(sorted(shown(target)))}" for one, target in sorted(assignment.items())
    )


def assigned(assignor: str, spec: GroupSpec) -> Assignment:
    """Return what our assignor of that name gives."""
    if assignor in ASSIGNORS:
        return ASSIGNORS[assignor](spec)
    assignable = {
        topic_id: frozenset(index for index in range(count) if index % 4 != 3)
        for topic_id, count in spec.partition_counts.items()
    }
    return assign_simply(spec, assignable, list(spec.partition_counts))


def test_the_same_members_get_the_same_partitions() -> None:
    """Over groups that change at random, all assignors give what those of Kafka 4.3 give."""
    rng = random.Random(848)
    questions: list[str] = []
    answers: list[str] = []
    for number in range(GROUP_COUNT):
        assignor = ("uniform", "range", "simple", "simple")[number % 4]
        group = Group(assignor, rng, rng.random() < 0.5)
        for _ in range(CHANGES):
            group.change()
            spec = group.spec()
            assignment = assigned(group.assignor, spec)
            questions.append(question(group.assignor, spec))
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
