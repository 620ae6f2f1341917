"""What a session knows so far: topics, groups, messages and what was popped."""

from __future__ import annotations

import random
import time
from typing import Any

import attrs

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.interop.drawn.pair import Pair
from tests.interop.drawn_rocketmq.mutation import mutated
from tests.interop.drawn_rocketmq.request import Request
from tests.interop.drawn_rocketmq.stage import Stage
from tests.interop.drawn_rocketmq.twin import ONLY_ASK, Told, Twin

#: of ten requests so many have one thing wrong
MUTATED_SHARE = 0.15
#: clients of 3.2, 3.4, 4.9.8 and of 5.5.0
VERSIONS = (513, 513, 513, 513, 413, 401, 115, 0)
SYSTEM_TOPICS = ("TBW102", "SELF_TEST_TOPIC", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC",
                 "OFFSET_MOVED_EVENT", "broker-a", "DefaultCluster")  # fmt: skip

#: what a name server tells of topics
TOLD_OF_TOPICS = (Code.GET_ROUTEINFO_BY_TOPIC, Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
                  Code.GET_TOPICS_BY_CLUSTER)  # fmt: skip


@attrs.frozen
class Sent:
    """A message that both have."""

    topic: str
    queue_id: int
    queue_offset: int
    #: where it stands in each log, and what each calls it by that
    physical_offset: Any
    message_id: Any
    key: str
    unique_key: str


@attrs.define
class World:
    """The state of a session, its chance, and the two brokers."""

    twin: Twin
    chance: random.Random
    prefix: str
    #: how many queues to write to a topic has
    topics: dict[str, int] = attrs.field(factory=dict)
    sent: list[Sent] = attrs.field(factory=list)
    #: half messages: their topic, group, offsets and id
    halves: list[dict[str, Any]] = attrs.field(factory=list)
    #: what was popped: all that an acknowledgement says
    popped: list[dict[str, Any]] = attrs.field(factory=list)
    #: topics of timed messages, and the handles by which these are taken back
    handles: list[tuple[str, Any]] = attrs.field(factory=list)
    #: when messages of a topic were stored
    moments: list[tuple[str, Pair]] = attrs.field(factory=list)
    #: how many messages of a topic come to be there by themselves
    due: dict[str, int] = attrs.field(factory=dict)
    #: by which the brokers are ended and started again, and how often they were
    stage: Stage | None = None
    restarts: int = 0
    #: how often old files were deleted
    removals: int = 0
    number: int = 0
    #: the name server forgets what brokers do not name
    forgets: bool = False

    def likely(self, share: float) -> bool:
        """Toss a coin."""
        return self.chance.random() < share

    def pick(self, *choices: Any) -> Any:
        """Draw one of some."""
        return self.chance.choice(choices)

    def next(self) -> int:
        """Return a number that was not there before."""
        self.number += 1
        return self.number

    def request(
        self, code: int, fields: dict[str, Any] | None = None, body: Any = b"", **more: Any
    ) -> Request:
        """Return a request, one of several with something wrong; fields that are None are not."""
        given = {name: one for name, one in (fields or {}).items() if one is not None}
        more.setdefault("version", self.chance.choice(VERSIONS))
        more.setdefault("serializer", int(self.likely(0.25)))
        is_plain = more.pop("is_plain", False)
        request = Request(int(code), given if fields is not None else None, body, **more)
        if not is_plain and self.likely(MUTATED_SHARE):
            changed = mutated(request, self.chance, is_only_asked=code in ONLY_ASK)
            return attrs.evolve(changed, is_changed=True)
        return request

    def ask(
        self,
        code: int,
        fields: dict[str, Any] | None = None,
        body: Any = b"",
        line: str = "main",
        **more: Any,
    ) -> Told:
        """Put a request to both."""
        if self.forgets and code in TOLD_OF_TOPICS:
            self._register_all()
        return self.twin.ask(self.request(code, fields, body, **more), line)

    def _register_all(self) -> None:
        """
        Have both brokers name all of their topics.

        Where one was named alone the others are forgotten, until the broker's time comes round.
        """
        change = Request(int(Code.UPDATE_BROKER_CONFIG), {}, b"brokerPermission=6", version=513)
        self.twin.ask(change, "main")

    def group(self) -> str:
        """Draw a group's name."""
        if self.likely(0.93):
            return f"{self.prefix}-g{self.chance.randrange(3)}"
        return str(
            self.pick(
                "", "bad name", "CID_RMQ_SYS_x", "DEFAULT_CONSUMER", "g" * 300,
                f"{self.prefix}-unknown", "TOOLS_CONSUMER", "CID_ONSAPI_PULL",
            )
        )  # fmt: skip

    def topic(self) -> str:
        """Draw a topic's name, most often one of a topic that is there."""
        if self.topics and self.likely(0.92):
            return self.chance.choice(list(self.topics))
        return str(self.pick(f"{self.prefix}-unknown", "", "bad name", "t" * 300, "%RETRY%",
                             self.retry_topic(), self.retry_topic().replace("RETRY", "DLQ"),
                             *SYSTEM_TOPICS))  # fmt: skip

    def retry_topic(self) -> str:
        """Return the retry topic of a group."""
        return f"%RETRY%{self.prefix}-g{self.chance.randrange(3)}"

    def queue(self, topic: str) -> int:
        """Draw a queue, most often one that is there."""
        if self.likely(0.93):
            return self.chance.randrange(max(1, self.topics.get(topic, 1)))
        return int(self.pick(-1, self.topics.get(topic, 1), 100, 2**31 - 1, -(2**31)))

    def offset(self) -> int:
        """Draw a place in a queue."""
        return int(self.pick(0, 0, 0, 1, 1, 2, 3, 5, 8, 100, -1, -2, 2**62))

    def message(self) -> Sent | None:
        """Draw a message that was sent, if there is one."""
        return self.chance.choice(self.sent) if self.sent else None

    def now_ms(self) -> int:
        """Return the time."""
        return int(time.time() * 1000)
