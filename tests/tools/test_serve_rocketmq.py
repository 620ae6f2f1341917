"""``logstore serve --layout rocketmq``: name server and broker in a process of their own."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from logstore.tools.dev.free_ports import free_port
from tests.compat.rocketmq.frames import Answer, answers, request
from tests.interop.eventually import eventually
from tests.interop.grpc_wire import GrpcWire
from tests.tools.command_line import CommandLine
from tests.tools.serving import SECONDS_MAX, Serving, refused

LAYOUT = ("--layout", "rocketmq")
BOTH_FREE = (*LAYOUT, "--broker-port", "0", "--json")


def ask(
    address: str, code: int, fields: Mapping[str, object] | None = None, body: bytes = b""
) -> Answer:
    """Ask a server one thing; return its answer."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), SECONDS_MAX) as peer:
        peer.sendall(request(code, fields, body))
        data = b""
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            received = peer.recv(65536)
            assert received, "it hung up"
            data += received
    (answer,) = answers(data)
    return answer


def broker_of(name_server: str, topic: str = "TBW102") -> str:
    """Return the address of the broker that serves a topic, as a name server tells it."""
    route = json.loads(ask(name_server, 105, {"topic": topic}).body)
    address: str = route["brokerDatas"][0]["brokerAddrs"]["0"]
    return address


def send(name_server: str, body: bytes, topic: str = "t") -> Answer:
    """Send one message, as a client does who knows the name server only."""
    fields = {
        "a": "g", "b": topic, "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 1700000000000, "h": 0,
        "i": "UNIQ_KEY\x01k1\x02", "j": 0, "k": "false", "m": "false",
    }  # fmt: skip
    return ask(broker_of(name_server), 310, fields, body)


def pulled(name_server: str, topic: str = "t") -> bytes:
    """Return what stands in queue 0 of a topic."""
    return ask(broker_of(name_server), 11, pull_fields(topic)).body


def pull_fields(topic: str = "t") -> dict[str, object]:
    """Return the fields of a pull of all that stands in queue 0 of a topic."""
    return {
        "consumerGroup": "r", "topic": topic, "queueId": 0, "queueOffset": 0, "maxMsgNums": 32,
        "sysFlag": 4, "commitOffset": 0, "suspendTimeoutMillis": 0, "subscription": "*",
        "subVersion": 1,
    }  # fmt: skip


def settings_of(address: str) -> dict[str, str]:
    """Return the settings that a broker runs with."""
    lines = ask(address, 26).body.decode().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


class TestReady:
    """One line on stdout, once name server and broker answer."""

    def test_the_line_for_programs(self, tmp_path: Path) -> None:
        """Both addresses, data directory, layout and process id; the broker is listed then."""
        with Serving(*BOTH_FREE, "--data", tmp_path) as serving:
            ready: dict[str, Any] = serving.ready
            assert sorted(ready) == ["bootstrap", "broker", "data", "layout", "pid"]
            assert (ready["layout"], ready["data"]) == ("rocketmq", str(tmp_path))
            assert ready["pid"] == serving.process.pid
            assert broker_of(ready["bootstrap"]) == ready["broker"]
            assert send(ready["bootstrap"], b"hello").code == 0
            assert serving.stop() == 0
            assert (serving.out, serving.err) == ("", "")

    def test_the_line_for_people(self, tmp_path: Path) -> None:
        """The same in words, with how to stop it."""
        with Serving(*LAYOUT, "--broker-port", "0", "--data", tmp_path) as serving:
            assert serving.line.startswith("RocketMQ name server at 127.0.0.1:")
            assert ", broker at 127.0.0.1:" in serving.line
            assert str(tmp_path) in serving.line
            assert "Ctrl-C" in serving.line

    def test_ports_that_are_asked_for(self) -> None:
        """Each server gets its own."""
        port = free_port(5)
        assert port is not None
        broker_port = port + 5
        with Serving(*LAYOUT, "--broker-port", broker_port, "--json", port=port) as serving:
            assert serving.bootstrap == f"127.0.0.1:{port}"
            assert serving.ready["broker"] == f"127.0.0.1:{broker_port}"

    @pytest.mark.parametrize(("proxy", "name_server"), [(1, -2), (-2, 1)])
    def test_ports_next_to_the_brokers(self, proxy: int, name_server: int) -> None:
        """Where slaves would ask by default: who names them for clients gets them for clients."""
        broker_port = free_port(proxy, name_server)
        assert broker_port is not None
        ports = "--broker-port", broker_port, "--proxy-port", broker_port + proxy
        with Serving(*LAYOUT, *ports, "--json", port=broker_port + name_server) as serving:
            assert serving.bootstrap == f"127.0.0.1:{broker_port + name_server}"
            assert serving.ready["proxy"] == f"127.0.0.1:{broker_port + proxy}"
            assert serving.err == ""

    def test_the_proxy_is_named(self, tmp_path: Path) -> None:
        """Where there is one: gRPC clients are answered there."""
        arguments = ("--layout", "rocketmq", "--data", tmp_path, "--broker-port", 0, "--json")
        with Serving(*arguments, "--proxy-port", 0) as serving:
            wire = GrpcWire(serving.ready["proxy"])
            answer = wire.ask("QueryRoute", {"topic": {"name": "none"}})
            assert answer["status"]["code"] == 40402
            wire.close()
        assert serving.process.returncode == 0
        assert "--proxy-port is for RocketMQ" in refused("--proxy-port", 0)[1]


class TestData:
    """What is stored, and where."""

    def test_the_directory_is_that_of_java(self, tmp_path: Path) -> None:
        """It is made; commit log, queues, tables and lock stand in it directly."""
        data = tmp_path / "new" / "store"
        with Serving(*BOTH_FREE, "--data", data) as serving:
            assert send(serving.bootstrap, b"hello").code == 0
            assert (data / "abort").read_text() == str(serving.process.pid)
            assert serving.stop() == 0
        assert not (data / "abort").exists()
        assert {"checkpoint", "commitlog", "config", "consumequeue", "lock"} <= {
            path.name for path in data.iterdir()
        }

    def test_a_restart_finds_every_message(self, tmp_path: Path) -> None:
        """After a clean stop; topics are known at once."""
        with Serving(*BOTH_FREE, "--data", tmp_path) as serving:
            assert send(serving.bootstrap, b"first").code == 0
        with Serving(*BOTH_FREE, "--data", tmp_path) as serving:
            assert send(serving.bootstrap, b"second").code == 0
            body = pulled(serving.bootstrap)
            assert b"first" in body
            assert b"second" in body

    def test_a_temporary_directory_goes_away(self) -> None:
        """Without --data nothing is left behind."""
        with Serving(*BOTH_FREE) as serving:
            data = Path(serving.ready["data"])
            assert send(serving.bootstrap, b"x").code == 0
            assert (data / "commitlog").is_dir()
            assert serving.stop() == 0
        assert not data.exists()


class TestSettings:
    """What broker.conf and --set say."""

    def test_the_command_line_wins(self, tmp_path: Path) -> None:
        """--set over the file, the file over Java's defaults; exact file sizes from 64 KiB."""
        conf = tmp_path / "broker.conf"
        conf.write_text(
            "# a comment\nbrokerName = from-file\nfileReservedTime=48\n"
            f"storePathRootDir={tmp_path}/store\nlistenPort=0\n"
        )
        with Serving(
            *LAYOUT, "--json", "-c", conf, "--set", "fileReservedTime=7",
            "--set", "mappedFileSizeCommitLog=65536",
        ) as serving:  # fmt: skip
            found = settings_of(serving.ready["broker"])
            assert (found["brokerName"], found["fileReservedTime"]) == ("from-file", "7")
            assert serving.ready["data"] == f"{tmp_path}/store"
            assert send(serving.bootstrap, b"x").code == 0
            (file, *_) = sorted((tmp_path / "store" / "commitlog").iterdir())
            assert file.stat().st_size == 65536

    def test_what_java_does_not_know_is_warned_of(self) -> None:
        """A line each; what Java knows, the name server's settings too, is taken in silence."""
        with Serving(
            *BOTH_FREE, "--set", "brokerNam=x", "--set", "sendMessageThreadPoolNums=4",
            "--set", "orderMessageEnable=true",
        ) as serving:  # fmt: skip
            assert serving.stop() == 0
        assert serving.err.splitlines() == [
            (
                "logstore: warning: brokerNam: no such setting in RocketMQ; ignored; "
                "did you mean brokerName?"
            )
        ]

    def test_the_address_that_clients_are_told(self) -> None:
        """brokerIP1; also if the servers listen everywhere."""
        with Serving(*BOTH_FREE, "--host", "0.0.0.0", "--set", "brokerIP1=localhost") as serving:  # noqa: S104
            assert serving.ready["broker"].startswith("localhost:")
            assert broker_of(serving.bootstrap).startswith("localhost:")


class TestOtherNameServers:
    """A broker alone, which registers elsewhere."""

    @pytest.mark.parametrize("is_in_file", [False, True])
    def test_it_is_listed_there(self, tmp_path: Path, is_in_file: bool) -> None:
        """By -n or the file's namesrvAddr; it is ready when the other one lists it."""
        with Serving(*BOTH_FREE, "--set", "brokerName=one") as first:
            conf = tmp_path / "broker.conf"
            conf.write_text(
                f"brokerName=two\nnamesrvAddr={first.bootstrap if is_in_file else ''}\n"
            )
            named = () if is_in_file else ("-n", first.bootstrap)
            with Serving(*BOTH_FREE, "-c", conf, *named, port=None) as second:
                assert second.bootstrap == first.bootstrap
                route = json.loads(ask(first.bootstrap, 105, {"topic": "TBW102"}).body)
                names = sorted(broker["brokerName"] for broker in route["brokerDatas"])
                assert names == ["one", "two"]
                assert second.stop() == 0
            assert broker_of(first.bootstrap) == first.ready["broker"]
            route = json.loads(ask(first.bootstrap, 105, {"topic": "TBW102"}).body)
            assert [broker["brokerName"] for broker in route["brokerDatas"]] == ["one"]

    def test_a_port_asks_for_a_name_server_here(self, tmp_path: Path) -> None:
        """Whatever the file says."""
        conf = tmp_path / "broker.conf"
        conf.write_text("namesrvAddr=127.0.0.1:1\n")
        with Serving(*BOTH_FREE, "-c", conf) as serving:
            assert broker_of(serving.bootstrap) == serving.ready["broker"]


class TestRefusals:
    """Starts that must not succeed, and say why."""

    def test_a_store_that_is_damaged(self, tmp_path: Path) -> None:
        """The text names the file; nothing is changed."""
        with Serving(*BOTH_FREE, "--data", tmp_path) as serving:
            assert send(serving.bootstrap, b"x").code == 0
        (file, *_) = sorted((tmp_path / "commitlog").iterdir())
        with file.open("r+b") as opened:
            opened.truncate(1000)
        code, text = refused(*BOTH_FREE, "--data", tmp_path)
        assert code != 0
        assert f"commitlog/{file.name}" in text
        assert "Traceback" not in text
        assert file.stat().st_size == 1000

    def test_a_store_that_is_in_use(self, tmp_path: Path) -> None:
        """The second one is kept out, and told why."""
        with Serving(*BOTH_FREE, "--data", tmp_path):
            code, text = refused(*BOTH_FREE, "--data", tmp_path)
            assert code != 0
            assert "lock" in text
            assert "Traceback" not in text

    def test_a_port_that_is_taken(self) -> None:
        """Either port; the text names the address."""
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            taken = other.getsockname()[1]
            code, text = refused(*LAYOUT, "--broker-port", taken)
            assert code != 0
            assert f"127.0.0.1:{taken} is taken" in text

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            ((*LAYOUT, "--set", "listenPort=x", "--set", "brokerName=b"), "listenPort=x"),
            ((*LAYOUT, "--set", "mappedFileSizeCommitLog=much"), "mappedFileSizeCommitLog"),
            ((*LAYOUT, "--release-version", "3.9"), "--release-version is for Kafka's layout"),
            (("--broker-port", "0"), "--broker-port is for RocketMQ's clients"),
            ((*LAYOUT, "-n", "x:1"), "--port is that of a name server here"),
            ((*LAYOUT, "--set", "nonsense"), "is not KEY=VALUE"),
        ],
    )
    def test_words_that_make_no_sense(self, arguments: tuple[str, ...], expected: str) -> None:
        """Say what is wrong."""
        code, text = refused(*arguments)
        assert code != 0
        assert expected in text
        assert "Traceback" not in text

    @pytest.mark.parametrize("named", ["x", "x:y", ":1", "x:70000"])
    def test_a_name_server_that_is_no_address(self, named: str, logstore: CommandLine) -> None:
        """Is refused before anything is opened."""
        ended = logstore("serve", *LAYOUT, "-n", named)
        assert ended.exit_code != 0
        assert "expected HOST:PORT" in ended.err


def test_a_client_that_talks_nonsense() -> None:
    """Is hung up on; everybody else is served on."""
    with Serving(*BOTH_FREE) as serving:
        for address in (serving.bootstrap, serving.ready["broker"]):
            host, _, port = address.rpartition(":")
            with socket.create_connection((host, int(port)), SECONDS_MAX) as peer:
                peer.sendall(b"GET / HTTP/1.1\r\n\r\n")
                with suppress(ConnectionResetError):
                    assert peer.recv(1) == b""
        assert send(serving.bootstrap, b"x").code == 0


def ports_in_a_row() -> tuple[int, int]:
    """Return a free port that has free ones around it, and another one."""
    found = free_port(-2, 1)
    assert found is not None, "no port is free"
    other = free_port(-2, 1)
    assert other is not None, "no port is free"
    return found, other


class TestReplication:
    """Masters listen for slaves; slaves find their master by the name server."""

    def test_a_slave_serves_what_the_master_took(self, tmp_path: Path) -> None:
        """Two processes: a message sent to the one is read from the other."""
        master_port, slave_port = ports_in_a_row()
        as_slave = ["--set", "brokerRole=SLAVE", "--set", "brokerId=1"]
        with Serving(
            *LAYOUT, "--json", "--broker-port", master_port, "--data", tmp_path / "master"
        ) as master:
            assert send(master.bootstrap, b"hello").code == 0
            with Serving(
                *LAYOUT, "--json", "--broker-port", slave_port, "--data", tmp_path / "slave",
                *as_slave, "--set", "slaveReadEnable=true", "-n", master.bootstrap, port=None,
            ) as slave:  # fmt: skip
                fields = pull_fields()

                def pulled() -> bytes:
                    answer = ask(slave.ready["broker"], 11, fields)
                    return bytes(answer.body) if answer.code == 0 else b""

                assert b"hello" in eventually(pulled, SECONDS_MAX, what="the message")
                status = json.loads(ask(master.ready["broker"], 907).body)
                assert (status["inSyncSlaveNums"], status["master"]) == (1, True)
                assert ask(slave.ready["broker"], 310, {}, b"x").code == 2

    def test_the_second_port(self) -> None:
        """Two below the first the same is answered: real slaves ask there for topics."""
        port, _ = ports_in_a_row()
        with Serving(*LAYOUT, "--json", "--broker-port", port):
            topics = ask(f"127.0.0.1:{port - 2}", 21).body
            assert b"SELF_TEST_TOPIC" in topics

    def test_ports_that_are_taken(self) -> None:
        """Where the ports beside the first are taken slaves get another one, with a warning."""
        port, _ = ports_in_a_row()
        with socket.socket() as below, socket.socket() as above:
            below.bind(("127.0.0.1", port - 2))
            above.bind(("127.0.0.1", port + 1))
            below.listen()
            above.listen()
            with Serving(*LAYOUT, "--json", "--broker-port", port) as serving:
                assert ask(serving.ready["broker"], 907).code == 0
                assert serving.stop() == 0
                assert f"127.0.0.1:{port + 1} is taken" in serving.err
                assert f"127.0.0.1:{port - 2} is taken" in serving.err
