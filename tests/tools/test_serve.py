"""``logstore serve``: a process that says when it answers, why it does not, and ends cleanly."""

from __future__ import annotations

import errno
import importlib
import os
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from logstore.tools.dev.free_ports import free_port
from tests.compat.kafka.conversation import build, message_class
from tests.compat.kafka.peer import fetch_fields
from tests.tools.command_line import CommandLine
from tests.tools.serving import SECONDS_MAX, Serving, refused

admin: Any = importlib.import_module("confluent_kafka.admin")  # carries few types


def configs(bootstrap: str) -> dict[str, Any]:
    """Return the broker's settings as a client sees them."""
    resource = admin.ConfigResource(admin.ConfigResource.Type.BROKER, "1")
    client = admin.AdminClient({"bootstrap.servers": bootstrap})
    found = client.describe_configs([resource])[resource].result(SECONDS_MAX)
    return {name: entry.value for name, entry in found.items()}


def cluster(bootstrap: str, login: Mapping[str, str] | None = None) -> Any:
    """Return the metadata of the cluster: brokers and topics."""
    settings = {"bootstrap.servers": bootstrap, **(login or {})}
    return admin.AdminClient(settings).list_topics(timeout=SECONDS_MAX)


def produce(bootstrap: str, *values: bytes, topic: str = "t") -> None:
    """Produce records, acknowledged."""
    failures: list[object] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(SECONDS_MAX) == 0
    assert failures == [None] * len(values)


def consume(bootstrap: str, count: int, topic: str = "t") -> list[bytes | None]:
    """Return the values of the first records of partition 0."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "g"})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found = [message.value() for message in consumer.consume(count, SECONDS_MAX)]
    consumer.close()
    return found


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port that somebody else listens on."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


class TestReady:
    """One line on stdout, once it answers."""

    def test_the_line_for_programs(self, tmp_path: Path) -> None:
        """Bootstrap address, data directory, layout and process id, as JSON, and nothing more."""
        with Serving("--json", "--data", tmp_path) as serving:
            host, _, port = serving.bootstrap.rpartition(":")
            assert (host, int(port) > 0) == ("127.0.0.1", True)
            assert serving.ready == {
                "bootstrap": serving.bootstrap,
                "data": str(tmp_path),
                "layout": "kafka",
                "pid": serving.process.pid,
            }
            produce(serving.bootstrap, b"v")
            assert serving.stop() == 0
            assert (serving.out, serving.err) == ("", "")

    def test_the_line_for_people(self, tmp_path: Path) -> None:
        """The same in words, with how to stop it."""
        with Serving("--data", tmp_path) as serving:
            assert serving.line.startswith("Kafka broker at 127.0.0.1:")
            assert str(tmp_path) in serving.line
            assert "Ctrl-C" in serving.line

    def test_a_port_that_is_asked_for(self) -> None:
        """If it is free it is the one."""
        port = free_port()
        assert port is not None
        with Serving("--json", port=port) as serving:
            assert serving.bootstrap == f"127.0.0.1:{port}"

    def test_metadata_names_the_address_that_the_line_names(self) -> None:
        """Clients go on with the address that they are told."""
        with Serving("--json") as serving:
            (broker,) = cluster(serving.bootstrap).brokers.values()
            assert f"{broker.host}:{broker.port}" == serving.bootstrap


class TestStop:
    """SIGTERM, Ctrl-C, and a terminal that goes away."""

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    def test_a_stop_is_clean(self, tmp_path: Path, number: signal.Signals) -> None:
        """Exit code 0, the clean marker is there, and the next start finds every record."""
        with Serving("--json", "--data", tmp_path) as serving:
            produce(serving.bootstrap, b"a", b"b", b"c")
            assert not (tmp_path / ".kafka_cleanshutdown").exists()
            assert serving.stop(number) == 0
            assert serving.err == ""
        assert (tmp_path / ".kafka_cleanshutdown").exists()
        with Serving("--json", "--data", tmp_path) as serving:
            assert consume(serving.bootstrap, 3) == [b"a", b"b", b"c"]

    def test_a_stop_with_clients_connected_is_clean_too(self, tmp_path: Path) -> None:
        """A consumer in the middle of a long poll is hung up on."""
        with Serving("--json", "--data", tmp_path) as serving:
            produce(serving.bootstrap, b"a")
            host, _, port = serving.bootstrap.rpartition(":")
            asked = [("t", [{"partition": 0, "fetch_offset": 1}])]
            fetch = build(
                message_class("FetchRequest"), 4, fetch_fields(asked, 4, max_wait_ms=3_600_000)
            )
            fetch.with_header(correlation_id=1, client_id="test")
            with socket.create_connection((host, int(port)), SECONDS_MAX) as consumer:
                consumer.sendall(bytes(fetch.encode(version=4, header=True, framed=True)))
                assert serving.stop(signal.SIGTERM) == 0
                with suppress(ConnectionResetError):
                    assert consumer.recv(1) == b""
            assert serving.err == ""
        assert (tmp_path / ".kafka_cleanshutdown").exists()

    def test_under_nohup_a_terminal_may_go_away(self) -> None:
        """Who starts it with SIGHUP ignored keeps it; clients are answered as before."""
        kept = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            serving = Serving("--json")
            with serving:
                serving.process.send_signal(signal.SIGHUP)
                produce(serving.bootstrap, b"a")
                assert serving.stop() == 0
        finally:
            signal.signal(signal.SIGHUP, kept)

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    def test_a_temporary_directory_goes_away(self, number: signal.Signals) -> None:
        """Without --data nothing is left behind."""
        with Serving("--json") as serving:
            directory = Path(serving.ready["data"])
            produce(serving.bootstrap, b"a")
            assert (directory / "t-0").is_dir()
            assert serving.stop(number) == 0
            assert serving.err == ""
        assert not directory.exists()

    def test_after_a_kill_the_next_start_recovers(self, tmp_path: Path) -> None:
        """Acknowledged records are there, though nothing was stopped cleanly."""
        with Serving("--json", "--data", tmp_path) as serving:
            produce(serving.bootstrap, b"a", b"b")
            assert serving.stop(signal.SIGKILL) == -signal.SIGKILL
        assert not (tmp_path / ".kafka_cleanshutdown").exists()
        with Serving("--json", "--data", tmp_path) as serving:
            assert consume(serving.bootstrap, 2) == [b"a", b"b"]


class TestSettings:
    """What server.properties and --set say."""

    def test_the_command_line_wins(self, tmp_path: Path) -> None:
        """--set over the file, the last --set over those before it, both over the defaults."""
        properties = tmp_path / "server.properties"
        properties.write_text(
            "# a comment\nnum.partitions = 3\nlog.retention.hours: 5\n"
            "message.max.bytes=\\\n   2000000\n"
        )
        with Serving(
            "--json", "-c", properties, "--set", "num.partitions=4", "--set", "num.partitions=5",
            "--set", "log.retention.bytes=77",
        ) as serving:  # fmt: skip
            found = configs(serving.bootstrap)
            wanted = {
                "num.partitions": "5",
                "log.retention.hours": "5",
                "message.max.bytes": "2000000",
                "log.retention.bytes": "77",
            }
            assert {name: found[name] for name in wanted} == wanted
            produce(serving.bootstrap, b"v", topic="made")
            topics = cluster(serving.bootstrap).topics
            assert len(topics["made"].partitions) == 5

    def test_what_kafka_does_not_know_is_warned_of(self) -> None:
        """A line each on stderr; what Kafka knows and nothing here needs is taken in silence."""
        with Serving(
            "--json", "--set", "num.partitionz=4", "--set", "zookeeper.connect=z:1", "--set",
            "num.network.threads=8", "--set", "flux.capacitor=on",
        ) as serving:  # fmt: skip
            assert serving.stop() == 0
        assert serving.err.splitlines() == [
            "logstore: warning: flux.capacitor: no such setting in Kafka; ignored",
            (
                "logstore: warning: num.partitionz: no such setting in Kafka; ignored; "
                "did you mean num.partitions?"
            ),
        ]

    def test_the_directory_and_the_address_of_the_file(self, tmp_path: Path) -> None:
        """log.dirs and listeners are used; what clients are told is advertised.listeners."""
        port = free_port()
        assert port is not None
        properties = tmp_path / "server.properties"
        properties.write_text(
            f"log.dirs={tmp_path}/data\n"
            f"listeners=CONTROLLER://:9093,INSIDE://127.0.0.1:{port}\n"
            f"advertised.listeners=INSIDE://localhost:{port}\n"
            "listener.security.protocol.map=CONTROLLER:SASL_SSL,INSIDE:PLAINTEXT\n"
        )
        with Serving("--json", "-c", properties, port=None) as serving:
            assert serving.bootstrap == f"localhost:{port}"
            assert serving.ready["data"] == f"{tmp_path}/data"
            produce(serving.bootstrap, b"v")
        assert (tmp_path / "data" / "t-0").is_dir()
        with Serving(
            "--json", "-c", properties, "--data", tmp_path / "other", "--set",
            "advertised.listeners=", port=0,
        ) as serving:  # fmt: skip
            assert serving.bootstrap != f"localhost:{port}"
            assert serving.ready["data"] == f"{tmp_path}/other"

    @pytest.mark.parametrize(
        ("assignment", "line"),
        [
            (
                "num.partitions=many",
                "Invalid value many for configuration num.partitions: Not a number of type INT",
            ),
            (
                "num.partitions=0",
                "Invalid value 0 for configuration num.partitions: Value must be at least 1",
            ),
            (
                "auto.create.topics.enable=maybe",
                "Invalid value maybe for configuration auto.create.topics.enable: Expected value",
            ),
            (
                "compression.type=rar",
                "Invalid value rar for configuration compression.type: String must be one of: unc",
            ),
            ("log.dirs=/a,/b", "log.dirs = '/a,/b': must be one directory"),
            ("listeners=here", "listeners = 'here': must be a list of NAME://HOST:PORT"),
            ("listeners=SSL://:9", "ssl.keystore.location = None: must be set"),
            ("listeners=PLAINTEXT://:99999", "listeners = 'PLAINTEXT://:99999': must be a list"),
        ],
    )
    def test_a_value_that_is_not_allowed(self, assignment: str, line: str) -> None:
        """One line names the key, the value and what is allowed."""
        code, err = refused("--set", assignment)
        assert (code, len(err.splitlines())) == (1, 1)
        assert err.startswith(f"logstore: {line}")

    def test_a_file_that_cannot_be_understood(self, tmp_path: Path) -> None:
        """The line names the file."""
        properties = tmp_path / "server.properties"
        properties.write_text("key=\\u12\n")
        code, err = refused("-c", properties)
        assert (code, len(err.splitlines())) == (1, 1)
        assert str(properties) in err

    @pytest.mark.parametrize("arguments", [("--set", "num.partitions"), ("--set", "=4")])
    def test_an_assignment_that_is_none(self, arguments: tuple[str, ...]) -> None:
        """Wrong use of the command is exit code 2, and says what was meant."""
        code, err = refused(*arguments)
        assert (code, "is not KEY=VALUE" in err) == (2, True)


class TestRefusals:
    """What cannot be served is said in one line, with exit code 1, and is left as it was."""

    def check(self, *arguments: object, words: tuple[str, ...]) -> None:
        """The start fails with one line that has all these words."""
        code, err = refused(*arguments)
        assert (code, len(err.splitlines())) == (1, 1), err
        assert err.startswith("logstore: ")
        assert [word for word in words if word not in err] == []

    def test_a_directory_that_is_served_already(self, tmp_path: Path) -> None:
        """Two processes cannot serve one directory; the first one does not notice."""
        with Serving("--json", "--data", tmp_path) as serving:
            self.check("--data", tmp_path, words=(f"{tmp_path}/.lock", "another broker", "stop it"))
            produce(serving.bootstrap, b"v")

    def test_a_directory_of_another_node(self, tmp_path: Path) -> None:
        """The line names the file, both nodes and what to do; who names no node may serve it."""
        with Serving("--json", "--data", tmp_path):
            pass
        self.check(
            "--set", "node.id=7", "--data", tmp_path,
            words=(f"{tmp_path}/meta.properties", "node.id is 1", "node 7", "set node.id=1"),
        )  # fmt: skip
        with Serving("--json", "--data", tmp_path, "--set", "node.id=1"):
            pass

    def test_a_directory_of_something_else(self, tmp_path: Path) -> None:
        """The line names what does not belong there; nothing is added or removed."""
        (tmp_path / "thesis.txt").write_text("the only copy")
        self.check("--data", tmp_path, words=(f"{tmp_path}/thesis.txt", "name an empty directory"))
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]

    def test_a_file(self, tmp_path: Path) -> None:
        """A file is no directory."""
        (tmp_path / "file").write_text("")
        self.check("--data", tmp_path / "file", words=(f"{tmp_path}/file", "name a directory"))

    def test_a_directory_that_cannot_be_made(self) -> None:
        """Where nobody may write, the line says so."""
        self.check("--data", "/proc/none/data", words=("/proc/none/data", "cannot be created"))

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_directory_that_is_read_only(self, tmp_path: Path) -> None:
        """The lock cannot be taken there."""
        tmp_path.chmod(0o555)
        self.check("--data", tmp_path, words=(f"{tmp_path}/.lock", "must be writable"))

    def test_a_missing_directory_is_made(self, tmp_path: Path) -> None:
        """With its parents."""
        with Serving("--json", "--data", tmp_path / "a" / "b") as serving:
            assert serving.ready["data"] == f"{tmp_path}/a/b"

    def test_a_port_that_is_taken(self, taken_port: int, tmp_path: Path) -> None:
        """The line names it; the directory can be served elsewhere."""
        self.check(
            "--data", tmp_path, "--port", taken_port,
            words=(f"127.0.0.1:{taken_port} is taken", "name another port"),
        )  # fmt: skip
        with Serving("--data", tmp_path):
            pass

    def test_an_address_of_another_machine(self) -> None:
        """It cannot be listened on."""
        self.check("--host", "192.0.2.1", words=("192.0.2.1", "cannot be listened on"))


def test_a_log_that_is_damaged_although_the_stop_was_clean(tmp_path: Path) -> None:
    """It is served up to the damage; what is cut off is kept, and named."""
    with Serving("--json", "--data", tmp_path) as serving:
        produce(serving.bootstrap, b"a", b"b")
    (log,) = (tmp_path / "t-0").glob("*.log")
    log.write_bytes(log.read_bytes()[:-1])
    with Serving("--json", "--data", tmp_path):
        pass
    assert list((tmp_path / "t-0").glob("*.log.cut-at-*"))


def test_a_disk_that_is_read_only_is_said_so(
    logstore: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also root cannot write there: the lock says it."""
    really_open = os.open

    def open_read_only(path: str, flags: int, mode: int = 0o777, **more: Any) -> int:
        if str(path).startswith(str(tmp_path)) and flags & (os.O_RDWR | os.O_CREAT):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return really_open(path, flags, mode, **more)

    monkeypatch.setattr(os, "open", open_read_only)
    outcome = logstore("serve", "--data", tmp_path, "--port", 0)
    assert outcome.exit_code == 1
    assert outcome.err == (
        f"logstore: {tmp_path}/.lock: cannot be written: Read-only file system; "
        "the directory must be writable\n"
    )


class TestRelease:
    """``--release-version``, as ``kafka-storage format`` has it."""

    def test_a_new_directory_gets_it(self, tmp_path: Path) -> None:
        """So that a broker of that release can start there; the next start need not name it."""
        with Serving("--data", tmp_path, "--release-version", "3.9"):
            pass
        content = (tmp_path / "bootstrap.checkpoint").read_bytes()
        assert b"metadata.version\x00\x15" in content  # level 21
        with Serving("--data", tmp_path):
            assert (tmp_path / "bootstrap.checkpoint").read_bytes() == content

    @pytest.mark.parametrize("release", ["5.0", "4.3"])
    def test_what_cannot_be(self, tmp_path: Path, release: str) -> None:
        """A release that nobody knows, and another one than the directory has."""
        with Serving("--data", tmp_path, "--release-version", "3.9"):
            pass
        code, err = refused("--data", tmp_path, "--release-version", release)
        told = {"5.0": "no metadata version", "4.3": "version is 3.9-IV0, not 4.3-IV0"}
        assert (code, told[release] in err) == (1, True), err
