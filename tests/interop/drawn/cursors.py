"""Topics in pages: from the first to the last, while topics come, grow and go."""

from __future__ import annotations

from typing import Any

from tests.interop.drawn import topics
from tests.interop.drawn.inquiries import INT32_MAX, doubled
from tests.interop.drawn.world import Topic, World

API = "DescribeTopicPartitions"
PAGES_MAX = 12
LIMITS = (1, 1, 2, 2, 3, 4, 7, 0, -1, -(2**31), 2000, 2001, INT32_MAX)
ENDS = (0, 0, 1, 2, 11, -1, INT32_MAX, INT32_MAX - 1, -(2**31))
#: behind or around a topic's name: what a cursor may stand at
AFFIXES = ("", "", "", "0", "\0", "~", ".", "\u00fc", "\U0001f600", "\uffff")
ODD_NAMES = ("", " ", ".", "..", "a b", "x" * 249, "x" * 250, "__consumer_offsets", "__", "\u00fc")


def grow(world: World) -> None:
    """Make a topic of many partitions."""
    name = f"{world.prefix}-{world.pick('long', 'M', 'm.', 'm_')}{world.chance.randrange(3)}"
    body = {
        "Topics": [
            {"Name": name, "NumPartitions": world.pick(5, 9, 12), "ReplicationFactor": 1,
             "Assignments": [], "Configs": []}
        ],
        "timeoutMs": 10_000,
    }  # fmt: skip
    world.twin.ask("CreateTopics", 5, body)
    topics.learn_topics(world, [name])


def page(world: World) -> None:
    """Ask for one page, from anywhere, of topics that are there and of names that are none."""
    names = doubled(world, wanted(world))
    at: Any = world.chance.choice(names) if names and world.likely(0.6) else world.topic().name
    cursor = {
        "TopicName": world.pick(f"{at}{world.pick(*AFFIXES)}", at[:-1], at.upper(), at),
        "PartitionIndex": world.pick(*ENDS),
    }
    ask(world, names, world.pick(*LIMITS), cursor if world.likely(0.8) else None)


def pages(world: World) -> None:
    """Follow the cursors from page to page; in between something may change."""
    names = wanted(world)
    cursor: Any = None
    if not names or world.likely(0.3):
        cursor = {"TopicName": world.prefix, "PartitionIndex": 0}
        names = [] if world.likely(0.7) else [*names, world.prefix]
    limit = world.pick(1, 2, 2, 3, 4, 5)
    for _ in range(PAGES_MAX):
        answer = ask(world, names, limit, cursor)
        cursor = answer.get(lambda told: told["NextCursor"])
        if cursor is None:
            return
        if world.likely(0.12):
            world.pick(topics.create_partitions, topics.delete_topics, grow)(world)
        if world.likely(0.1):
            limit = world.pick(1, 3, 8)
        if world.likely(0.08):
            names = [one for one in names if one != cursor["TopicName"]]


def wanted(world: World) -> list[str]:
    """Draw names of topics that are there, that were, and that cannot be."""
    found = [named(world).name for _ in range(world.pick(0, 1, 2, 3, 4))]
    if world.likely(0.2):
        found.append(world.pick(*ODD_NAMES))
    return found


def named(world: World) -> Topic:
    """Draw a topic, most often the one of most partitions."""
    known = sorted(world.topics.values(), key=lambda one: -one.partitions)
    return known[0] if known and world.likely(0.3) else world.topic()


def ask(world: World, names: list[str], limit: int, cursor: Any) -> Any:
    """Put the question."""
    body = {
        "Topics": [{"Name": name} for name in names],
        "ResponsePartitionLimit": limit,
        "Cursor": cursor,
    }
    return world.ask(API, body) if world.likely(0.3) else world.twin.ask(API, 0, body)
