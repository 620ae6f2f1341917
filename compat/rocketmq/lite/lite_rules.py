"""What topics and groups say of lite topics by their attributes (LiteMetadataUtil)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.segments.rocketmq.tables.subscription_groups import SubscriptionGroupConfig
    from logstore.segments.rocketmq.tables.topics import TopicConfig

BIND_TOPIC = "lite.bind.topic"
_MODEL, _EXCLUSIVE = "lite.sub.model", "Exclusive"
_WILDCARD = "lite.sub.wildcard"
_EVENTS_MAX = "lite.sub.client.max.event.cnt"
_EXPIRATION = "lite.topic.expiration"
_NEVER = -1
_QUOTA = 2000


def is_parent(config: TopicConfig | None) -> bool:
    """Tell whether a topic has lite topics below it."""
    return config is not None and config.attributes.get("message.type") == "LITE"


def expiration_minutes(config: TopicConfig) -> int:
    """Return after how long without a message lite topics of a topic go, -1 for never."""
    return _number(config.attributes.get(_EXPIRATION), _NEVER) if is_parent(config) else _NEVER


def bind_topic(group: SubscriptionGroupConfig | None) -> str | None:
    """Return the one parent that a group reads lite topics of, None if it reads none."""
    return None if group is None else group.attributes.get(BIND_TOPIC)


def subscription_quota(group: SubscriptionGroupConfig) -> int:
    """Return how many lite topics a client of a group may read; its proxy sees to it."""
    return _number(group.attributes.get("lite.sub.client.quota"), _QUOTA)


class GroupRules:
    """How the groups of a broker read lite topics; a group that is not there reads none."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def bind_topic(self, name: str) -> str | None:
        """Return the parent of the lite topics that a group reads."""
        return bind_topic(self._broker.groups.find(name))

    def may_consume(self, name: str) -> bool:
        """Tell whether a group is open."""
        group = self._broker.groups.find(name)
        return group is not None and group.is_consume_enabled

    def is_exclusive(self, name: str) -> bool:
        """Tell whether a lite topic has one client of the group at a time."""
        return self._attribute(name, _MODEL) == _EXCLUSIVE

    def is_wildcard(self, name: str) -> bool:
        """Tell whether a group reads all lite topics of its parent."""
        return self._attribute(name, _WILDCARD) is not None

    def begins_anew_when_taken_over(self, name: str) -> bool:
        """Tell whether the next exclusive client begins with the first message."""
        return (self._attribute(name, "lite.sub.reset.offset.exclusive") or "").lower() == "true"

    def begins_anew_after_unsubscribing(self, name: str) -> bool:
        """Tell whether who comes back begins with the first message."""
        return (self._attribute(name, "lite.sub.reset.offset.unsubscribe") or "").lower() == "true"

    def events_max(self, name: str) -> int:
        """Return of how many lite topics with messages a client of the group is told at a time."""
        found = _number(self._attribute(name, _EVENTS_MAX), _NEVER)
        return found if found > 0 else self._broker.settings.lite_client_events_max

    def _attribute(self, name: str, attribute: str) -> str | None:
        group = self._broker.groups.find(name)
        return None if group is None else group.attributes.get(attribute)


def expirations(broker: Broker) -> dict[str, int]:
    """Return all parents, and after how many minutes without a message their lite topics go."""
    topics = broker.topics.table.topics
    return {
        name: expiration_minutes(config) for name, config in topics.items() if is_parent(config)
    }


def groups_by_parent(broker: Broker) -> dict[str, list[str]]:
    """Return the groups of each parent that has any."""
    found: dict[str, list[str]] = {}
    for name, group in broker.groups.table.groups.items():
        parent = bind_topic(group)
        if parent is not None:
            found.setdefault(parent, []).append(name)
    return found


def _number(text: str | None, default: int) -> int:
    digits = (text or "").removeprefix("-")
    return int(text or "") if digits.isascii() and digits.isdigit() else default
