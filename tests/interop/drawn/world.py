"""What a session knows so far: topics, producers, groups and what both brokers called them."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable
from typing import Any

import attrs

from tests.interop.drawn.mutation import ODD_SHARE, mutated, put_oddly
from tests.interop.drawn.pair import Pair
from tests.interop.drawn.schemas import apis
from tests.interop.drawn.twin import Answer, Twin

#: of ten questions so many have one thing wrong
MUTATED_SHARE = 0.18
UNKNOWN_ID = b"no such topic id"
CHANGE_SECONDS = 0.03
#: These go by way of the real controller: its broker knows a little later.
BY_CONTROLLER = frozenset(
    ("CreateTopics", "DeleteTopics", "CreatePartitions", "AlterConfigs", "IncrementalAlterConfigs",
     "AlterClientQuotas", "AlterUserScramCredentials", "CreateAcls", "DeleteAcls",
     "CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken")
)  # fmt: skip


@attrs.define
class Topic:
    """A topic that both have."""

    name: str
    id: Any
    partitions: int


@attrs.define
class Producer:
    """A producer's identity and what it would send next."""

    id: Any
    epoch: Any
    #: what its transactions are called; None if it has none
    transactional_id: str | None = None
    sequences: dict[tuple[str, int], int] = attrs.field(factory=dict)


@attrs.define
class Sharer:
    """Who reads with a share group, and what it has."""

    group: str
    member: str
    #: of its next request, 0 if it has no session
    epoch: int = 0
    #: the partitions of its session
    wanted: set[tuple[str, int]] = attrs.field(factory=set)
    #: what it has acquired of each partition: first and last offsets
    held: dict[tuple[str, int], list[tuple[int, int]]] = attrs.field(factory=dict)


@attrs.define
class World:
    """The state of a session, its chance, and the two brokers."""

    twin: Twin
    chance: random.Random
    prefix: str
    versions: dict[str, range]
    topics: dict[str, Topic] = attrs.field(factory=dict)
    gone: list[Topic] = attrs.field(factory=list)
    producers: list[Producer] = attrs.field(factory=list)
    #: fetch sessions: what they are called, and their next epoch
    sessions: dict[str, Any] = attrs.field(factory=dict)
    #: the members of each group by names of our own
    groups: dict[str, dict[str, dict[str, Any]]] = attrs.field(factory=dict)
    sharers: dict[str, Sharer] = attrs.field(factory=dict)
    #: share groups and the partitions that are open for them
    shared: set[tuple[str, str, int]] = attrs.field(factory=set)
    #: delegation tokens: their ids and secrets
    tokens: list[tuple[Any, Any]] = attrs.field(factory=list)
    #: what the members of streams groups run
    topologies: dict[str, dict[str, Any]] = attrs.field(factory=dict)

    def version(self, api: str) -> int:
        """Draw a version that both serve, the newest ones more often."""
        served = self.versions[api]
        return served[-1] if self.likely(0.35) else self.chance.choice(served)

    def likely(self, share: float) -> bool:
        """Toss a coin."""
        return self.chance.random() < share

    def pick(self, *choices: Any) -> Any:
        """Draw one of some."""
        return self.chance.choice(choices)

    def ask(
        self,
        api: str,
        body: dict[str, Any],
        version: int | None = None,
        line: str = "main",
    ) -> Answer:
        """Put a question to both, one of several with something wrong."""
        version = self.version(api) if version is None else version
        schema = apis()[api].request
        if self.likely(MUTATED_SHARE):
            body = mutated(schema, version, body, self.chance)
        if self.likely(ODD_SHARE):
            body = put_oddly(schema, version, body, self.chance)
        answer = self.twin.ask(api, version, body, line)
        if api in BY_CONTROLLER:
            time.sleep(CHANGE_SECONDS)
        return answer

    def begin(
        self,
        api: str,
        body: dict[str, Any],
        version: int,
        line: str,
        learn: Callable[[Answer], None] | None = None,
    ) -> None:
        """Put a question whose answer may have to wait for what others do."""
        if self.twin.is_waiting(line):
            return
        if self.likely(MUTATED_SHARE):
            body = mutated(apis()[api].request, version, body, self.chance)
        self.twin.begin(api, version, body, line, learn)

    def members(self, group: str) -> dict[str, dict[str, Any]]:
        """Return the members of a group, by names of our own."""
        return self.groups.setdefault(group, {})

    def numbered(self, kind: str) -> str:
        """Draw a name of two of a kind."""
        return f"{self.prefix}-{kind}{self.chance.randrange(2)}"

    def topic_name(self) -> str:
        """Draw a name, most often one of a topic that is there."""
        if self.topics and self.likely(0.85):
            return self.chance.choice(list(self.topics))
        names = (f"{self.prefix}-unknown", f"{self.prefix}-a", "", "bad name")
        return str(self.chance.choice(names))

    def topic(self) -> Topic:
        """Draw a topic that is there, or the shadow of one that is not."""
        if self.topics and self.likely(0.9):
            return self.chance.choice(list(self.topics.values()))
        if self.gone and self.likely(0.5):
            return self.chance.choice(self.gone)
        name = self.pick(f"{self.prefix}-unknown", "", "bad name")
        return Topic(name, UNKNOWN_ID, 1)

    def partition(self, topic: Topic) -> int:
        """Draw a partition, most often one that is there."""
        if self.likely(0.93):
            return self.chance.randrange(max(1, topic.partitions))
        return int(self.pick(-1, topic.partitions, 1000, 2**31 - 1))


def plus(value: Any, number: int) -> Any:
    """Add to a number that may be two."""
    if isinstance(value, Pair):
        return Pair(value.ours + number, value.real + number)
    return value + number


def subscription(topics: list[str], version: int = 1) -> bytes:
    """Return what a consumer says of itself when it joins."""
    data = struct.pack(">hi", version, len(topics))
    for topic in topics:
        data += struct.pack(">h", len(topic)) + topic.encode()
    data += struct.pack(">i", -1)
    return data + struct.pack(">i", 0) if version >= 1 else data
