"""A standalone Spark cluster of the pip package, of which any process can be killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import attrs
import pyspark

from logstore.compat.spark.session import ensure_java
from logstore.tools.dev.free_ports import free_port
from tests.interop.eventually import eventually

WORKERS = 2
_EXECUTOR = b"CoarseGrainedExecutorBackend"
_DAEMON = b"pyspark.daemon"


@attrs.frozen
class RunningProcess:
    """What ``/proc`` says of a process."""

    pid: int
    parent_pid: int
    group: int
    command: bytes

    def kill(self) -> bool:
        """Kill it by SIGKILL; False if it had ended by then."""
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True


def running_processes() -> Iterator[RunningProcess]:
    """Yield all processes of the machine that are still there when looked at."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it ended in the meantime
                # Behind the name, which may hold anything: state, parent, process group.
                fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                command = (entry / "cmdline").read_bytes()
                yield RunningProcess(int(entry.name), int(fields[1]), int(fields[2]), command)


def listens(port: int) -> bool:
    """Tell whether somebody takes connections at that port."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


class Cluster:
    """A master and two workers, each a process of its own."""

    def __init__(self, directory: Path) -> None:
        ensure_java()
        port = free_port()
        assert port is not None
        self.url = f"spark://127.0.0.1:{port}"
        self._directory = directory
        self._log = (directory / "cluster.log").open("wb")
        master = ("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1")
        self.processes = [self._start(*master, "--port", str(port), "--webui-port", "0")]
        try:
            eventually(lambda: listens(port), 60, what="a master that listens")
        except AssertionError:
            self.stop()
            raise
        self.processes += [self._start_worker(number) for number in range(1, WORKERS + 1)]

    def _start_worker(self, number: int) -> subprocess.Popen[bytes]:
        folder = self._directory / f"worker-{number}"
        words = ("--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0")
        worker = ("org.apache.spark.deploy.worker.Worker", *words, "--work-dir", str(folder))
        return self._start(*worker, self.url)

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        program = Path(pyspark.__file__).parent / "bin" / "spark-class"
        environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
        return subprocess.Popen(
            [str(program), *words],
            stdout=self._log,
            stderr=self._log,
            env=environment,
            start_new_session=True,
        )

    def executors(self, number: int) -> list[RunningProcess]:
        """Return the executors that a worker has started."""
        group = self.processes[number].pid
        return [
            one for one in running_processes() if one.group == group and _EXECUTOR in one.command
        ]

    def python_workers(self, number: int) -> list[RunningProcess]:
        """Return the Python processes of a worker's executors: those that run tasks come last."""
        found = list(running_processes())
        group = self.processes[number].pid
        parents = {one.pid for one in found if one.group == group and _EXECUTOR in one.command}
        daemons = [one for one in found if one.parent_pid in parents and _DAEMON in one.command]
        pids = {one.pid for one in daemons}
        return daemons + [one for one in found if one.parent_pid in pids]

    def kill(self, number: int) -> None:
        """Kill one of the processes, and the executors that it has started."""
        process = self.processes[number]
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def restart_worker(self, number: int) -> None:
        """Start a worker anew that was killed."""
        assert self.processes[number].poll() is not None, "it runs"
        self.processes[number] = self._start_worker(number)

    def stop(self) -> None:
        """Kill all of them."""
        for number in range(len(self.processes)):
            self.kill(number)
        self._log.close()
