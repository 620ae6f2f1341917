"""Those who pop in order: one batch of a queue at a time; nothing passes by what is not done."""

from __future__ import annotations

import attrs

from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from tests.compat.rocketmq.broker_peer import Peer
from tests.compat.rocketmq.frames import Answer
from tests.compat.rocketmq.lives.chronicle import Place
from tests.compat.rocketmq.lives.world import Then, World
from tests.compat.rocketmq.pop.pop_stage import Popped, popped_in


@attrs.define(eq=False)
class Lock:
    """What one pop took of a queue, and what has become of it, while nothing goes wrong."""

    #: the life's troubles when it was popped: a crash forgets the lock
    troubles: int
    #: by queue offset: until when a message that is not done locks the queue for sure
    until_ms: dict[int, float]
    #: queue offsets of those that are not acknowledged in time
    open: set[int]
    #: the queue offset behind them
    end: int


@attrs.define
class OrderedPopper:
    """One group that pops in order from the plain topics of the life."""

    world: World
    group: str
    #: what was popped and not dealt with
    held: list[tuple[Place, Popped, Lock]] = attrs.field(factory=list[tuple[Place, Popped, Lock]])
    locks: dict[Place, Lock] = attrs.field(factory=dict[Place, Lock])
    #: (troubles, queue offset) below which all was acknowledged in time
    passed: dict[Place, tuple[int, int]] = attrs.field(factory=dict[Place, tuple[int, int]])
    #: bodies that were given at all, and topics that were popped
    given: set[bytes] = attrs.field(factory=set[bytes])
    topics: set[str] = attrs.field(factory=set[str])
    peer: Peer = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.reconnect()

    def reconnect(self) -> None:
        """It goes on with what it holds."""
        self.peer = self.world.peer()

    def forget(self) -> None:
        """The group is deleted: nothing is locked any more, nor done."""
        self.locks.clear()
        self.passed.clear()

    def lose(self, log_end: int) -> None:
        """
        The log ends here after a crash: what it has lost is not acknowledged.

        That would count for what comes to its queue offset, in Java too.
        """
        self.held = [one for one in self.held if one[1].message.physical_offset < log_end]

    def act(self) -> None:
        """Pop, acknowledge, ask for another time, or forget a message."""
        dice = self.world.dice
        if self.held and dice.random() < 0.6:
            place, popped, lock = self.held.pop(dice.randrange(len(self.held)))
            deed = dice.random()
            if deed < 0.75:
                self.ack(place, popped, lock)
            elif deed < 0.9:
                self._change(place, popped, lock)
            return
        drawn = self.world.place(may_be_batch=False)
        if drawn is not None:
            self.pop(drawn, dice.choice((1, 3, 32)), dice.choice((1000, 10_000, 60_000)))

    def pop(self, place: Place, count: int, invisible_ms: int) -> None:
        """Pop from one queue."""
        world, (topic, queue_id) = self.world, place
        self.topics.add(topic)
        fields = {
            "consumerGroup": self.group, "topic": topic, "queueId": queue_id, "maxMsgNums": count,
            "invisibleTime": invisible_ms, "pollTime": 0, "bornTime": world.now_ms(), "initMode": 0,
            "order": "true",
        }  # fmt: skip
        until_ms = world.now_ms() + invisible_ms

        def popped(answer: Answer) -> None:
            if answer.code == ResponseCode.SUCCESS:
                self._given(place, popped_in(answer), until_ms)

        world.ask(self.peer, RequestCode.POP_MESSAGE, fields, b"", popped)

    def _given(self, place: Place, batch: list[Popped], until_ms: float) -> None:
        chronicle = self.world.chronicle
        offsets = [one.queue_offset for one in batch]
        assert offsets == list(range(offsets[0], offsets[-1] + 1)), f"{place}: {offsets} is popped"
        lock, troubles = self.locks.get(place), chronicle.troubles
        if place[0] not in chronicle.dropped | chronicle.emptied:
            if lock is not None and lock.troubles == troubles:
                latest_ms = self.world.latest_ms
                held = [one for one, end_ms in lock.until_ms.items() if latest_ms < end_ms - 1000]
                assert not held, f"{place}: {offsets} is given while {held} is not done: {lock}"
            counted, passed = self.passed.get(place, (troubles, 0))
            is_new = counted != troubles or offsets[0] >= passed
            assert is_new, f"{place}: {offsets} is given again, all below {passed} is done"
        lock = Lock(troubles, dict.fromkeys(offsets, until_ms), set(offsets), offsets[-1] + 1)
        self.locks[place] = lock
        for one in batch:
            self.given.add(bytes(one.message.body))
            self.held.append((place, one, lock))

    def ack(self, place: Place, popped: Popped, lock: Lock) -> None:
        """Say that a message is dealt with: whatever is answered, it may count."""
        until_ms = lock.until_ms.pop(popped.queue_offset, 0)

        def done(answer: Answer) -> None:
            world = self.world
            is_current = lock is self.locks.get(place) and world.is_healthy
            is_told = is_current and answer.code == ResponseCode.SUCCESS
            if is_told and world.latest_ms < until_ms - 1000:
                lock.open.discard(popped.queue_offset)
                self._pass(place, lock)

        self._ask(RequestCode.ACK_MESSAGE, place, popped, done)

    def _pass(self, place: Place, lock: Lock) -> None:
        """Take note of where the group goes on: at the first one that is not done."""
        end = min(lock.open, default=lock.end)
        counted, passed = self.passed.get(place, (-1, 0))
        troubles = self.world.chronicle.troubles
        if lock.troubles == troubles:
            self.passed[place] = troubles, max(end, passed) if counted == troubles else end

    def _change(self, place: Place, popped: Popped, lock: Lock) -> None:
        """Ask for a message to lock its queue until another time: sooner, for all one knows."""
        queue_offset, invisible_ms = popped.queue_offset, self.world.dice.choice((1000, 30_000))
        if queue_offset in lock.until_ms:
            end_ms = self.world.now_ms() + invisible_ms
            lock.until_ms[queue_offset] = min(lock.until_ms[queue_offset], end_ms)
        self._ask(
            RequestCode.CHANGE_MESSAGE_INVISIBLETIME, place, popped, _ignore,
            invisibleTime=invisible_ms,
        )  # fmt: skip

    def _ask(self, code: int, place: Place, popped: Popped, then: Then, **more: object) -> None:
        fields = {**popped.fields(), "consumerGroup": self.group, "topic": place[0], **more}
        self.world.ask(self.peer, code, fields, b"", then)

    def check_settled(self, seen: dict[str, list[bytes]]) -> None:
        """
        All time has passed: every message of the topics was given.

        Of one that was made anew some may be passed by: a late acknowledgement of the former
        topic's messages counts where nothing was popped since, as in Java.
        """
        chronicle = self.world.chronicle
        for topic in self.topics & seen.keys() - chronicle.emptied - chronicle.dropped:
            for body in seen[topic]:
                assert body in self.given, f"{self.group} was never given {body[:8]!r} of {topic}"


def _ignore(answer: Answer) -> None:
    """Whatever it says: the message comes again."""
    del answer
