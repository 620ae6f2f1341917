"""A broker for tests that is told nonsense, copied, forked, or asked in the wrong place."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from logstore.compat import TestBroker
from logstore.compat.test_broker_arguments import ArgumentError
from logstore.errors import LogStoreError

#: what a copy of a broker does in a process of its own, and what the broker is like afterwards
_FORKED = """
import os, socket, sys
from logstore.compat import TestBroker

layout, does = sys.argv[1:]
broker = TestBroker(layout=layout, tls=True).start()
paths = broker.directory, broker.ca_file
told, tell = os.pipe()
child = os.fork()
if child == 0:
    if does == "stop":
        broker.stop()
    if does == "call":
        for ask in (lambda: broker.call(int), broker.restart, broker.crash):
            try:
                ask()
            except RuntimeError as error:
                assert "which forked this one" in str(error)
            else:
                os._exit(1)
    socket.create_connection(("127.0.0.1", broker.port)).close()
    if does == "stay":
        os.close(told)
        os.write(tell, b".")
        sys.stdin.read()
    sys.exit(0)
if does == "stay":
    os.read(told, 1)
    broker.restart()
    print("restarted", flush=True)
else:
    assert os.waitpid(child, 0)[1] == 0
socket.create_connection(("127.0.0.1", broker.port)).close()
assert all(map(os.path.exists, paths))
broker.create_topic("t")
broker.stop()
assert not any(map(os.path.exists, paths))
print("fine")
"""


@pytest.mark.parametrize("does", ["exit", "stop", "call", "stay"])
@pytest.mark.parametrize("layout", ["kafka", "rocketmq"])
def test_a_fork_leaves_the_broker_alone(layout: str, does: str) -> None:
    """It may connect, and end as it likes; it has neither the broker's files nor its address."""
    with subprocess.Popen(
        # Since 3.12 Python warns of every fork beside a thread.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", _FORKED, layout, does],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        seen = process.stdout.readline()
        if does == "stay":
            assert seen == "restarted\n"
            seen = process.stdout.readline()
        out, err = process.communicate("", timeout=60)
    assert (seen + out, err, process.returncode) == ("fine\n", "", 0)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"layout": "kafak"}, r"layout='kafak'\): it is one of kafka, rocketmq"),
        ({"layout": ["kafka"]}, "layout="),
        ({"protocols": "kafka"}, "protocols='kafka'"),
        ({"protocols": ()}, "protocols="),
        ({"protocols": ("kafka", 5)}, "protocols="),
        ({"port": None}, r"port=None\): a port is 0"),
        ({"port": "9092"}, "port='9092'"),
        ({"port": -1}, "port=-1"),
        ({"layout": "rocketmq", "broker_port": 65536}, "broker_port=65536"),
        ({"broker_port": 9092}, "a Kafka broker has one port"),
        ({"nodes": 0}, "nodes=0"),
        ({"nodes": "3"}, "nodes='3'"),
        ({"nodes": True}, "nodes=True"),
        ({"proxy": True}, "only RocketMQ has a proxy"),
        ({"layout": "rocketmq", "emulate": "2.8"}, "emulate='2.8'"),
        ({"settings": "num.partitions=6"}, "settings='num.partitions=6'"),
        ({"settings": {"num.partitions": None}}, "'num.partitions': None"),
        ({"settings": {5: "6"}}, "settings="),
        ({"users": ["alice"]}, "users="),
        ({"users": {"": "x"}}, "users="),
        ({"users": {"alice": 5}}, "of type int"),
        ({"users": {"a": "b"}, "mechanisms": "PLAIN"}, "mechanisms='PLAIN'"),
        ({"users": {"a": "b"}, "protocols": ("kafka", "rocketmq")}, "the layout's own protocol"),
        ({"directory": b"data"}, "directory=b'data'"),
        ({"directory": 5}, "directory=5"),
        ({"directory": "a\0b"}, "directory="),
    ],
)
def test_nonsense_is_refused_at_once(options: dict[str, Any], told: str) -> None:
    """What is wrong is named, before anything is opened."""
    with pytest.raises(ArgumentError, match=told):
        TestBroker(**options)


def test_what_is_meant_is_taken(tmp_path: Path) -> None:
    """A path of any kind; settings as Python has them, which are text in their file."""
    settings: dict[str, str | float] = {
        "num.partitions": 6,
        "auto.create.topics.enable": False,
        "log.cleaner.min.cleanable.ratio": 0.25,
    }
    with TestBroker(tmp_path / "data", protocols=["kafka", "kafka"], settings=settings) as broker:
        assert broker.directory == str(tmp_path / "data")
        assert broker.broker.config.num_partitions == 6
        broker.create_topic("t", retention_ms=5)
        assert broker.broker.topics["t"].settings == {"retention.ms": "5"}
    settings = {"defaultTopicQueueNums": 3, "autoCreateTopicEnable": False}
    with TestBroker(layout="rocketmq", settings=settings) as rocketmq:
        assert not rocketmq.rocketmq.settings.auto_creates_topics


@pytest.mark.parametrize("layout", ["kafka", "rocketmq"])
def test_topics_are_held_to_the_rules(layout: Any) -> None:
    """As if a client asked: those that cannot be are refused, and nothing is left of them."""
    with TestBroker(layout=layout) as broker:
        setting = "retension_ms" if layout == "kafka" else "message_type"
        before = sorted(Path(broker.directory).iterdir())
        refused: list[tuple[Any, Any, dict[str, Any]]] = [
            ("a b", 1, {}), ("", 1, {}), ("t", 0, {}), ("t", -1, {}), (5, 1, {}), ("t", "1", {}),
            ("t", 1, {setting: "FIFOO"}), ("t", 1, {"nothing": "x"}), ("t", 1, {setting: []}),
        ]  # fmt: skip
        for name, count, more in refused:
            with pytest.raises(LogStoreError):
                broker.create_topic(name, count, **more)
        assert sorted(Path(broker.directory).iterdir()) == before
        broker.create_topic("t")
        if layout == "kafka":
            with pytest.raises(LogStoreError, match="'t' already exists"):
                broker.create_topic("t")


def test_a_broker_alone_has_no_node_to_stop() -> None:
    """It is told, not a StopIteration from within."""
    with TestBroker() as broker:
        with pytest.raises(ValueError, match="node 1 is the only one"):
            broker.stop_node(1)
        broker.create_topic("t")


def test_from_the_brokers_own_thread() -> None:
    """Calls go through at once instead of waiting for themselves; it does not stop itself."""
    with TestBroker() as broker:
        broker.call(lambda: broker.create_topic("t"))
        assert "t" in broker.broker.topics
        for end in (broker.stop, broker.crash, broker.restart):
            with pytest.raises(RuntimeError, match="cannot stop itself"):
                broker.call(end)
        assert broker.is_running
    assert not [one for one in threading.enumerate() if one.name.startswith("logstore")]


def test_many_may_stop_it_at_once() -> None:
    """One of them does; the others return when it is done."""
    broker = TestBroker().start()
    broker.create_topic("t", 50)
    directory = broker.directory
    left: list[bool] = []

    def stop() -> None:
        broker.stop()
        left.append(os.path.exists(directory))

    threads = [threading.Thread(target=stop) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert left == [False] * 8


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_it_is_not_copied(copied: Any) -> None:
    """Two would stop the same thread; what others need is the address."""
    with TestBroker() as broker, pytest.raises(TypeError, match="hand its address on"):
        copied(broker)


def test_a_power_loss_without_a_simulated_disk_is_refused() -> None:
    """Before anything crashes."""
    with TestBroker() as broker:
        with pytest.raises(AssertionError, match="no power is lost"):
            broker.crash(object())  # type: ignore[arg-type] # any
        assert broker.is_running


def test_faults_of_the_disk_are_checked() -> None:
    """A misspelt one would never strike."""
    broker = TestBroker()
    with pytest.raises(ValueError, match="no operation is called 'sink'; it is open, read"):
        broker.disk.fail_next("sink", 5)  # type: ignore[arg-type] # that is it
    with pytest.raises(TypeError, match="not 'EIO'"):
        broker.disk.fail_next("sync", "EIO")  # type: ignore[arg-type] # that is it
