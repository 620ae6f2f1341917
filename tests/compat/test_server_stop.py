"""How a server stops: everybody is told, and nothing that was answered gets lost."""

from __future__ import annotations

import contextlib
import threading

import pytest

from logstore.compat.connection import Chunk
from tests.compat.scripted_service import (
    SECONDS_MAX,
    ScriptedConnection,
    echo,
    refuse_to_offload,
)
from tests.compat.server_stage import MIB, Stage


def test_everybody_is_hung_up_on_and_told(stage: Stage) -> None:
    """Idle, waiting and blocked connections are lost; the port is free again."""

    def answer(connection: ScriptedConnection, frame: bytes) -> list[Chunk]:
        connection.is_waiting = frame == b"wait"
        return [bytes(int(frame))] if frame.isdigit() else []

    service = stage.serve(answer)
    clients = [stage.client(receive_buffer_bytes=4096) for _ in range(3)]
    clients[0].send(b"wait")
    clients[1].send(b"8000000")
    clients[1].take(1)
    stage.thread.stop()
    assert all(connection.is_lost for connection in service.connections)
    for client in (clients[0], clients[2]):
        assert client.is_hung_up_on()
    with pytest.raises(ConnectionRefusedError):
        stage.client()
    stage.thread.stop()  # twice is fine


def test_who_still_sends_reads_every_answer_first(stage: Stage) -> None:
    """What was taken is answered, and the end is an end: no connection is torn down."""
    taken = 0

    def answer(connection: ScriptedConnection, frame: bytes) -> list[Chunk]:
        nonlocal taken
        taken += 1
        return echo(connection, frame)

    stage.serve(answer)
    client = stage.client()

    def send() -> None:
        with contextlib.suppress(OSError):
            while True:
                client.send(*[b"more"] * 50)

    sender = threading.Thread(target=send)
    sender.start()
    size_bytes = 0
    threading.Timer(0.05, stage.thread.stop).start()
    while piece := client.socket.recv(MIB):  # raises where the connection is torn down
        size_bytes += len(piece)
    client.socket.close()
    sender.join()
    assert size_bytes == 8 * taken
    assert taken > 50


def test_an_answer_that_waited_for_the_disk_is_sent(stage: Stage) -> None:
    """Whoever waits for work that ends with the stop is answered all the same."""
    may_end = threading.Event()

    def work() -> None:
        may_end.wait(SECONDS_MAX)

    def answer(connection: ScriptedConnection, frame: bytes) -> list[Chunk]:
        def done(error: BaseException | None) -> None:
            connection.come_back([b"durable" if error is None else b"failed"])

        connection.is_waiting = True
        service.offload(work, done)
        return []

    service = stage.serve(answer)
    client = stage.client()
    client.send(b"store this")
    threading.Timer(0.05, may_end.set).start()
    threading.Timer(0.02, stage.thread.stop).start()
    assert client.take(100) == b"durable"


def test_work_that_was_begun_is_finished(stage: Stage) -> None:
    """And its end is told before the loop is gone."""
    service = stage.serve()
    may_end, events = threading.Event(), list[str]()

    def work() -> None:
        may_end.wait(SECONDS_MAX)
        events.append("worked")

    stage.thread.call(lambda: service.offload(work, lambda _: events.append("told")))
    threading.Timer(0.05, may_end.set).start()
    stage.thread.stop()
    assert events == ["worked", "told"]


def test_the_service_is_left_as_it_was(stage: Stage) -> None:
    """It may add timers and be served again."""
    service = stage.serve()
    stage.thread.stop()
    assert (service.offload, service.timers.on_earlier) == (refuse_to_offload, None)
    service.timers.after(1, lambda: None)
