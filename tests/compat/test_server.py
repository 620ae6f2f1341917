"""The driver over real sockets: every byte arrives, in order, whatever the peer does."""

from __future__ import annotations

import errno
import os
import struct
import threading
from functools import partial
from pathlib import Path

import pytest

from logstore.compat.connection import Chunk
from logstore.os_host import SystemFileSystem
from logstore.segment import Extent
from tests.compat.scripted_service import (
    SECONDS_MAX,
    Answer,
    ScriptedConnection,
    always,
    echo,
)
from tests.compat.server_stage import MIB, Stage


def extent_of(path: Path, data: bytes) -> Extent:
    """Write a file and return the run that it is."""
    path.write_bytes(data)
    return Extent(SystemFileSystem().open(str(path)), 0, len(data))


def pattern(size_bytes: int) -> bytes:
    """Return bytes in which every displacement shows."""
    return b"".join(struct.pack(">I", number) for number in range(size_bytes // 4 + 1))[:size_bytes]


def test_what_is_sent_comes_back(stage: Stage) -> None:
    """Frames of every size, one at a time and many at once, are answered in order."""
    stage.serve()
    client = stage.client()
    payloads = [pattern(size) for size in (0, 1, 100, 70_000, 3 * MIB, 5)]
    for payload in payloads:
        client.send(payload)
        assert client.receive() == payload
    client.send(*payloads)
    assert [client.receive() for _ in payloads] == payloads


@pytest.mark.parametrize("has_descriptor", [True, False])
def test_a_slow_reader_gets_every_byte(stage: Stage, tmp_path: Path, has_descriptor: bool) -> None:
    """Runs of files and bytes between them, 6 MiB through a few KiB of buffer at a time."""
    data = pattern(2 * MIB + 13)
    extent = extent_of(tmp_path / "log", data)
    if not has_descriptor:
        extent = Extent(NoDescriptor(extent), 0, len(data))  # type: ignore[arg-type]
    answer: list[Chunk] = [b"head", extent, b"", b"middle", b"more", extent, extent, b"tail"]
    stage.serve(always(*answer))
    client = stage.client(receive_buffer_bytes=4096)
    client.send(b"all of it")
    expected = b"head" + data + b"middlemore" + data + data + b"tail"
    got = client.take(len(expected), step_bytes=50_000)
    assert got == expected
    client.send(b"once more")
    assert client.take(len(expected)) == expected


class NoDescriptor:
    """A file that no kernel knows, such as one in memory."""

    def __init__(self, extent: Extent) -> None:
        self._extent = extent

    def fileno(self) -> None:
        """Return None: it must be read to be sent."""

    def read(self, position: int, size_bytes: int) -> bytes:
        """Return bytes of it."""
        return self._extent.file.read(position, size_bytes)


def test_parts_of_files_are_sent_from_where_they_stand(stage: Stage, tmp_path: Path) -> None:
    """Positions and sizes are kept; an empty run sends nothing."""
    data = pattern(100_000)
    file = extent_of(tmp_path / "log", data).file
    runs = [(0, 10), (99_990, 10), (50, 0), (12_345, 70_000)]
    stage.serve(always(*[Extent(file, *run) for run in runs]))
    client = stage.client()
    client.send(b"")
    expected = b"".join(data[start : start + size] for start, size in runs)
    assert client.take(len(expected)) == expected


def test_who_does_not_read_is_not_served_on(stage: Stage, tmp_path: Path) -> None:
    """With answers stuck, no more requests are read; when they move, all are served, in order."""
    count, size_bytes = 400, 128 * 1024
    service = stage.serve(lambda _, frame: [frame + bytes(size_bytes - len(frame))])
    client = stage.client(receive_buffer_bytes=4096)
    sender = threading.Thread(
        target=client.send,
        args=[struct.pack(">I", number) + bytes(8000) for number in range(count)],
    )
    sender.start()
    other = stage.client()
    other.send(b"others are served meanwhile")
    assert len(other.take(size_bytes)) == size_bytes
    answers = [client.take(size_bytes)]
    assert service.handled < count // 2
    answers += [client.take(size_bytes) for _ in range(count - 1)]
    sender.join(SECONDS_MAX)
    assert [struct.unpack_from(">I", answer)[0] for answer in answers] == list(range(count))
    assert service.handled == count + 1


def test_while_an_answer_is_awaited_nothing_is_read(stage: Stage) -> None:
    """The connection is paused; the answer, when it comes, goes out, and what is behind it too."""

    def answer(connection: ScriptedConnection, frame: bytes) -> list[Chunk]:
        if frame == b"wait":
            connection.is_waiting = True
            asked.set()
            return []
        return echo(connection, frame)

    asked = threading.Event()
    service = stage.serve(answer)
    client = stage.client()
    client.send(b"first", b"wait", b"second")
    assert client.receive() == b"first"
    assert asked.wait(SECONDS_MAX)
    client.send(b"third", pattern(2 * MIB))
    connection = service.connections[0]
    stage.thread.call(lambda: connection.come_back([struct.pack(">i", 6), b"waited"]))
    assert [client.receive() for _ in range(3)] == [b"waited", b"second", b"third"]
    assert client.receive() == pattern(2 * MIB)


def test_a_connection_that_closes_sends_its_last_words(stage: Stage, tmp_path: Path) -> None:
    """All output goes out before the server hangs up, however slowly it is read."""
    data = pattern(2 * MIB)
    extent = extent_of(tmp_path / "log", data)

    def answer(connection: ScriptedConnection, frame: bytes) -> list[Chunk]:
        connection.is_closing = True
        return [b"last words: ", extent]

    service = stage.serve(answer)
    client = stage.client(receive_buffer_bytes=4096)
    client.send(b"bye")
    assert client.take(12 + len(data), step_bytes=40_000) == b"last words: " + data
    assert client.is_hung_up_on()
    service.wait_for_loss()


def test_a_connection_that_closes_reads_no_more(stage: Stage) -> None:
    """A peer that goes on sending to a closing connection does not fill the memory."""

    def answer(connection: ScriptedConnection, frame: bytes) -> list[Chunk]:
        connection.is_closing = True
        return [bytes(16 * MIB)]

    service = stage.serve(answer)
    client = stage.client(receive_buffer_bytes=4096)
    client.send(b"bye")
    client.socket.settimeout(0.2)
    with pytest.raises((TimeoutError, ConnectionError)):
        client.socket.sendall(bytes(64 * MIB))
    pending = stage.thread.call(service.connections[0].frames.pending)
    assert len(pending) < 8 * MIB
    assert service.handled == 1


@pytest.mark.parametrize("is_file", [True, False])
def test_a_peer_that_vanishes_in_the_middle_harms_nobody(
    stage: Stage, tmp_path: Path, is_file: bool
) -> None:
    """Reset while a large answer is on its way: the connection is lost, the others go on."""
    data = pattern(3 * MIB)
    chunk: Chunk = extent_of(tmp_path / "log", data) if is_file else data
    service = stage.serve(always(chunk, b"tail", chunk))
    survivor = stage.client(receive_buffer_bytes=4096)
    survivor.send(b"")
    for _ in range(5):
        client = stage.client(receive_buffer_bytes=4096)
        client.send(b"", b"")
        assert client.take(100_000) == data[:100_000]
        client.reset()
        service.wait_for_loss()
    assert survivor.take(2 * len(data) + 4, step_bytes=100_000) == data + b"tail" + data
    assert stage.thread.call(lambda: sum(c.is_lost for c in service.connections)) == 5


@pytest.mark.parametrize("is_file", [True, False])
def test_a_peer_that_vanishes_while_it_waits_is_noticed_at_the_answer(
    stage: Stage, tmp_path: Path, is_file: bool
) -> None:
    """The answer goes nowhere, and the connection is lost."""
    data = bytes(100_000)
    chunk: Chunk = extent_of(tmp_path / "log", data) if is_file else data
    asked = threading.Semaphore(0)

    def answer(connection: ScriptedConnection, frame: bytes) -> list[Chunk]:
        connection.is_waiting = True
        asked.release()
        return []

    service = stage.serve(answer)
    for _ in range(20):
        client = stage.client()
        client.send(b"wait")
        assert asked.acquire(timeout=SECONDS_MAX)
        client.reset()
    for connection in service.connections:
        for _ in range(2):
            stage.thread.call(partial(connection.come_back, [chunk, chunk]))
        service.wait_for_loss()
    assert all(connection.is_lost for connection in service.connections)


def test_a_fault_in_one_connection_ends_that_one_only(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """Who made the server stumble is hung up on, and the log says why; the others are served on."""

    def answer(connection: ScriptedConnection, frame: bytes) -> list[Chunk]:
        if frame == b"stumble":
            raise ArithmeticError("over a stone")
        return echo(connection, frame)

    service = stage.serve(answer)
    other, client = stage.client(), stage.client()
    client.send(b"stumble")
    assert client.is_hung_up_on()
    service.wait_for_loss()
    other.send(b"still there?")
    assert other.receive() == b"still there?"
    assert "over a stone" in caplog.text
    caplog.clear()


def lets_wait(asked: threading.Event) -> Answer:
    """Return a script that says when it is asked, and leaves the answer for later."""

    def answer(connection: ScriptedConnection, frame: bytes) -> list[Chunk]:
        connection.is_waiting = True
        asked.set()
        return []

    return answer


def test_who_vanishes_while_it_waits_is_lost_at_once(stage: Stage) -> None:
    """A reset is noticed although nothing is read: what was kept for the peer is let go of."""
    asked = threading.Event()
    service = stage.serve(lets_wait(asked))
    client = stage.client()
    client.send(b"wait", b"and more", b"and more")
    assert asked.wait(SECONDS_MAX)
    client.reset()
    service.wait_for_loss()
    assert service.connections[0].is_lost


def test_who_vanishes_after_sending_more_is_lost_too(stage: Stage) -> None:
    """Nothing more is read of somebody who waits, and that he goes is noticed all the same."""
    asked = threading.Event()
    service = stage.serve(lets_wait(asked))
    client, other = stage.client(), stage.client()
    client.send(b"wait")
    assert asked.wait(SECONDS_MAX)
    for _ in range(3):  # the server has turns in which it sees that there is more
        client.send(b"more")
        asked.clear()
        other.send(b"wait")
        assert asked.wait(SECONDS_MAX)
        other.reset()
        service.wait_for_loss()
        other = stage.client()
    client.reset()
    service.wait_for_loss()
    assert service.connections[0].is_lost


def test_more_at_once_than_a_turn_takes(stage: Stage) -> None:
    """Two hundred peers that ask while the server is busy are all answered."""
    stage.serve()
    clients = [stage.client() for _ in range(200)]

    def ask_all() -> None:
        for number, client in enumerate(clients):
            client.send(struct.pack(">I", number))

    stage.thread.call(ask_all)
    assert [int.from_bytes(client.receive(), "big") for client in clients] == list(range(200))


def test_nobody_waits_for_those_behind_one_who_brings_much(stage: Stage) -> None:
    """Answers to 16 KiB of requests go out before the next peer of the same turn is served."""

    def answer(connection: ScriptedConnection, frame: bytes) -> list[Chunk]:
        if frame == b"little":
            unsent.append([len(other.output) for other in service.connections])
        return echo(connection, frame)

    unsent: list[list[int]] = []
    service = stage.serve(answer)
    much, little = stage.client(), stage.client()
    for client in (much, little):
        client.send(b"here")
        assert client.receive() == b"here"

    def ask_both() -> None:
        much.send(*[b"much"] * 4096)
        little.send(b"little")

    stage.thread.call(ask_both)
    assert little.receive() == b"little"
    assert [much.receive() for _ in range(4096)] == [b"much"] * 4096
    assert unsent == [[0, 0]]


def test_a_file_that_ends_too_early_ends_the_connection(stage: Stage, tmp_path: Path) -> None:
    """The promised length cannot be kept; nothing else is sent in its place."""
    data = pattern(100_000)
    extent = extent_of(tmp_path / "log", data)
    stage.serve(always(Extent(extent.file, 0, 200_000), b"never sent"))
    client = stage.client()
    client.send(b"")
    assert client.take(200_000) == data
    assert client.is_hung_up_on()
    again = stage.client()
    again.send(b"")
    assert again.take(10) == data[:10]


def test_a_file_that_cannot_be_read_ends_the_connection(stage: Stage, tmp_path: Path) -> None:
    """Closed, or on a broken disk: the peer is hung up on, the server goes on."""

    class Broken(NoDescriptor):
        def read(self, position: int, size_bytes: int) -> bytes:  # noqa: ARG002 - it is a File's
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    extent = extent_of(tmp_path / "log", bytes(100))
    closed = extent_of(tmp_path / "closed", bytes(100))
    closed.file.close()
    files = {b"broken": Broken(extent), b"closed": closed.file}
    stage.serve(lambda _, frame: [Extent(files[frame], 0, 100)])  # type: ignore[arg-type]
    for name in files:
        client = stage.client()
        client.send(name)
        assert client.is_hung_up_on()


def test_a_file_may_be_removed_while_it_is_sent(stage: Stage, tmp_path: Path) -> None:
    """Retention does not take the bytes away from who is reading them."""
    data = pattern(3 * MIB)
    path = tmp_path / "log"
    stage.serve(always(extent_of(path, data)))
    client = stage.client(receive_buffer_bytes=4096)
    client.send(b"")
    assert client.take(10_000) == data[:10_000]
    path.unlink()
    assert client.take(len(data) - 10_000) == data[10_000:]


def test_many_connections_at_once(stage: Stage) -> None:
    """Each gets its own answers."""
    service = stage.serve()
    clients = [stage.client() for _ in range(200)]
    for round_number in range(3):
        for number, client in enumerate(clients):
            client.send(struct.pack(">II", round_number, number))
        for number, client in enumerate(clients):
            assert client.receive() == struct.pack(">II", round_number, number)
    for client in clients:
        client.socket.close()
        service.wait_for_loss()


class TestTimers:
    """Time is kept by the loop."""

    def test_timers_fire_in_order(self, stage: Stage) -> None:
        """An earlier one that is added later shortens the sleep."""
        service = stage.serve()
        fired: list[str] = []
        done = threading.Event()

        def add() -> None:
            service.timers.after(3_600_000, lambda: fired.append("in an hour"))
            service.timers.after(40, done.set)
            service.timers.after(30, lambda: fired.append("second"))
            service.timers.after(20, lambda: fired.append("first"))
            service.timers.after(10, lambda: fired.append("never")).cancel()

        stage.thread.call(add)
        assert done.wait(SECONDS_MAX)
        assert fired == ["first", "second"]

    def test_what_is_nearly_due_is_slept_for(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also for less than the loop's own millisecond: the server looked until then."""
        service = stage.serve()
        look_counts: list[int] = []
        done = threading.Event()
        run = service.timers.run

        def counted() -> None:
            look_counts[-1] += 1
            run()

        def add() -> None:
            look_counts.append(0)
            next_one = add if len(look_counts) < 20 else done.set
            service.timers.after(10.4, next_one)

        monkeypatch.setattr(service.timers, "run", counted)
        stage.thread.call(add)
        assert done.wait(SECONDS_MAX)
        assert sum(look_counts) <= 3 * len(look_counts)

    def test_a_timer_that_fails_stops_no_other(
        self, stage: Stage, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Its traceback is logged; those behind it fire, and those added later."""
        service = stage.serve()
        done = threading.Event()

        def fail() -> None:
            raise RuntimeError("a fault of ours")

        def go_on() -> None:
            service.timers.after(5, done.set)

        def add() -> None:
            service.timers.after(5, fail)
            service.timers.after(5, go_on)

        stage.thread.call(add)
        assert done.wait(SECONDS_MAX)
        assert "a fault of ours" in caplog.text
        caplog.clear()


class TestOffload:
    """Blocking work is done in threads."""

    def test_work_is_done_elsewhere_and_its_end_told_in_the_loop(self, stage: Stage) -> None:
        """With what it raised, None if nothing."""
        service = stage.serve()
        threads: dict[str, str] = {}
        ends: list[BaseException | None] = []
        done = threading.Semaphore(0)

        def work() -> None:
            threads["work"] = threading.current_thread().name

        def fail() -> None:
            raise OSError(errno.EIO, "no disk")

        def end(error: BaseException | None) -> None:
            threads["end"] = threading.current_thread().name
            ends.append(error)
            done.release()

        for job in (work, fail):
            stage.thread.call(partial(service.offload, job, end))
            assert done.acquire(timeout=SECONDS_MAX)
        loop_thread = stage.thread.call(lambda: threading.current_thread().name)
        assert threads["end"] == loop_thread
        assert threads["work"].startswith("logstore-io")
        assert ends[0] is None
        assert isinstance(ends[1], OSError)

    def test_connections_are_served_meanwhile(self, stage: Stage) -> None:
        """Work that takes long keeps nobody waiting."""
        service = stage.serve()
        is_over, ended = threading.Event(), threading.Event()

        def work() -> None:
            is_over.wait(SECONDS_MAX)

        stage.thread.call(lambda: service.offload(work, lambda _: ended.set()))
        client = stage.client()
        client.send(b"meanwhile")
        assert client.receive() == b"meanwhile"
        is_over.set()
        assert ended.wait(SECONDS_MAX)
