"""Java's maps, walked as Java walks them."""

from __future__ import annotations

from logstore.compat.kafka.groups.modern.hash_order import (
    members_in_sized_order,
    members_in_timeline_order,
)


def test_members_are_walked_as_java_does() -> None:
    """In the order of Kafka's own maps, and of hash maps that were made for a few keys."""
    names = [f"member-{number * 37}" for number in range(12)]
    numbers = [296, 407, 333, 259, 0, 185, 222, 148, 74, 111, 37, 370]
    assert members_in_timeline_order(names) == [f"member-{number}" for number in numbers]
    numbers = [296, 111, 222, 407, 370, 0, 185, 37, 333, 148, 74, 259]
    assert members_in_sized_order(names, 5) == [f"member-{number}" for number in numbers]
