"""What a worker's garbage collections look at, and what it acknowledges when."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
from tempfile import TemporaryFile
from typing import Any

import pytest

from logstore.compat.spark import worker_process
from logstore.compat.spark.worker_process import WorkerFunction

pytest.importorskip(
    "pyspark.sql.streaming.datasource", reason="pyspark before 4.2: streams have no limits"
)

from pyspark.sql.types import StructType

from logstore.compat.spark.options import parse_options
from logstore.compat.spark.reader import LogStoreReader
from logstore.compat.spark.stream_reader import LogStoreStreamReader

_WORKER = """
import gc, os
from logstore.compat.spark.worker_process import settle
frozen = [gc.get_freeze_count()]
settle()
frozen.append(gc.get_freeze_count())
kept = [[] for _ in range(1000)]
settle()
frozen.append(gc.get_freeze_count())
if not os.fork():
    settle()
    os._exit(0 if gc.get_freeze_count() >= frozen[-1] + 1000 else 1)
print(*frozen, os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_what_is_there_is_frozen_once_a_process() -> None:
    """The first call leaves out what was imported, the next ones nothing; a fork counts anew."""
    done = subprocess.run([sys.executable, "-c", _WORKER], capture_output=True, text=True)
    assert not done.stderr
    before, first, second, status = map(int, done.stdout.split())
    assert before == 0
    assert first > 1000
    assert second <= first
    assert status == 0


def _sent(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))  # noqa: S301 - our own


def _answered(one: socket.socket, other: socket.socket) -> None:
    """Let the two talk until each waits with acknowledging for something to send."""
    for _ in range(10):
        one.sendall(b"?")
        other.recv(1)
        other.sendall(b"!")
        one.recv(1)


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="this system has no TCP_QUICKACK")
def test_what_arrives_acknowledges_at_once() -> None:
    """Connections do, files and pipes are passed over, and nothing is left open."""
    with socket.create_server(("127.0.0.1", 0)) as server, TemporaryFile():
        one = socket.create_connection(server.getsockname())
        other, _ = server.accept()
        reading, writing = os.pipe()
        with one, other, open(reading, "rb"), open(writing, "wb"):
            _answered(one, other)
            quick = other.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK)
            open_before = set(os.listdir("/proc/self/fd"))
            function = _sent(WorkerFunction(len))
            assert set(os.listdir("/proc/self/fd")) == open_before
            assert (quick, other.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK)) == (0, 1)
            other.sendall(b"still open")
            assert one.recv(100) == b"still open"
    assert function([1, 2, 3]) == 3


@pytest.mark.parametrize(
    "sent",
    [
        LogStoreReader(parse_options({"path": "store"}), StructType()),
        LogStoreStreamReader(parse_options({"path": "store"}), StructType()),
        WorkerFunction[str, int](len),
    ],
    ids=["reader", "stream reader", "function"],
)
def test_what_tasks_bring_acknowledges(sent: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Spark unpickles in a worker says so; its state comes whole."""
    told: list[str] = []
    monkeypatch.setattr(worker_process, "acknowledge", lambda: told.append("now"))
    arrived = _sent(sent)
    assert told == ["now"]
    assert vars(arrived) == vars(sent)
