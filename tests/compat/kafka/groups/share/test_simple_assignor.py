"""Partitions are dealt out to as many members as it takes, and stay where they are if they may."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import pytest

from logstore.compat.kafka.groups.modern.assignor_spec import Assignment, GroupSpec, MemberSpec
from logstore.compat.kafka.groups.modern.group import Target
from logstore.compat.kafka.groups.share.simple_assignor import assign_simply

T, U = uuid.UUID(int=1), uuid.UUID(int=2)


def assigned(
    wants: Mapping[str, set[uuid.UUID]], had: Mapping[str, Target] | None = None, **counts: int
) -> Assignment:
    """Return who gets what of topics `t` and `u` with so many partitions."""
    sizes = {{"t": T, "u": U}[name]: count for name, count in counts.items()}
    members = {
        name: MemberSpec(frozenset(topics), (had or {}).get(name, {}), len(topics))
        for name, topics in wants.items()
    }
    is_homogeneous = len({frozenset(topics) for topics in wants.values()}) == 1
    assignable = {topic_id: frozenset(range(count)) for topic_id, count in sizes.items()}
    topics = [topic_id for topic_id in sizes if any(topic_id in one for one in wants.values())]
    return assign_simply(GroupSpec(members, sizes, is_homogeneous), assignable, topics)


def counted(assignment: Assignment) -> dict[str, int]:
    """Return how many partitions each has."""
    return {name: sum(map(len, target.values())) for name, target in assignment.items()}


@pytest.mark.parametrize(
    ("members", "partitions", "counts"),
    [
        (1, 4, [4]), (2, 4, [2, 2]), (3, 4, [1, 1, 2]), (4, 4, [1] * 4),
        (5, 4, [1, 1, 2, 2, 2]), (3, 1, [1] * 3), (5, 2, [1, 1, 1, 1, 2]),
    ],
)  # fmt: skip
def test_members_get_about_as_many(members: int, partitions: int, counts: list[int]) -> None:
    """Nobody has two more than another, and every partition is read by as many as any other."""
    names = [f"m{number}" for number in range(members)]
    found = assigned({name: {T} for name in names}, t=partitions)
    assert sorted(counted(found).values()) == counts
    readers = [sum(index in target[T] for target in found.values()) for index in range(partitions)]
    assert max(readers) - min(readers) <= (members % partitions != 0)


def test_what_a_member_had_stays_with_it() -> None:
    """A member that comes gets what is taken from who has too much, and nothing else moves."""
    first = assigned({"a": {T}, "b": {T}}, t=4)
    second = assigned({"a": {T}, "b": {T}, "c": {T}}, first, t=4)
    assert counted(second)["c"] >= 1
    for name in ("a", "b"):
        assert second[name][T] <= first[name][T]
    assert assigned({"a": {T}, "b": {T}, "c": {T}}, second, t=4) == second


def test_members_that_want_different_topics() -> None:
    """Each topic is dealt out to who wants it; what is not wanted any more is given up."""
    found = assigned({"a": {T}, "b": {U}, "c": {T, U}}, t=4, u=2)
    assert {name: sorted(target) for name, target in found.items()} == {
        "a": [T], "b": [U], "c": [T, U],
    }  # fmt: skip
    assert counted(found) == {"a": 2, "b": 1, "c": 3}
    moved = assigned({"a": {U}, "b": {U}, "c": {T, U}}, found, t=4, u=2)
    assert moved["a"][T] == frozenset(), "the topic stays, without partitions"
    assert moved["c"][T] == frozenset(range(4))


def test_topics_that_nobody_wants_are_dropped_if_all_want_the_same() -> None:
    """And those that do not exist count as not wanted."""
    had = {"a": {U: frozenset({0})}}
    assert assigned({"a": {T}}, had, t=1, u=1) == {"a": {T: frozenset({0})}}
    assert assigned({"a": set()}, had) == {}


def test_only_what_may_be_assigned_is() -> None:
    """Partitions whose state has not begun are nobody's."""
    spec = GroupSpec({"a": MemberSpec(frozenset({T}), {}, 1)}, {T: 4}, is_homogeneous=True)
    assert assign_simply(spec, {T: frozenset({1, 3})}, [T]) == {"a": {T: frozenset({1, 3})}}
    assert assign_simply(spec, {}, [T]) == {"a": {}}
