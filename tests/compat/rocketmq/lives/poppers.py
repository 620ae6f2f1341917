"""Those who pop: they acknowledge, ask for more time, or forget what they were given."""

from __future__ import annotations

import base64
from typing import NamedTuple

import attrs
import orjson

from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from tests.compat.rocketmq.broker_peer import Peer
from tests.compat.rocketmq.frames import Answer
from tests.compat.rocketmq.lives.world import Then, World
from tests.compat.rocketmq.pop.pop_stage import Popped, popped_in

#: a pop was served: whoever asked knows all that it took
_GOOD_ANSWERS = (ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND, ResponseCode.POLLING_TIMEOUT)


@attrs.define
class PopTruth:
    """What is known of one message that a group was given."""

    #: how long the log was whenever an acknowledgement was told; none: it may come again
    ack_log_ends: list[int] = attrs.field(factory=list[int])
    #: an acknowledgement was not answered, or refused: it may count
    is_doubtful: bool = False
    #: it was acknowledged in time
    is_over: bool = False
    #: another time was asked for when its time was over already: it comes again by both
    is_doubled: bool = False
    #: the life's troubles when it was given first: a crash may bring it several times
    troubles: int = 0


class _Pop(NamedTuple):
    """What messages of one pop and one queue have in common, as their handles say."""

    start_offset: int
    pop_time_ms: int
    invisible_ms: int
    revive_queue_id: int
    kind: str
    queue_id: int

    @classmethod
    def of(cls, popped: Popped) -> _Pop:
        """Take it from a message's handle."""
        start, time, invisible, revive, kind, _, queue_id, _ = popped.handle.split(" ")
        return cls(int(start), int(time), int(invisible), int(revive), kind, int(queue_id))

    def entry(self, group: str, topic: str, batch: list[Popped]) -> dict[str, object]:
        """Return how a request names some of the messages."""
        bits = 0
        for one in batch:
            bits |= 1 << one.queue_offset - self.start_offset
        data = bits.to_bytes((bits.bit_length() + 7) // 8, "little")
        return {
            "c": group, "t": topic, "r": self.kind, "so": self.start_offset, "q": self.queue_id,
            "rq": self.revive_queue_id, "pt": self.pop_time_ms, "it": self.invisible_ms,
            "b": base64.b64encode(data).decode(),
        }  # fmt: skip


@attrs.define
class Popper:
    """One group that pops from the plain topics of the life."""

    world: World
    group: str
    #: what was popped and not dealt with: topic, message, until when it is invisible
    held: list[tuple[str, Popped, float]] = attrs.field(factory=list[tuple[str, Popped, float]])
    #: by body
    truth: dict[bytes, PopTruth] = attrs.field(factory=dict[bytes, PopTruth])
    topics: set[str] = attrs.field(factory=set[str])
    #: topics of which a pop was not answered, or refused, and after how many troubles: what it took
    #: comes again, and comes by another pop, too, if the group's offset is lost
    doubtful: dict[str, int] = attrs.field(factory=dict[str, int])
    peer: Peer = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.reconnect()

    def reconnect(self) -> None:
        """It goes on with what it holds."""
        self.peer = self.world.peer()

    def act(self) -> None:
        """Pop, acknowledge, ask for another time, or forget a message."""
        dice = self.world.dice
        if self.held and dice.random() < 0.6:
            topic, popped, until_ms = self.held.pop(dice.randrange(len(self.held)))
            deed = dice.random()
            if deed < 0.5:
                self.ack(topic, popped, until_ms)
            elif deed < 0.7:
                self._ack_batch(topic, popped, until_ms)
            elif deed < 0.85:
                self._change(topic, popped, until_ms)
            return
        place = self.world.place(may_be_batch=False)
        if place is not None:
            self.pop(place[0], dice.choice((1, 8, 32)), dice.choice((1000, 10_000, 60_000)))

    def pop(self, topic: str, count: int, invisible_ms: int) -> None:
        """Pop from all queues of a topic."""
        world = self.world
        self.topics.add(topic)
        fields = {
            "consumerGroup": self.group, "topic": topic, "queueId": -1, "maxMsgNums": count,
            "invisibleTime": invisible_ms, "pollTime": 0, "bornTime": world.now_ms(), "initMode": 0,
        }  # fmt: skip
        until_ms = world.now_ms() + invisible_ms

        before = self.doubtful.get(topic, -1)
        self.doubtful[topic] = world.chronicle.troubles

        def popped(answer: Answer) -> None:
            if answer.code in _GOOD_ANSWERS:
                self.doubtful[topic] = before
            if answer.code != ResponseCode.SUCCESS:
                return
            for one in popped_in(answer):
                self._given(topic, one)
                self.held.append((topic, one, until_ms))

        world.ask(self.peer, RequestCode.POP_MESSAGE, fields, b"", popped)

    def forget(self) -> None:
        """The group is deleted: what it popped and acknowledged may come once more."""
        self.doubtful |= dict.fromkeys(self.topics, self.world.chronicle.troubles)

    def lose(self, log_end: int) -> None:
        """The log ends here after a crash: acknowledgements behind are forgotten."""
        for truth in self.truth.values():
            truth.ack_log_ends = [one for one in truth.ack_log_ends if one <= log_end]

    def check_settled(self, seen: dict[str, list[bytes]]) -> None:
        """All time has passed: every message of the topics was given, and acknowledged at last."""
        for topic in self.topics & seen.keys() - self.world.chronicle.emptied:
            for body in seen[topic]:
                truth = self.truth.get(body)
                assert truth is not None, f"{self.group} was never given {body[:8]!r} of {topic}"
                is_settled = truth.ack_log_ends or truth.is_doubtful
                assert is_settled, f"{body[:8]!r} of {topic} did not come again"

    def _given(self, topic: str, one: Popped) -> None:
        body = bytes(one.message.body)
        chronicle = self.world.chronicle
        troubles = chronicle.troubles
        truth = self.truth.setdefault(body, PopTruth(troubles=troubles))
        sent = chronicle.sent.get(body)
        if sent is None and chronicle.former.get(body) == topic:
            return
        assert sent is not None, f"{self.group} is given what nobody sent: {one.message}"
        assert sent.place[0] == topic, f"{self.group} is given {sent} of {topic}"
        if topic in chronicle.remade:
            return  # what was popped of the former one comes again by its place, as in Java
        is_over = truth.is_over and truth.troubles == troubles
        is_over &= not truth.is_doubled and sent.troubles > self.doubtful.get(topic, -1)
        assert not is_over or sent.copies_max(truth.troubles) > 1, (
            f"{self.group} is given again what it acknowledged: {sent}"
        )

    def fields(self, topic: str, popped: Popped) -> dict[str, object]:
        """Return the fields of what is asked about a message."""
        kind = popped.handle.split(" ")[4]
        real = {"0": topic, "1": f"%RETRY%{self.group}_{topic}"}.get(
            kind, f"%RETRY%{self.group}+{topic}"
        )
        return {**popped.fields(), "consumerGroup": self.group, "topic": real}

    def ack(self, topic: str, popped: Popped, until_ms: float) -> None:
        """Say that a message is dealt with."""
        done = self._doubtful_until_told([popped], until_ms)
        asked = self.fields(topic, popped)
        self.world.ask(self.peer, RequestCode.ACK_MESSAGE, asked, b"", done)

    def _ack_batch(self, topic: str, popped: Popped, until_ms: float) -> None:
        """Say so of all messages that came from one queue with one pop."""
        pop = _Pop.of(popped)
        others = [one for one in self.held if one[0] == topic and _Pop.of(one[1]) == pop]
        self.held = [one for one in self.held if one not in others]
        batch = [popped, *(one for _, one, _ in others)]
        body = orjson.dumps(
            {"brokerName": "broker-a", "acks": [pop.entry(self.group, topic, batch)]}
        )
        done = self._doubtful_until_told(batch, until_ms)
        self.world.ask(self.peer, RequestCode.BATCH_ACK_MESSAGE, {}, body, done)

    def _doubtful_until_told(self, batch: list[Popped], until_ms: float) -> Then:
        """Return what notes the answer to an acknowledgement, which may count before it comes."""
        world = self.world
        truths = [self.truth[bytes(popped.message.body)] for popped in batch]
        before = [truth.is_doubtful for truth in truths]
        for truth in truths:
            truth.is_doubtful = True

        def done(answer: Answer) -> None:
            if answer.code != ResponseCode.SUCCESS:
                return
            for truth, was_doubtful in zip(truths, before, strict=True):
                truth.is_doubtful = was_doubtful
                truth.ack_log_ends.append(world.log_end)
                truth.is_over |= world.is_healthy and world.latest_ms < until_ms - 1000

        return done

    def _change(self, topic: str, popped: Popped, until_ms: float) -> None:
        """Ask for a message to come again at another time."""
        truth = self.truth.get(bytes(popped.message.body))
        if truth is not None and self.world.latest_ms >= until_ms - 1000:
            truth.is_doubled = True
        asked = {
            **self.fields(topic, popped),
            "invisibleTime": self.world.dice.choice((1000, 30_000)),
        }
        self.world.ask(self.peer, RequestCode.CHANGE_MESSAGE_INVISIBLETIME, asked, b"", _ignore)


def _ignore(answer: Answer) -> None:
    """Whatever it says: the message comes again."""
    del answer
