"""Resources: what is asked for, and the patterns of policies (``Resource``)."""

from __future__ import annotations

from functools import lru_cache

import attrs

from logstore.compat.rocketmq.topics.names import RETRY_PREFIX

ANY, CLUSTER, TOPIC, GROUP = "Any", "Cluster", "Topic", "Group"
_KINDS = {kind.lower(): kind for kind in ("Unknown", ANY, CLUSTER, "Namespace", TOPIC, GROUP)}
LITERAL, PREFIXED = "LITERAL", "PREFIXED"
#: the pattern of all names
_ALL = "ANY"
_STAR = "*"


@attrs.frozen
class Resource:
    """A kind, a name (None where the pattern needs none) and how the name is meant."""

    kind: str
    name: str | None
    pattern: str = LITERAL

    @property
    def key(self) -> str:
        """The resource as one text, like ``Topic:orders`` or ``Group:*``."""
        if self.kind == ANY:
            return _STAR
        if self.pattern == _ALL:
            return f"{self.kind}:{_STAR}"
        name = "null" if self.name is None else self.name
        return f"{self.kind}:{name}" + (_STAR if self.pattern == PREFIXED else "")

    def covers(self, asked: Resource) -> bool:
        """Tell whether a resource that is asked for is one of these."""
        if self.kind == ANY:
            return True
        if self.kind != asked.kind:
            return False
        if self.pattern == PREFIXED:
            return asked.name is not None and asked.name.startswith(self.name or "")
        return self.pattern == _ALL or asked.name == self.name


@lru_cache(maxsize=4096)
def resource_of(key: str) -> Resource | None:
    """Return the resource of a key, None if it is none."""
    if not key.strip():
        return None
    if key == _STAR:
        return Resource(ANY, None, _ALL)
    kind_text, _, name = key.partition(":")
    kind = _KINDS.get(kind_text.lower())
    if kind is None:
        return None
    if name == _STAR:
        return Resource(kind, None, _ALL)
    if name.endswith(_STAR):
        return Resource(kind, name.partition(_STAR)[0], PREFIXED)
    return Resource(kind, name)


def topic(name: str | None) -> Resource:
    """Return a topic as it is asked for."""
    return Resource(TOPIC, name)


def group(name: str | None) -> Resource:
    """Return a group as it is asked for, by its own name or that of its retry topic."""
    if name is not None and is_retry_topic(name):
        name = name.removeprefix(RETRY_PREFIX)
    return Resource(GROUP, name)


def is_retry_topic(name: str | None) -> bool:
    """Tell whether a topic is where a group's messages come again."""
    return name is not None and name.startswith(RETRY_PREFIX)
