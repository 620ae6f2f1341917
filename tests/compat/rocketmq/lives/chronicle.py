"""What clients were told, kept by somebody who does not look at the broker: the truth of a life."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Sequence

import attrs

from tests.compat.rocketmq.lives.reader import Seen, short

Place = tuple[str, int]


class Kind(enum.Enum):
    """How a message comes to its queue."""

    PLAIN = enum.auto()
    #: a half message: it comes when its transaction is committed
    HALF = enum.auto()
    #: by a delay level, or by a time of its own
    DELAYED = enum.auto()
    TIMED = enum.auto()


class Outcome(enum.Enum):
    """What its producer wants of a transaction."""

    OPEN = enum.auto()
    COMMIT = enum.auto()
    ROLLBACK = enum.auto()


@attrs.define(eq=False)
class Sent:
    """One message, and what its sender was told of it."""

    body: bytes = attrs.field(repr=short)
    place: Place
    unique_key: str = attrs.field(repr=False)
    properties: dict[str, str]
    kind: Kind = Kind.PLAIN
    #: troubles of the life so far: crashes, and disks that refused
    troubles: int = 0
    #: how many messages this one is to its queue (an inner batch)
    count: int = 1
    #: where its sender was told that it stands (a half or delayed message: in a queue of its own)
    queue_offset: int = -1
    physical_offset: int = -1
    #: what was said holds as long as the log is at least this long; 0: nothing was said
    log_end: int = 0
    born_ms: int = 0
    due_ms: int = 0
    #: its sender wanted it back: it need not come
    is_recalled: bool = False
    #: and was told so long before it was due by a broker that was well: the log was so long then
    gone_log_end: int = 0
    outcome: Outcome = Outcome.OPEN
    #: how many commits were asked for, and how long the log was when one was told
    commit_count: int = 0
    commit_log_end: int = 0

    @property
    def is_told(self) -> bool:
        """Tell whether it is known to stand in the log."""
        return self.log_end > 0

    def copies_max(self, troubles: int) -> int:
        """
        Return how often it may stand in its queue, after so many troubles of the life.

        Which delayed messages are delivered is written down every few seconds (delayOffset.json,
        the timer's checkpoint): after a crash Java delivers them once more, too. What the wheel
        takes in once more then, and what it has of it already, are delivered both.
        """
        since = troubles - self.troubles
        if self.kind is Kind.PLAIN:
            return 1
        if self.kind is Kind.HALF:
            return self.commit_count
        if self.kind is Kind.TIMED and since:
            return (since + 1) * (since + 4) // 2
        return 1 + since

    def must_be_seen(self, log_start: int) -> bool:
        """Tell whether it must stand in its queue by now, if nobody waits for a time to pass."""
        if self.kind is Kind.PLAIN:
            return self.is_told and self.physical_offset >= log_start
        return self.kind is Kind.HALF and self.commit_log_end > 0 and self.log_end > log_start

    def lose(self, log_end: int) -> None:
        """Take note that the log ends here: what was said of more does not hold any longer."""
        if self.log_end > log_end:
            self.log_end, self.physical_offset, self.queue_offset = 0, -1, -1
        if self.commit_log_end > log_end:
            self.commit_log_end = 0
        if self.gone_log_end > log_end:
            self.gone_log_end = 0


@attrs.define
class OffsetTruth:
    """What a group has committed for a queue: newest last, as (when in ms, offset)."""

    told: list[tuple[float, int]] = attrs.field(factory=lambda: [(-1.0, -1)])

    def settle(self, before_ms: float) -> None:
        """All that was committed before is on the disk: what is older cannot come back."""
        while len(self.told) > 1 and self.told[1][0] < before_ms:
            del self.told[0]

    @property
    def newest(self) -> int:
        """What is to be found while the broker runs."""
        return self.told[-1][1]

    def go_back(self, found: int) -> bool:
        """After a crash this was found: tell whether it may be, and go on from it."""
        for place, (_, offset) in enumerate(self.told):
            if offset == found:
                del self.told[place + 1 :]
                return True
        return False


@attrs.define
class Chronicle:
    """All messages and committed offsets of a life."""

    #: queues of topics that must be there
    places: set[Place] = attrs.field(factory=set[Place])
    batch_topics: set[str] = attrs.field(factory=set[str])
    #: topics that were deleted, and must not come back
    deleted: set[str] = attrs.field(factory=set[str])
    #: topics that were deleted, or were to be
    dropped: set[str] = attrs.field(factory=set[str])
    #: topics that were made anew
    remade: set[str] = attrs.field(factory=set[str])
    #: topics with a queue that may have begun anew, while groups are ahead of it
    emptied: set[str] = attrs.field(factory=set[str])
    #: topics of messages that were sent before their topic was deleted, by body
    former: dict[bytes, str] = attrs.field(factory=dict[bytes, str])
    #: by body
    sent: dict[bytes, Sent] = attrs.field(factory=dict[bytes, Sent])
    #: by (group, topic, queue id)
    offsets: dict[tuple[str, str, int], OffsetTruth] = attrs.field(
        factory=dict[tuple[str, str, int], OffsetTruth]
    )
    #: messages that consumers gave back, by group: how often they asked, whether they were told
    given_back: dict[tuple[str, bytes], list[int]] = attrs.field(
        factory=dict[tuple[str, bytes], list[int]]
    )
    #: crashes, and disks that refused
    troubles: int = 0
    #: the wall clock was set back: times in the log do not only go up
    has_gone_back: bool = False
    #: it was set at all: what was to come later may be due before it is counted
    has_jumped: bool = False
    #: (start, end) of what crashes left of the log beyond what was safe
    torn: list[tuple[int, int]] = attrs.field(factory=list[tuple[int, int]])

    def topics(self) -> list[str]:
        """Return the topics that must be there, sorted."""
        return sorted({topic for topic, _ in self.places})

    def make_anew(self, topic: str) -> None:
        """Take note that a topic is to be made: from now on one of that name may be back."""
        if topic in self.deleted:
            self.deleted.remove(topic)
            self.remade.add(topic)

    def add_topic(self, topic: str, queue_count: int, *, is_batch: bool) -> None:
        """Take note of a topic that was made."""
        self.places |= {(topic, queue_id) for queue_id in range(queue_count)}
        if is_batch:
            self.batch_topics.add(topic)

    def drop_topic(self, topic: str) -> None:
        """Forget a topic that is gone; its messages may turn up in one of the same name."""
        self.dropped.add(topic)
        self.former |= {body: topic for body, one in self.sent.items() if one.place[0] == topic}
        self.places = {place for place in self.places if place[0] != topic}
        self.sent = {body: one for body, one in self.sent.items() if one.place[0] != topic}
        self.offsets = {key: one for key, one in self.offsets.items() if key[1] != topic}

    def ask(self, sent: Sent) -> None:
        """Take note of a message that is sent: from now on it may be there."""
        sent.troubles = self.troubles
        self.sent[sent.body] = sent

    def lose(self, log_end: int) -> None:
        """The log ends here after a crash that may have cost its end."""
        for sent in self.sent.values():
            sent.lose(log_end)
        for told in self.given_back.values():
            told[1:] = [end for end in told[1:] if end <= log_end]

    def may_be_torn(self, physical_offset: int) -> bool:
        """
        Tell whether a message may have lost properties, because nobody waited for it to be safe.

        Only bodies have a checksum, unless all properties get one (``forceVerifyPropCRC``).
        """
        return any(start <= physical_offset < end for start, end in self.torn)

    # what must hold

    def check(self, place: Place, log_start: int, seen: Sequence[Seen]) -> None:
        """Hold what stands in a queue against what senders were told."""
        by_offset = {one.queue_offset: one for one in seen}
        copies = Counter(one.body for one in seen)
        for one in seen:
            self._check_one(place, one, copies[one.body])
        for sent in self.sent.values():
            if sent.place != place:
                continue
            # Places of messages that are gone may be taken again: a queue without any begins anew.
            if sent.kind is Kind.PLAIN and sent.must_be_seen(log_start):
                found = by_offset.get(sent.queue_offset)
                text = f"{place}: {sent.queue_offset} is {found}, not {sent}"
                assert found is None or found.body == sent.body, text
                assert found is None or found.physical_offset == sent.physical_offset, text
            if sent.must_be_seen(log_start):
                assert copies[sent.body], f"{place}: {sent} is lost; the log starts at {log_start}"

    def _check_one(self, place: Place, one: Seen, copies: int) -> None:
        sent = self.sent.get(one.body)
        if sent is None and self.former.get(one.body) == place[0]:
            return
        assert sent is not None, f"{place}: nobody sent {one}"
        assert sent.place == place, f"{place}: {one} belongs to {sent.place}"
        allowed = sent.copies_max(self.troubles)
        assert copies <= allowed, f"{place}: {one} stands there {copies} times: {sent}"
        # What a clock that is set back later held to be late is delivered at once, as in Java: the
        # wheel's write time never goes back, and no level waits for longer than its delay.
        is_late = one.stored_ms >= sent.due_ms or self.has_gone_back
        assert is_late, f"{place}: {one} comes too early: {sent}"
        is_gone = sent.gone_log_end and not self.has_jumped
        assert not is_gone, f"{place}: {one} was taken back: {sent}"
        if self.may_be_torn(one.physical_offset) or (self.torn and not sent.is_told):
            return
        for name, value in sent.properties.items():
            found = one.properties.get(name)
            assert found == value, f"{place}: {name} of {one} is {found}, not {value}"

    def check_settled(self, seen: Iterable[bytes], log_start: int, oldest_ms: int) -> None:
        """
        All time has passed that had to: what was delayed and committed is there.

        Nobody is asked about half messages of before `oldest_ms`: they are older than files get.
        """
        there = set(seen)
        for sent in self.sent.values():
            if not sent.is_told or sent.log_end <= log_start:
                continue
            if self.may_be_torn(sent.physical_offset):
                continue  # what says where it belongs, and who is to be asked, may be gone
            is_wanted = sent.kind is not Kind.HALF or sent.outcome is Outcome.COMMIT
            if sent.kind is Kind.HALF and not sent.commit_log_end and sent.born_ms < oldest_ms:
                continue
            if sent.kind is not Kind.PLAIN and is_wanted and not sent.is_recalled:
                assert sent.body in there, f"{sent} never came"
