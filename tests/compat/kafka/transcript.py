"""
A recorded conversation between a real client and a real broker, held again with ours.

What cannot be the same is put right on the way: topic ids and fetch session ids of the recording
become ours. Producer ids stand in batches, under their checksums, so ours gives out the recorded
ones. What the recorded broker had refused while it was busy is not asked: ours is not busy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.connection import KafkaConnection
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.conversation import DIRECTORY, joined, message_class

#: those of the recording's broker, from ``golden/kafka-4.3/set.json``
SETTINGS = {
    "auto.create.topics.enable": "false",
    "log.index.size.max.bytes": "65536",
    "log.retention.ms": "-1",
    "log.segment.delete.delay.ms": "100",
    "offsets.topic.num.partitions": "1",
}
HOST, PORT = "127.0.0.1", 19153
#: a little after the recording
NOW_MS = 1_795_300_000_000
HOUR_MS = 3_600_000

PRODUCE, FETCH, INIT_PRODUCER_ID = 0, 1, 22
TRANSACTIONAL = frozenset({INIT_PRODUCER_ID, 24, 25, 26, 66})
HELD = frozenset({PRODUCE, FETCH, 2, 3, 18, 19, 20, 21, 32, 46, 60, 75}) | TRANSACTIONAL
#: the coordinator is loading, is not there yet, or writes the markers of the transaction before
BUSY = frozenset({14, 15, 16, 51})


@attrs.frozen
class Frame:
    """One frame as it was recorded, without its size."""

    connection: int
    is_request: bool
    key: int
    api: str
    version: int
    correlation_id: int
    data: bytes

    @property
    def message(self) -> Any:
        """The frame as the library reads it."""
        kind = "Request" if self.is_request else "Response"
        return decoded(self.api + kind, self.version, self.data)


@attrs.frozen
class Exchange:
    """
    A recorded request with both answers: the real broker's and ours.

    `is_alone` says that nothing else was asked meanwhile: what is appended while a fetch waits may
    be in its answer or not.
    """

    request: Frame
    theirs: Any
    ours: Any
    is_alone: bool


def decoded(name: str, version: int, data: bytes) -> Any:
    """Return a whole frame as the library reads it."""
    return message_class(name).decode(data, version=version, header=True)


def read_frames(path: Path) -> list[Frame]:
    """Return what was recorded, in order."""
    return [
        Frame(
            line["connection"], line["from"] == "client", line["api_key"], line["api"],
            line["version"], line["correlation_id"], bytes.fromhex(line["hex"]),
        )
        for line in map(json.loads, path.read_text().splitlines())
    ]  # fmt: skip


class RecordedBroker(Broker):
    """Gives out the producer ids of a recording."""

    recorded_producer_ids: Iterator[int]

    def new_producer_id(self) -> int:
        """Return the next one."""
        return next(self.recorded_producer_ids)


class Rehearsal:
    """Holds the conversations of one recording again, feeding `chunk_bytes` at a time (0: all)."""

    def __init__(self, frames: list[Frame], chunk_bytes: int = 0) -> None:
        self.host = SimulatedHost(clock=ManualClock(NOW_MS))
        broker = RecordedBroker.open(self.host, DIRECTORY, SETTINGS)
        assert isinstance(broker, RecordedBroker)
        self.broker = broker
        self.broker.advertised_host, self.broker.advertised_port = HOST, PORT
        self._frames = frames
        self._chunk_bytes = chunk_bytes
        self._connections: dict[int, KafkaConnection] = {}
        self._answers: dict[tuple[int, int], bytes] = {}
        self._requests: dict[tuple[int, int], Frame] = {}
        self._asked_at: dict[tuple[int, int], int] = {}
        self._topic_ids: dict[bytes, bytes] = {}
        self._session_ids: dict[int, int] = {}
        #: transactional requests that the recorded broker has answered, and was not too busy for
        self._served = {
            (frame.connection, frame.correlation_id)
            for frame in frames
            if not frame.is_request and frame.key in TRANSACTIONAL and not was_busy(frame)
        }
        self.broker.recorded_producer_ids = iter(recorded_producer_ids(frames))

    def exchanges(self) -> Iterator[Exchange]:
        """Yield every exchange that ours can hold, in the order of the recorded answers."""
        asked_count = 0
        for frame in self._frames:
            place = (frame.connection, frame.correlation_id)
            if frame.is_request:
                asked_count += 1
                self._requests[place] = frame
                self._asked_at[place] = asked_count
                if self._is_held(frame):
                    self._send(frame)
                continue
            request = self._requests[place]
            if self._is_held(request):
                yield self._exchange(request, frame, is_alone=self._asked_at[place] == asked_count)

    def _is_held(self, request: Frame) -> bool:
        """Tell whether ours can be asked this."""
        if request.key in TRANSACTIONAL:
            return (request.connection, request.correlation_id) in self._served
        return request.key in HELD

    def _send(self, frame: Frame) -> None:
        connection = self._connections.get(frame.connection)
        if connection is None:
            connection = self._connections[frame.connection] = self.broker.connect(HOST)
        self.host.clock.advance(1)  # no two markers at the same time
        data = self._translated(frame)
        data = len(data).to_bytes(4, "big") + data
        step = self._chunk_bytes or len(data)
        for start in range(0, len(data), step):
            self._keep(frame.connection, joined(connection.feed(data[start : start + step])))

    def _keep(self, number: int, output: bytes) -> None:
        """Take the frames in `output`, each of which answers one request."""
        while output:
            size_bytes = int.from_bytes(output[:4], "big")
            frame, output = output[4 : 4 + size_bytes], output[4 + size_bytes :]
            assert len(frame) == size_bytes, "an answer is cut short"
            self._answers[number, int.from_bytes(frame[:4], "big")] = frame

    def _exchange(self, request: Frame, recorded: Frame, *, is_alone: bool) -> Exchange:
        place = (request.connection, request.correlation_id)
        self._collect()  # what an append of somebody else has brought
        while place not in self._answers:
            self._let_time_pass(place)
        ours = decoded(request.api + "Response", request.version, self._answers.pop(place))
        theirs = recorded.message
        self._learn(request, theirs, ours)
        return Exchange(request, theirs, ours, is_alone)

    def _let_time_pass(self, place: tuple[int, int]) -> None:
        due_ms = self.broker.timers.next_due_ms()
        assert due_ms is not None, f"request {place} will never be answered"
        assert self.host.clock.wall_ms() < NOW_MS + HOUR_MS, f"no answer to request {place}"
        self.host.clock.advance(max(0, due_ms - self.host.clock.monotonic_ms()))
        self.broker.timers.run()
        self._collect()

    def _collect(self) -> None:
        """Take the answers that came by themselves."""
        for number, connection in self._connections.items():
            output, connection.output = connection.output, []
            self._keep(number, joined(output))

    # what differs from recording to recording

    def _learn(self, request: Frame, theirs: Any, ours: Any) -> None:
        """Note which of our ids stand for which recorded ones."""
        if request.key == FETCH and theirs.session_id:
            self._session_ids[theirs.session_id] = ours.session_id
        if request.api in ("Metadata", "CreateTopics", "DescribeTopicPartitions"):
            for topic in theirs.topics:
                own = self.broker.topics.get(topic.name or "")
                if own is not None and topic.topic_id:
                    self._topic_ids[topic.topic_id.bytes] = own.topic_id

    def _translated(self, frame: Frame) -> bytes:
        data = frame.data
        if frame.key == FETCH:
            message = frame.message
            if message.session_id:
                # The session id is found in front of its epoch; both together are unique enough.
                epoch = message.session_epoch.to_bytes(4, "big", signed=True)
                old = message.session_id.to_bytes(4, "big") + epoch
                new = self._session_ids[message.session_id].to_bytes(4, "big") + epoch
                assert data.count(old) == 1
                data = data.replace(old, new)
        for theirs, ours in self._topic_ids.items():
            data = data.replace(theirs, ours)
        return data


def was_busy(answer: Frame) -> bool:
    """Tell whether the recorded broker asked the client to come again."""
    message = answer.message.to_dict(json=False)
    codes = [message.get("error_code", 0)]
    for topic in message.get("results_by_topic_v3_and_below") or ():
        codes += [one["partition_error_code"] for one in topic["results_by_partition"]]
    return not BUSY.isdisjoint(codes)


def recorded_producer_ids(frames: list[Frame]) -> list[int]:
    """Return the producer ids that the recorded broker gave out, each once."""
    answers = (
        frame.message for frame in frames if not frame.is_request and frame.key == INIT_PRODUCER_ID
    )
    return list(dict.fromkeys(one.producer_id for one in answers if one.error_code == 0))
