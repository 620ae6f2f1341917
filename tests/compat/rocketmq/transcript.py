"""
Recorded conversations between real clients and real servers, held again with ours.

All recordings of a case are one story: they were made one after the other with one broker, and so
they are held again, with the clock at the time of each frame. What cannot be the same is put right
on the way: physical offsets and half messages of the recording become ours. Checks of transactions
are made when the recorded broker made them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import attrs

from logstore.compat.rocketmq.connection import RemotingConnection
from logstore.compat.rocketmq.standalone import Standalone
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import decoded
from tests.compat.rocketmq.frames import Answer, answers, command, joined, request
from tests.segments.rocketmq.golden_case import GoldenCase

DIRECTORY = "/store"
GAP_MS = 1000
CHECK_TRANSACTION_STATE = 39
SENDS = frozenset({10, 310, 320})
PULL, SEND_BACK, END_TRANSACTION = 11, 36, 37

Key = tuple[str, str, str]


@attrs.frozen
class Frame:
    """One recorded frame, at the time of the story."""

    at_ms: int
    recording: str
    server: str
    connection: str
    is_of_client: bool
    data: bytes

    @property
    def key(self) -> Key:
        """The connection that it was sent over."""
        return self.recording, self.server, self.connection


@attrs.frozen
class Exchange:
    """A recorded request with both answers: the real server's and ours (None: there is none)."""

    recording: str
    server: str
    code: int
    version: int
    opaque: int
    fields: dict[str, str]
    theirs: Answer
    ours: Answer | None


def story_of(case: GoldenCase) -> list[Frame]:
    """Return all frames of a case in the order of the story, with times that fit the messages."""
    story: list[Frame] = []
    now_ms = 0
    recordings = [(name, lines) for name, lines in case.transcripts.items() if lines]
    for name, lines in sorted(recordings, key=lambda pair: _first_connection(pair[1])):
        frames = [
            Frame(
                line["at_ms"] - lines[0]["at_ms"], name, line["server"], line["connection"],
                line["from"] == "client", bytes.fromhex(line["hex"]),
            )
            for line in lines
        ]  # fmt: skip
        starts_ms = [born_ms - frame.at_ms for frame in frames if (born_ms := _born_ms(frame))]
        start_ms = min(starts_ms, default=now_ms)
        story += [attrs.evolve(frame, at_ms=start_ms + frame.at_ms) for frame in frames]
        now_ms = story[-1].at_ms + GAP_MS
    return story


def _first_connection(lines: list[dict[str, Any]]) -> int:
    return min(int(re.sub(r"\D", "", line["connection"])) for line in lines)


def _born_ms(frame: Frame) -> int:
    """Return when the message that a frame sends was born; 0 if it sends none."""
    if not frame.is_of_client:
        return 0
    asked = command(frame.data)
    if asked.code not in SENDS or asked.flag & 1:
        return 0
    return int(asked.ext_fields.get("g") or asked.ext_fields["bornTimestamp"])


class Rehearsal:
    """Holds the conversations of one case again, feeding `chunk_bytes` at a time (0: all)."""

    def __init__(self, case: GoldenCase, chunk_bytes: int = 0) -> None:
        self.case = case
        self.story = story_of(case)
        self._start_ms = self.story[0].at_ms - 2 * GAP_MS
        self._clock = ManualClock(self._start_ms)
        host = SimulatedHost(clock=self._clock)
        host.fs.make_directory(DIRECTORY)
        settings = {**case.settings, "transactionCheckInterval": "3600000"}
        if case.version == "4.9.8":
            settings["transactionOpBatchInterval"] = "0"  # it writes each op message at once
        self.servers = Standalone.open(host, DIRECTORY, settings)
        self.servers.advertise("127.0.0.1", int(settings["listenPort"]))
        self.servers.start(_reach_nobody)
        self._chunk_bytes = chunk_bytes
        self._connections: dict[Key, RemotingConnection] = {}
        self._ends_ms = {frame.key: frame.at_ms for frame in self.story}
        #: what each server sent on each connection: answers by opaque, and what it asked itself
        self.ours: dict[Key, list[Answer]] = {}
        self.theirs: dict[Key, list[Answer]] = {}
        self._asked: list[tuple[Frame, Any]] = []
        #: physical offset and queue offset of the recording -> ours
        self._places: dict[int, tuple[int, int]] = {}
        #: opaques of our checks of transactions that the recording has, too
        self._learnt_checks: dict[Key, set[int]] = {}

    def hold(self) -> None:
        """Hold all conversations."""
        admin = self.servers.broker.connect("127.0.0.1", 40000)
        for raw in self.case.content["raw_requests"]:
            (answer,) = answers(admin.feed(request(raw["code"], raw["fields"])))
            assert answer.code == raw["answer"]["code"]
        for frame in self.story:
            self._run_to(frame.at_ms)
            self._hang_up_before(frame.at_ms)
            if frame.is_of_client:
                self._ask(frame)
            else:
                self._learn(frame)
        self._run_to(self.story[-1].at_ms + 2 * GAP_MS)

    def _run_to(self, wall_ms: int) -> None:
        """Let time pass, timer by timer."""
        clock, broker, name_server = self._clock, self.servers.broker, self.servers.name_server
        assert name_server is not None
        target_ms = wall_ms - self._start_ms
        while True:
            dues = (broker.timers.next_due_ms(), name_server.timers.next_due_ms())
            due_ms = min((due for due in dues if due is not None), default=target_ms)
            if due_ms > target_ms:
                break
            clock.advance(max(0, due_ms - clock.monotonic_ms()))
            broker.timers.run()
            name_server.timers.run()
        clock.advance(max(0, target_ms - clock.monotonic_ms()))

    def _hang_up_before(self, wall_ms: int) -> None:
        """End connections whose last frame is long past."""
        for key in [key for key in self._connections if self._ends_ms[key] < wall_ms - 300]:
            self._connections.pop(key).lost()

    def _connection(self, key: Key) -> RemotingConnection:
        found = self._connections.get(key)
        if found is None:
            port = 50000 + len(self.ours)
            service = self.servers.broker if key[1] == "broker" else self.servers.name_server
            assert service is not None
            found = self._connections[key] = service.connect("127.0.0.1", port)
            found.on_output = lambda: self._collect(key, found)
            self.ours[key] = []
        return found

    def _collect(self, key: Key, connection: RemotingConnection) -> None:
        output, connection.output[:] = list(connection.output), []
        self.ours[key] += answers(joined(output))

    def _ask(self, frame: Frame) -> None:
        connection = self._connection(frame.key)
        asked = command(frame.data)
        if not asked.flag & 3:
            self._asked.append((frame, asked))
        data = self._put_right(frame, asked)
        size_bytes = self._chunk_bytes or len(data)
        for start in range(0, len(data), size_bytes):
            sent = connection.feed(data[start : start + size_bytes])
            self.ours[frame.key] += answers(joined(sent))

    def _put_right(self, frame: Frame, asked: Any) -> bytes:
        """Return the frame with our physical offsets for those of the recording."""
        names = {SEND_BACK: "offset", END_TRANSACTION: "commitLogOffset"}
        name = names.get(asked.code)
        if name is None:
            return frame.data
        place = self._places.get(int(asked.ext_fields[name]))
        if place is None:
            return frame.data
        fields = dict(asked.ext_fields)
        fields[name] = str(place[0])
        if asked.code == END_TRANSACTION:
            fields["tranStateTableOffset"] = str(place[1])
        return request(
            asked.code, fields, bytes(asked.body), opaque=asked.opaque, flag=asked.flag,
            version=asked.version, language=asked.language, serializer=asked.serializer,
        )  # fmt: skip

    def _learn(self, frame: Frame) -> None:
        """Note what the real server said, and where things stand with us that stand there."""
        (said,) = answers(frame.data)
        self.theirs.setdefault(frame.key, []).append(said)
        if not said.flag & 1:
            if said.code == CHECK_TRANSACTION_STATE:
                self._check_transactions(frame.key, said)
            return
        ours = self.answer(frame.key, said.opaque)
        if ours is None or not said.fields or not ours.fields:
            return
        if "msgId" in said.fields:
            self._note_place(said.fields, ours.fields)
        elif "nextBeginOffset" in said.fields:
            found = {(one.topic, one.queue_id, one.queue_offset): one for one in decoded(ours.body)}
            for message in decoded(said.body):
                twin = found.get((message.topic, message.queue_id, message.queue_offset))
                if twin is not None:
                    place = twin.physical_offset, twin.queue_offset
                    self._places[message.physical_offset] = place

    def _note_place(self, said: dict[str, str], ours: dict[str, str]) -> None:
        pairs = zip(said["msgId"].split(","), ours["msgId"].split(","), strict=True)
        for theirs_id, our_id in pairs:
            queue_offset = int(ours["queueOffset"])
            self._places[int(theirs_id[-16:], 16)] = int(our_id[-16:], 16), queue_offset

    def _check_transactions(self, key: Key, said: Answer) -> None:
        """Check transactions when the recorded broker did; learn where the half message went."""
        assert said.fields is not None
        known = {told.opaque for told in self.told(self.ours[key], CHECK_TRANSACTION_STATE)}
        if known == self._learnt_checks.get(key, set()):
            self.servers.broker.transaction_checks.check()
        self._learnt_checks.setdefault(key, set())
        for told in self.told(self.ours[key], CHECK_TRANSACTION_STATE):
            fields = told.fields or {}
            if fields["transactionId"] == said.fields["transactionId"]:
                place = int(fields["commitLogOffset"]), int(fields["tranStateTableOffset"])
                self._places[int(said.fields["commitLogOffset"])] = place
                self._learnt_checks[key].add(told.opaque)

    @staticmethod
    def told(said: list[Answer], code: int) -> list[Answer]:
        """Return what a server asked of its client by itself."""
        return [one for one in said if one.code == code and not one.flag & 1]

    def answer(self, key: Key, opaque: int) -> Answer | None:
        """Return our answer to a request, None if there is none."""
        found = (one for one in self.ours[key] if one.opaque == opaque and one.flag & 1)
        return next(found, None)

    def exchanges(self) -> Iterator[Exchange]:
        """Yield every request that the real server answered."""
        for frame, asked in self._asked:
            theirs = [
                one
                for one in self.theirs.get(frame.key, [])
                if one.opaque == asked.opaque and one.flag & 1
            ]
            if theirs:
                yield Exchange(
                    frame.recording, frame.server, asked.code, asked.version, asked.opaque,
                    asked.ext_fields, theirs[0], self.answer(frame.key, asked.opaque),
                )  # fmt: skip


def _reach_nobody(*_: object) -> None:
    """Stand where a server connects to others: the name server is in the same process."""
    raise AssertionError("nobody else is there")
