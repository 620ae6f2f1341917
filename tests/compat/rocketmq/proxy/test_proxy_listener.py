"""The socket of RocketMQ's proxy: gRPC on the broker's event loop."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from h2.connection import H2Connection
from h2.events import ConnectionTerminated

from logstore.compat import TestBroker
from logstore.compat.rocketmq import proxy_door
from logstore.compat.rocketmq.proxy.codes import Code
from logstore.compat.rocketmq.proxy_door import MissingProxyError
from logstore.compat.running import AddressError
from tests.interop.grpc_wire import GrpcWire

PRODUCER = {"client_type": 1, "publishing": {"topics": [{"name": "orders"}]}}
CONSUMER: dict[str, Any] = {
    "client_type": 3,
    "subscription": {"group": {"name": "g"}, "subscriptions": []},
}
MESSAGE = {
    "topic": {"name": "orders"},
    "body": b"v",
    "system_properties": {"message_id": "01", "message_type": 1, "body_encoding": 1},
}


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    """Return a broker with a proxy and a topic."""
    settings = {"grpcClientConsumerMinLongPollingTimeoutMillis": "100"}  # who waits for nothing
    with TestBroker(layout="rocketmq", proxy=True, settings=settings) as broker:
        broker.create_topic("orders", 1)
        yield broker


@pytest.fixture
def wire(broker: TestBroker) -> Iterator[GrpcWire]:
    """Return a client."""
    wire = GrpcWire(broker.endpoints)
    yield wire
    wire.close()


def receive_fields(seconds: float) -> dict[str, object]:
    """Return a ReceiveMessage that waits so long."""
    return {
        "group": {"name": "g"},
        "message_queue": {"topic": {"name": "orders"}, "id": -1},
        "filter_expression": {"type": 1, "expression": "*"},
        "batch_size": 1,
        "invisible_duration": {"seconds": 15},
        "long_polling_timeout": {"seconds": int(seconds), "nanos": int(seconds % 1 * 1e9)},
    }


def wait_for_a_pop(broker: TestBroker) -> None:
    """Return once somebody waits for messages."""
    while not broker.call(lambda: len(broker.rocketmq.popping.waits)):
        pass


def test_requests_and_streams(wire: GrpcWire) -> None:
    """One answer, many, and commands in both directions."""
    assert wire.listen(CONSUMER)["settings"]["client_type"] == 3
    assert wire.ask("SendMessage", {"messages": [MESSAGE]})["status"]["code"] == Code.OK
    (status, message, end) = wire.receive(receive_fields(5))
    assert status["status"]["code"] == Code.OK
    assert message["message"]["system_properties"]["born_host"].startswith("127.0.0.1:")
    assert "delivery_timestamp" in end


def test_a_client_that_speaks_tls(broker: TestBroker) -> None:
    """As all official ones do by themselves: served like the others, at the same port."""
    certificate = ssl.get_server_certificate(split_address(broker.endpoints))
    credentials = grpc.ssl_channel_credentials(certificate.encode())
    wire = GrpcWire(broker.endpoints, channel=grpc.secure_channel(broker.endpoints, credentials))
    assert wire.listen(CONSUMER)["settings"]["client_type"] == 3
    assert wire.ask("SendMessage", {"messages": [MESSAGE]})["status"]["code"] == Code.OK
    (_, message, _) = wire.receive(receive_fields(5))
    host, port = message["message"]["system_properties"]["born_host"].split(":")
    assert (host, int(port) > 0) == ("127.0.0.1", True)
    wire.close()


def test_where_tls_is_disabled() -> None:
    """A client that speaks it all the same is not served."""
    with TestBroker(
        layout="rocketmq", proxy=True, settings={"tls.server.mode": "disabled"}
    ) as broker:
        with pytest.raises((ssl.SSLError, ConnectionError, TimeoutError)):
            ssl.get_server_certificate(split_address(broker.endpoints), timeout=10)
        wire = GrpcWire(broker.endpoints)
        assert wire.listen(CONSUMER)["settings"]["client_type"] == 3
        wire.close()


def split_address(endpoints: str) -> tuple[str, int]:
    """Return host and port."""
    host, _, port = endpoints.rpartition(":")
    return host, int(port)


def test_settings_that_are_none_end_the_stream(wire: GrpcWire) -> None:
    """With the status that says whose fault it is."""
    with pytest.raises(grpc.RpcError) as caught:
        wire.listen({"client_type": 1})
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "no publishing or subscription data" in str(caught.value)


def test_who_hangs_up_does_not_listen_any_more(broker: TestBroker, wire: GrpcWire) -> None:
    """The proxy takes note, and goes on."""
    other = GrpcWire(broker.endpoints, "other")
    other.listen(PRODUCER)
    other.close()
    assert wire.listen(PRODUCER)["status"]["code"] == Code.OK
    assert wire.ask("SendMessage", {"messages": [MESSAGE]})["status"]["code"] == Code.OK


def test_it_stops_while_somebody_waits() -> None:
    """At once, and the client is told."""
    outcome: list[object] = []
    with TestBroker(layout="rocketmq", proxy=True) as broker:
        broker.create_topic("orders", 1)
        wire = GrpcWire(broker.endpoints)
        wire.listen(CONSUMER)

        def receive() -> None:
            try:
                outcome.append(wire.receive(receive_fields(20)))
            except grpc.RpcError as error:
                outcome.append(error)

        waiting = threading.Thread(target=receive)
        waiting.start()
        wait_for_a_pop(broker)
        began = time.monotonic()
    assert time.monotonic() - began < 10
    waiting.join(20)
    wire.close()
    assert len(outcome) == 1


@pytest.mark.parametrize("is_renewed", [False, True])
def test_who_hangs_up_while_it_waits(
    broker: TestBroker, wire: GrpcWire, *, is_renewed: bool
) -> None:
    """What comes for it is others' a second later, however long it wanted to have it."""
    wire.listen(CONSUMER)
    wire.receive(receive_fields(0.1))
    hour = {"invisible_duration": {"seconds": 3600}, "auto_renew": is_renewed}
    call = wire.begin_receive({**receive_fields(20), **hour})
    wait_for_a_pop(broker)
    call.cancel()
    assert wire.ask("SendMessage", {"messages": [MESSAGE]})["status"]["code"] == Code.OK
    other = GrpcWire(broker.endpoints, "other")
    other.listen(CONSUMER)
    (_, message, _) = other.receive(receive_fields(10))
    assert message["message"]["body"] == "dg=="
    other.close()


def test_a_port_that_is_taken(broker: TestBroker) -> None:
    """Is said so."""
    port = int(broker.endpoints.rpartition(":")[2])
    other = TestBroker(layout="rocketmq", proxy=True, proxy_port=port)
    with pytest.raises(AddressError, match="is taken by another program; name another port"):
        other.start()


def test_both_protocols_and_the_proxy() -> None:
    """On Kafka's layout, too."""
    with TestBroker(protocols=("kafka", "rocketmq"), proxy=True) as broker:
        broker.create_topic("orders", 2)
        wire = GrpcWire(broker.endpoints)
        told = wire.ask("QueryRoute", {"topic": {"name": "orders"}})
        assert len(told["message_queues"]) == 2
        assert wire.ask("SendMessage", {"messages": [MESSAGE]})["status"]["code"] == Code.OK
        wire.close()
        endpoints = broker.endpoints
        broker.crash()
        broker.start()
        assert broker.endpoints == endpoints


def test_faults_reach_those_who_come_by_the_proxy(broker: TestBroker, wire: GrpcWire) -> None:
    """By the broker's requests; who is hung up on is connected anew."""
    broker.faults.fail("SEND_MESSAGE", "FLUSH_DISK_TIMEOUT", topic="orders")
    told = wire.ask("SendMessage", {"messages": [MESSAGE]})
    assert told["entries"][0]["status"]["code"] == Code.MASTER_PERSISTENCE_TIMEOUT
    broker.faults.fail("SEND_MESSAGE", "SYSTEM_BUSY", message="[PCBUSY] not now")
    told = wire.ask("SendMessage", {"messages": [MESSAGE]})
    assert told["status"]["message"] == "[PCBUSY] not now"
    broker.faults.drop("SEND_MESSAGE")
    told = wire.ask("SendMessage", {"messages": [MESSAGE]})
    assert (told["status"]["code"], "hung up" in told["status"]["message"]) == (50001, True)
    assert wire.ask("SendMessage", {"messages": [MESSAGE]})["status"]["code"] == Code.OK


def test_libraries_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Are named, with what brings them."""
    needed = {"grpc": "grpcio", "no_such.part": "nosuch", "logstore.no_such": "nosuch-too"}
    monkeypatch.setattr(proxy_door, "_NEEDED", needed)
    with pytest.raises(MissingProxyError, match=r"needs nosuch and nosuch-too: pip .*\[grpc\]"):
        TestBroker(layout="rocketmq", proxy=True).start()


@pytest.mark.parametrize("is_tls", [False, True])
def test_who_is_connected_is_told_that_it_stops(*, is_tls: bool) -> None:
    """So a client calls elsewhere, and knows which calls were never looked at."""
    client = H2Connection()
    client.initiate_connection()
    with TestBroker(layout="rocketmq", proxy=True) as broker:
        peer = socket.create_connection(split_address(broker.endpoints), timeout=10)
        if is_tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_alpn_protocols(["h2"])
            peer = context.wrap_socket(peer)
            assert peer.selected_alpn_protocol() == "h2"
        peer.sendall(client.data_to_send())
        client.receive_data(peer.recv(1000))
    with peer:
        events = client.receive_data(b"".join(iter(lambda: peer.recv(1000), b"")))
    assert [event.error_code for event in events if isinstance(event, ConnectionTerminated)] == [0]
