"""`logstore serve` as users start it: what it prints, how it stops, why it refuses."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from logstore.tools.dev.kafka_peer import KafkaPeer
from tests.interop.clients import CLIENTS, read_all
from tests.interop.conftest import SETTINGS, new_topic
from tests.interop.our_broker import OurBroker
from tests.interop.raw_wire import answers, produce_error, produce_request
from tests.interop.samples import noise, numbered
from tests.interop.test_bad_records import HONEST, batch

pytestmark = pytest.mark.interop

KAFKA_STORAGE_ERROR = 56
DISK_BYTES = 24 * 1024 * 1024


@attrs.frozen
class Refusal:
    """How a command ended that should not have started."""

    status: int
    lines: list[str]


def refused(*arguments: str | Path, timeout_seconds: float = 30) -> Refusal:
    """Run `logstore` with these arguments; it must end by itself, and print nothing on stdout."""
    done = subprocess.run(
        [sys.executable, "-m", "logstore.tools.cli", *map(str, arguments)],
        text=True,
        capture_output=True,
        timeout=timeout_seconds,
        check=False,
    )
    assert done.stdout == ""
    return Refusal(done.returncode, done.stderr.splitlines())


def assert_one_line(refusal: Refusal, *words: str) -> None:
    """Check that the command failed with one line that has all these words in it."""
    assert refusal.status == 1
    assert len(refusal.lines) == 1, refusal.lines
    for word in words:
        assert word in refusal.lines[0]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[OurBroker]:
    """A broker of the test's own."""
    with OurBroker(tmp_path / "running", SETTINGS) as broker:
        yield broker


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_stop_it_clean(running: OurBroker, number: signal.Signals) -> None:
    """After SIGTERM or Ctrl-C the exit status is 0, and Kafka's clean marker stands there."""
    new_topic(running.bootstrap, "t")
    CLIENTS[0].produce(running.bootstrap, "t", numbered(3))
    assert not (running.data / ".kafka_cleanshutdown").exists()
    os.kill(running.pid, number)
    running.wait()
    assert (running.data / ".kafka_cleanshutdown").exists()
    assert running.log.read_text() == ""


def test_without_a_directory_nothing_stays(tmp_path: Path) -> None:
    """A broker without --data keeps its data in a temporary directory that goes away with it."""
    command = [sys.executable, "-m", "logstore.tools.cli", "serve", "--port", "0"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        assert "127.0.0.1:" in process.stdout.readline()
        assert list(tmp_path.iterdir()) != []
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_busy_port(running: OurBroker, tmp_path: Path) -> None:
    """The line names the address and another way."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        refusal = refused("serve", "--data", tmp_path / "new", "--port", port)
    assert_one_line(refusal, f"127.0.0.1:{port}", "another port")
    assert_one_line(
        refused("serve", "--data", tmp_path / "new", "--port", str(running.port)), "another port"
    )


def test_a_locked_directory(running: OurBroker) -> None:
    """One directory has one broker; the line names the lock."""
    refusal = refused("serve", "--data", running.data, "--port", "0")
    assert_one_line(refusal, str(running.data / ".lock"), "stop it")
    assert answers(running.bootstrap)


def test_a_directory_that_the_real_kafka_holds(real: KafkaPeer) -> None:
    """The lock is Kafka's own, so that the two keep each other out."""
    assert_one_line(refused("serve", "--data", real.data, "--port", "0"), ".lock", "stop it")
    assert answers(real.bootstrap)


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    """The line names the file."""
    file = tmp_path / "a file"
    file.write_text("x")
    assert_one_line(refused("serve", "--data", file, "--port", "0"), str(file), "directory")


def test_a_foreign_directory_is_left_alone(tmp_path: Path) -> None:
    """A directory of something else is not made into a data directory; the line names it."""
    home = tmp_path / "home"
    (home / "Pictures").mkdir(parents=True)
    (home / "letter.txt").write_text("Dear")
    before = sorted(path.name for path in home.rglob("*"))
    assert_one_line(refused("serve", "--data", home, "--port", "0"), str(home), "Kafka")
    assert sorted(path.name for path in home.rglob("*")) == before


@pytest.mark.parametrize("command", ["ls", "dump", "query"])
def test_what_is_not_there_cannot_be_read(command: str, tmp_path: Path) -> None:
    """The reading commands name what is missing, and do not make it."""
    where = tmp_path / "nowhere"
    more = ["--topic", "t", "--partition", "0", "--offset", "0"] if command == "query" else []
    refusal = refused(command, where, *more)
    assert refusal.status in (1, 2)
    assert str(where) in refusal.lines[-1]
    assert not where.exists()


def test_nonsense_settings(tmp_path: Path) -> None:
    """A value of the wrong type names its key; an unknown key is only warned of."""
    where = ("serve", "--data", tmp_path / "new", "--port", "0")
    assert_one_line(refused(*where, "--set", "log.retention.ms=soon"), "log.retention.ms", "soon")
    broker = OurBroker(tmp_path / "warned", {"no.such.key": 1, "background.threads": 3}).start()
    broker.stop()
    lines = broker.log.read_text().splitlines()
    assert len(lines) == 1
    assert "no.such.key" in lines[0]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MiB."""
    where = tmp_path / "disk"
    where.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(where)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting a small disk needs rights that we do not have: {done.stderr}")
    yield where
    subprocess.run(["umount", str(where)], check=True)


def test_a_read_only_directory(small_disk: Path) -> None:
    """The line names the directory that cannot be written to."""
    data = small_disk / "data"
    OurBroker(small_disk, SETTINGS, data).start().stop()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    refusal = refused("serve", "--data", data, "--port", "0")
    assert_one_line(refusal, str(data), "Read-only", "writable")


def fill_up(broker: OurBroker) -> list[bytes]:
    """Produce until the disk refuses; return the values that were acknowledged."""
    taken: list[bytes] = []
    while len(taken) < 1000:
        value = noise(str(len(taken)), 500_000)
        code = produce_error(broker.bootstrap, produce_request("t", batch(1, value)))
        if code != 0:
            assert code == KAFKA_STORAGE_ERROR
            return taken
        taken.append(value)
    raise AssertionError("the disk never filled up")


def assert_readable(broker: OurBroker, values: list[bytes]) -> None:
    """Check that the topic holds these values and no other."""
    found = read_all(CLIENTS[0], broker.bootstrap, "t", len(values))
    assert [record.value for record in found] == values


def test_a_full_disk(small_disk: Path, tmp_path: Path) -> None:
    """KAFKA_STORAGE_ERROR; what was acknowledged can be read, then and after a restart."""
    with OurBroker(tmp_path / "full", SETTINGS, small_disk / "data") as broker:
        new_topic(broker.bootstrap, "t")
        taken = fill_up(broker)
        assert taken
        assert_readable(broker, taken)
        broker.stop(kill=True)
        size = f"remount,size={DISK_BYTES * 2}"
        subprocess.run(["mount", "-o", size, str(small_disk)], check=True)
        broker.start()
        assert_readable(broker, taken)
        assert produce_error(broker.bootstrap, produce_request("t", HONEST)) == 0
        assert_readable(broker, [*taken, b"value", b"value"])


def test_a_file_size_limit(tmp_path: Path) -> None:
    """The operating system's limit on files is a refused write like any other (`ulimit -f`)."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (DISK_BYTES, before[1]))
    broker = OurBroker(tmp_path / "limited", SETTINGS)
    try:
        broker.start()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    try:
        new_topic(broker.bootstrap, "t")
        taken = fill_up(broker)
        assert_readable(broker, taken)
    finally:
        broker.stop(kill=True)
    with broker:
        assert_readable(broker, taken)
        assert produce_error(broker.bootstrap, produce_request("t", HONEST)) == 0
