"""A server in a thread: it starts or says why not, and stops."""

from __future__ import annotations

import asyncio
import errno
import socket
import threading

import pytest

from logstore.compat.running import AddressError, ServerThread, run_in_loop
from logstore.compat.server import Server
from tests.compat.scripted_service import ScriptedService, echo


def is_open(port: int) -> bool:
    """Tell whether somebody listens there."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def running_threads() -> set[str]:
    """Return the names of the threads of servers that run."""
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("logstore")}


def test_the_port_is_known_before_the_first_client() -> None:
    """The system chooses one where none is asked for; `start` returns once it answers."""
    ports: list[int] = []
    thread = ServerThread(ScriptedService(echo), ports.append)
    thread.start("127.0.0.1", 0)
    assert is_open(ports[0])
    thread.stop()
    assert not is_open(ports[0])
    assert running_threads() == set()


def test_a_taken_port_is_one_clear_line() -> None:
    """It names the address and what to do; no thread stays behind."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        thread = ServerThread(ScriptedService(echo), lambda _: None)
        with pytest.raises(AddressError, match=f"127.0.0.1:{port} is taken .* name another port"):
            thread.start("127.0.0.1", port)
    thread.stop()
    assert running_threads() == set()


def test_a_foreign_address_is_one_clear_line() -> None:
    """An address of another machine cannot be listened on."""
    thread = ServerThread(ScriptedService(echo), lambda _: None)
    with pytest.raises(AddressError) as told:
        thread.start("192.0.2.1", 0)
    assert str(told.value) == (
        "192.0.2.1:0 cannot be listened on: Cannot assign requested address; name an address of "
        "this machine (0.0.0.0: all)"
    )


def test_a_port_of_the_administrator_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only root may listen below 1024, another port is what helps."""

    async def refuse(server: Server, host: str, port: int) -> int:
        raise PermissionError(errno.EACCES, "Permission denied (while attempting to bind on ...)")

    monkeypatch.setattr(Server, "start", refuse)
    with pytest.raises(AddressError) as told:
        ServerThread(ScriptedService(echo), lambda _: None).start("127.0.0.1", 1)
    assert str(told.value) == (
        "127.0.0.1:1 cannot be listened on: ports below 1024 are the administrator's; name another "
        "port (0: any free one)"
    )


def test_what_fails_at_the_start_is_raised_there() -> None:
    """Also what `on_port` raises; the port is free again."""
    ports: list[int] = []

    def refuse(port: int) -> None:
        ports.append(port)
        raise RuntimeError("not this one")

    with pytest.raises(RuntimeError, match="not this one"):
        ServerThread(ScriptedService(echo), refuse).start("127.0.0.1", 0)
    assert not is_open(ports[0])
    assert running_threads() == set()


def test_work_is_done_in_the_servers_thread() -> None:
    """`call` returns what it returns and raises what it raises."""
    thread = ServerThread(ScriptedService(echo), lambda _: None)
    thread.start("127.0.0.1", 0)
    assert thread.call(lambda: threading.current_thread().name) == "logstore-broker"

    def fail() -> None:
        raise LookupError("nothing there")

    with pytest.raises(LookupError, match="nothing there"):
        thread.call(fail)
    assert thread.call(lambda: 42) == 42
    thread.stop()


def test_stopping_twice_or_before_the_start_is_fine() -> None:
    """There is nothing to stop then."""
    thread = ServerThread(ScriptedService(echo), lambda _: None)
    thread.stop()
    thread.start("127.0.0.1", 0)
    thread.stop()
    thread.stop()
    assert running_threads() == set()


def test_two_servers_do_not_disturb_each_other() -> None:
    """Each has its own loop and its own port."""
    ports: list[int] = []
    threads = [ServerThread(ScriptedService(echo), ports.append) for _ in range(2)]
    for thread in threads:
        thread.start("127.0.0.1", 0)
    assert len(set(ports)) == 2
    threads[0].stop()
    assert (is_open(ports[0]), is_open(ports[1])) == (False, True)
    threads[1].stop()


def test_a_loop_runs_to_the_end_of_its_work() -> None:
    """And raises what the work raises."""
    done: list[str] = []

    async def work() -> None:
        await asyncio.sleep(0)
        done.append("all of it")

    async def fail() -> None:
        raise LookupError("nothing there")

    run_in_loop(work())
    assert done == ["all of it"]
    with pytest.raises(LookupError, match="nothing there"):
        run_in_loop(fail())
