"""What is asked of two brokers that share a static topic, in the same order of any two."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import attrs

from tests.interop.eventually import eventually
from tests.interop.rocketmq_wire import (
    GET_MAX_OFFSET,
    GET_MIN_OFFSET,
    PULL_MESSAGE,
    SEND_BATCH_MESSAGE,
    SEND_MESSAGE_V2,
    Answer,
    Wire,
    batch_body,
    pull_fields,
    pulled,
    send_fields,
)

MAP, TOPIC_CONFIG, STATS, DELETE, CONSUME_STATS = 513, 351, 202, 215, 208
SEARCH, STORE_TIME, QUERY, UPDATE = 29, 32, 14, 15
UNDECIDED = -1
#: what differs from run to run
_MASKED_FIELDS = {"msgId": "ID", "transactionId": "ID", "timestamp": "TIME", "MSG_REGION": ""}
_TIMES = re.compile(
    rb'"(timestamp|counter|lastUpdateTimestamp|lastTimestamp|topicPutTps|consumeTps)":[0-9.-]+'
)


@attrs.frozen
class Place:
    """A broker: its name, its address, and where it keeps its tables."""

    name: str
    address: str
    data: Path


class StaticTopicSession:
    """Speaks to two brokers, and notes what they answer; names are those of the first two."""

    def __init__(self, topic: str, first: Place, second: Place) -> None:
        self.topic = topic
        self.places = first, second
        self.wires = Wire(first.address), Wire(second.address)
        self.noted: list[str] = []

    def ask(self, at: int, code: int, fields: Mapping[str, object], body: bytes = b"") -> Answer:
        """Ask a broker, and note question and answer."""
        answer = self.wires[at].ask(code, fields, body)
        shown = {key: _MASKED_FIELDS.get(key, value) for key, value in answer.fields.items()}
        told = self._masked(answer.body)
        if code == PULL_MESSAGE:
            told = str(list(pulled(answer.body)))
        elif code in (STATS, CONSUME_STATS):  # in the order of hashes, names' among them
            told = "".join(sorted(re.split(r"[{}]+", told)))
        remark = self._masked((answer.remark or "").encode())
        question = f"{code} of {at} {sorted(fields.items()) if code != MAP else ''}"
        note = f"{question}: {answer.code} {remark!r} {list(shown.items())} {told}"
        self.noted.append(self._masked(note.encode()))
        return answer

    def _masked(self, data: bytes) -> str:
        for number, place in enumerate(self.places):
            data = data.replace(place.name.encode(), b"BROKER%d" % number)
            data = data.replace(place.address.encode(), b"ADDRESS%d" % number)
        data = data.replace(self.topic.encode(), b"TOPIC")
        return _TIMES.sub(rb'"\1":0', data).decode(errors="replace")

    # what is asked

    def item(
        self, gen: int, at: int, logic_offset: int, end_offset: int = -1, queue_id: int = 0
    ) -> dict[str, object]:
        """Return a stretch of a logic queue."""
        return {
            "bname": self.places[at].name, "endOffset": end_offset, "gen": gen,
            "logicOffset": logic_offset, "queueId": queue_id, "startOffset": 0,
            "timeOfEnd": -1, "timeOfStart": -1,
        }  # fmt: skip

    def map(
        self,
        at: int,
        queues: Mapping[int, Sequence[dict[str, object]]],
        epoch: int,
        *,
        force: bool = False,
        scope: str = "__global__",
    ) -> Answer:
        """Tell a broker of the topic."""
        told = {
            "bname": self.places[at].name, "currIdMap": {}, "dirty": False, "epoch": epoch,
            "hostedQueues": queues, "scope": scope, "topic": self.topic, "totalQueues": 2,
        }  # fmt: skip
        fields = {
            "topic": self.topic, "defaultTopic": "TBW102", "readQueueNums": 4, "writeQueueNums": 4,
            "perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false",
            "force": str(force).lower(),
        }  # fmt: skip
        return self.ask(at, MAP, fields, json.dumps(told).encode())

    def send(self, at: int, queue_id: int, body: bytes) -> None:
        """Send one message to a logic queue."""
        self.ask(at, SEND_MESSAGE_V2, send_fields(self.topic, queue_id, ""), body)

    def look(self, at: int) -> None:
        """Ask for everything that can be asked of a logic queue."""
        queue = {"topic": self.topic, "queueId": 0}
        for lo in ("true", "false"):
            self.ask(at, TOPIC_CONFIG, {"topic": self.topic, "lo": lo})
        for code in (GET_MAX_OFFSET, GET_MIN_OFFSET, STORE_TIME):
            self.ask(at, code, queue)
        for timestamp_ms in (0, 4_000_000_000_000):
            self.ask(at, SEARCH, {**queue, "timestamp": timestamp_ms})
        self.ask(at, STATS, {"topic": self.topic})
        group = {**queue, "consumerGroup": "wire_readers"}
        self.ask(at, QUERY, {**group, "setZeroIfNotFound": "false"})

    def pull(self, at: int, *offsets: int) -> None:
        """Pull from logic queue 0 without waiting."""
        for offset in offsets:
            self.ask(at, PULL_MESSAGE, pull_fields(self.topic, 0, offset))

    def commit(self, at: int, offset: int) -> None:
        """Commit an offset of logic queue 0."""
        fields = {"topic": self.topic, "queueId": 0, "consumerGroup": "wire_readers"}
        self.ask(at, UPDATE, {**fields, "commitOffset": offset})
        self.ask(at, QUERY, fields)

    # in order

    def run(self) -> list[str]:
        """Go through everything, and return what was noted."""
        self.meet()
        self.on_one_broker()
        self.moved()
        self.back()
        self.refused()
        for at in (0, 1):
            fields = {"topic": self.topic, "consumerGroup": "wire_readers"}
            self.ask(at, CONSUME_STATS, fields)
            path = self.places[at].data / "config" / "topicQueueMapping.json"
            self.noted.append(self._masked(path.read_bytes()))
            self.ask(at, DELETE, {"topic": self.topic})
            self.ask(at, TOPIC_CONFIG, {"topic": self.topic, "lo": "true"})
        return self.noted

    def meet(self) -> None:
        """Wait until both brokers know where both are: a real one asks every five seconds."""
        topic, self.topic = self.topic, f"{self.topic}_before"
        for at in (0, 1):
            self.map(at, {0: [self.item(0, at, 0)]}, 1)
            eventually(partial(self.is_stored_at, at), what="an answer")
            self.map(at, {0: [self.item(0, 1 - at, 0, 9), self.item(1, at, 10)]}, 2)
            eventually(partial(self.is_stored_at, at), what="an answer of the other broker")
        for at in (0, 1):
            self.ask(at, DELETE, {"topic": self.topic})
        self.topic = topic
        self.noted.clear()

    def is_stored_at(self, at: int) -> bool:
        """Tell whether a broker can say when the first message was stored."""
        return self.ask(at, STORE_TIME, {"topic": self.topic, "queueId": 0}).code == 0

    def close(self) -> None:
        """Hang up."""
        for wire in self.wires:
            wire.close()

    def on_one_broker(self) -> None:
        """Both logic queues are the first broker's."""
        queues = {0: [self.item(0, 0, 0, queue_id=1)], 1: [self.item(0, 0, 0)]}
        self.map(0, queues, 1)
        self.map(1, {}, 1)
        self.look(0)
        for number in range(4):
            self.send(0, 0, b"a%d" % number)
        self.send(0, -1, b"anywhere")
        self.send(0, 5, b"nowhere")
        self.send(1, 0, b"elsewhere")
        batch = {**send_fields(self.topic, 0, ""), "m": "true"}
        self.ask(0, SEND_BATCH_MESSAGE, batch, batch_body([b"x", b"y"]))
        self.pull(0, 0, 2, 6, 7, 50)
        self.pull(1, 0)
        self.commit(0, 3)
        self.look(0)
        self.look(1)

    def moved(self) -> None:
        """Logic queue 0 moves to the second broker; where it begins there is known later."""
        for end, logic_offset in ((-1, UNDECIDED), (6, 1000)):
            first = self.item(0, 0, 0, end, queue_id=1)
            items = [first, self.item(1, 1, logic_offset, queue_id=2)]
            self.map(0, {0: items, 1: [self.item(0, 0, 0)]}, 2)
            self.map(1, {0: items}, 2)
            self.pull(1, 0, 6)
            self.send(1, 0, b"b")
        self.pull(1, 0, 4, 5, 6, 7, 999, 1000, 1001, 1002, 1003, 5000)
        self.pull(0, 0)
        self.look(0)
        self.look(1)
        self.commit(1, 5)
        self.commit(1, 1001)

    def back(self) -> None:
        """Logic queue 0 comes back to the first broker, to another queue there."""
        items = [
            self.item(0, 0, 0, 6, queue_id=1),
            self.item(1, 1, 1000, 2, queue_id=2),
            self.item(2, 0, 2000, queue_id=3),
        ]
        for at in (0, 1):
            self.map(at, {0: items}, 3)
        self.send(0, 0, b"c")
        self.pull(0, 0, 6, 7, 1000, 1001, 1002, 1500, 2000, 2001, 2002)
        self.look(0)
        self.look(1)
        self.commit(0, 2001)
        self.commit(0, 1001)
        self.look(0)

    def refused(self) -> None:
        """What contradicts is refused."""
        one = [self.item(0, 0, 0, queue_id=1)]
        self.map(0, {0: one}, 2)
        self.map(0, {0: one}, 9, scope="other")
        self.map(0, {0: one}, 3)
        self.map(0, {}, 3)
        self.map(0, {0: []}, 4)
        self.map(0, {7: [self.item(1, 0, 0), self.item(0, 0, 9)]}, 4)
        self.map(0, {7: [self.item(0, 0, -1), self.item(1, 0, 9)]}, 4)
        self.map(0, {7: [self.item(0, 0, 0, 10), self.item(1, 0, 9)]}, 4)
        self.map(0, {7: [self.item(0, 0, 9), self.item(1, 0, 9)]}, 4)
        self.map(0, {7: [self.item(0, 0, 0, -2)]}, 4)
        self.map(0, {7: [self.item(0, 0, 0, queue_id=2)]}, 2, force=True)
        self.ask(0, TOPIC_CONFIG, {"topic": self.topic, "lo": "true"})
