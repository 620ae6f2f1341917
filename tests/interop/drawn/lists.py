"""Settings that are lists are lengthened and shortened, several times in a request or not."""

from __future__ import annotations

from typing import Any

from tests.interop.drawn.configs import (
    APPEND,
    BROKER,
    DELETE,
    METRICS,
    SET,
    SUBTRACT,
    TOPIC,
    each_once,
)
from tests.interop.drawn.world import World

POLICIES = ("compact", "delete", "compact,delete", "delete,compact", "", "rot", " compact",
            "compact,", ",", "compact,compact", "delete , compact", "COMPACT", None)  # fmt: skip
REPLICAS = ("0:1", "1:1", "0:1,1:1", "*", "", "none", "0:1,0:1", "x", "0:1,*", "0:", " 0:1", None)
#: by kind: lists and what they may be given, and a setting or two that are no lists
KNOWN: dict[int, tuple[tuple[str, tuple[str | None, ...]], ...]] = {
    TOPIC: (
        ("cleanup.policy", POLICIES),
        ("cleanup.policy", POLICIES),
        ("leader.replication.throttled.replicas", REPLICAS),
        ("follower.replication.throttled.replicas", REPLICAS),
        ("retention.ms", ("5000", "", None)),
        ("compression.type", ("gzip", "")),
        ("no.such", ("x",)),
    ),
    METRICS: (
        ("metrics", ("a.", "b.", "a.,b.", "", "*", "a.,a.", " a.", None)),
        ("match", ("client_id=a", "client_id=b", "client_software_name=x",
                   "client_id=a,client_id=c", "", "colour=red", "client_id", "client_id=(", None)),
        ("interval.ms", ("1000", "")),
    ),
    BROKER: (
        ("log.cleanup.policy", POLICIES),
        ("ssl.enabled.protocols", ("TLSv1.2", "TLSv1.3", "", "x", None)),
        ("sasl.enabled.mechanisms", ("PLAIN", "x", "", None)),
        ("ssl.cipher.suites", ("x", "", None)),
        ("log.retention.ms", ("1000", "")),
    ),
}  # fmt: skip


def change(world: World) -> None:
    """Change some settings of something or several, each in some way."""
    items = []
    for _ in range(world.pick(1, 1, 1, 2)):
        kind = world.pick(TOPIC, TOPIC, TOPIC, METRICS, METRICS, BROKER)
        settings: list[dict[str, Any]] = []
        for _ in range(world.pick(1, 1, 1, 2, 3)):
            key, values = world.chance.choice(KNOWN[kind])
            operation = world.pick(*[APPEND] * 4, *[SUBTRACT] * 3, SET, SET, DELETE)
            value = world.chance.choice(values)
            settings.append({"Name": key, "ConfigOperation": operation, "Value": value})
        name = name_of(world, kind)
        items.append({"ResourceType": kind, "ResourceName": name, "Configs": settings})
    # What is changed of the broker would change what all sessions behind see.
    is_only_asked = any(one["ResourceType"] == BROKER for one in items) or world.likely(0.15)
    body = {"Resources": each_once(items), "ValidateOnly": is_only_asked}
    world.ask("IncrementalAlterConfigs", body)


def name_of(world: World, kind: int) -> str:
    """Draw what has such settings."""
    if kind == TOPIC:
        return world.topic_name()
    return world.pick("1", "") if kind == BROKER else world.numbered("metrics")


def describe(world: World) -> None:
    """Ask what became of them."""
    kind = world.pick(TOPIC, TOPIC, METRICS)
    keys = list(dict.fromkeys(name for name, _ in KNOWN[kind])) if kind == TOPIC else None
    item = {"ResourceType": kind, "ResourceName": name_of(world, kind), "ConfigurationKeys": keys}
    body = {"Resources": [item], "IncludeSynonyms": world.likely(0.5)}
    world.twin.ask("DescribeConfigs", world.version("DescribeConfigs"), body)
