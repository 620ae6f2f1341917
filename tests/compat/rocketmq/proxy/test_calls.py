"""Calls of the proxy's clients, from gRPC's messages to the proxy and back, without a socket."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from logstore.compat.grpc.call import Call, Handling
from logstore.compat.rocketmq.proxy.calls import ProxyCalls
from logstore.compat.rocketmq.proxy.failures import StreamEndedError
from logstore.compat.rocketmq.proxy.schema import MESSAGES
from tests.compat.grpc.scripted_calls import ClientPeer, Heard, framed
from tests.compat.rocketmq.proxy.proxy_stage import Peer, Stage

SERVICE = "/apache.rocketmq.v2.MessagingService/"
SUBSCRIBED: dict[str, Any] = {
    "client_type": 3,
    "subscription": {
        "group": {"name": "readers"},
        "subscriptions": [{"topic": {"name": "normal"}, "expression": {"type": 1}}],
    },
}
RECEIVE: dict[str, Any] = {
    "group": {"name": "readers"},
    "message_queue": {"topic": {"name": "normal"}, "id": -1},
    "filter_expression": {"type": 1, "expression": "*"},
    "batch_size": 8,
    "invisible_duration": {"seconds": 15},
    "long_polling_timeout": {"seconds": 5},
}


class CallsOfProxy:
    """Implements :class:`logstore.compat.grpc.connection.GrpcService` over a stage."""

    def __init__(self, stage: Stage) -> None:
        self.message_bytes_max = 1_000_000
        self.calls = ProxyCalls(stage.proxy)

    def begin(self, call: Call) -> Handling | None:
        """Serve what the proxy serves."""
        return self.calls.begin(call)

    def send(self, on_output: Callable[[], None]) -> None:
        """Send at once."""
        on_output()


class Client(ClientPeer):
    """A client of the proxy."""

    def __init__(self, stage: Stage) -> None:
        self.proxy_calls = CallsOfProxy(stage)
        super().__init__(self.proxy_calls)

    def ask_for(self, name: str, *requests: bytes) -> Heard:
        """Make a call."""
        return self.ask(SERVICE + name, *requests, x_mq_client_id="client")

    def listen(self, settings: dict[str, Any]) -> int:
        """Open the telemetry stream; return its number."""
        number = self.begin(f"{SERVICE}Telemetry", x_mq_client_id="client")
        self.say(number, framed(written("TelemetryCommand", settings=settings)))
        return number


def written(name: str, **fields: Any) -> bytes:
    """Return a message."""
    data: bytes = MESSAGES[name](**fields).SerializeToString()
    return data


def told(heard: Heard, name: str) -> list[Any]:
    """Return the messages of an answer."""
    return [MESSAGES[name].FromString(data) for data in heard.messages]


def test_one_request_and_its_answer() -> None:
    """As the proxy has it."""
    client = Client(Stage())
    heard = client.ask_for("QueryRoute", written("QueryRouteRequest", topic={"name": "normal"}))
    (answer,) = told(heard, "QueryRouteResponse")
    assert (answer.status.code, len(answer.message_queues), heard.status) == (20000, 4, "0")


@pytest.mark.parametrize(
    ("requests", "text"),
    [
        ((), "Half-closed without a request"),
        ((b"\xff",), "Invalid protobuf byte sequence"),
        ((b"", b""), "Too many requests"),
    ],
)
def test_what_is_no_request(requests: tuple[bytes, ...], text: str) -> None:
    """It is not the proxy's to answer."""
    client = Client(Stage())
    for name in ("QueryRoute", "ReceiveMessage"):
        heard = client.ask_for(name, *requests)
        assert (heard.status, heard.headers["grpc-message"]) == ("13", text)


def test_methods_that_nobody_knows() -> None:
    """Are told to be so, by their names."""
    heard = Client(Stage()).ask_for("Guess", b"")
    assert heard.status == "12"
    assert heard.headers["grpc-message"] == f"Method not found: {SERVICE[1:]}Guess"


def test_many_messages_in_answer() -> None:
    """One after the other."""
    stage = Stage(has_wheel=True)
    producer, client = Peer(stage), Client(stage)
    producer.produce_to("normal")
    client.listen(SUBSCRIBED)
    for turn in range(3):
        producer.send(producer.message("normal", b"%d" % turn))
    answers = told(
        client.ask_for("ReceiveMessage", written("ReceiveMessageRequest", **RECEIVE)),
        "ReceiveMessageResponse",
    )
    bodies = [answer.message.body for answer in answers if answer.HasField("message")]
    assert sorted(bodies) == [b"0", b"1", b"2"]


def test_a_telemetry_stream() -> None:
    """Its client is told what to do, hears what there is to hear, and ends it."""
    stage = Stage()
    client = Client(stage)
    number = client.listen(SUBSCRIBED)
    (command,) = told(client.heard[number], "TelemetryCommand")
    assert command.settings.client_type == 3
    known = stage.proxy.clients["client"]
    assert known.tell is not None
    known.tell(MESSAGES["TelemetryCommand"](status={"code": 1}))
    client.exchange()
    assert told(client.heard[number], "TelemetryCommand")[1].status.code == 1
    client.say(number, b"", is_last=True)
    assert client.heard[number].status == "0"
    assert stage.proxy.clients["client"].tell is None


@pytest.mark.parametrize("way", ["reset", "lost", "stop"])
def test_telemetry_streams_that_end_otherwise(way: str) -> None:
    """The proxy takes note of it."""
    stage = Stage()
    client = Client(stage)
    number = client.listen(SUBSCRIBED)
    if way == "reset":
        client.h2.reset_stream(number)
    elif way == "lost":
        client.connection.lost()
    else:
        client.proxy_calls.calls.end_all()
    client.exchange()
    assert stage.proxy.clients["client"].tell is None
    assert client.heard[number].status == ("0" if way == "stop" else None)


def test_settings_of_nobody() -> None:
    """Whoever does not say his name is told so, and the stream ends like any other."""
    client = Client(Stage())
    number = client.begin(f"{SERVICE}Telemetry")
    client.say(number, framed(written("TelemetryCommand", settings=SUBSCRIBED)))
    (command,) = told(client.heard[number], "TelemetryCommand")
    assert (command.status.code, command.status.message) == (40017, "client id cannot be empty")
    assert client.heard[number].status == "0"


@pytest.mark.parametrize(
    ("settings", "status"), [({"client_type": 1}, "3"), ({"pub_sub": None}, "3")]
)
def test_settings_that_are_none(settings: dict[str, Any], status: str) -> None:
    """End the stream, and say whose fault it is."""
    client = Client(Stage())
    number = client.listen({name: value for name, value in settings.items() if value is not None})
    assert client.heard[number].status == status


def test_what_is_no_command() -> None:
    """Ends the stream, and nobody listens any more."""
    stage = Stage()
    client = Client(stage)
    number = client.listen(SUBSCRIBED)
    client.say(number, framed(b"\xff"))
    assert client.heard[number].status == "13"
    assert stage.proxy.clients["client"].tell is None


def test_who_was_told_why_already(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream of somebody who may not do what he asks for ends like any other."""
    stage = Stage()

    def refuse(caller: object, tell: object) -> Callable[[object], None]:
        del caller, tell

        def take(command: object) -> None:
            raise StreamEndedError(str(command))

        return take

    monkeypatch.setattr(stage.proxy, "telemetry", refuse)
    client = Client(stage)
    number = client.listen(SUBSCRIBED)
    assert client.heard[number].status == "0"
