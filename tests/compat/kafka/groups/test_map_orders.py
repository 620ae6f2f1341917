"""Java's maps, walked as Java walks them."""

from __future__ import annotations

from logstore.compat.kafka.groups.listing_order import groups_in_order
from logstore.compat.kafka.groups.modern.hash_order import (
    members_in_sized_order,
    members_in_timeline_order,
)


def test_members_are_walked_as_java_does() -> None:
    """In the order of Kafka's own maps, and of hash maps that were made for a few keys."""
    names = [f"member-{number * 37}" for number in range(12)]
    numbers = [296, 407, 333, 259, 0, 185, 222, 148, 74, 111, 37, 370]
    assert members_in_timeline_order(names) == [f"member-{number}" for number in numbers]
    assert members_in_timeline_order(["first", "second"]) == ["second", "first"]
    assert members_in_timeline_order(["first", "second"], 6) == ["first", "second"]
    numbers = [296, 111, 222, 407, 370, 0, 185, 37, 333, 148, 74, 259]
    assert members_in_sized_order(names, 5) == [f"member-{number}" for number in numbers]


def test_groups_are_walked_coordinator_by_coordinator() -> None:
    """With 50 partitions, and with 4 that hold several groups each, as Kafka 4.3.1 lists them."""
    names = [*(f"group-{number * 37}" for number in range(12)), "a", "b", "c", "orders", "payments"]
    listed = (
        "payments group-407 c group-148 group-111 group-185 group-296 group-74 group-0 b group-37 "
        "group-259 group-222 a group-333 group-370 orders"
    )
    assert groups_in_order(names, 50) == listed.split()
    listed = (
        "group-259 group-222 group-185 c group-407 group-296 group-333 group-74 orders payments a "
        "group-148 group-111 group-370 group-0 b group-37"
    )
    assert groups_in_order(names, 4) == listed.split()
