"""Those who send: one by one, in batches, later."""

from __future__ import annotations

import attrs

from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.segments.rocketmq.messages.message_batch import BatchItem, encode_batch_body
from tests.compat.rocketmq.broker_peer import Peer, sent_fields
from tests.compat.rocketmq.frames import Answer
from tests.compat.rocketmq.lives.chronicle import Kind, Place, Sent
from tests.compat.rocketmq.lives.world import World, physical_offset_of, properties_text

#: the fields of SEND_MESSAGE by those of SEND_MESSAGE_V2
_WORDS = {
    "a": "producerGroup", "b": "topic", "c": "defaultTopic", "d": "defaultTopicQueueNums",
    "e": "queueId", "f": "sysFlag", "g": "bornTimestamp", "h": "flag", "i": "properties",
    "j": "reconsumeTimes", "k": "unitMode", "m": "batch",
}  # fmt: skip
_LEVELS_MS = {1: 1000, 2: 5000, 3: 10_000, 5: 60_000}


@attrs.define
class Sender:
    """Sends messages one by one, several at a time now and then."""

    world: World
    peer: Peer = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.reconnect()

    def reconnect(self) -> None:
        """Nothing lasts from one message to the next."""
        self.peer = self.world.peer()

    def act(self) -> None:
        """Send something."""
        place = self.world.place()
        if place is None:
            return
        for _ in range(self.world.dice.choice((1, 1, 1, 4))):
            self.send(self.drawn(place))

    def drawn(self, place: Place) -> Sent:
        """Return the message to send next."""
        return self.world.message(place)

    def send(self, sent: Sent, **fields: object) -> None:
        """Send one message and note what is said."""
        world = self.world
        world.chronicle.ask(sent)
        asked = sent_fields(*sent.place, properties_text(sent.properties), g=world.now_ms())
        asked |= fields
        code = RequestCode.SEND_MESSAGE_V2
        if world.dice.random() < 0.2:
            code = RequestCode.SEND_MESSAGE
            asked = {_WORDS[name]: value for name, value in asked.items()}
        world.ask(self.peer, code, asked, sent.body, lambda answer: self.told(sent, answer))

    def told(self, sent: Sent, answer: Answer) -> None:
        """Take note of what became of a message."""
        if answer.code == ResponseCode.SUCCESS:
            fields = answer.fields or {}
            self.world.stored(sent, int(fields["queueOffset"]), physical_offset_of(fields["msgId"]))


@attrs.define
class BatchSender(Sender):
    """Sends many messages in one request; topics of batches keep them together."""

    def act(self) -> None:
        """Send a batch."""
        world = self.world
        place = world.place()
        if place is None:
            return
        members = [world.message(place) for _ in range(world.dice.randrange(1, 5))]
        body = encode_batch_body(
            BatchItem(one.body, properties_text(one.properties).encode()) for one in members
        )
        key = f"7F0000010001{world.count:020X}"
        if place[0] in world.chronicle.batch_topics:
            whole = Sent(body, place, key, {"UNIQ_KEY": key}, count=len(members))
            members = [whole]
        for one in members:
            world.chronicle.ask(one)
        asked = sent_fields(*place, f"UNIQ_KEY\x01{key}\x02WAIT\x01true\x02",
                            g=world.now_ms(), m="true")  # fmt: skip
        world.ask(self.peer, RequestCode.SEND_BATCH_MESSAGE, asked, body,
                  lambda answer: self.told_all(members, answer))  # fmt: skip

    def told_all(self, members: list[Sent], answer: Answer) -> None:
        """Take note of what became of a batch."""
        if answer.code != ResponseCode.SUCCESS:
            return
        fields = answer.fields or {}
        ids = fields["msgId"].split(",")
        assert len(ids) == len(members), f"{len(members)} messages: {answer}"
        for place, (one, message_id) in enumerate(zip(members, ids, strict=True)):
            queue_offset = int(fields["queueOffset"]) + place
            self.world.stored(one, queue_offset, physical_offset_of(message_id))


@attrs.define
class DelayedSender(Sender):
    """
    Sends messages that are to come later: by a level, or at a time where there is a wheel.

    Some of the latter it takes back.
    """

    has_wheel: bool = True
    #: what may be taken back, and the handle to do so
    handles: list[tuple[Sent, str]] = attrs.field(factory=list[tuple[Sent, str]])

    def drawn(self, place: Place) -> Sent:
        """Return a message with a delay."""
        world, now_ms = self.world, self.world.now_ms()
        if self.has_wheel and world.dice.random() < 0.5:
            delay_ms = world.dice.choice((1, 999, 3000, 61_000, 900_000))
            name = world.dice.choice(("TIMER_DELAY_MS", "TIMER_DELIVER_MS"))
            value = delay_ms + (now_ms if name == "TIMER_DELIVER_MS" else 0)
            sent = world.message(place, Kind.TIMED, **{name: str(value)})
            sent.due_ms = now_ms + delay_ms - 1000  # to the second, downwards
        else:
            level = world.dice.choice(sorted(_LEVELS_MS))
            sent = world.message(place, Kind.DELAYED, DELAY=str(level))
            sent.due_ms = now_ms + _LEVELS_MS[level]
        return sent

    def told(self, sent: Sent, answer: Answer) -> None:
        """Keep what takes a message back."""
        super().told(sent, answer)
        handle = (answer.fields or {}).get("recallHandle")
        if sent.is_told and sent.kind is Kind.TIMED and handle:
            self.handles.append((sent, handle))

    def _recall(self, sent: Sent, handle: str) -> None:
        """Take a message back; whatever becomes of that, it may stay away."""
        world, now_ms = self.world, self.world.now_ms()
        sent.is_recalled = True

        def recalled(answer: Answer) -> None:
            if answer.code == ResponseCode.SUCCESS and sent.due_ms > now_ms + 5000:
                sent.gone_log_end = world.log_end if world.is_healthy else 0

        fields = {"producerGroup": "p", "topic": sent.place[0], "recallHandle": handle}
        world.ask(self.peer, RequestCode.RECALL_MESSAGE, fields, b"", recalled)

    def act(self) -> None:
        """Send one message for later, or take one back; batches have no later."""
        dice = self.world.dice
        if self.handles and dice.random() < 0.3:
            self._recall(*self.handles.pop(dice.randrange(len(self.handles))))
            return
        place = self.world.place(may_be_batch=False)
        if place is not None:
            self.send(self.drawn(place))
