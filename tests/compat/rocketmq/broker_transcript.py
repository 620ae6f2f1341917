"""
A recorded conversation between clients and a real broker, held again with ours.

The clients' frames come as they were recorded, at the recorded times. Only what a client says of
places that the broker itself has told it (half messages that it was asked about) is put right:
where a real broker looks for them depends on when it does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.connection import RemotingConnection
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import DIRECTORY, Peer
from tests.compat.rocketmq.frames import Answer, answers, command, joined, request
from tests.segments.rocketmq.golden_case import GoldenCase

#: the order in which the clients were recorded
CLIENTS = ("java_json", "java_binary", "ali_ons", "cpp")
_BORN = re.compile(rb'"(?:g|bornTimestamp)":"?(\d{13})')
_HOUR_MS = 3_600_000


@attrs.frozen
class Exchange:
    """One request, what the real broker answered, and what ours did (None: nothing)."""

    client: str
    code: int
    fields: Mapping[str, str]
    recorded: Answer
    ours: Answer | None


@attrs.define
class _Recorded:
    """One connection of a recording."""

    connection: RemotingConnection
    ours: list[Answer] = attrs.field(factory=list[Answer])
    recorded: list[Answer] = attrs.field(factory=list[Answer])
    asked: dict[int, tuple[int, dict[str, str]]] = attrs.field(
        factory=dict[int, tuple[int, dict[str, str]]]
    )

    def take(self) -> None:
        output = list(self.connection.output)
        self.connection.output.clear()
        self.ours += answers(joined(output))


class BrokerTranscript:
    """Holds all conversations of one golden case, one after the other, with one broker."""

    def __init__(self, case: GoldenCase) -> None:
        self.case = case
        self.clock = ManualClock()
        settings = {
            **case.settings,
            "brokerIP1": "127.0.0.1",
            # Checks are made when the recording has them.
            "transactionCheckInterval": str(_HOUR_MS),
            # Before 5.x it was clients who reset themselves.
            "useServerSideResetOffset": "false" if case.version == "4.9.8" else "true",
        }
        self.broker = Broker.open(SimulatedHost(clock=self.clock), DIRECTORY, settings)
        self.broker.advertised_port = int(settings["listenPort"])
        self.exchanges: list[Exchange] = []
        self._checked_ms = 0
        #: requests of the broker by recording: those of the real one, those of ours
        self.told: dict[str, tuple[list[int], list[int]]] = {}

    def hold(self) -> list[Exchange]:
        """Hold every conversation."""
        transcripts = self.case.transcripts
        names = [name for name in CLIENTS if name in transcripts]
        names += sorted(name for name in transcripts if name.startswith("mqadmin"))
        first = [frame for name in names for frame in _of_broker(transcripts[name])]
        self._set_clock(first)
        self.broker.start_housekeeping()
        admin = Peer(self.broker)
        for raw in self.case.content.get("raw_requests", ()):
            admin.ask(raw["code"], raw["fields"])
        for name in names:
            self._hold_one(name, _of_broker(transcripts[name]))
        return self.exchanges

    def _hold_one(self, name: str, frames: list[dict[str, Any]]) -> None:
        self._set_clock(frames)
        connections: dict[str, _Recorded] = {}
        now_ms = 0
        self._checked_ms = -_HOUR_MS
        for frame in frames:
            self._pass(frame["at_ms"] - now_ms)
            now_ms = frame["at_ms"]
            key = frame["connection"]
            if key not in connections:
                connections[key] = self._connect()
            self._hold_frame(connections[key], frame, bytes.fromhex(frame["hex"]))
        told: tuple[list[int], list[int]] = [], []
        for one in connections.values():
            for place, heard in enumerate((one.recorded, one.ours)):
                told[place].extend(answer.code for answer in heard if not answer.flag & 1)
            self._compare(name, one)
            one.connection.lost()
        self.told[name] = sorted(told[0]), sorted(told[1])

    def _connect(self) -> _Recorded:
        one = _Recorded(self.broker.connect("127.0.0.1", 40_000))
        one.connection.on_output = one.take
        return one

    def _hold_frame(self, one: _Recorded, frame: dict[str, Any], data: bytes) -> None:
        if frame["from"] != "client":
            (answer,) = answers(data)
            one.recorded.append(answer)
            is_check = answer.code == RequestCode.CHECK_TRANSACTION_STATE
            if is_check and not answer.flag & 1 and frame["at_ms"] > self._checked_ms + 1000:
                self._checked_ms = frame["at_ms"]
                self.broker.check_transactions()
            return
        asked = command(data)
        if not asked.is_response:
            one.asked[asked.opaque] = asked.code, asked.ext_fields
        if asked.code == RequestCode.END_TRANSACTION:
            data = self._put_right(one, asked.ext_fields, asked.opaque, data)
        one.ours += answers(joined(one.connection.feed(data)))

    def _put_right(self, one: _Recorded, fields: dict[str, str], opaque: int, data: bytes) -> bytes:
        """Return the end of a transaction with the places that our broker has told."""
        if fields.get("fromTransactionCheck") != "true":
            return data
        for told in one.ours:
            asked = told.fields or {}
            if told.code == RequestCode.CHECK_TRANSACTION_STATE and (
                asked["msgId"] == fields["msgId"]
            ):
                places = ("tranStateTableOffset", "commitLogOffset")
                right = {**fields, **{place: asked[place] for place in places}}
                return request(RequestCode.END_TRANSACTION, right, opaque=opaque, flag=2)
        return data

    def _compare(self, name: str, one: _Recorded) -> None:
        ours = {answer.opaque: answer for answer in one.ours if answer.flag & 1}
        for recorded in one.recorded:
            if recorded.flag & 1:
                code, fields = one.asked[recorded.opaque]
                found = ours.get(recorded.opaque)
                self.exchanges.append(Exchange(name, code, fields, recorded, found))

    def _set_clock(self, frames: list[dict[str, Any]]) -> None:
        """Set the wall clock by the first message of a recording that says when it was born."""
        for frame in frames:
            data = bytes.fromhex(frame["hex"])
            found = _BORN.search(data)
            if found is not None and frame["from"] == "client":
                wall_ms = int(found[1]) - frame["at_ms"]
                if wall_ms > self.clock.wall_ms():
                    self.clock.jump_wall(wall_ms - self.clock.wall_ms())
                return

    def _pass(self, delay_ms: float) -> None:
        """Let time pass, timer by timer."""
        timers = self.broker.timers
        end_ms = self.clock.monotonic_ms() + delay_ms
        while (due_ms := timers.next_due_ms()) is not None and due_ms <= end_ms:
            self.clock.advance(max(due_ms - self.clock.monotonic_ms(), 0))
            timers.run()
        self.clock.advance(max(end_ms - self.clock.monotonic_ms(), 0))


def _of_broker(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [frame for frame in frames if frame["server"] == "broker" and "hex" in frame]
