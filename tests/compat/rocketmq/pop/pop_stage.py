"""A broker with a time wheel, a client that pops, and a clock that the test turns."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Mapping

import orjson

from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.segments.rocketmq.messages.message import Message
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import SMALL, TOPIC, Peer, a_broker, decoded
from tests.compat.rocketmq.frames import Answer

#: between the end of the invisible time and the moment when a message comes again
REVIVED_WITHIN_MS = 5000
GROUP = "g"


class PopStage:
    """A broker whose housekeeping runs as the test lets time pass."""

    def __init__(self, **settings: str) -> None:
        self.clock = ManualClock()
        self.host = SimulatedHost(clock=self.clock)
        self.settings = {
            **SMALL,
            "timerWheelEnable": "true",
            "mappedFileSizeTimerLog": "52000",
            **settings,
        }
        self.ports = itertools.count(40_001)
        self.open()

    def open(self) -> None:
        """Start the broker, again perhaps."""
        self.broker: Broker = a_broker(self.host, self.settings)
        self.broker.start_housekeeping()
        self.peer = self.client()

    def client(self) -> Peer:
        """Return one more client."""
        return Peer(self.broker, next(self.ports))

    def pass_ms(self, delay_ms: float) -> None:
        """Let time pass, timer by timer."""
        end_ms = self.clock.monotonic_ms() + delay_ms
        while (due_ms := self.broker.timers.next_due_ms()) is not None and due_ms <= end_ms:
            self.clock.advance(max(due_ms - self.clock.monotonic_ms(), 0))
            self.broker.timers.run()
        self.clock.advance(end_ms - self.clock.monotonic_ms())

    def produce(self, *bodies: bytes, queue_id: int = 0, tags: str = "") -> None:
        """Send messages to one queue."""
        properties = f"TAGS\x01{tags}\x02" if tags else ""
        for body in bodies:
            assert self.peer.produce(body, queue_id=queue_id, properties=properties).code == 0

    def fields(self, **changes: object) -> dict[str, object]:
        """Return the fields of a pop of all queues."""
        return {
            "consumerGroup": GROUP,
            "topic": TOPIC,
            "queueId": -1,
            "maxMsgNums": 32,
            "invisibleTime": 10_000,
            "pollTime": 0,
            "bornTime": self.clock.wall_ms(),
            "initMode": 0,
            **changes,
        }

    def pop(self, **changes: object) -> Answer:
        """Pop without waiting."""
        return self.peer.ask(RequestCode.POP_MESSAGE, self.fields(**changes))

    def popped(self, **changes: object) -> list[Popped]:
        """Pop; return the messages with their handles, as a client makes them."""
        return popped_in(self.pop(**changes))

    def bodies(self, **changes: object) -> list[bytes]:
        """Pop; return the bodies of the messages."""
        return sorted(one.message.body for one in self.popped(**changes))

    def ack(self, popped: Popped, **changes: object) -> Answer:
        """Acknowledge one message."""
        return self.peer.ask(RequestCode.ACK_MESSAGE, {**popped.fields(), **changes})

    def change(self, popped: Popped, invisible_ms: int, **changes: object) -> Answer:
        """Have a message come again at another time."""
        fields = {**popped.fields(), "invisibleTime": invisible_ms, **changes}
        return self.peer.ask(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, fields)

    def ack_batch(self, *popped: Popped) -> Answer:
        """Acknowledge messages of one queue and one pop."""
        words = popped[0].handle.split(" ")
        start = int(words[0])
        bits = 0
        for one in popped:
            bits |= 1 << one.queue_offset - start
        entry = {
            "c": GROUP, "t": TOPIC, "r": words[4], "so": start, "q": int(words[6]),
            "rq": int(words[3]), "pt": int(words[1]), "it": int(words[2]),
            "b": base64.b64encode(bits.to_bytes((bits.bit_length() + 7) // 8, "little")).decode(),
        }  # fmt: skip
        body = orjson.dumps({"brokerName": "broker-a", "acks": [entry]})
        return self.peer.ask(RequestCode.BATCH_ACK_MESSAGE, {}, body)

    def committed(self, topic: str = TOPIC, queue_id: int = 0, group: str = GROUP) -> int:
        """Return the offset that the group has committed."""
        return int(self.broker.store.consumer_offsets.query(group, topic, queue_id))


class Popped:
    """One message that was popped."""

    def __init__(self, message: Message, handle: str, topic: str) -> None:
        self.message = message
        self.handle = handle
        self.topic = topic
        self.queue_offset = int(handle.rsplit(" ", 1)[1])

    def fields(self) -> dict[str, object]:
        """Return the fields of what is asked about it."""
        return {
            "consumerGroup": GROUP,
            "topic": self.topic,
            "queueId": int(self.handle.split(" ")[6]),
            "extraInfo": self.handle,
            "offset": self.queue_offset,
        }


def popped_in(answer: Answer) -> list[Popped]:
    """Return the messages in the answer to a pop, with handles made of its fields."""
    fields: Mapping[str, str] = answer.fields or {}
    starts: dict[tuple[str, str], str] = {}
    for item in filter(None, fields.get("startOffsetInfo", "").split(";")):
        kind, queue_id, start = item.split(" ")
        starts[kind, queue_id] = start
    found: list[Popped] = []
    for message in decoded(answer.body):
        handle = message.properties.get("POP_CK")
        topic = TOPIC
        if handle is None:
            handle = " ".join(
                (
                    starts["0", str(message.queue_id)],
                    fields["popTime"],
                    fields["invisibleTime"],
                    fields["reviveQid"],
                    "0",
                    "broker-a",
                    str(message.queue_id),
                    str(message.queue_offset),
                )
            )
        elif handle.split(" ")[4] == "1":
            topic = f"%RETRY%{GROUP}_{TOPIC}"
        else:
            topic = f"%RETRY%{GROUP}+{TOPIC}"
        found.append(Popped(message, handle, topic))
    return found
