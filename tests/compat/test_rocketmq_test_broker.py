"""The RocketMQ name server and broker for tests: what a person who writes tests may rely on."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import pytest

from logstore.compat import TestBroker
from logstore.compat.running import AddressError
from logstore.errors import LogStoreError
from logstore.testing.simulated_host import SimulatedHost
from logstore.tools.dev.free_ports import free_port
from tests.compat.rocketmq.frames import Answer, answers, request

SECONDS_MAX = 20


def ask(
    address: str, code: int, fields: Mapping[str, object] | None = None, body: bytes = b""
) -> Answer:
    """Ask a server one thing over a connection of its own."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), SECONDS_MAX) as peer:
        peer.sendall(request(code, fields, body))
        data = b""
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            received = peer.recv(65536)
            assert received, "it hung up"
            data += received
    (answer,) = answers(data)
    return answer


def broker_of(broker: TestBroker) -> str:
    """Return the address that the name server gives clients."""
    route = json.loads(ask(broker.bootstrap, 105, {"topic": "TBW102"}).body)
    address: str = route["brokerDatas"][0]["brokerAddrs"]["0"]
    return address


def send(broker: TestBroker, body: bytes) -> int:
    """Send a message by the address that the name server gives; return the answer's code."""
    fields = {
        "a": "g", "b": "t", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 1700000000000, "h": 0,
        "i": "", "j": 0, "k": "false", "m": "false",
    }  # fmt: skip
    return ask(broker_of(broker), 310, fields, body).code


def test_it_listens_and_is_listed() -> None:
    """Within the with statement; a new topic is routable as soon as its first message is."""
    with TestBroker(layout="rocketmq") as broker:
        assert send(broker, b"hello") == 0
        route = json.loads(ask(broker.bootstrap, 105, {"topic": "t"}).body)
        assert [queue["brokerName"] for queue in route["queueDatas"]] != []
        ports = {broker.port, int(broker_of(broker).rpartition(":")[2])}
    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), SECONDS_MAX)


def test_what_the_broker_may_do_is_changed_while_it_runs() -> None:
    """Name servers are told at once: clients do not write to it any more, and do again."""
    with TestBroker(layout="rocketmq") as broker:
        assert send(broker, b"hello") == 0
        for rights in (4, 6):
            changed = ask(broker_of(broker), 25, {}, f"brokerPermission={rights}".encode())
            assert changed.code == 0
            (queue,) = json.loads(ask(broker.bootstrap, 105, {"topic": "t"}).body)["queueDatas"]
            assert queue["perm"] == rights


def test_the_data_of_a_test_goes_away() -> None:
    """Without a directory nothing is left behind."""
    with TestBroker(layout="rocketmq") as broker:
        directory = Path(broker.directory)
        assert send(broker, b"x") == 0
        assert (directory / "commitlog").is_dir()
    assert not directory.exists()


def test_a_directory_of_ones_own(tmp_path: Path) -> None:
    """Is closed cleanly, and serves the next broker."""
    for number in range(2):
        with TestBroker(str(tmp_path), layout="rocketmq") as broker:
            assert send(broker, b"x") == 0
            found = broker.call(lambda: broker.rocketmq.store.max_queue_offset("t", 0))
            assert found == number + 1
        assert not (tmp_path / "abort").exists()


def test_ports_and_settings_of_ones_own() -> None:
    """Both ports can be asked for; settings are those of broker.conf."""
    port = free_port(5)
    assert port is not None
    broker_port = port + 5
    settings = {"brokerName": "mine"}
    with TestBroker(
        layout="rocketmq", port=port, broker_port=broker_port, settings=settings
    ) as broker:
        assert broker.bootstrap == f"127.0.0.1:{port}"
        assert broker_of(broker) == f"127.0.0.1:{broker_port}"
        assert b'"brokerName":"mine"' in ask(broker.bootstrap, 105, {"topic": "TBW102"}).body


def test_many_at_a_time() -> None:
    """Each has its own ports, data and thread."""
    brokers = [TestBroker(layout="rocketmq").start() for _ in range(3)]
    try:
        assert len({broker.port for broker in brokers}) == 3
        for broker in brokers:
            assert send(broker, b"x") == 0
            assert broker.call(lambda b=broker: b.rocketmq.store.max_queue_offset("t", 0)) == 1  # type: ignore[misc]
    finally:
        for broker in brokers:
            broker.stop()
    assert not [one for one in threading.enumerate() if one.name == "logstore-broker"]


def test_a_simulated_host() -> None:
    """Real sockets over files that are not there."""
    host = SimulatedHost()
    host.fs.make_directory("/store")
    with TestBroker("/store", layout="rocketmq", host=host) as broker:
        assert send(broker, b"x") == 0
    assert host.fs.exists("/store/commitlog")


@pytest.mark.parametrize("name", ["port", "broker_port"])
def test_a_port_that_is_taken(name: str) -> None:
    """Is said at once, and nothing stays behind."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        broker = TestBroker(layout="rocketmq", **{name: taken})
        with pytest.raises(AddressError, match=f"127.0.0.1:{taken}"):
            broker.start()
    assert not [one for one in threading.enumerate() if one.name == "logstore-broker"]


def test_a_setting_that_makes_no_sense() -> None:
    """Is said at once, too."""
    with pytest.raises(LogStoreError, match="mappedFileSizeCommitLog"):
        TestBroker(layout="rocketmq", settings={"mappedFileSizeCommitLog": "much"}).start()


def test_each_layout_imports_its_own() -> None:
    """A RocketMQ broker runs without Kafka's modules, and the other way round."""
    for layout, other in (("rocketmq", "kafka"), ("kafka", "rocketmq")):
        program = (
            f"import sys; import logstore.compat.{layout}.in_thread\n"
            f"print([name for name in sys.modules if '.{other}' in name])"
        )
        ended = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        assert ended.stdout.strip() == "[]"


@pytest.mark.parametrize("layout", ["kafka", "rocketmq"])
def test_a_topic_is_made_by_whoever_is_served(layout: Literal["kafka", "rocketmq"]) -> None:
    """Over Kafka's layout, too, RocketMQ's topics take RocketMQ's attributes if it is alone."""
    alone: tuple[Literal["rocketmq"]] = ("rocketmq",)
    with TestBroker(layout=layout, protocols=alone) as broker:
        broker.create_topic("orders", 3, message_type="FIFO")
        config = broker.call(lambda: broker.rocketmq.topics.get("orders"))
        assert config is not None
        assert config.attributes == {"message.type": "FIFO"}
        told = ask(broker.name_server, 105, {"topic": "orders"})  # GET_ROUTEINFO_BY_TOPIC
        (queues,) = json.loads(told.body)["queueDatas"]
        assert (queues["readQueueNums"], queues["writeQueueNums"]) == (3, 3)
