"""What clients of a life share: chance, the truth, the broker of the day, numbers for bodies."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from typing import Protocol

import attrs

from logstore.compat.rocketmq.broker import Broker
from logstore.testing.manual_clock import ManualClock
from tests.compat.rocketmq.broker_peer import Peer
from tests.compat.rocketmq.frames import Answer
from tests.compat.rocketmq.lives.chronicle import Chronicle, Kind, Place, Sent

TAGS = ("red", "green", None)
Then = Callable[[Answer], None]
#: what an answer says that is none: something was forgotten in the broker
_BLUNDER = re.compile(r"(?!OSError|\w*FailedError|StorageError|ReadOnly)[A-Z]\w+Error: ")


class Client(Protocol):
    """Does one thing whenever it is its turn."""

    def act(self) -> None:
        """Do the next thing."""
        ...

    def reconnect(self) -> None:
        """Another broker of the same life runs from now on."""
        ...


def _nothing() -> None:
    """Do nothing: there are no other brokers."""


@attrs.define
class World:
    """See the module."""

    dice: random.Random
    chronicle: Chronicle
    broker: Broker
    #: whether what senders are told is on the disk
    is_sync: bool
    clock: ManualClock
    count: int = 0
    #: nothing has gone wrong since the last start
    is_healthy: bool = True
    #: requests that wait for their answer
    waiting: list[tuple[Peer, int, Then]] = attrs.field(factory=list[tuple[Peer, int, Then]])
    #: has other brokers do what they do about it
    carry: Callable[[], None] = _nothing
    _ports: int = 40_000
    _latest_ms: int = 0

    def peer(self) -> Peer:
        """Return a new client of the broker of the day."""
        self._ports += 1
        return Peer(self.broker, self._ports)

    def now_ms(self) -> int:
        """Return the time."""
        return self.clock.wall_ms()

    @property
    def latest_ms(self) -> int:
        """The latest time that the wall clock has shown."""
        return max(self._latest_ms, self.now_ms())

    def jump_clock(self, jump_ms: int) -> None:
        """Set the wall clock forth or back."""
        self._latest_ms = self.latest_ms
        self.chronicle.has_jumped |= jump_ms != 0
        if jump_ms < 0:
            self.chronicle.has_gone_back = True
        self.clock.jump_wall(jump_ms)

    def place(self, *, may_be_batch: bool = True) -> Place | None:
        """Return any queue; None if there is none."""
        chronicle = self.chronicle
        batches = set[str]() if may_be_batch else chronicle.batch_topics
        places = sorted(place for place in chronicle.places if place[0] not in batches)
        return self.dice.choice(places) if places else None

    def message(self, place: Place, kind: Kind = Kind.PLAIN, **properties: str) -> Sent:
        """Return a message that nobody else sends."""
        self.count += 1
        body = b"%d" % self.count + b"." * self.dice.choice((0, 0, 30, 300, 3000))
        found = {**properties, "UNIQ_KEY": f"7F0000010000{self.count:020X}"}
        if self.dice.random() < 0.5:
            found["KEYS"] = f"k{self.count} m{self.count % 7}"
        tag = self.dice.choice(TAGS)
        if tag is not None:
            found["TAGS"] = tag
        return Sent(body, place, found["UNIQ_KEY"], found, kind, born_ms=self.now_ms())

    # requests

    def ask(
        self, peer: Peer, code: int, fields: Mapping[str, object], body: bytes, then: Then
    ) -> None:
        """Send a request; `then` gets the answer, now or later, or never."""
        self.waiting.append((peer, peer.send(code, fields, body), then))
        self.listen()

    def listen(self) -> None:
        """Hand out the answers that have come; nobody waits where the connection is gone."""
        self.broker.timers.run()
        self.carry()
        for entry in list(self.waiting):
            peer, opaque, then = entry
            answer = peer.answer_to(opaque)
            if answer is not None:
                self.waiting.remove(entry)
                assert not _BLUNDER.match(answer.remark or ""), f"{answer}"
                then(answer)

    @property
    def log_end(self) -> int:
        """How long the log is just now."""
        return int(self.broker.store.commit_log.wrote_where)

    def stored(self, sent: Sent, queue_offset: int, physical_offset: int) -> None:
        """Take note that a message stands in the log."""
        sent.queue_offset, sent.physical_offset = queue_offset, physical_offset
        sent.log_end = physical_offset + 1
        if self.is_sync:
            flushed = self.broker.store.commit_log.flushed_where
            assert flushed > physical_offset, f"{sent} is told, and flushed is {flushed}"


def properties_text(properties: Mapping[str, str]) -> str:
    """Return properties as clients send them."""
    return "".join(f"{name}\x01{value}\x02" for name, value in properties.items())


def physical_offset_of(message_id: str) -> int:
    """Return where the message of an offset message id stands."""
    return int(message_id[-16:], 16)
