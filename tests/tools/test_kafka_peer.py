"""The real Kafka as a peer: what holds without starting it."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from logstore.tools.dev import kafka_peer
from logstore.tools.dev.kafka_peer import VERSION_4, KafkaPeer, answers, fetch, free_port_pair, java
from logstore.tools.dev.maven import PeerUnavailable


def test_two_neighbouring_ports_are_free() -> None:
    """Broker and controller can bind what was found, below the kernel's own range."""
    port = free_port_pair()
    assert 12_000 <= port < 32_000
    with socket.create_server(("127.0.0.1", port)), socket.create_server(("127.0.0.1", port + 1)):
        pass


def test_without_maven_one_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that cannot fetch the jars gets one clear error that names what is missing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PeerUnavailable, match=f"Kafka {VERSION_4}: no `mvn` on the PATH"):
        fetch("4")


def test_without_java_one_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting a peer without Java names Java, before anything is fetched."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PeerUnavailable, match="no `java` on the PATH"):
        KafkaPeer("4", tmp_path / "kafka").start()


def test_a_class_path_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every jar is on disk, Maven is not asked; where one is gone, it is."""
    jar = tmp_path / "kafka.jar"
    jar.touch()
    saved = tmp_path / "logstore" / "peers" / "kafka" / "9.9.9" / "classpath.txt"
    saved.parent.mkdir(parents=True)
    saved.write_text(str(jar))
    pom = Path(kafka_peer.__file__).with_name("kafka_peer.xml")
    saved.with_name("pom.xml").write_text(pom.read_text())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("shutil.which", {"java": "java"}.get)
    command = java("9.9.9", "some.Main", "argument", classes="more")
    assert command[0] == "java"
    assert command[-4:] == ["-cp", f"more:{jar}", "some.Main", "argument"]
    jar.unlink()
    with pytest.raises(PeerUnavailable, match="mvn"):
        fetch("9.9.9")


@pytest.mark.parametrize(("broker_count", "expected"), [(1, True), (0, False)])
def test_a_broker_answers_once_metadata_names_it(broker_count: int, *, expected: bool) -> None:
    """A node that is still starting answers Metadata without any broker, and does not count."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(1000)
                peer.sendall(b"".join(n.to_bytes(4, "big") for n in (8, 7, broker_count)))

        thread = threading.Thread(target=serve)
        thread.start()
        assert answers(listener.getsockname()[1]) is expected
        thread.join()


def test_nothing_answers_on_a_closed_port() -> None:
    """A refused connection is no answer and no error."""
    assert not answers(free_port_pair())
