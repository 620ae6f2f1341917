"""Rules of access are made, asked for and removed."""

from __future__ import annotations

from typing import Any

from tests.interop.drawn.world import World

#: resource types: unknown, any, topic, group, cluster, transactional id, delegation token, user
KINDS = (2, 2, 2, 3, 4, 5, 6, 7)
LITERAL, PREFIXED, ANY_PATTERN, MATCH, UNKNOWN = 3, 4, 1, 2, 0


def create(world: World) -> None:
    """Make rules."""
    rules = []
    for _ in range(world.pick(1, 1, 2, 3)):
        kind = world.chance.choice(KINDS)
        name = world.numbered("acl") if kind != 4 else world.pick("kafka-cluster", "x")
        rules.append(
            {
                "ResourceType": kind if world.likely(0.95) else world.pick(0, 1, 9),
                "ResourceName": name if world.likely(0.93) else world.pick("*", ""),
                "ResourcePatternType": world.pick(3, 3, 3, 4, 4, 3, 0, 1, 2, 5)
                if world.likely(0.4)
                else LITERAL,
                "Principal": world.pick("User:a", "User:*", "Group:g", "User:a", "a", "User:", ""),
                "Host": world.pick("*", "10.0.0.1", "*", "", "nowhere"),
                "Operation": world.chance.randrange(-1, 16),
                "PermissionType": world.pick(2, 3, 3, 3, 3, 0, 1, 4),
            }
        )
    world.ask("CreateAcls", {"Creations": rules})


def acl_filter(world: World) -> dict[str, Any]:
    """Draw which rules are meant."""
    return {
        "ResourceTypeFilter": world.pick(1, 1, 2, 2, 3, 4, 5, 0),
        "ResourceNameFilter": world.pick(None, world.numbered("acl"), world.numbered("acl"), "*"),
        "PatternTypeFilter": world.pick(3, 4, 1, 1, 2, 2, 0),
        "PrincipalFilter": world.pick(None, None, "User:a", "User:*", "nobody", ""),
        "HostFilter": world.pick(None, None, "*", "10.0.0.1"),
        "Operation": world.pick(1, 1, 1, 3, 4, 0, 20),
        "PermissionType": world.pick(1, 1, 1, 2, 3, 0),
    }


def describe(world: World) -> None:
    """Ask for rules."""
    world.ask("DescribeAcls", acl_filter(world))


def delete(world: World) -> None:
    """Remove rules; those of other sessions stay."""
    filters = []
    for _ in range(world.pick(1, 1, 2)):
        one = acl_filter(world)
        one["ResourceNameFilter"] = world.numbered("acl")
        filters.append(one)
    world.ask("DeleteAcls", {"Filters": filters})
