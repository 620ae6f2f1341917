"""A proxy before a broker on a simulated host, and clients that ask it without a socket."""

from __future__ import annotations

import itertools
from typing import Any

from google.protobuf import json_format

from logstore.compat.rocketmq.proxy.codes import ClientType, MessageType
from logstore.compat.rocketmq.proxy.proxy import Caller, Proxy
from logstore.compat.rocketmq.proxy.schema import MESSAGES
from logstore.compat.rocketmq.topics.topic_changes import delete_topic
from logstore.compat.waiting import Later
from logstore.segments.rocketmq.tables.topics import TopicConfig
from tests.compat.rocketmq.broker_peer import a_broker

GROUP = "readers"


class Stage:
    """
    A proxy with a topic of each kind, named like it: ``normal``, ``fifo`` and so on.

    Messages for later, and those that come again, need the wheel, which takes a while to make.
    """

    def __init__(self, *, has_wheel: bool = False, **settings: str) -> None:
        wheel = {"timerWheelEnable": "true", "mappedFileSizeTimerLog": "52000"}
        self.broker = a_broker(settings={**settings, **(wheel if has_wheel else {})})
        self.broker.start_housekeeping()
        self.proxy = Proxy(self.broker)
        for kind in ("normal", "fifo", "delay", "transaction", "priority", "mixed"):
            attributes = {"message.type": kind.upper()}
            self.broker.topics.put(TopicConfig(kind, 4, 4, attributes=attributes))

    def delete_topic(self, topic: str) -> None:
        """Delete a topic, if it is there, as an administrator of the broker does."""
        delete_topic(self.broker, topic)

    def let_pass(self, delay_ms: float) -> None:
        """Let time pass, timer by timer."""
        clock: Any = self.broker.host.clock
        end_ms = clock.monotonic_ms() + delay_ms
        while (due_ms := self.broker.timers.next_due_ms()) is not None and due_ms <= end_ms:
            clock.advance(max(due_ms - clock.monotonic_ms(), 0))
            self.broker.timers.run()
        clock.advance(end_ms - clock.monotonic_ms())


class Peer:
    """One client of the proxy. `heard` are the commands that it was told."""

    _ids = itertools.count(1)

    def __init__(self, stage: Stage, client_id: str | None = None) -> None:
        self.stage = stage
        self.client_id = f"client-{next(self._ids)}" if client_id is None else client_id
        self.remaining_ms: float | None = None
        self.version = "5.0.3"
        self.heard: list[dict[str, Any]] = []
        self._take: Any = None
        self._message_ids = itertools.count(1)

    @property
    def caller(self) -> Caller:
        """What the proxy knows of a request."""
        return Caller(self.client_id, "192.0.2.9", 40000, self.remaining_ms, version=self.version)

    def begin(self, name: str, **fields: Any) -> Later[Any]:
        """Return the answer to come."""
        request = MESSAGES[f"{name}Request"](**fields)
        read = MESSAGES[f"{name}Request"].FromString(request.SerializeToString())
        return self.stage.proxy.serve(name, self.caller, read)

    def ask(self, name: str, **fields: Any) -> dict[str, Any]:
        """Return an answer that must come at once."""
        found: list[Any] = []
        self.begin(name, **fields).then(found.append)
        assert found, f"{name} is not answered at once"
        return plain(found[0])

    def hear(self, message: Any) -> None:
        """Take a command of the proxy."""
        self.heard.append(plain(message))

    def listen(self, **settings: Any) -> dict[str, Any]:
        """Open the telemetry stream; return what the client is told to do."""
        self._take = self.stage.proxy.telemetry(self.caller, self.hear)
        self._take(MESSAGES["TelemetryCommand"](settings=settings))
        return self.heard.pop()

    def stop_listening(self) -> None:
        """Close the telemetry stream."""
        self.stage.proxy.telemetry_ended(self.caller, self.hear)

    # what clients do all the time

    def produce_to(self, *topics: str) -> dict[str, Any]:
        """Become a producer."""
        return self.listen(
            client_type=int(ClientType.PRODUCER),
            publishing={"topics": [{"name": topic} for topic in topics]},
        )

    def consume(
        self, topic: str, kind: ClientType = ClientType.SIMPLE_CONSUMER, expression: str = "*"
    ) -> dict[str, Any]:
        """Become a consumer."""
        entry = {"topic": {"name": topic}, "expression": {"type": 1, "expression": expression}}
        return self.listen(
            client_type=int(kind),
            subscription={"group": {"name": GROUP}, "subscriptions": [entry]},
        )

    def message(
        self, topic: str, body: bytes = b"body", properties: dict[str, str] | None = None,
        kind: MessageType = MessageType.NORMAL, **about: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """Return a message as clients make it."""
        known = {
            "message_id": f"01{next(self._message_ids):032X}",
            "message_type": int(kind),
            "body_encoding": 1,
            "born_timestamp": {"seconds": 1_700_000_000},
            "born_host": "client.test",
        }
        return {
            "topic": {"name": topic},
            "body": body,
            "user_properties": properties or {},
            "system_properties": {**known, **about},
        }

    def send(self, *messages: dict[str, Any]) -> dict[str, Any]:
        """Send messages; return the answer."""
        return self.ask("SendMessage", messages=list(messages))

    def receive_fields(self, topic: str, **more: Any) -> dict[str, Any]:
        """Return the fields of a ReceiveMessage."""
        return {
            "group": {"name": GROUP},
            "message_queue": {"topic": {"name": topic}, "id": -1},
            "filter_expression": {"type": 1, "expression": "*"},
            "batch_size": 16,
            "invisible_duration": {"seconds": 15},
            "long_polling_timeout": {"seconds": 5},
            **more,
        }

    def receive(self, topic: str, **more: Any) -> list[dict[str, Any]]:
        """Return the messages that are there at once, or after the longest wait."""
        found: list[Any] = []
        self.begin("ReceiveMessage", **self.receive_fields(topic, **more)).then(found.append)
        if not found:
            self.stage.let_pass(21_000)
        assert found, "nothing came of it"
        return [plain(one)["message"] for one in found[0] if one.HasField("message")]

    def refusal(self, topic: str, **more: Any) -> tuple[int, str]:
        """Return why nothing is received."""
        found: list[Any] = []
        self.begin("ReceiveMessage", **self.receive_fields(topic, **more)).then(found.append)
        (first, _) = found[0]
        return first.status.code, first.status.message

    def acknowledge(self, topic: str, handle: str) -> tuple[int, str]:
        """Acknowledge a message; return the code and text of its entry."""
        entry = {"message_id": "m", "receipt_handle": handle}
        told = self.ask("AckMessage", group={"name": GROUP}, topic={"name": topic}, entries=[entry])
        status = told["entries"][0]["status"]
        return status["code"], status["message"]


def plain(message: Any) -> dict[str, Any]:
    """Return a message as JSON has it, by the names of the protocol."""
    told: dict[str, Any] = json_format.MessageToDict(message, preserving_proto_field_name=True)
    return told


def handle_of(message: dict[str, Any]) -> str:
    """Return what acknowledges a message."""
    handle: str = message["system_properties"]["receipt_handle"]
    return handle
